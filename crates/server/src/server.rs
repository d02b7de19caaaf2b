//! Listens, takes connections in, and lets them end when the process does.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::{
    connection::Connection,
    connections::{Connections, Seat},
    error::ServeError,
    routes::Protected,
    tls::{Tls, TlsOptions},
};

/// How long to wait when the system has no room for another connection.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);
/// Connections that the system keeps for us until they are taken in.
const BACKLOG: u32 = 1024;

/// Which port to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// This one.
    Fixed(NonZeroU16),
    /// Any that is free: for tests.
    Ephemeral,
}

impl Port {
    /// What `--secure-port` means: at 0 nothing is to be served.
    pub fn from_flag(port: u16) -> Option<Self> {
        NonZeroU16::new(port).map(Self::Fixed)
    }

    fn number(self) -> u16 {
        match self {
            Self::Fixed(port) => port.get(),
            Self::Ephemeral => 0,
        }
    }
}

/// How connections are made.
#[derive(Clone, Debug)]
pub enum Transport {
    /// With TLS.
    Tls(TlsOptions),
    /// In the clear, for development: on this machine only.
    Plain,
}

/// What a caller may take up.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How large a request's head may be.
    pub header_bytes: usize,
    /// How large a request's body may be.
    pub body_bytes: usize,
    /// How long a head may take to come; also how long a connection may do nothing.
    pub header_timeout: Duration,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How many connections there may be. Beyond that, idle ones give way.
    pub connections: usize,
    /// How many of them one client (an address) may hold.
    pub connections_per_client: usize,
    /// How many more there may be if none is idle; they are served nothing but health.
    pub connections_for_health: usize,
    /// How many requests there may be at the same time on one connection of HTTP/2.
    pub http2_streams: u32,
    /// How old a connection may become. Callers come again; one that never reads its answers, or whose certificate is no
    /// longer believed, does not stay for ever.
    pub connection_age: Duration,
    /// How long requests may take to end when the process does, or when their connection is old.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 16 * 1024,
            body_bytes: 1024 * 1024,
            header_timeout: Duration::from_secs(32),
            handshake_timeout: Duration::from_secs(10),
            connections: 256,
            connections_per_client: 64,
            connections_for_health: 16,
            http2_streams: 250,
            connection_age: Duration::from_secs(600),
            drain: Duration::from_secs(5),
        }
    }
}

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// `--bind-address`
    pub address: IpAddr,
    /// `--secure-port`
    pub port: Port,
    /// With TLS or without.
    pub transport: Transport,
    /// `--permit-port-sharing`: other processes may listen on the same port.
    pub share_port: bool,
    /// What a caller may take up.
    pub limits: Limits,
}

/// A server that listens. What it serves comes with [`Server::serve`].
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    limits: Limits,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that did not end in time and were cut.
    pub cut: usize,
}

impl Server {
    /// Listens. Callers are kept waiting until [`Server::serve`].
    pub async fn bind(options: ServerOptions) -> Result<Self, ServeError> {
        let ServerOptions { address, port, transport, share_port, limits } = options;
        let wanted = SocketAddr::new(address, port.number());
        let tls = match transport {
            Transport::Tls(options) => Some(Arc::new(Tls::new(options, address)?)),
            Transport::Plain if address.is_loopback() => None,
            Transport::Plain => return Err(ServeError::NotLoopback { address: wanted }),
        };
        let failed = |error| ServeError::Bind { address: wanted, error };
        let listener = listen(wanted, share_port).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls, limits })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then lets requests end.
    pub async fn serve(self, routes: Protected, shutdown: impl Future<Output = ()>) -> Drained {
        let Self { listener, address, tls, limits } = self;
        info!(%address, tls = tls.is_some(), "serving");
        let stop = CancellationToken::new();
        let open = Connections::new(&limits);
        let mut connections = JoinSet::new();
        let follow_files = follow_files(tls.clone());
        tokio::pin!(shutdown, follow_files);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut follow_files => {}
                Some(_) = connections.join_next() => {}
                (stream, peer, seat) = next_connection(&listener, &open) => {
                    let connection = Connection::new(&routes, &limits, &stop, seat);
                    let tls = tls.clone();
                    connections.spawn(async move {
                        connection.run(stream, tls.as_deref()).await;
                        debug!(%peer, "connection closed");
                    });
                }
            }
        }
        drop(listener);
        stop.cancel();
        drain(connections, limits.drain).await
    }
}

async fn follow_files(tls: Option<Arc<Tls>>) {
    match tls {
        Some(tls) => tls.follow_files().await,
        None => std::future::pending().await,
    }
}

fn listen(address: SocketAddr, share_port: bool) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A port whose last connections are still dying away can be listened on again.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(share_port)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Everybody is taken in at once: whoever asks for health must not wait behind others.
async fn next_connection(listener: &TcpListener, open: &Arc<Connections>) -> (TcpStream, SocketAddr, Seat) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match open.admit(peer.ip()) {
                Some(seat) => return (stream, peer, seat),
                None => debug!(%peer, "too many connections: closed"),
            },
            Err(error) => {
                warn!(%error, "a connection could not be taken in");
                open.shrink();
                sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

async fn drain(mut connections: JoinSet<()>, limit: Duration) -> Drained {
    let ended = timeout(limit, async { while connections.join_next().await.is_some() {} }).await;
    let cut = connections.len();
    if ended.is_err() {
        warn!(cut, "connections did not end in {limit:?} and were cut");
    }
    connections.shutdown().await;
    Drained { cut }
}
