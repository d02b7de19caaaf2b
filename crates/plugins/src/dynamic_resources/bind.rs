//! Carries out what was planned for a pod's claims before the pod is bound, and takes it back.

use std::{sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use serde_json::Value;
use supercargo_framework::{
    Status, Verdict,
    handle::{AwaitOutcome, Dependency, HandleRef, LogLevel, Measurement, ObjectReference, Occurrence, View},
};
use supercargo_model::{
    Key, Kind, Name, Pod, Timestamp,
    devices::{ClaimAllocation, Devices, ResourceClaim},
    object::Object,
};

use super::{
    conditions::{self, Readiness},
    extended::{self, ExtendedRequests},
    write::ClaimWriter,
};

/// How often kube-scheduler looks at claims whose devices must get ready: what is due within that is not told apart.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(5);
/// How long the watch gets to show what was written.
const SHOWN_WITHIN: Duration = Duration::from_secs(120);

/// What is to be done for the claims of a pod on its node.
#[derive(Clone, Debug)]
pub(super) struct ClaimPlan {
    /// Those that the pod names, then the one for its extended resources.
    pub(super) claims: Vec<PlannedClaim>,
    /// What that one asks for.
    pub(super) extended: Option<ExtendedRequests>,
}

/// A claim of a pod, as it is by now.
#[derive(Clone, Debug)]
pub(super) struct PlannedClaim {
    pub(super) claim: Arc<ResourceClaim>,
    /// What was chosen for it.
    pub(super) allocation: Option<Arc<ClaimAllocation>>,
    pub(super) is_extended: bool,
}

/// How a plan is carried out.
pub(super) struct ClaimBinding<'a> {
    pub(super) handle: &'a HandleRef,
    pub(super) pod: &'a Arc<Pod>,
    pub(super) node: &'a Name,
    /// How long devices may take to get ready.
    pub(super) timeout: Duration,
    /// The pod was about to be bound before: what the cache says of its claims may be out of date.
    pub(super) again: bool,
    /// Takes note of what was written so far: it may have to be taken back.
    pub(super) written: &'a (dyn Fn(&ClaimPlan) + Sync),
}

/// Carries out a plan.
pub(super) async fn bind(binding: &ClaimBinding<'_>, mut plan: ClaimPlan) -> Verdict {
    let ClaimBinding { handle, pod, node, timeout, .. } = *binding;
    for place in 0..plan.claims.len() {
        if binding.again || !plan.claims[place].claim.is_reserved_for(&pod.uid) {
            bind_claim(binding, &mut plan, place).await?;
        }
    }
    if !plan.claims.iter().any(|planned| conditions::has_conditions(&planned.claim)) {
        return Ok(());
    }
    handle.record(Occurrence {
        regarding: ObjectReference::pod(pod),
        related: None,
        scheduler_name: pod.spec.scheduler_name.clone(),
        is_warning: false,
        reason: "BindingConditionsPending".into(),
        action: "Scheduling".into(),
        note: format!("waiting for binding conditions for device on node {node}"),
    });
    let start = handle.connected()?.uptime();
    let (wait, message) = longest_wait(&plan, handle.connected()?.now(), timeout);
    let ready = Box::pin(until_ready(handle, &plan, timeout));
    let ready = match select(ready, Box::pin(handle.sleep(wait))).await {
        Either::Left((ready, _)) => ready,
        Either::Right(_) => Err(Status::error(message)),
    };
    tell_wait(binding, &plan, &ready, handle.connected()?.uptime().saturating_sub(start));
    ready
}

/// How long to wait at most, and what is said then. A claim that was allocated for another pod may be due earlier.
fn longest_wait(plan: &ClaimPlan, now: Timestamp, timeout: Duration) -> (Duration, String) {
    let due = |planned: &PlannedClaim| {
        let due = conditions::due(&planned.claim, timeout)?;
        let left = Duration::try_from(due.duration_since(now)).unwrap_or_default();
        Some((left, planned.claim.name.clone()))
    };
    let first = plan.claims.iter().filter_map(due).min();
    match first.filter(|(left, _)| *left + LOOKED_AT_EVERY < timeout) {
        Some((left, claim)) => (left, format!("device binding timeout: claim={claim}")),
        None => (timeout, "device binding timeout: context deadline exceeded".to_owned()),
    }
}

/// Counts how waiting for devices has ended.
fn tell_wait(binding: &ClaimBinding<'_>, plan: &ClaimPlan, ready: &Verdict, took: Duration) {
    let message = ready.as_ref().err().map(Status::message);
    let outcome = match message.as_deref() {
        None => AwaitOutcome::Ready,
        Some(why) if why.starts_with("device binding timeout") => AwaitOutcome::TimedOut,
        Some(why) if why.starts_with("device binding failed") => AwaitOutcome::Failed,
        Some(_) => AwaitOutcome::Unknown,
    };
    let allocations = plan.claims.iter().filter_map(|planned| planned.claim.allocation.as_ref());
    for device in allocations.flat_map(|allocation| &allocation.devices.results) {
        binding.handle.measure(Measurement::DeviceAwaited {
            profile: binding.pod.spec.scheduler_name.clone(),
            driver: device.driver.clone(),
            has_conditions: !device.binding_conditions.is_empty(),
            outcome,
            took,
        });
    }
}

async fn bind_claim(binding: &ClaimBinding<'_>, plan: &mut ClaimPlan, place: usize) -> Verdict {
    let ClaimBinding { handle, pod, again, written, .. } = *binding;
    let PlannedClaim { claim: known, allocation, is_extended } = plan.claims[place].clone();
    if is_extended && allocation.is_none() && known.requests.is_empty() {
        // Device plugins offer everything.
        return Ok(());
    }
    let writer = ClaimWriter { handle, pod };
    if is_extended && extended::is_in_memory(&known) {
        let asked = plan.extended.as_ref();
        let asked = asked.ok_or_else(|| Status::error("extended resource claim not found for the node"))?;
        let made = writer.make(&known, asked).await.map_err(Status::error)?;
        plan.claims[place].claim = claim(&made)?;
        written(plan);
    }
    let reserved = writer.reserve(&plan.claims[place].claim, allocation.as_deref(), again).await;
    plan.claims[place].claim = claim(&reserved.map_err(Status::error)?)?;
    written(plan);
    if allocation.is_some() {
        until_shown(handle, &plan.claims[place].claim).await?;
    }
    if is_extended {
        let mappings = plan.extended.as_ref().map_or(&[][..], |extended| &extended.mappings);
        writer.tell_mappings(&plan.claims[place].claim.name, mappings).await.map_err(Status::error)?;
    }
    Ok(())
}

fn claim(written: &Value) -> Result<Arc<ResourceClaim>, Status> {
    match Object::from_value(Kind::ResourceClaim, written) {
        Ok(Object::ResourceClaim(claim)) => Ok(Arc::new(claim)),
        Ok(_) => Err(Status::error("what the server sent is no ResourceClaim")),
        Err(error) => Err(Status::error(format!("what the server sent is no ResourceClaim: {error}"))),
    }
}

/// Waits until the cache shows that a claim has devices: from then on it speaks for itself, and nobody else is given them.
async fn until_shown(handle: &HandleRef, written: &Arc<ResourceClaim>) -> Verdict {
    let (key, claim) = (written.key(), written.clone());
    let shown = handle.until(move |view: &View<'_>| match is_shown(view.cluster.devices(), &claim) {
        true => Ok(()),
        false => Err(vec![Dependency::Object(Kind::ResourceClaim, claim.key())]),
    });
    match select(Box::pin(shown), Box::pin(handle.sleep(SHOWN_WITHIN))).await {
        Either::Left((shown, _)) => shown,
        Either::Right(_) => {
            let seconds = SHOWN_WITHIN.as_secs();
            Err(Status::error(format!(
                "the watch has not shown the allocation of claim {key} within {seconds} s"
            )))
        }
    }
}

/// Whether the cache has a claim as it was written, or a later version of it.
fn is_shown(devices: &Devices, written: &ResourceClaim) -> bool {
    let Some(known) = devices.claim(&written.key()).filter(|known| known.uid == written.uid) else {
        // Not yet, or not any more: a claim with devices is protected against that.
        return false;
    };
    let number = |claim: &ResourceClaim| claim.version.0.parse::<u64>().ok();
    known.allocation.is_some()
        || number(known).is_some_and(|known| number(written).is_some_and(|w| known >= w))
}

/// Waits until the devices of all claims are ready.
async fn until_ready(handle: &HandleRef, plan: &ClaimPlan, timeout: Duration) -> Verdict {
    let keys: Vec<Key> = plan.claims.iter().map(|planned| planned.claim.key()).collect();
    let now = handle.connected()?.now();
    let found = handle.until(move |view: &View<'_>| {
        for key in &keys {
            let Some(claim) = view.cluster.devices().claim(key) else {
                return Ok(Err(Status::error(format!("could not find ResourceClaim \"{key}\""))));
            };
            match conditions::readiness(claim) {
                Readiness::Ready => {}
                Readiness::Failed(why) => return Ok(Err(Status::error(why))),
                Readiness::NotYet if conditions::due(claim, timeout).is_some_and(|due| due < now) => {
                    let name = &claim.name;
                    return Ok(Err(Status::error(format!("device binding timeout: claim={name}"))));
                }
                Readiness::NotYet => {
                    let object = |key: &Key| Dependency::Object(Kind::ResourceClaim, key.clone());
                    return Err(keys.iter().map(object).collect());
                }
            }
        }
        Ok(Ok(()))
    });
    found.await?
}

impl ClaimPlan {
    /// Whether anything was written that has to be taken back.
    pub(super) fn is_written(&self, pod: &Pod) -> bool {
        self.claims.iter().any(|PlannedClaim { claim, is_extended, .. }| match is_extended {
            true => !extended::is_in_memory(claim),
            false => claim.allocation.is_some() && claim.is_reserved_for(&pod.uid),
        })
    }
}

/// Takes back what was written for a pod that is not bound after all.
pub(super) async fn undo(handle: &HandleRef, pod: &Pod, plan: &ClaimPlan) {
    let writer = ClaimWriter { handle, pod };
    for PlannedClaim { claim, is_extended, .. } in &plan.claims {
        let key = claim.key();
        let done = match is_extended {
            true if extended::is_in_memory(claim) => Ok(()),
            true => writer.delete(&key, &claim.uid).await,
            false if claim.allocation.is_some() && claim.is_reserved_for(&pod.uid) => {
                writer.unreserve(&key, &claim.uid).await.map_err(|error| error.message)
            }
            false => Ok(()),
        };
        if let Err(why) = done {
            let pod = pod.key();
            handle.log(LogLevel::Warn, &format!("claim {key} could not be taken back from pod {pod}: {why}"));
        }
    }
}
