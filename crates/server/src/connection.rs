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
    access::{PeerIdentity, Refusal},
    routes::Protected,
    server::Limits,
    tls::{Tls, user_of},
};

/// As many requests at the same time on one connection as kube-scheduler takes.
const STREAMS: u32 = 250;
/// HTTP/1.1 cannot be read with a smaller buffer.
const SMALLEST_BUFFER_BYTES: usize = 8192;
const PING_EVERY: Duration = Duration::from_secs(30);

/// What a connection is served with.
pub(crate) struct Connection {
    router: Router,
    limits: Limits,
    stop: CancellationToken,
    /// Whether a request has come yet.
    asked: Arc<AtomicBool>,
}

impl Connection {
    pub(crate) fn new(Protected(router): &Protected, limits: &Limits, stop: &CancellationToken) -> Self {
        Self { router: router.clone(), limits: limits.clone(), stop: stop.clone(), asked: Arc::default() }
    }

    pub(crate) async fn run(self, stream: TcpStream, tls: Option<&Tls>) {
        // Answers are small and written at once.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.http1(TokioIo::new(stream), None).await };
        let handshake = timeout(self.limits.handshake_timeout, tls.acceptor().accept(stream));
        let stream = tokio::select! {
            () = self.stop.cancelled() => return,
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

    async fn http1(self, stream: impl Read + Write + Unpin + 'static, peer: Option<PeerIdentity>) {
        let service = service_fn(self.service(peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(self.limits.header_bytes.max(SMALLEST_BUFFER_BYTES))
            .serve_connection(stream, service);
        self.drive(connection).await;
    }

    async fn http2(self, stream: impl Read + Write + Unpin + 'static, peer: Option<PeerIdentity>) {
        let service = service_fn(self.service(peer));
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(self.limits.header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS)
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
        let (asked, limit_bytes) = (self.asked.clone(), self.limits.body_bytes);
        move |request| {
            asked.store(true, Ordering::Relaxed);
            let (routes, peer) = (routes.clone(), peer.clone());
            Box::pin(async move {
                if request.body().size_hint().lower() > limit_bytes as u64 {
                    return Ok(Refusal::TooLarge { limit_bytes }.into_response());
                }
                let mut request: Request = request.map(|body| Body::new(Limited::new(body, limit_bytes)));
                peer.map(|peer| request.extensions_mut().insert(peer));
                routes.call(request).await
            })
        }
    }

    /// Lets the connection run to its end; or, when the process stops or the connection is old, to that of the requests
    /// in hand.
    async fn drive<C: GracefulConnection>(&self, connection: C) {
        tokio::pin!(connection);
        let old = tokio::select! {
            _ = &mut connection => return,
            () = self.silence() => return,
            () = self.stop.cancelled() => false,
            () = sleep(self.limits.connection_age) => true,
        };
        connection.as_mut().graceful_shutdown();
        if old {
            let _ = timeout(self.limits.drain, connection).await;
        } else {
            // Whoever stops the process says how long that may take.
            let _ = connection.await;
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
