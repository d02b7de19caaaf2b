//! The way to an extender over HTTP/1.1, with connections that are kept and used again.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Uri, header};
use hyper::body::{Body, Frame, SizeHint};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use supercargo_config::{Extender, without_password};
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{
    body::{self, Read},
    tls::{self, Unusable},
};

/// How we name ourselves.
const USER_AGENT: &str = concat!("supercargo/", env!("CARGO_PKG_VERSION"));
/// Probes of an idle connection: a machine that vanished is noticed.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// Connections beyond what is needed are given up after this.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);

/// How much is read of an answer that is not 200: only its beginning is told.
const MAX_REFUSAL_BYTES: usize = 4096;
const OK: u16 = 200;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status code.
    pub status: u16,
    /// The body; of any other status than 200 perhaps only its beginning.
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The body did not end within the bytes that it may have.
    TooLong,
    /// The connection could not be made, or broke.
    Broken(String),
}

/// The way to one extender.
pub trait Transport: Send + Sync + 'static {
    /// Posts JSON to a URL, and reads at most so many bytes of the answer. Letting the future go ends the call.
    fn post(
        &self,
        url: &str,
        body: Vec<Bytes>,
        max_bytes: usize,
    ) -> BoxFuture<'static, Result<Reply, TransportError>>;
}

/// HTTP. It lives on a tokio runtime.
pub struct Http {
    client: Client<HttpsConnector<HttpConnector>, Pieces>,
}

impl Http {
    /// The way to an extender as it is configured. Whether it is there is seen with the first call.
    ///
    /// # Errors
    ///
    /// If its address or its TLS settings make no sense. Calls to an ignorable extender without an address just fail.
    pub fn new(extender: &Extender) -> Result<Self, Unusable> {
        if !extender.ignorable {
            check_address(&extender.url_prefix)?;
        }
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(TCP_KEEPALIVE));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls::configure(extender)?).https_or_http();
        let name = extender.tls_config.as_ref().map_or("", |tls| &tls.server_name);
        let builder = if name.is_empty() {
            builder
        } else {
            let name = ServerName::try_from(name.to_owned()).map_err(|error| Unusable {
                what: format!("extender {}: serverName {name:?}: {error}", extender.name()),
                hint: "write a host name, such as the certificate bears".to_owned(),
            })?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            // As Go writes them: there are servers that do not know that their case means nothing.
            .http1_title_case_headers(true)
            .build(builder.enable_http1().wrap_connector(http));
        Ok(Self { client })
    }
}

fn check_address(url_prefix: &str) -> Result<(), Unusable> {
    let makes_sense = |uri: Uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"));
    match url_prefix.parse::<Uri>() {
        Ok(uri) if makes_sense(uri.clone()) => Ok(()),
        _ => Err(Unusable {
            what: format!("the extender's urlPrefix makes no sense: {:?}", without_password(url_prefix)),
            hint: "write it like http://10.0.0.1:8080/scheduler".to_owned(),
        }),
    }
}

impl Transport for Http {
    fn post(
        &self,
        url: &str,
        body: Vec<Bytes>,
        max_bytes: usize,
    ) -> BoxFuture<'static, Result<Reply, TransportError>> {
        let client = self.client.clone();
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, USER_AGENT)
            .body(Pieces::new(body));
        Box::pin(async move {
            let request = request.map_err(|error| TransportError::Broken(error.to_string()))?;
            let response = client.request(request).await.map_err(|error| broken(&error))?;
            let status = response.status().as_u16();
            let max_bytes = if status == OK { max_bytes } else { max_bytes.min(MAX_REFUSAL_BYTES) };
            match body::read(response.into_body(), max_bytes).await {
                Ok(Read::Beginning(_)) if status == OK => Err(TransportError::TooLong),
                Ok(Read::Whole(body) | Read::Beginning(body)) => Ok(Reply { status, body: body.into() }),
                Err(error) => Err(broken(&error)),
            }
        })
    }
}

/// An error with everything that led to it.
fn broken(error: &dyn std::error::Error) -> TransportError {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push_str(&format!(": {error}"));
        cause = error.source();
    }
    TransportError::Broken(told)
}

/// A body in pieces, none of which is copied.
struct Pieces {
    left: VecDeque<Bytes>,
    bytes: u64,
}

impl Pieces {
    fn new(pieces: Vec<Bytes>) -> Self {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { left: pieces.into(), bytes }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.pop_front();
        self.bytes -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_must_make_sense() {
        for good in ["http://a", "https://a:8080/x/y", "http://10.0.0.1:80/"] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in ["", "a", "ftp://a", "http://", "unix:///x"] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
