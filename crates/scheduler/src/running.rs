//! A scheduler that runs: what it does can be followed, it can be asked, and stopped.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use supercargo_config::Configuration;
use supercargo_extender::{NoWatcher, Strictness, Watcher};
use supercargo_framework::registry::Registry;
use supercargo_live::{
    informer::InformerHealth,
    lease::{LeadershipState, Lease},
    scheduler::{
        inspector::Inspector,
        meter::{Meter, NoMeter},
        records::{DecisionObserver, Records},
    },
    world::SharedWorld,
};
use supercargo_manifest::Problems;
use tokio::sync::{oneshot, watch};

use crate::{
    extenders::{ExtenderTransport, over_http},
    live::{assemble, campaign},
};

/// What may differ from scheduler to scheduler besides the configuration.
pub struct SchedulerOptions {
    /// Whether it takes part in an election.
    pub election: Election,
    /// Counts what it does.
    pub meter: Arc<dyn Meter>,
    /// Counts what extenders do.
    pub watcher: Arc<dyn Watcher>,
    /// The way to extenders.
    pub extender_transport: ExtenderTransport,
    /// How closely extenders' answers are looked at.
    pub strictness: Strictness,
    /// Hears which kinds are out of sight.
    pub informers: InformerHealth,
    /// How long pods wait for events before they are tried anyway; kube-scheduler's five minutes if it is not said.
    pub max_unschedulable: Option<Duration>,
    /// Sees every decision in full; all pods are then decided on the full path.
    pub decisions: Option<Arc<dyn DecisionObserver>>,
    /// Events say why a node was chosen.
    pub explain_in_events: bool,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            election: Election::Configured,
            meter: Arc::new(NoMeter),
            watcher: Arc::new(NoWatcher),
            extender_transport: over_http(),
            strictness: Strictness::default(),
            informers: InformerHealth::default(),
            max_unschedulable: None,
            decisions: None,
            explain_in_events: false,
        }
    }
}

/// Whether a scheduler takes part in an election. Without one it may always write.
pub enum Election {
    /// If the configuration says so.
    Configured,
    /// Never, whatever the configuration says.
    Never,
    /// It does so already; or does not.
    Joined(Option<Lease>),
}

/// Why a scheduler has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// Another one leads now.
    LostLease,
}

/// A scheduler that runs in a task of its world. It stops when this is dropped.
pub struct RunningScheduler {
    records: Records,
    inspector: Inspector,
    synced: watch::Receiver<bool>,
    plugin_changes: Arc<dyn Fn(&str) + Send + Sync>,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<Ended>,
}

/// Starts a scheduler: configuration, registry and world in, a running scheduler out.
pub fn start(
    world: &SharedWorld,
    configuration: &Configuration,
    registry: &Registry,
    mut options: SchedulerOptions,
) -> Result<RunningScheduler, Problems> {
    let lease = match std::mem::replace(&mut options.election, Election::Never) {
        Election::Configured => campaign(world, configuration),
        Election::Never => None,
        Election::Joined(lease) => lease,
    };
    let scheduler = assemble(world, configuration, registry, lease.clone(), &options)?;
    if let Some(lease) = lease.clone() {
        let mut synced = scheduler.synced();
        let is_first = configuration.delay_cache_until_active;
        world.spawn(Box::pin(async move {
            if is_first || synced.wait_for(|synced| *synced).await.is_ok() {
                lease.campaign();
            }
        }));
    }
    let (stop, stopped) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let running = RunningScheduler {
        records: scheduler.records(),
        inspector: scheduler.inspector(),
        synced: scheduler.synced(),
        plugin_changes: Arc::new(scheduler.plugin_changes()),
        stop,
        ended,
    };
    world.spawn(Box::pin(async move {
        // Whoever lets go of the other end means it, too.
        let seen = scheduler.run(async { drop(stopped.await) }).await;
        let is_lost = |lease: &Lease| lease.state() == LeadershipState::Lost;
        let how = if lease.as_ref().is_some_and(is_lost) { Ended::LostLease } else { Ended::Stopped };
        if let Some(lease) = &lease {
            lease.release(seen).await;
        }
        // Nobody may want to know.
        let _ = end.send(how);
    }));
    Ok(running)
}

impl RunningScheduler {
    /// The way to follow what it decides, and how its queue changes.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The way to ask it.
    pub fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    /// Whether everything has been read once.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.clone()
    }

    /// The way to tell it that a plugin judges otherwise from now on: the pods that the plugin refused are tried again.
    pub fn plugin_changes(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let plugin_changes = self.plugin_changes.clone();
        move |plugin| plugin_changes(plugin)
    }

    /// Stops it. Bindings that are on their way are waited for, and the lease is released; but if some of them do not come to
    /// an end in time, the lease is left to run out, so that nobody decides before they have.
    pub async fn stop(self) -> Ended {
        drop(self.stop);
        self.ended.await.unwrap_or(Ended::Stopped)
    }

    /// Stops it when something has happened; it may end before that.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> Ended {
        match select(pin!(stop), &mut self.ended).await {
            Either::Left(_) => self.stop().await,
            Either::Right((ended, _)) => ended.unwrap_or(Ended::Stopped),
        }
    }
}
