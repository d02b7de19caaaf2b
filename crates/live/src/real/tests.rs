//! The real world against a socket of our own.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::world::{Cut, MAX_RETRY_AFTER};

/// A server that reads one request on each connection and writes a fixed answer; its address, and what it was asked.
async fn server(answer: &'static str) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move { serve(stream, answer, &sender).await });
        }
    });
    (address, receiver)
}

async fn serve(mut stream: TcpStream, answer: &str, asked: &tokio::sync::mpsc::UnboundedSender<String>) {
    let mut buffer = vec![0; 65536];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let _ = asked.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
        if answer.is_empty() {
            continue;
        }
        let _ = stream.write_all(answer.as_bytes()).await;
        if answer.contains("close") {
            return;
        }
    }
}

async fn world(master: &str) -> RealWorld {
    RealWorld::open(&RestConfig { master: Some(master.to_owned()), ..RestConfig::default() }).await.unwrap()
}

#[tokio::test]
async fn nobody_makes_us_wait_for_an_hour() {
    let (address, _asked) =
        server("HTTP/1.1 429 No\r\nretry-after: 3600\r\ncontent-length: 2\r\n\r\n{}").await;
    let reply = world(&address).await.send(Request::get("/api/v1/pods?limit=1")).await.unwrap();
    assert_eq!(reply.retry_after, Some(MAX_RETRY_AFTER));
}

#[tokio::test]
async fn a_plain_master_is_asked_without_any_kubeconfig() {
    let (address, mut asked) =
        server("HTTP/1.1 429 No\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}").await;
    let world = world(&address).await;
    for _ in 0..2 {
        let reply = world.send(Request::get("/api/v1/pods?limit=1")).await.unwrap();
        assert_eq!((reply.status, reply.retry_after), (429, Some(Duration::from_secs(3))));
        let asked = asked.recv().await.unwrap();
        assert!(asked.starts_with("GET /api/v1/pods?limit=1 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("user-agent: supercargo/"), "{asked}");
        assert!(asked.contains("accept: application/json"), "{asked}");
        assert!(!asked.contains("accept-encoding"), "{asked}");
    }
}

#[tokio::test]
async fn a_refused_connection_was_never_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let Err(Unanswered::NotSent(why)) = world(&address).await.send(Request::get("/")).await else {
        panic!("sent");
    };
    assert_eq!(why, format!("connection refused by http://{address}"));
}

#[tokio::test]
async fn a_server_that_hangs_or_hangs_up_leaves_the_outcome_unknown() {
    let (hangs, _asked) = server("").await;
    let request = Request::get("/").within(Duration::from_millis(50));
    let answer = world(&hangs).await.send(request).await;
    assert!(matches!(answer, Err(Unanswered::OutcomeUnknown(_))), "{answer:?}");

    let (hangs_up, _asked) =
        server("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\n{").await;
    let answer = world(&hangs_up).await.send(Request::get("/")).await;
    assert!(matches!(answer, Err(Unanswered::OutcomeUnknown(_))), "{answer:?}");
}

#[tokio::test]
async fn a_watch_gives_lines_and_tells_a_cut_from_an_end() {
    let (ends, _asked) =
        server("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\n{\"a\":1}\n").await;
    let lines: Vec<_> =
        world(&ends).await.watch(Request::get("/")).await.unwrap_or_else(|_| panic!()).collect().await;
    assert_eq!(lines, [Ok(Bytes::from("{\"a\":1}"))]);

    let (cut, _asked) =
        server("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99\r\n\r\n{\"a\":1}\n{\"b\"").await;
    let lines: Vec<_> =
        world(&cut).await.watch(Request::get("/")).await.unwrap_or_else(|_| panic!()).collect().await;
    assert!(matches!(&lines[..], [Ok(_), Err(Cut(_))]), "{lines:?}");
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_named() {
    let access = RestConfig { kubeconfig: Some("/nowhere/kubeconfig".into()), ..RestConfig::default() };
    let Err(error) = RealWorld::open(&access).await else { panic!("opened") };
    assert!(error.to_string().starts_with("kubeconfig /nowhere/kubeconfig: "), "{error}");
}

#[tokio::test]
async fn a_context_chooses_server_and_namespace() {
    let folder = std::env::temp_dir().join(format!("supercargo-context-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("kubeconfig");
    let kubeconfig = "{clusters: [{name: a, cluster: {server: 'http://a:1'}}, {name: b, cluster: {server: 'http://b:2'}}],\
         users: [{name: us, user: {}}], current-context: first, contexts: [\
         {name: first, context: {cluster: a, user: us, namespace: batch}},\
         {name: second, context: {cluster: b, user: us}}]}";
    std::fs::write(&file, kubeconfig).unwrap();
    for (context, server, namespace) in [
        (None, "http://a:1", "batch"),
        (Some("first"), "http://a:1", "batch"),
        (Some("second"), "http://b:2", "default"),
    ] {
        let context = context.map(str::to_owned);
        let access = RestConfig { kubeconfig: Some(file.clone()), context, ..RestConfig::default() };
        let world = RealWorld::open(&access).await.unwrap();
        assert_eq!((world.server(), world.namespace()), (server, namespace), "{access:?}");
    }
    let access =
        RestConfig { kubeconfig: Some(file), context: Some("third".to_owned()), ..RestConfig::default() };
    let Err(error) = RealWorld::open(&access).await else { panic!("opened") };
    assert!(error.to_string().contains("third"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}
