//! The wire: a listener on loopback, connections, and what a restart does to them.

mod admin;
mod asked;
mod authorize;
mod body;
mod discovery;
mod handle;
mod openapi;
mod path;
mod query;
mod reply;
mod table;
mod view;
mod watch;
mod web;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::api::Api;
use crate::faults::{Faults, ServerAction};
use crate::requests::Requests;
use crate::signal::{Signal, SignalReceiver};

use asked::Asked;
pub use body::ResponseBody;

/// Requests that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long a port that is still busy is tried again after a restart.
const PORT_RETRY: Duration = Duration::from_millis(20);

/// Everything that a request needs.
pub(crate) struct Server {
    pub(crate) api: Arc<Api>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) requests: Requests,
    bookmark_interval: Duration,
    /// Counts restarts; connections and watches of before end.
    stops: Signal,
}

impl Server {
    pub(crate) fn new(api: Arc<Api>, faults: Arc<Faults>, bookmark_interval: Duration) -> Self {
        Self { api, faults, requests: Requests::default(), bookmark_interval, stops: Signal::default() }
    }

    fn bookmark_interval(&self) -> Duration {
        self.bookmark_interval.max(Duration::from_millis(1))
    }

    fn stops(&self) -> SignalReceiver {
        self.stops.subscribe()
    }

    /// Ends all connections.
    pub(crate) fn hang_up(&self) {
        self.stops.give();
    }
}

/// Opens the port; 0 is any that is free.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart takes its port again at once, whatever connections of before still linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until the task is ended; restarts when it is told to.
pub(crate) async fn serve(
    server: Arc<Server>,
    mut listener: TcpListener,
    mut actions: mpsc::UnboundedReceiver<ServerAction>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(connection(server.clone(), stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    server.api.time.sleep(PORT_RETRY).await;
                }
            },
            action = actions.recv() => match action {
                Some(ServerAction::Restart { down_millis, forget_history }) => {
                    drop(listener);
                    server.hang_up();
                    if forget_history {
                        server.api.store().compact();
                    }
                    server.api.time.sleep(Duration::from_millis(down_millis)).await;
                    listener = listen_again(&server, address).await;
                }
                Some(ServerAction::Compact) => server.api.store().compact(),
                Some(ServerAction::CutWatches) => {}
                None => return Ok(()),
            },
        }
    }
}

async fn listen_again(server: &Server, address: SocketAddr) -> TcpListener {
    loop {
        match listen(address) {
            Ok(listener) => return listener,
            Err(error) => {
                tracing::warn!(%error, %address, "the port is still busy");
                server.api.time.sleep(PORT_RETRY).await;
            }
        }
    }
}

/// Answers one request of this process, as it would over a connection; an error is a connection that broke.
pub(crate) async fn answer(
    server: Arc<Server>,
    request: Request<Bytes>,
) -> io::Result<Response<ResponseBody>> {
    handle::answer_read(server, Asked::whole(request)).await
}

async fn connection(server: Arc<Server>, stream: TcpStream) {
    let mut stops = server.stops();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "answers may be delayed");
    }
    let service = service_fn(move |request| handle::answer(server.clone(), request));
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = served => if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        },
        () = stops.changed() => {}
    }
}
