//! What the fuzz targets reach of this crate: a connection without a socket and without TLS.

use std::net::{IpAddr, Ipv4Addr};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{connection::Connection, connections::Connections, routes::Protected, server::ConnectionLimits};

/// Serves one connection to its end, as a listener would after the handshake.
pub async fn serve(
    routes: &Protected,
    limits: &ConnectionLimits,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http2: bool,
) {
    let seat = Connections::new(limits).admit(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let Some(seat) = seat else { return };
    let connection = Connection::new(routes, limits, &CancellationToken::new(), seat);
    let stream = TokioIo::new(stream);
    if http2 { connection.http2(stream, None).await } else { connection.http1(stream, None).await }
}
