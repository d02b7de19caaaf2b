//! One connection: the handshake, HTTP/1.1 or HTTP/2, and its limits.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use http_body_util::Limited;
use hyper::{
    body::{Body as _, Incoming},
    rt::{Read, Write},
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
    service::TowerToHyperService,
};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    access::{PeerIdentity, RequestRefusal},
    connections::{Seat, Share},
    routes::{Protected, is_health},
    server::ConnectionLimits,
    tls::{Tls, user_of},
};

/// HTTP/1.1 cannot be read with a smaller buffer.
const SMALLEST_BUFFER_BYTES: usize = 8192;
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long anything may take on a connection of the reserve.
const RESERVE_PATIENCE: Duration = Duration::from_secs(3);

/// What a connection is served with.
pub(crate) struct Connection {
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
    seat: Seat,
    /// Whether a request has come yet.
    asked: Arc<AtomicBool>,
}

impl Connection {
    pub(crate) fn new(
        Protected(router): &Protected,
        limits: &ConnectionLimits,
        stop: &CancellationToken,
        seat: Seat,
    ) -> Self {
        let mut limits = limits.clone();
        if seat.share() == Share::Reserve {
            for patience in
                [&mut limits.header_timeout, &mut limits.handshake_timeout, &mut limits.connection_age]
            {
                *patience = RESERVE_PATIENCE.min(*patience);
            }
        }
        Self { router: router.clone(), limits, stop: stop.clone(), seat, asked: Arc::default() }
    }

    pub(crate) async fn run(self, stream: TcpStream, tls: Option<&Tls>) {
        // Answers are small and written at once.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.http1(TokioIo::new(stream), None).await };
        let handshake = timeout(self.limits.handshake_timeout, tls.acceptor().accept(stream));
        let stream = tokio::select! {
            () = self.stop.cancelled() => return,
            () = self.seat.gives_way() => return,
            done = handshake => match done {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
                Err(_) => return debug!("TLS handshake took too long"),
            },
        };
        let peer = peer(&stream);
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        if http2 { self.http2(stream, peer).await } else { self.http1(stream, peer).await }
    }

    pub(crate) async fn http1(self, stream: impl Read + Write + Unpin + 'static, peer: Option<PeerIdentity>) {
        let service = service_fn(self.service(peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(self.limits.header_bytes.max(SMALLEST_BUFFER_BYTES))
            .keep_alive(self.seat.share() == Share::Common)
            .serve_connection(stream, service);
        self.drive(connection).await;
    }

    pub(crate) async fn http2(self, stream: impl Read + Write + Unpin + 'static, peer: Option<PeerIdentity>) {
        let service = service_fn(self.service(peer));
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(self.limits.header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(self.limits.http2_streams)
            .keep_alive_interval(PING_EVERY)
            .serve_connection(stream, service);
        self.drive(connection).await;
    }

    /// Hands requests to the routes, with who the caller's certificate says they are.
    fn service(
        &self,
        peer: Option<PeerIdentity>,
    ) -> impl Fn(hyper::Request<Incoming>) -> ServiceFuture + Clone + use<> {
        let routes = TowerToHyperService::new(self.router.clone());
        let (asked, seat, limit_bytes) = (self.asked.clone(), self.seat.clone(), self.limits.body_bytes);
        move |request| {
            asked.store(true, Ordering::Relaxed);
            let (routes, peer, in_hand) = (routes.clone(), peer.clone(), seat.begin());
            let client = seat.client();
            let refused = seat.share() == Share::Reserve && !is_health(request.uri().path());
            Box::pin(async move {
                let _in_hand = in_hand;
                if refused {
                    return Ok(RequestRefusal::TooManyConnections.into_response());
                }
                if request.body().size_hint().lower() > limit_bytes as u64 {
                    return Ok(RequestRefusal::TooLarge { limit_bytes }.into_response());
                }
                let mut request: Request = request.map(|body| Body::new(Limited::new(body, limit_bytes)));
                request.extensions_mut().insert(client);
                peer.map(|peer| request.extensions_mut().insert(peer));
                routes.call(request).await
            })
        }
    }

    /// Lets the connection run to its end; or, when the process stops, the connection is old or gives way to another, to
    /// that of the requests in hand.
    async fn drive<C: GracefulConnection>(&self, connection: C) {
        tokio::pin!(connection);
        let stopping = tokio::select! {
            _ = &mut connection => return,
            () = self.silence() => return,
            () = self.seat.gives_way() => {
                if !self.seat.is_busy() {
                    return;
                }
                false
            }
            () = self.stop.cancelled() => true,
            () = sleep(self.limits.connection_age) => false,
        };
        connection.as_mut().graceful_shutdown();
        if stopping {
            // Whoever stops the process says how long that may take.
            let _ = connection.await;
        } else {
            let _ = timeout(self.limits.drain, connection).await;
        }
    }

    /// Ends if no request has come in time. HTTP/1.1 sees to that by itself, HTTP/2 does not.
    async fn silence(&self) {
        sleep(self.limits.header_timeout).await;
        if self.asked.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

type ServiceFuture = std::pin::Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

fn peer(stream: &TlsStream<TcpStream>) -> Option<PeerIdentity> {
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    user_of(certificate).map(PeerIdentity)
}
