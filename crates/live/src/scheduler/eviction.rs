//! Makes room for a pod: evicts the pods that were chosen, in the background, and keeps the room for it.

use std::{collections::HashSet, sync::Arc, time::Duration};

use supercargo_engine::{Failure, Refusal};
use supercargo_framework::preemption::{Claim, Nomination};
use supercargo_model::{Name, Pod};
use tokio::sync::mpsc;

use super::{Report, Scheduler};
use crate::{
    lease::Lease,
    requests,
    world::{Reply, Request, SharedWorld, Unanswered},
};

/// The plugin that holds pods back while their room is being made.
const DEFAULT_PREEMPTION: &str = "DefaultPreemption";
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

/// Room that is being made for a pod.
pub(super) struct Room {
    node: Name,
    victims: Vec<Arc<Pod>>,
    /// The evictions have been carried out, as far as the server says.
    evicted: bool,
    /// The pod's turn came before that was over.
    held_back: bool,
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
        let room = Room {
            node: nomination.node.clone(),
            victims: nomination.victims.clone(),
            evicted: false,
            held_back: false,
        };
        self.rooms.insert(pod.uid.clone(), room);
        let task = evict_all(
            self.world.clone(),
            self.lease.clone(),
            pod.clone(),
            nomination.clone(),
            self.report_to.clone(),
        );
        self.world.spawn(Box::pin(task));
    }

    /// Holds a pod back as long as room is being made on the node that it waits for, for whomever: tried now, it would see
    /// pods that are as good as gone, and evict others as well. False if there is nothing to wait for.
    pub(super) fn hold_back(&mut self, pod: &Pod) -> bool {
        let Some(node) = self.rooms.get(&pod.uid).map(|room| room.node.clone()) else {
            return false;
        };
        if !self.unfinished_nodes().contains(&node) {
            self.rooms.remove(&pod.uid);
            return false;
        }
        if let Some(room) = self.rooms.get_mut(&pod.uid) {
            room.held_back = true;
        }
        let refusal = Refusal { plugins: [DEFAULT_PREEMPTION.into()].into(), ..Refusal::default() };
        let (now, nominations) = (self.world.uptime(), self.engine.nominations_mut());
        self.queue.park(&pod.uid, Failure::Refused(refusal), Claim::On(node), nominations, now);
        true
    }

    /// Lets the pods in whose nodes are ready, as far as the watch says.
    pub(super) fn let_in(&mut self) {
        if self.rooms.is_empty() {
            return;
        }
        let queue = &self.queue;
        self.rooms.retain(|preemptor, _| queue.find(preemptor).is_some());
        let unfinished = self.unfinished_nodes();
        let now = self.world.uptime();
        for (preemptor, room) in &mut self.rooms {
            if room.held_back && !unfinished.contains(&room.node) {
                room.held_back = false;
                self.queue.activate([&**preemptor], now);
            }
        }
    }

    /// The nodes on which room is still being made.
    fn unfinished_nodes(&self) -> HashSet<Name> {
        let unfinished = self.rooms.iter().filter(|(preemptor, room)| !self.is_made(preemptor, room));
        unfinished.map(|(_, room)| room.node.clone()).collect()
    }

    /// Whether every victim is known to leave. Those that take their time count once the pod's own status names the node:
    /// only then is it seen that they leave for its sake.
    fn is_made(&self, preemptor: &str, room: &Room) -> bool {
        let Some(pending) = self.queue.find(preemptor) else {
            return true;
        };
        let is_named = pending.pod.nominated_node.as_ref() == Some(&room.node);
        let leaves = |victim: &Arc<Pod>| {
            let known = self.engine.cluster().pod(&victim.key()).filter(|known| known.uid == victim.uid);
            known.is_none_or(|known| known.terminating && is_named)
        };
        room.evicted && room.victims.iter().all(leaves)
    }

    pub(super) fn eviction_ended(&mut self, evicted: Evicted) {
        let Evicted { preemptor, node, gone, failed, took } = evicted;
        self.meter.evicted(failed.is_none(), took);
        for victim in &gone {
            self.teller.preempted(victim, &preemptor, &node);
        }
        if let Some(room) = self.rooms.get_mut(&preemptor.uid) {
            room.evicted = true;
        }
        if let Some(why) = failed {
            self.rooms.remove(&preemptor.uid);
            // The room will not come: the pod is tried again, and looks for another.
            tracing::warn!(pod = %preemptor.key(), %node, why, "room could not be made");
            self.engine.nominations_mut().forget(&preemptor.uid);
            self.teller.not_nominated(&preemptor);
            self.queue.activate([&*preemptor.uid], self.world.uptime());
        }
        self.let_in();
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
    let mark = || requests::mark_preempted(victim, scheduler_name, world.now());
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
