//! What the running scheduler serves, and to whom.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;
use supercargo_config::{REDACTED, without_password};
use supercargo_live::{
    informer::InformerHealth,
    lease::{LeadershipState, Lease},
    scheduler::inspector::Inspector,
    world::{Request, SharedWorld},
};
use supercargo_model::{Pod, resources::Resources};
use supercargo_server::{
    AccessControl, AccessOptions, Certificate, Clock, Configz, ConnectionLimits, ConnectionSecurity, Drained,
    Health, HealthCheck, Port, Routes, ServeError, Server, ServerOptions, Statusz, TlsOptions, TlsVersion,
    metrics::PodResources,
};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    flags::{Checked, Options},
    live_page::LivePage,
    measure::MetricsMeter,
    review::ByApiServer,
};

/// How often it is seen whether the API server is there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
/// What `/statusz` says that runs: the kube-scheduler that is stood in for, and ourselves.
const BINARY_VERSION: &str = concat!("1.36.4+supercargo.", env!("CARGO_PKG_VERSION"));
const EMULATION_VERSION: &str = "1.36";
/// Who cannot read a kind for longer than this decides by what was, and is not ready.
const MAX_BLINDNESS: Duration = Duration::from_secs(60);

/// All that is needed to serve.
pub(super) struct Serving {
    pub(super) options: Options,
    pub(super) checked: Checked,
    /// The configuration, as it is shown.
    pub(super) configuration: Value,
    pub(super) profiling: bool,
    /// The way to the API server.
    pub(super) world: SharedWorld,
    pub(super) reviewer: ByApiServer,
    pub(super) lease: Option<Lease>,
    /// Whether everything has been read once.
    pub(super) synced: watch::Receiver<bool>,
    pub(super) informers: InformerHealth,
    /// Where the informers live: its clock is theirs.
    pub(super) informers_world: SharedWorld,
    pub(super) inspector: Inspector,
    /// Answers questions about decisions, the queue and the cluster.
    pub(super) page: Arc<LivePage>,
    pub(super) measured: Arc<MetricsMeter>,
    pub(super) stop: CancellationToken,
}

impl Serving {
    /// Starts to serve, if anything is to be served.
    pub(super) async fn start(self) -> Result<Option<JoinHandle<Drained>>, ServeError> {
        let Some(server) = self.server_options() else {
            return Ok(None);
        };
        let server = Server::bind(server).await?;
        let routes = self.routes();
        let access = self.access_options();
        let protected =
            routes.protected(AccessControl::new(Arc::new(self.reviewer), access, Clock::system()));
        Ok(Some(tokio::spawn(server.serve(protected, self.stop.cancelled_owned()))))
    }

    fn routes(&self) -> Routes {
        let configz = Configz::default();
        configz.set("componentconfig", redacted(self.configuration.clone()));
        let mut routes = Routes::new(self.health(), self.measured.metrics(), configz);
        let mut paths = vec!["/configz", "/healthz", "/livez", "/metrics", "/readyz"];
        let (inspector, lease, runtime) = (self.inspector.clone(), self.lease.clone(), Handle::current());
        // Asked where waiting does not matter.
        routes = routes.pod_resources(Arc::new(move || match &lease {
            Some(lease) if lease.state() != LeadershipState::Leading => Vec::new(),
            _ => pod_resources(&runtime, &inspector),
        }));
        routes = self.page.clone().routes(routes, !self.options.decisions.no_ui);
        if self.profiling {
            routes = routes.profiling();
        }
        if self.checked.gates.enabled("ComponentFlagz") {
            routes = routes.flagz(self.options.given.flagz());
            paths.insert(1, "/flagz");
        }
        if self.checked.gates.enabled("ComponentStatusz") {
            routes = routes.statusz(Statusz {
                started: Timestamp::now(),
                binary_version: BINARY_VERSION.to_owned(),
                emulation_version: EMULATION_VERSION.to_owned(),
                paths,
            });
        }
        routes
    }

    fn access_options(&self) -> AccessOptions {
        let options = &self.options;
        AccessOptions {
            always_allow_paths: match options.insecure_address {
                Some(_) => vec!["/*".to_owned()],
                None => options.authorization_always_allow_paths.clone(),
            },
            token_ttl: options.authentication_token_webhook_cache_ttl.to_std().unwrap_or_default(),
            authorized_ttl: options.authorization_webhook_cache_authorized_ttl.to_std().unwrap_or_default(),
            unauthorized_ttl: options
                .authorization_webhook_cache_unauthorized_ttl
                .to_std()
                .unwrap_or_default(),
            ..AccessOptions::default()
        }
    }

    fn server_options(&self) -> Option<ServerOptions> {
        let options = &self.options;
        let mut limits = ConnectionLimits::default();
        if options.http2_max_streams_per_connection > 0 {
            limits.http2_streams = options.http2_max_streams_per_connection;
        }
        let share_port = options.permit_port_sharing;
        if let Some(address) = options.insecure_address {
            let port = Port::from_flag(address.port()).unwrap_or(Port::Ephemeral);
            let (address, security) = (address.ip(), ConnectionSecurity::Plain);
            return Some(ServerOptions { address, port, security, share_port, limits });
        }
        let port = Port::from_flag(options.secure_port)?;
        let security = ConnectionSecurity::Tls(self.tls_options());
        Some(ServerOptions { address: options.bind_address, port, security, share_port, limits })
    }

    fn tls_options(&self) -> TlsOptions {
        let options = &self.options;
        let certificate = match (&options.tls_cert_file, &options.tls_private_key_file) {
            (Some(certificate), Some(key)) => {
                Certificate::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Certificate::SelfSigned { directory: options.cert_dir.clone() },
        };
        TlsOptions {
            certificate,
            client_ca_file: options.client_ca_file.clone(),
            named_certificates: options.tls_sni_cert_key.clone(),
            min_version: options.tls_min_version.map_or(TlsVersion::V12, |min| min.version),
            cipher_suites: self.checked.cipher_suites.clone(),
            key_exchanges: self.checked.key_exchanges.clone(),
            http2: !options.disable_http2_serving,
            ..TlsOptions::default()
        }
    }

    /// The checks of kube-scheduler, by its names, and whether the API server is there.
    fn health(&self) -> Health {
        let leads = self.lease.clone().map(|lease| {
            // Fails where we believe to lead, and could not renew the lease in time.
            HealthCheck::new("leaderElection", move || {
                if lease.state() == LeadershipState::Leading && !lease.is_held() {
                    return Err("the lease could not be renewed".to_owned());
                }
                Ok(())
            })
        });
        let reachable = Arc::new(AtomicBool::new(false));
        self.world.spawn(Box::pin(look_at_server(self.world.clone(), reachable.clone(), self.stop.clone())));
        let server = HealthCheck::new("api-server", move || match reachable.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("the API server does not answer".to_owned()),
        });
        let synced = HealthCheck::flag(
            "sched-handler-sync",
            self.synced.clone(),
            "handlers are not fully synchronized",
        );
        let (informers, world) = (self.informers.clone(), self.informers_world.clone());
        let sees = HealthCheck::new("informer-watch", move || {
            match &*informers.blind_to(world.uptime(), MAX_BLINDNESS) {
                [] => Ok(()),
                kinds => {
                    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                    Err(format!("cannot be read any more: {}", names.join(", ")))
                }
            }
        });
        let mut readyz: Vec<HealthCheck> = leads.iter().cloned().collect();
        readyz.extend([HealthCheck::shutdown(self.stop.clone()), synced, sees, server]);
        Health { healthz: leads.into_iter().collect(), livez: vec![HealthCheck::ping()], readyz }
    }
}

/// A configuration without the private keys and passwords that it may hold.
fn redacted(mut configuration: Value) -> Value {
    for extender in configuration["extenders"].as_array_mut().into_iter().flatten() {
        if let Some(address) = extender.pointer_mut("/urlPrefix")
            && let Some(shown) = address.as_str().map(|address| without_password(address).into_owned())
        {
            *address = shown.into();
        }
        if let Some(key) = extender.pointer_mut("/tlsConfig/keyData") {
            *key = REDACTED.into();
        }
    }
    configuration
}

/// What the pods that the scheduler knows ask for, and may use.
fn pod_resources(runtime: &Handle, inspector: &Inspector) -> Vec<PodResources> {
    let pods = inspector.ask(|engine, queue| {
        let bound = engine.cluster().pods().cloned();
        bound.chain(queue.pending().map(|pending| pending.pod.clone())).collect::<Vec<Arc<Pod>>>()
    });
    let mut pods = runtime.block_on(pods).unwrap_or_default();
    // A pod that is assumed to be on its node is in both.
    pods.sort_by(|a, b| {
        (&a.namespace, &a.name, a.node.is_none()).cmp(&(&b.namespace, &b.name, b.node.is_none()))
    });
    pods.dedup_by(|later, kept| later.uid == kept.uid);
    pods.iter().map(|pod| resources_of(pod)).collect()
}

fn resources_of(pod: &Pod) -> PodResources {
    PodResources {
        namespace: pod.namespace.to_string(),
        pod: pod.name.to_string(),
        node: pod.node.as_deref().unwrap_or_default().to_owned(),
        scheduler: pod.spec.scheduler_name.to_string(),
        priority: Some(pod.spec.priority),
        requests: amounts(&pod.spec.requests.fit),
        limits: pod.limits.as_deref().map(amounts).unwrap_or_default(),
    }
}

/// Amounts in base units: cores and bytes.
fn amounts(resources: &Resources) -> Vec<(String, f64)> {
    let named = [
        ("cpu", resources.milli_cpu as f64 / 1000.0),
        ("memory", resources.memory as f64),
        ("ephemeral-storage", resources.ephemeral_storage as f64),
    ];
    let scalars = resources.scalars.iter().map(|(name, amount)| (name.to_string(), *amount as f64));
    named.map(|(name, amount)| (name.to_owned(), amount)).into_iter().chain(scalars).collect()
}

async fn look_at_server(world: SharedWorld, reachable: Arc<AtomicBool>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let answer = world.send(Request::get("/readyz").within(PATIENCE)).await;
        // One that may not be asked for its health is there all the same.
        let there = answer.is_ok_and(|reply| reply.status < 500);
        reachable.store(there, Ordering::Relaxed);
        world.sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn private_keys_are_not_shown() {
        let configuration = json!({"extenders": [
            {"urlPrefix": "https://a", "tlsConfig": {"keyData": "c2VjcmV0", "certData": "eA=="}},
            {"urlPrefix": "https://b"},
            {"urlPrefix": "https://user:pass@word@c:8080/x?y=@"},
        ]});
        let shown = redacted(configuration.clone());
        assert_eq!(shown["extenders"][0]["tlsConfig"], json!({"keyData": REDACTED, "certData": "eA=="}));
        assert_eq!(shown["extenders"][1], configuration["extenders"][1]);
        assert_eq!(shown["extenders"][2]["urlPrefix"], format!("https://{REDACTED}@c:8080/x?y=@"));
    }
}
