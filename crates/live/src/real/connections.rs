//! Connections to the API server: TCP, perhaps through a proxy, and TLS with what the kubeconfig says about it.
//!
//! Certificates in files are replaced now and then. They are looked at again each minute; if they have changed, new
//! requests go over new connections.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt, future::BoxFuture};
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, proxy::Tunnel},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use supercargo_extender::tls::{self, Identity, TlsError, Trust};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tower_service::Service;

use super::{credentials::Credential, proxy::Proxy};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Probes of an idle connection: a machine that vanished is noticed.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// Connections beyond what is needed are given up after this.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Files are looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Http = Client<HttpsConnector<Connector>, Full<Bytes>>;

/// A text in PEM, or the file that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pem {
    Text(Vec<u8>),
    File(PathBuf),
}

impl Pem {
    pub(super) fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => {
                std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
            }
        }
    }
}

/// Whom the connections trust, and what they show.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) trusted: Trusted,
    pub(super) identity: Option<(Pem, Pem)>,
    /// The name that the server's certificate bears, if that is not its host's.
    pub(super) server_name: Option<ServerName<'static>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trusted {
    Anybody,
    System,
    Nobody,
    Authorities(Pem),
}

/// What was read of the files.
#[derive(PartialEq, Eq)]
struct Material {
    trust: Trust,
    identity: Option<Identity>,
}

impl Tls {
    /// For a server without TLS.
    pub(super) fn none() -> Self {
        Self { trusted: Trusted::Nobody, identity: None, server_name: None }
    }

    /// Whether all of it can be read and used.
    pub(super) fn check(&self) -> Result<(), TlsError> {
        let material = self.read(None)?;
        tls::client(&material.trust, material.identity.as_ref()).map(drop)
    }

    /// An identity that was given otherwise goes before the files'.
    fn read(&self, given: Option<&Identity>) -> Result<Material, TlsError> {
        let trust = match &self.trusted {
            Trusted::Anybody => Trust::Anybody,
            Trusted::System => Trust::System,
            Trusted::Nobody => Trust::Nobody,
            Trusted::Authorities(pem) => Trust::Authorities(pem.read().map_err(TlsError::Trust)?),
        };
        let identity = match (given, &self.identity) {
            (Some(given), _) => Some(given.clone()),
            (None, None) => None,
            (None, Some((certificate, key))) => Some(Identity {
                certificate: certificate.read().map_err(TlsError::Identity)?,
                key: key.read().map_err(TlsError::Identity)?,
            }),
        };
        Ok(Material { trust, identity })
    }
}

/// The connections, which all requests share.
pub(super) struct Connections {
    tls: Tls,
    connector: Connector,
    state: Mutex<State>,
}

struct State {
    client: Http,
    material: Material,
    looked: Instant,
}

impl Connections {
    pub(super) fn new(tls: Tls, proxy: Option<Proxy>, credential: &Credential) -> Result<Self, TlsError> {
        let connector = Connector::new(proxy);
        let material = tls.read(credential.identity.as_ref())?;
        let client = connect(&connector, &tls, &material)?;
        let state = Mutex::new(State { client, material, looked: Instant::now() });
        Ok(Self { tls, connector, state })
    }

    /// The client for a request that shows the credential.
    pub(super) fn client(&self, credential: &Credential) -> Http {
        let mut state = self.state();
        let given = credential.identity.as_ref();
        let is_new = given.is_some() && given != state.material.identity.as_ref();
        if is_new || state.looked.elapsed() >= LOOK_AGAIN {
            self.look(&mut state, given);
        }
        state.client.clone()
    }

    /// The server does not know us: perhaps there is another certificate meanwhile.
    pub(super) fn refused(&self, credential: &Credential) {
        if credential.identity.is_none() && self.tls.identity.is_some() {
            self.look(&mut self.state(), None);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What cannot be used changes nothing: a file may be half written.
    fn look(&self, state: &mut State, given: Option<&Identity>) {
        state.looked = Instant::now();
        let renewed = self.tls.read(given).and_then(|material| {
            if material != state.material {
                state.client = connect(&self.connector, &self.tls, &material)?;
                state.material = material;
            }
            Ok(())
        });
        if let Err(fault) = renewed {
            tracing::warn!(error = fault.what(), "certificates cannot be read again; the last ones are used");
        }
    }
}

fn connect(connector: &Connector, tls: &Tls, material: &Material) -> Result<Http, TlsError> {
    let config = tls::client(&material.trust, material.identity.as_ref())?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    let builder = match &tls.server_name {
        Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone())),
        None => builder,
    };
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .build(builder.enable_http1().wrap_connector(connector.clone())))
}

/// TCP, or a tunnel through a proxy.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    proxy: Option<Proxy>,
}

impl Connector {
    fn new(proxy: Option<Proxy>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        Self { tcp, proxy }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(BoxError::from)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match &self.proxy {
            None => self.tcp.call(server).map_err(BoxError::from).boxed(),
            Some(proxy) => {
                let tunnel = Tunnel::new(proxy.address.clone(), self.tcp.clone());
                let mut tunnel = match &proxy.authorization {
                    Some(authorization) => tunnel.with_auth(authorization.clone()),
                    None => tunnel,
                };
                async move { tunnel.call(server).await.map_err(BoxError::from) }.boxed()
            }
        }
    }
}

#[cfg(test)]
mod tests;
