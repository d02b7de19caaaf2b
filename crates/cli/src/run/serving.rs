//! What the running scheduler serves, and to whom.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use supercargo_config::Configuration;
use supercargo_framework::registry::Registry;
use supercargo_live::{
    feed::InformerHealth,
    lease::{Lease, Standing},
    scheduler::Scheduler,
    world::{Request, SharedWorld},
};
use supercargo_server::{
    Access, AccessOptions, Certificate, Check, Clock, Configz, Drained, Health, Limits, Port, Routes,
    ServeError, Server, ServerOptions, TlsOptions, Transport,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{flags::Options, measure::Measured, review::ByApiServer};

/// How often it is seen whether the API server is there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
/// Who cannot read a kind for longer than this decides by what was, and is not ready.
const MAX_BLINDNESS: Duration = Duration::from_secs(60);

/// Serves.
pub(super) struct Serving;

impl Serving {
    /// Starts to serve, if anything is to be served.
    #[allow(clippy::too_many_arguments, reason = "it puts everything together")]
    pub(super) async fn start(
        options: &Options,
        configuration: &Configuration,
        registry: &Registry,
        world: &SharedWorld,
        lease: &Option<Lease>,
        scheduler: &Scheduler,
        measured: Arc<Measured>,
        informers: &InformerHealth,
        stop: &CancellationToken,
    ) -> Result<Option<JoinHandle<Drained>>, ServeError> {
        let Some(server) = server_options(options) else {
            return Ok(None);
        };
        let server = Server::bind(server).await?;
        tracing::info!(address = %server.address(), tls = options.insecure_address.is_none(), "serving");
        let configz = Configz::default();
        let written = serde_json::from_str(&configuration.to_json(registry)).unwrap_or_default();
        configz.set("componentconfig", written);
        let health = health(world, lease, scheduler, informers, stop);
        let routes = Routes::new(health, measured.metrics(), configz);
        let access = AccessOptions {
            always_allow_paths: match options.insecure_address {
                Some(_) => vec!["/*".to_owned()],
                None => options.authorization_always_allow_paths.clone(),
            },
            ..AccessOptions::default()
        };
        let reviewer = Arc::new(ByApiServer(world.clone()));
        let protected = routes.protected(Access::new(reviewer, access, Clock::system()));
        Ok(Some(tokio::spawn(server.serve(protected, stop.clone().cancelled_owned()))))
    }
}

fn server_options(options: &Options) -> Option<ServerOptions> {
    let limits = Limits::default();
    if let Some(address) = options.insecure_address {
        let port = Port::from_flag(address.port()).unwrap_or(Port::Ephemeral);
        return Some(ServerOptions { address: address.ip(), port, transport: Transport::Plain, limits });
    }
    let certificate = match (&options.tls_cert_file, &options.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            Certificate::Files { certificate: certificate.clone(), key: key.clone() }
        }
        _ => Certificate::SelfSigned { directory: options.cert_dir.clone() },
    };
    let tls =
        TlsOptions { certificate, client_ca_file: options.client_ca_file.clone(), ..TlsOptions::default() };
    let port = Port::from_flag(options.secure_port)?;
    Some(ServerOptions { address: options.bind_address, port, transport: Transport::Tls(tls), limits })
}

fn health(
    world: &SharedWorld,
    lease: &Option<Lease>,
    scheduler: &Scheduler,
    informers: &InformerHealth,
    stop: &CancellationToken,
) -> Health {
    let leads = {
        let lease = lease.clone();
        // Fails where we believe to lead, and could not renew the lease in time.
        Check::new("leaderElection", move || match &lease {
            Some(lease) if lease.standing() == Standing::Leading && !lease.is_held() => {
                Err("the lease could not be renewed".to_owned())
            }
            _ => Ok(()),
        })
    };
    let reachable = Arc::new(AtomicBool::new(false));
    world.spawn(Box::pin(look_at_server(world.clone(), reachable.clone(), stop.clone())));
    let server = Check::new("api-server", move || match reachable.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err("the API server does not answer".to_owned()),
    });
    let synced = Check::flag("informer-sync", scheduler.synced(), "not everything has been read yet");
    let sees = {
        let (world, informers) = (world.clone(), informers.clone());
        Check::new("informer-watch", move || match &*informers.blind_to(world.uptime(), MAX_BLINDNESS) {
            [] => Ok(()),
            kinds => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                Err(format!("cannot be read any more: {}", names.join(", ")))
            }
        })
    };
    Health {
        healthz: vec![Check::ping(), leads.clone()],
        livez: vec![Check::ping(), leads.clone()],
        readyz: vec![Check::ping(), server, synced, sees, leads, Check::shutdown(stop.clone())],
    }
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
