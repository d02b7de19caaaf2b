//! Putting it together: a configuration, a registry of plugins and a world in, a scheduler out that is ready to run.
//!
//! Everybody who runs a scheduler goes through [`assemble`]: the command, the demo, and the tests on virtual time.

mod extenders;

use std::{sync::Arc, time::Duration};

use supercargo_config::Configuration;
use supercargo_engine::{Backoff, QueueSettings};
use supercargo_extender::{Strictness, Wanted, Watcher};
use supercargo_framework::registry::Registry;
use supercargo_live::{
    informer::{self, InformerHealth},
    lease::{self, Lease, Terms},
    real::host_name,
    scheduler::{Parts, Scheduler, meter::Meter},
    world::{SharedWorld, WorldClock},
};
use supercargo_manifest::Problems;
use supercargo_model::Cluster;
use supercargo_sim::setup::{self, Overrides};

pub use extenders::{extenders, roles};

/// Who counts what the scheduler does, and what extenders do.
pub type Watchers = (Arc<dyn Meter>, Arc<dyn Watcher>);

/// How others are dealt with.
#[derive(Default)]
pub struct Outside {
    /// How closely extenders' answers are looked at.
    pub strictness: Strictness,
    /// Hears which kinds are out of sight.
    pub informers: InformerHealth,
}

/// A scheduler that is ready to run. It begins to read the cluster at once, and decides once it is
/// [run](Scheduler::run). Without a lease it may always write.
pub fn assemble(
    world: &SharedWorld,
    configuration: &Configuration,
    registry: &Registry,
    lease: Option<Lease>,
    (meter, watcher): Watchers,
    outside: &Outside,
) -> Result<Scheduler, Problems> {
    let overrides = Overrides { seed: world.random(), ..Overrides::default() };
    let mut engine = setup::engine(Cluster::default(), configuration, registry, overrides)?;
    let extenders = extenders(configuration, Arc::new(WorldClock(world.clone())), watcher)?;
    let extenders = extenders.with(outside.strictness);
    engine.set_extenders(roles(&extenders));
    let backoff = Backoff {
        initial: Duration::from_secs(configuration.pod_initial_backoff_seconds),
        max: Duration::from_secs(configuration.pod_max_backoff_seconds),
    };
    let wanted = Arc::new(Wanted::by(&configuration.extenders));
    let resources = informer::resources(engine.profiles().iter()).into_iter();
    let resources = resources.map(|resource| resource.with_texts(&wanted)).collect();
    Ok(Scheduler::new(Parts {
        world: world.clone(),
        engine,
        queue: QueueSettings {
            backoff,
            extenders: !configuration.extenders.is_empty(),
            ..QueueSettings::default()
        },
        watch_events: match (&lease, configuration.delay_cache_until_active) {
            (Some(lease), true) => {
                let lease = lease.clone();
                let leads = async move {
                    lease.acquired().await;
                };
                informer::open_after(world, resources, &outside.informers, Box::pin(leads))
            }
            _ => informer::open(world, resources, &outside.informers),
        },
        lease,
        extenders: Arc::new(extenders),
        meter,
        host: host_name(),
    }))
}

/// Takes part in the election, if the configuration wants one.
pub fn campaign(world: &SharedWorld, configuration: &Configuration) -> Option<Lease> {
    let election = &configuration.leader_election;
    election.leader_elect.then(|| {
        let terms = Terms {
            namespace: election.resource_namespace.clone(),
            name: election.resource_name.clone(),
            identity: lease::identity(&**world, &host_name()),
            lease_duration: election.lease_duration.to_std().unwrap_or_default(),
            renew_deadline: election.renew_deadline.to_std().unwrap_or_default(),
            retry_period: election.retry_period.to_std().unwrap_or_default(),
            component: configuration.profiles[0].scheduler_name.to_string(),
        };
        lease::campaign(world, terms)
    })
}
