//! Makes room for a pod: evicts the pods that were chosen, in the background, and keeps the room for it.

use std::{sync::Arc, time::Duration};

use supercargo_framework::preemption::Nomination;
use supercargo_model::{Name, Pod};
use tokio::sync::mpsc;

use super::{Report, Scheduler};
use crate::{
    lease::Lease,
    requests,
    world::{Reply, Request, SharedWorld, Unanswered},
};

/// How often an eviction is tried.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// How the evictions for a pod went.
pub(super) struct Evicted {
    preemptor: Arc<Pod>,
    node: Name,
    gone: Vec<Arc<Pod>>,
    failed: Option<String>,
    took: Duration,
}

impl Scheduler {
    /// Starts to make room on a node. Less important pods that waited for the same room lose their claim to it.
    pub(super) fn make_room(&mut self, pod: &Arc<Pod>, nomination: &Nomination) {
        self.meter.preempts(nomination.victims.len());
        tracing::info!(pod = %pod.key(), node = %nomination.node, victims = nomination.victims.len(), "making room");
        for other in self.engine.nominations_mut().drop_less_important(pod, &nomination.node) {
            self.teller.not_nominated(&other);
            let uid = other.uid.clone();
            self.queue.activate([&*uid], self.world.uptime());
        }
        if nomination.victims.is_empty() {
            return;
        }
        let task = evict_all(
            self.world.clone(),
            self.lease.clone(),
            pod.clone(),
            nomination.clone(),
            self.report_to.clone(),
        );
        self.world.spawn(Box::pin(task));
    }

    pub(super) fn eviction_ended(&mut self, evicted: Evicted) {
        let Evicted { preemptor, node, gone, failed, took } = evicted;
        self.meter.evicted(failed.is_none(), took);
        for victim in &gone {
            self.teller.preempted(victim, &preemptor, &node);
        }
        if let Some(why) = failed {
            // The room will not come: the pod is tried again, and looks for another.
            tracing::warn!(pod = %preemptor.key(), %node, why, "room could not be made");
            self.engine.nominations_mut().forget(&preemptor.uid);
            self.teller.not_nominated(&preemptor);
            self.queue.activate([&*preemptor.uid], self.world.uptime());
        }
    }
}

async fn evict_all(
    world: SharedWorld,
    lease: Option<Lease>,
    preemptor: Arc<Pod>,
    nomination: Nomination,
    report_to: mpsc::UnboundedSender<Report>,
) {
    let started = world.uptime();
    let mut gone = Vec::new();
    let mut failed = None;
    for victim in &nomination.victims {
        match evict(&world, lease.as_ref(), &preemptor, victim).await {
            Ok(()) => gone.push(victim.clone()),
            Err(why) => failed = Some(why),
        }
    }
    let took = world.uptime() - started;
    let evicted = Evicted { preemptor, node: nomination.node, gone, failed, took };
    // Nobody listens any more when the scheduler has stopped.
    let _ = report_to.send(Report::Evicted(evicted));
}

/// Tells a pod why it has to go, and deletes it.
async fn evict(
    world: &SharedWorld,
    lease: Option<&Lease>,
    preemptor: &Pod,
    victim: &Pod,
) -> Result<(), String> {
    let key = victim.key();
    let scheduler_name = &preemptor.spec.scheduler_name;
    let mark = || requests::mark_preempted(&key, &victim.uid, scheduler_name, world.now());
    if !until_done(world, lease, mark).await? {
        return Ok(());
    }
    until_done(world, lease, || requests::delete_pod(&key, &victim.uid)).await?;
    Ok(())
}

/// Sends a request until it has been done. Sending it twice does no harm. False if there is nobody to do it to any more.
async fn until_done(
    world: &SharedWorld,
    lease: Option<&Lease>,
    request: impl Fn() -> Request,
) -> Result<bool, String> {
    let mut why = String::new();
    for attempt in 1..=TRIES {
        if lease.is_some_and(|lease| !lease.is_held()) {
            return Err("the lease is not held any more".to_owned());
        }
        match world.send(request()).await {
            Ok(reply) if reply.is_success() => return Ok(true),
            // Gone, or another pod has its name by now.
            Ok(Reply { status: 404 | 409, .. }) => return Ok(false),
            Ok(reply) => why = reply.message(),
            Err(Unanswered::NotSent(reason) | Unanswered::OutcomeUnknown(reason)) => why = reason,
        }
        world.sleep(PAUSE * attempt).await;
    }
    Err(why)
}
