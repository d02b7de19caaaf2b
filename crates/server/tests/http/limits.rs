//! What a caller may take up, and how it all ends.

use std::{net::Ipv4Addr, time::Duration};

use axum::{
    Router,
    routing::{get as on_get, post},
};
use supercargo_server::{Limits, Port, ServeError, Server, ServerOptions, Transport};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use crate::{
    client::{get, read, send},
    setup::Setup,
};

const ROOT: &str = "Authorization: Bearer root";
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn without_tls_only_this_machine_is_served() {
    let bind = |address| {
        let (port, transport, limits) = (Port::Ephemeral, Transport::Plain, Limits::default());
        Server::bind(ServerOptions { address, port, transport, limits })
    };
    for address in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(192, 0, 2, 1)] {
        let error = bind(address.into()).await.err().expect("refused");
        assert!(matches!(error, ServeError::NotLoopback { .. }), "{error}");
        assert!(error.to_string().contains("hint: "), "{error}");
    }
    assert!(bind(Ipv4Addr::LOCALHOST.into()).await.is_ok());
}

#[tokio::test]
async fn a_port_that_is_taken_is_told() {
    let server = Setup::default().start().await;
    let port = Port::from_flag(server.address.port()).expect("not 0");
    let (transport, limits) = (Transport::Plain, Limits::default());
    let again = Server::bind(ServerOptions { address: server.address.ip(), port, transport, limits }).await;
    let error = again.err().expect("taken").to_string();
    assert!(error.starts_with(&format!("cannot listen on {}", server.address)), "{error}");
}

#[test]
fn port_0_means_not_to_serve() {
    assert_eq!(Port::from_flag(0), None);
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = Setup::default().start().await;
    let large = format!("X-Large: {}", "a".repeat(64 * 1024));
    assert_eq!(get(server.address, "/healthz", &[&large]).await.code, 431);
    let many: Vec<String> = (0..1000).map(|n| format!("X-{n}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(get(server.address, "/healthz", &many).await.code, 431);
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused() {
    let extra = Router::new().route("/echo", post(async |body: String| body));
    let limits = Limits { body_bytes: 4, ..Limits::default() };
    let server = Setup { limits, extra, ..Setup::default() }.start().await;
    let request =
        |rest: &str| format!("POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{ROOT}\r\n{rest}");
    for (rest, code) in [
        ("Content-Length: 4\r\n\r\nabcd", 200),
        ("Content-Length: 5\r\n\r\nabcde", 413),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", 413),
    ] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        assert_eq!(send(stream, &request(rest)).await.code, code, "{rest}");
    }
}

#[tokio::test]
async fn whoever_says_nothing_is_shown_the_door() {
    let limits = Limits { header_timeout: Duration::from_millis(50), ..Limits::default() };
    let server = Setup { limits, ..Setup::default() }.start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    let mut rest = Vec::new();
    timeout(SOON, silent.read_to_end(&mut rest)).await.expect("closed").unwrap();
    timeout(SOON, read(slow)).await.expect("closed");
}

#[tokio::test]
async fn those_beyond_the_number_of_connections_wait() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let server = Setup { limits, ..Setup::default() }.start().await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut some = [0; 12];
    first.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");

    let second = tokio::spawn(get(server.address, "/healthz", &[]));
    let third = get(server.address, "/healthz", &[]);
    assert!(timeout(Duration::from_millis(100), third).await.is_err(), "there is no room");
    drop(first);
    assert_eq!(timeout(SOON, second).await.expect("room").unwrap().code, 200);
}

/// `/slow` says that it has begun, and ends when it is told to.
fn slow() -> (Router, mpsc::Receiver<mpsc::Sender<()>>) {
    let (begun, begins) = mpsc::channel(1);
    let handler = async move || {
        let (go, mut gone) = mpsc::channel(1);
        let _ = begun.send(go).await;
        gone.recv().await;
        "done"
    };
    (Router::new().route("/slow", on_get(handler)), begins)
}

#[tokio::test]
async fn requests_in_hand_are_answered_before_the_end() {
    let (extra, mut begins) = slow();
    let server = Setup { extra, ..Setup::default() }.start().await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let request = tokio::spawn(get(server.address, "/slow", &[ROOT]));
    let go = timeout(SOON, begins.recv()).await.expect("it began").unwrap();

    server.stop.cancel();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody new is let in");
    assert!(!server.ended.is_finished());
    drop(go);
    assert_eq!(request.await.unwrap().body, "done");
    assert_eq!(timeout(SOON, server.ended).await.expect("an end").unwrap().cut, 0);
    drop(idle);
}

#[tokio::test]
async fn requests_that_do_not_end_are_cut() {
    let (extra, mut begins) = slow();
    let limits = Limits { drain: Duration::from_millis(50), ..Limits::default() };
    let server = Setup { limits, extra, ..Setup::default() }.start().await;
    let request = tokio::spawn(get(server.address, "/slow", &[ROOT]));
    let _go = timeout(SOON, begins.recv()).await.expect("it began").unwrap();
    server.stop.cancel();
    assert_eq!(timeout(SOON, server.ended).await.expect("an end").unwrap().cut, 1);
    assert_eq!(request.await.unwrap().code, 0);
}

#[tokio::test]
async fn old_connections_are_ended() {
    let (extra, mut begins) = slow();
    let moment = Duration::from_millis(50);
    let limits = Limits { connection_age: moment, drain: moment, ..Limits::default() };
    let server = Setup { limits, extra, ..Setup::default() }.start().await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let request = tokio::spawn(get(server.address, "/slow", &[ROOT]));
    let _go = timeout(SOON, begins.recv()).await.expect("it began").unwrap();
    assert_eq!(timeout(SOON, request).await.expect("cut").unwrap().code, 0);
    timeout(SOON, read(idle)).await.expect("closed");
}
