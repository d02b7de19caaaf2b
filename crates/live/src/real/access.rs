//! How the API server is found, and who we are to it.

use std::{fmt, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_util::{
    client::legacy::{
        Builder,
        connect::{Connection, HttpConnector, proxy::Tunnel},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::ConfigExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, Layer, Service, ServiceExt, util::BoxCloneSyncService};

use super::Client;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Probes of an idle connection: a machine that vanished is noticed.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
/// Connections beyond what is needed are given up after this.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// How to reach the API server. The default asks the environment, and does not throttle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Access {
    /// A kubeconfig file, from the command line or the configuration's `clientConnection`. Without it: the files that
    /// `KUBECONFIG` names, the cluster that the process runs in, `~/.kube/config`, in this order.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, instead of its current one. With it, the cluster that the process runs in is not asked.
    pub context: Option<String>,
    /// The server's address, instead of the kubeconfig's. Alone it is enough: no kubeconfig is looked for then.
    pub master: Option<String>,
    /// Requests in a second, watches not counted; `None` does not throttle: the API server's own priority and fairness
    /// sees to that better. kube-scheduler's 50 is honoured where a configuration says so.
    pub queries_per_second: Option<f32>,
    /// Requests at once beyond that.
    pub burst: u32,
}

/// The API server cannot even be asked.
#[derive(Debug)]
pub struct Unreachable {
    what: String,
    hint: &'static str,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.what, self.hint)
    }
}

impl std::error::Error for Unreachable {}

/// Finds the server and the credentials.
pub(super) async fn find(access: &Access) -> Result<Config, Unreachable> {
    let master = access.master.as_deref().filter(|master| !master.is_empty()).map(address).transpose()?;
    let mut config = match (&access.kubeconfig, &master, &access.context) {
        (Some(file), ..) => from_file(file, &chosen(access)).await?,
        (None, Some(master), None) => Config::new(master.clone()),
        (None, ..) => from_environment(&chosen(access)).await?,
    };
    if let Some(master) = master {
        config.cluster_url = master;
    }
    Ok(config)
}

fn chosen(access: &Access) -> KubeConfigOptions {
    KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() }
}

fn address(master: &str) -> Result<Uri, Unreachable> {
    let full = if master.contains("://") { master.to_owned() } else { format!("http://{master}") };
    match full.parse::<Uri>() {
        Ok(uri) if uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")) => Ok(uri),
        _ => Err(Unreachable {
            what: format!("the master's address makes no sense: {master}"),
            hint: "write it like https://10.0.0.1:6443",
        }),
    }
}

async fn from_file(file: &PathBuf, chosen: &KubeConfigOptions) -> Result<Config, Unreachable> {
    let unreadable = |error: kube::config::KubeconfigError| Unreachable {
        what: format!("kubeconfig {}: {}", file.display(), error),
        hint: "name another file with --kubeconfig, or with clientConnection.kubeconfig in the configuration",
    };
    let read = Kubeconfig::read_from(file).map_err(unreadable)?;
    Config::from_custom_kubeconfig(read, chosen).await.map_err(unreadable)
}

async fn from_environment(chosen: &KubeConfigOptions) -> Result<Config, Unreachable> {
    let named = std::env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty());
    if !named
        && chosen.context.is_none()
        && let Ok(config) = Config::incluster()
    {
        return Ok(config);
    }
    Config::from_kubeconfig(chosen).await.map_err(|error| Unreachable {
        what: format!("no cluster to work for: not in a pod, and no usable kubeconfig: {}", error),
        hint: "name a kubeconfig with --kubeconfig or KUBECONFIG, or a server with --master",
    })
}

/// The HTTP client: connections, TLS, credentials.
pub(super) fn client(config: &Config) -> Result<Client, Unreachable> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.set_keepalive(Some(TCP_KEEPALIVE));
    match &config.proxy_url {
        Some(proxy) if !is_loopback(&config.cluster_url) => match proxy.scheme_str() {
            Some("http") => over(config, Tunnel::new(proxy.clone(), http)),
            _ => Err(Unreachable {
                what: format!("the proxy {proxy} is of a kind that is not supported"),
                hint: "use an http:// proxy, or exempt the API server with NO_PROXY",
            }),
        },
        _ => over(config, http),
    }
}

/// Nobody means a proxy for what is on the same machine; Go's clients hold it the same way.
fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn over<C>(config: &Config, connector: C) -> Result<Client, Unreachable>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError> + Send + 'static,
{
    let unusable = |error: kube::Error| Unreachable {
        what: format!("the credentials for {} cannot be used: {error}", config.cluster_url),
        hint: "look at the kubeconfig's certificates, tokens and exec commands",
    };
    let connector = config.rustls_https_connector_with_connector(connector).map_err(unusable)?;
    let client = Builder::new(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .build::<_, Full<Bytes>>(connector)
        .map_err(BoxError::from);
    let client = config.extra_headers_layer().map_err(unusable)?.layer(client);
    Ok(match config.auth_layer().map_err(unusable)? {
        Some(credentials) => BoxCloneSyncService::new(credentials.layer(client).map_err(BoxError::from)),
        None => BoxCloneSyncService::new(client),
    })
}
