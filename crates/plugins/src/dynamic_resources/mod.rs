//! Dynamic resource allocation: finds devices for a pod's claims, keeps them for it, and writes that into the claims.

pub mod allocator;
mod answers;
mod bind;
mod claims;
mod conditions;
mod cycle;
mod details;
mod events;
mod extended;
mod fast;
mod release;
mod write;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict,
    assumed::ReserveCycle,
    bugs::{self, Bug},
    details::Detail,
    event::EventInterest,
    handle::{Effect, HandleRef, LogLevel, Verb, Work},
    normalize,
    points::{
        Filter, NormalizeScore, Observe, Observed, PostFilter, PreBind, PreEnqueue, PreFilter,
        PreFilterOutcome, Requeue, Reserve, ScoreNode,
    },
    preemption::{FilterRunner, FollowUp, NodeVerdicts, Nomination, NotNominated, Resolvable},
    queueing::QueueView,
    registry::Args,
};
use supercargo_manifest::{self as manifest, Problems};
use supercargo_model::{Cluster, Key, Kind, Name, NodeInfo, Pod, object::Object};

use allocator::SelectorCache;
use answers::{Answers, Question};
use bind::{ClaimBinding, ClaimPlan, PlannedClaim};
use claims::{claims_of, may_need_devices};
use write::ClaimWriter;

pub use cycle::{NodeAllocation, PodClaims};
pub use extended::ExtendedRequests;

/// The plugin's name.
pub const NAME: &str = "DynamicResources";

/// How long devices may take to get ready unless the arguments say otherwise.
const DEFAULT_BINDING_TIMEOUT: Duration = Duration::from_secs(600);
/// How often a pod looks whether what was written for its last attempt has been taken back.
const UNDOING_PAUSE: Duration = Duration::from_millis(100);

/// The plugin.
#[derive(Default)]
pub struct DynamicResources {
    handle: HandleRef,
    binding_timeout: Duration,
    selectors: Mutex<SelectorCache>,
    answers: Mutex<Answers>,
    /// What is to be done for the pods that have a node, by uid, and how far it is, until they are bound.
    plans: Mutex<HashMap<Name, ClaimPlan>>,
    undone: Arc<Mutex<UndonePods>>,
}

/// Pods for which something was written and taken back, by uid.
#[derive(Default)]
struct UndonePods {
    /// Something is being taken back.
    busy: HashSet<Name>,
    all: HashMap<Name, Key>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DynamicResourcesArgs {
    filter_timeout: Option<manifest::Duration>,
    binding_timeout: Option<manifest::Duration>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DynamicResources {
    /// The plugin, if its arguments are right. A search ends by its steps, so that the filter's timeout is of no use.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: DynamicResourcesArgs = args.decode()?;
        let mut problems = Problems::default();
        if given.filter_timeout.is_some_and(|timeout| timeout < manifest::Duration::ZERO) {
            problems.push(args.problem("filterTimeout", "must not be negative"));
        }
        if given.binding_timeout.is_some_and(|timeout| timeout < manifest::Duration::from_secs(1)) {
            problems.push(args.problem("bindingTimeout", "must be at least 1s"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let given = given.binding_timeout.and_then(manifest::Duration::to_std);
        let binding_timeout = given.unwrap_or(DEFAULT_BINDING_TIMEOUT);
        Ok(Self { handle: args.handle(), binding_timeout, ..Self::default() })
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        locked(&self.answers)
    }

    fn question<'a>(&'a self, cluster: &'a Cluster, pod: &'a Pod, claims: &'a PodClaims) -> Question<'a> {
        Question { cluster, pod, claims, selectors: &self.selectors }
    }

    /// What a pod's claims get on a node: `None` if it needs none there; or why the node will not do.
    pub fn allocation_on(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<Option<NodeAllocation>, Status> {
        let claims = PodClaims::of(cluster, pod)?;
        self.find(cluster, pod, &claims, node)
    }

    fn find(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        claims: &PodClaims,
        node: &NodeInfo,
    ) -> Result<Option<NodeAllocation>, Status> {
        let mut shares = 0;
        let mut new_share = || {
            shares += 1;
            share_id(&pod.uid, shares)
        };
        claims.allocate(cluster.devices(), pod, node, &self.selectors, &mut new_share)
    }

    /// Keeps devices for a pod's claims on its node.
    fn keep_devices(&self, cycle: &mut ReserveCycle<'_>, pod: &Arc<Pod>, node: &Name) -> Verdict {
        let cluster = cycle.cluster();
        let claims = PodClaims::of(cluster, pod)?;
        let Some(info) = cluster.node(node).filter(|_| !claims.is_empty()) else { return Ok(()) };
        let found = self.find(cluster, pod, &claims, info)?.unwrap_or_default();
        let mut allocations = found.allocations.into_iter().map(Arc::new);
        let planned = claims.claims.iter().enumerate().map(|(place, claim)| PlannedClaim {
            claim: claim.clone(),
            allocation: if claim.allocation.is_none() { allocations.next() } else { None },
            is_extended: place >= claims.named,
        });
        let plan = ClaimPlan { claims: planned.collect(), extended: found.extended };
        for PlannedClaim { claim, allocation, .. } in &plan.claims {
            if let Some(allocation) = allocation.as_ref().filter(|_| !bugs::is_on(Bug::ChosenDevicesNotKept))
            {
                cycle.take_off(claim.uid.clone(), allocation.clone());
            }
        }
        locked(&self.plans).insert(pod.uid.clone(), plan);
        Ok(())
    }

    /// Waits until what was written for an earlier attempt has been taken back. Whether there was one.
    async fn until_undone(&self, pod: &Pod) -> bool {
        while locked(&self.undone).busy.contains(&pod.uid) {
            self.handle.sleep(UNDOING_PAUSE).await;
        }
        locked(&self.undone).all.contains_key(&pod.uid)
    }

    fn forget(&self, pod: &Pod) {
        locked(&self.plans).remove(&pod.uid);
        locked(&self.undone).all.remove(&pod.uid);
    }
}

/// An identity for a share of a device that no other has: made from the pod's, so that decisions can be repeated.
fn share_id(pod_uid: &str, number: u64) -> Name {
    let hashed = |seed: u64| {
        let bytes = pod_uid.bytes().chain(number.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    };
    let (high, low) = (hashed(0), hashed(0x9e37_79b9_7f4a_7c15));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
    .into()
}

impl PreEnqueue for DynamicResources {
    fn pre_enqueue(&self, view: &QueueView<'_>, pod: &Pod) -> Verdict {
        if pod.spec.resource_claims.is_empty() {
            return Ok(());
        }
        claims_of(view.cluster.devices(), pod).map(drop)
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        if !may_need_devices(cluster.devices(), pod) {
            return Ok(PreFilterOutcome::Skip);
        }
        let claims = PodClaims::of(cluster, pod)?;
        if claims.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(Arc::new(claims)))
    }
}

impl Filter for DynamicResources {
    fn filter(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let claims = prepared.get::<Arc<PodClaims>>()?;
        let question = self.question(cluster, pod, claims);
        self.answers().of(question).check(question, node)?;
        claims.check_allocated(cluster, node, self.binding_timeout)
    }

    fn details(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let Ok(claims) = prepared.get::<Arc<PodClaims>>() else { return Vec::new() };
        details::of_refusal(claims, cluster, pod, node, self.binding_timeout)
    }

    fn allotments(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let Ok(claims) = prepared.get::<Arc<PodClaims>>() else { return Vec::new() };
        match self.find(cluster, pod, claims, node) {
            Ok(found) => details::of_allotment(claims, cluster, found.unwrap_or_default(), node),
            Err(_) => Vec::new(),
        }
    }
}

impl PostFilter for DynamicResources {
    /// Where another plugin ended the cycle before this one was asked, there is no state to look into. kube-scheduler
    /// calls that an error, and nobody tries to make room then.
    fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        if !runner.was_pre_filtered_by(NAME) {
            return Err(Status::error("not found").into());
        }
        Err(release::release(runner.cluster(), pod, verdicts, self.binding_timeout))
    }

    fn foregone(&self, cluster: &Cluster, pod: &Pod, resolvable: &Resolvable<'_>) -> Option<NotNominated> {
        let is_plain = !may_need_devices(cluster.devices(), pod);
        let asked = is_plain && (resolvable.was_pre_filtered_by)(NAME);
        asked.then(|| Status::unschedulable(release::NOTHING_TO_DEALLOCATE).into())
    }

    fn follow_up(&self, pod: &Arc<Pod>, follow_up: &FollowUp) {
        let Some(connected) = self.handle.get() else { return };
        let (handle, pod, FollowUp { verb, key, uid, .. }) =
            (self.handle.clone(), pod.clone(), follow_up.clone());
        let released = async move {
            let writer = ClaimWriter { handle: &handle, pod: &pod };
            let done = match verb {
                Verb::Delete => writer.delete(&key, &uid).await,
                _ => writer.deallocate(&key, &uid).await,
            };
            if let Err(why) = done {
                handle.log(LogLevel::Warn, &format!("the devices of claim {key} could not be freed: {why}"));
            }
        };
        connected.spawn(Work::Other, Box::pin(released));
    }
}

impl ScoreNode for DynamicResources {
    /// Better alternatives are worth more. Without alternatives there is nothing to prefer.
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        if input.pod.spec.resource_claims.is_empty() {
            return Ok(0);
        }
        let claims = PodClaims::of(input.cluster, input.pod)?;
        if !claims.has_alternatives() {
            return Ok(0);
        }
        let question = self.question(input.cluster, input.pod, &claims);
        let mut answers = self.answers();
        let known = answers.of(question);
        known.check(question, node)?;
        Ok(known.points()[node.id.index()] as i64)
    }
}

impl NormalizeScore for DynamicResources {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::proportional(column);
        Ok(())
    }
}

impl Reserve for DynamicResources {
    fn reserve(&self, cycle: &mut ReserveCycle<'_>, pod: &Arc<Pod>, node: &Name) -> Verdict {
        if !may_need_devices(cycle.cluster().devices(), pod) {
            return Ok(());
        }
        self.keep_devices(cycle, pod, node)
    }

    fn unreserve(&self, pod: &Pod, _: &str) {
        let Some(plan) = locked(&self.plans).remove(&pod.uid) else { return };
        let Some(connected) = self.handle.get().filter(|_| plan.is_written(pod)) else { return };
        let (handle, pod, undone) = (self.handle.clone(), pod.clone(), self.undone.clone());
        locked(&undone).busy.insert(pod.uid.clone());
        let undo = async move {
            bind::undo(&handle, &pod, &plan).await;
            let mut undone = locked(&undone);
            undone.busy.remove(&pod.uid);
            undone.all.insert(pod.uid.clone(), pod.key());
        };
        connected.spawn(Work::Other, Box::pin(undo));
    }
}

impl PreBind for DynamicResources {
    fn is_needed(&self, pod: &Pod, _: &str) -> bool {
        locked(&self.plans).contains_key(&pod.uid)
    }

    fn pre_bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, Verdict> {
        Box::pin(async move {
            let plan = locked(&self.plans).get(&pod.uid).cloned();
            let Some(plan) = plan else { return Ok(()) };
            let again = self.until_undone(pod).await;
            let written = |plan: &ClaimPlan| {
                if let Some(known) = locked(&self.plans).get_mut(&pod.uid) {
                    known.clone_from(plan);
                }
            };
            let binding = ClaimBinding {
                handle: &self.handle,
                pod,
                node,
                timeout: self.binding_timeout,
                again,
                written: &written,
            };
            bind::bind(&binding, plan).await
        })
    }
}

fn may_have_plan(pod: &Pod) -> bool {
    !pod.spec.resource_claims.is_empty() || !pod.spec.extended_demand.is_empty()
}

impl Observe for DynamicResources {
    /// A pod that is bound needs nothing more, and one that is gone neither.
    fn observe(&self, _: &Name, observed: &Observed<'_>) {
        match observed {
            Observed::Is { object: Object::Pod(pod), .. } if pod.node.is_some() && may_have_plan(pod) => {
                self.forget(pod);
            }
            Observed::Gone { kind: Kind::Pod, key } => {
                locked(&self.undone).all.retain(|_, pod| pod != *key);
            }
            _ => {}
        }
    }
}

impl Requeue for DynamicResources {
    fn events(&self) -> Vec<EventInterest> {
        events::interests()
    }
}

#[cfg(test)]
mod tests;
