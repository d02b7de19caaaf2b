//! Puts the scheduler on a cluster together.

use std::sync::Arc;

use supercargo_config::Configuration;
use supercargo_extender::WantedOriginals;
use supercargo_framework::registry::Registry;
use supercargo_live::{
    informer,
    lease::{self, Lease, Terms},
    real::host_name,
    scheduler::{Parts, Scheduler},
    world::{SharedWorld, WorldClock},
};
use supercargo_manifest::Problems;
use supercargo_model::Cluster;

use crate::{
    extenders::{extenders, roles},
    running::SchedulerOptions,
    setup::{self, Overrides},
};

/// A scheduler that is ready to run. It begins to read the cluster at once, and decides once it is
/// [run](Scheduler::run). Without a lease it may always write.
pub(crate) fn assemble(
    world: &SharedWorld,
    configuration: &Configuration,
    registry: &Registry,
    lease: Option<Lease>,
    options: &SchedulerOptions,
) -> Result<Scheduler, Problems> {
    let overrides = Overrides { seed: world.random(), ..Overrides::default() };
    let mut engine = setup::engine(Cluster::default(), configuration, registry, overrides)?;
    let clock = Arc::new(WorldClock(world.clone()));
    let extenders = extenders(configuration, &options.extender_transport, clock, options.watcher.clone())?;
    let extenders = extenders.with(options.strictness);
    engine.set_extenders(roles(&extenders));
    let wanted = Arc::new(WantedOriginals::by(&configuration.extenders));
    let declared = configuration.declared(registry);
    let resources = informer::resources(&declared, engine.profiles().iter()).into_iter();
    let resources = resources.map(|resource| resource.with_texts(&wanted)).collect();
    let scheduler = Scheduler::new(Parts {
        world: world.clone(),
        engine,
        queue: setup::queue_settings(configuration),
        watch_events: match (&lease, configuration.delay_cache_until_active) {
            (Some(lease), true) => {
                let lease = lease.clone();
                let leads = async move {
                    lease.acquired().await;
                };
                informer::open_after(world, resources, &options.informers, Box::pin(leads))
            }
            _ => informer::open(world, resources, &options.informers),
        },
        declared,
        lease,
        extenders: Arc::new(extenders),
        meter: options.meter.clone(),
        host: host_name(),
    });
    let scheduler =
        scheduler.with_decisions(options.decisions.clone()).explaining_in_events(options.explain_in_events);
    Ok(match options.max_unschedulable {
        Some(span) => scheduler.with_max_unschedulable(span),
        None => scheduler,
    })
}

/// Is ready to take part in the election, if the configuration wants one. A scheduler that is [started](crate::start) with it
/// takes part as soon as it has something to lead with: when its caches are synced, unless they wait for the lease.
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
        lease::stand_by(world, terms)
    })
}
