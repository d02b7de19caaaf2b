//! Listens, takes connections in, and lets them end when the process does.

use std::{
    fs::File,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
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
/// How often it is told that the system has none.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// How many file descriptors are kept back for callers.
const RESERVED_DESCRIPTORS: usize = 4;
/// What they are kept back with.
const RESERVED_FILE: &str = "/dev/null";
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
pub enum ConnectionSecurity {
    /// With TLS.
    Tls(TlsOptions),
    /// In the clear, for development: on this machine only.
    Plain,
}

/// What a caller may take up.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
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

impl Default for ConnectionLimits {
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
    pub security: ConnectionSecurity,
    /// `--permit-port-sharing`: other processes may listen on the same port.
    pub share_port: bool,
    /// What a caller may take up.
    pub limits: ConnectionLimits,
}

/// A server that listens. What it serves comes with [`Server::serve`].
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    limits: ConnectionLimits,
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
        let ServerOptions { address, port, security, share_port, limits } = options;
        let wanted = SocketAddr::new(address, port.number());
        let tls = match security {
            ConnectionSecurity::Tls(options) => Some(Arc::new(Tls::new(options, address)?)),
            ConnectionSecurity::Plain if address.is_loopback() => None,
            ConnectionSecurity::Plain => return Err(ServeError::NotLoopback { address: wanted }),
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
        let mut acceptor = Acceptor::new(listener, open);
        let follow_files = follow_files(tls.clone());
        tokio::pin!(shutdown, follow_files);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut follow_files => {}
                Some(_) = connections.join_next() => acceptor.fill_reserve(),
                (stream, peer, seat) = acceptor.next_connection() => {
                    let connection = Connection::new(&routes, &limits, &stop, seat);
                    let tls = tls.clone();
                    connections.spawn(async move {
                        connection.run(stream, tls.as_deref()).await;
                        debug!(%peer, "connection closed");
                    });
                }
            }
        }
        drop(acceptor);
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

/// Takes connections in.
struct Acceptor {
    listener: TcpListener,
    open: Arc<Connections>,
    /// File descriptors that are kept back: where the process has run out of them, one is given up for whoever asks for
    /// health. What the process needs them for otherwise (requests to the API server) may hold all others for long.
    reserve: Vec<File>,
    /// When it was told the last time that they have run out.
    told: Option<Instant>,
}

impl Acceptor {
    fn new(listener: TcpListener, open: Arc<Connections>) -> Self {
        let mut acceptor = Self { listener, open, reserve: Vec::new(), told: None };
        acceptor.fill_reserve();
        acceptor
    }

    /// Everybody is taken in at once: whoever asks for health must not wait behind others.
    async fn next_connection(&mut self) -> (TcpStream, SocketAddr, Seat) {
        loop {
            match poll_fn(|context| self.poll_accept(context)).await {
                Ok((stream, peer)) => match self.open.admit(peer.ip()) {
                    Some(seat) => return (stream, peer, seat),
                    None => debug!(%peer, "too many connections: closed"),
                },
                Err(_) => {
                    self.open.shrink();
                    sleep(PAUSE_AFTER_ERROR).await;
                    self.fill_reserve();
                }
            }
        }
    }

    /// Without a file descriptor, Linux fails whether somebody waits or not. So the one that is given up is taken back at
    /// once, unless it was for somebody.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        match self.listener.poll_accept(context) {
            Poll::Ready(Err(error)) => {
                self.tell(&error);
                if self.reserve.pop().is_none() {
                    return Poll::Ready(Err(error));
                }
                let accepted = self.listener.poll_accept(context);
                self.fill_reserve();
                accepted
            }
            accepted => accepted,
        }
    }

    fn tell(&mut self, error: &io::Error) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            warn!(%error, "a connection could not be taken in");
        }
    }

    /// To be called when a connection has ended, before somebody else takes what it gave back.
    fn fill_reserve(&mut self) {
        while self.reserve.len() < RESERVED_DESCRIPTORS
            && let Ok(file) = File::open(RESERVED_FILE)
        {
            self.reserve.push(file);
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
