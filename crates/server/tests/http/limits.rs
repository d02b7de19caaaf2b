//! What a caller may take up, and how it all ends.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::{
    Router,
    routing::{get as on_get, post},
};
use supercargo_server::{ConnectionLimits, ConnectionSecurity, Port, ServeError, Server, ServerOptions};
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
const A_SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn without_tls_only_this_machine_is_served() {
    let bind = |address| {
        let (port, security, limits) =
            (Port::Ephemeral, ConnectionSecurity::Plain, ConnectionLimits::default());
        Server::bind(ServerOptions { address, port, security, share_port: false, limits })
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
    let (address, security, limits) =
        (server.address.ip(), ConnectionSecurity::Plain, ConnectionLimits::default());
    let again = Server::bind(ServerOptions { address, port, security, share_port: false, limits }).await;
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
    let limits = ConnectionLimits { body_bytes: 4, ..ConnectionLimits::default() };
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
    let limits =
        ConnectionLimits { header_timeout: Duration::from_millis(50), ..ConnectionLimits::default() };
    let server = Setup { limits, ..Setup::default() }.start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    let mut rest = Vec::new();
    timeout(SOON, silent.read_to_end(&mut rest)).await.expect("closed").unwrap();
    timeout(SOON, read(slow)).await.expect("closed");
}

#[tokio::test]
async fn a_port_can_be_shared_by_those_who_agree_to() {
    let bind = |port| {
        let (security, limits) = (ConnectionSecurity::Plain, ConnectionLimits::default());
        let address = Ipv4Addr::LOCALHOST.into();
        Server::bind(ServerOptions { address, port, security, share_port: true, limits })
    };
    let first = bind(Port::Ephemeral).await.unwrap();
    assert!(bind(Port::from_flag(first.address().port()).unwrap()).await.is_ok());
}

/// Connections that have been served and stay open, as those of an HTTP client with a pool.
async fn kept_alive(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut some = [0; 12];
        stream.read_exact(&mut some).await.unwrap();
        assert_eq!(&some, b"HTTP/1.1 200");
        open.push(stream);
    }
    open
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(Duration::from_millis(50), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn idle_connections_give_way_to_whoever_asks_for_health() {
    let server = Setup::default().start().await;
    let mut open = kept_alive(server.address, 300).await;
    let answer = timeout(A_SECOND, get(server.address, "/livez", &[])).await.expect("an answer");
    assert_eq!((answer.code, &*answer.body), (200, "ok"));
    assert!(is_closed(&mut open[0]).await, "the one that has been idle for longest");
    assert!(!is_closed(&mut open[299]).await);
}

#[tokio::test]
async fn slow_heads_and_silence_hold_up_nobody() {
    let server = Setup::default().start().await;
    let mut open = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        if n % 2 == 0 {
            stream.write_all(b"GET /livez HTTP/1.1\r\nHost").await.unwrap();
        }
        open.push(stream);
    }
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(timeout(A_SECOND, get(server.address, path, &[])).await.expect("an answer").code, 200);
    }
}

#[tokio::test]
async fn where_all_connections_are_busy_health_is_served_and_others_are_told_to_wait() {
    let (extra, mut begins) = slow();
    let limits =
        ConnectionLimits { connections: 2, connections_for_health: 2, ..ConnectionLimits::default() };
    let server = Setup { limits, extra, ..Setup::default() }.start().await;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let request = tokio::spawn(get(server.address, "/slow", &[ROOT]));
        busy.push((timeout(SOON, begins.recv()).await.expect("it began").unwrap(), request));
    }
    let _silent: Vec<_> =
        [TcpStream::connect(server.address).await, TcpStream::connect(server.address).await].into();
    let answer = timeout(A_SECOND, get(server.address, "/livez", &[])).await.expect("an answer");
    assert_eq!(answer.body, "ok");
    let answer = timeout(A_SECOND, get(server.address, "/metrics", &[ROOT])).await.expect("an answer");
    assert_eq!(answer.status().1, "TooManyRequests");
    for (go, request) in busy {
        drop(go);
        assert_eq!(timeout(SOON, request).await.expect("an end").unwrap().body, "done");
    }
    assert_eq!(get(server.address, "/metrics", &[ROOT]).await.code, 200);
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
    let limits = ConnectionLimits { drain: Duration::from_millis(50), ..ConnectionLimits::default() };
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
    let limits = ConnectionLimits { connection_age: moment, drain: moment, ..ConnectionLimits::default() };
    let server = Setup { limits, extra, ..Setup::default() }.start().await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let request = tokio::spawn(get(server.address, "/slow", &[ROOT]));
    let _go = timeout(SOON, begins.recv()).await.expect("it began").unwrap();
    assert_eq!(timeout(SOON, request).await.expect("cut").unwrap().code, 0);
    timeout(SOON, read(idle)).await.expect("closed");
}
