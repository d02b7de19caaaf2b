//! Makes room for a pod that fits nowhere, by evicting less important pods from one node.

mod candidate;
mod eviction;
mod under_way;
mod victims;

use std::sync::Arc;

use serde::Deserialize;
use supercargo_framework::{
    Code, Status, Verdict,
    bugs::{self, Bug},
    event::{ActionType, EventInterest, EventResource},
    handle::{Handle, HandleRef, LogLevel, Measurement, View, Work},
    points::{Observe, Observed, PostFilter, PreEnqueue, Requeue},
    preemption::{
        Candidate, DryRuns, FilterRunner, NodeVerdicts, Nomination, NotNominated, PreemptionCycle, Rejection,
        Resolvable, no_node_available, summary,
    },
    queueing::QueueView,
    registry::Args,
    turns::Turns,
};
use supercargo_manifest::Problems;
use supercargo_model::{
    Cluster, Name, NodeId, NodeInfo, Pod,
    object::{Kind, Object},
};

use eviction::{EVICTIONS_AT_ONCE, Eviction, Preempted, look_again, preempted};
use under_way::UnderWay;
use victims::DryRun;

/// The plugin's name.
pub const NAME: &str = "DefaultPreemption";

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
const UNDER_WAY: &str = "waiting for the preemption for this pod to be finished";
const NEVER: &str = "not eligible due to preemptionPolicy=Never.";

/// The plugin.
pub struct DefaultPreemption {
    min_candidate_percentage: i32,
    min_candidates: i32,
    handle: HandleRef,
    under_way: Arc<UnderWay>,
    evictions: Turns,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DefaultPreemptionArgs {
    min_candidate_nodes_percentage: i32,
    min_candidate_nodes_absolute: i32,
}

impl Default for DefaultPreemptionArgs {
    fn default() -> Self {
        Self { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

impl DefaultPreemption {
    /// With the number of candidates that the arguments ask for.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        const PERCENTAGE: &str = "minCandidateNodesPercentage";
        const ABSOLUTE: &str = "minCandidateNodesAbsolute";
        let given: DefaultPreemptionArgs = args.decode()?;
        let (percentage, absolute) =
            (given.min_candidate_nodes_percentage, given.min_candidate_nodes_absolute);
        let mut problems = Problems::default();
        if !(0..=100).contains(&percentage) {
            let message = format!("must be in 0..=100, and is {percentage}");
            problems.push(args.problem(PERCENTAGE, message));
        }
        if absolute < 0 {
            let message = format!("must not be negative, and is {absolute}");
            problems.push(args.problem(ABSOLUTE, message));
        }
        if percentage == 0 && absolute == 0 {
            for field in [PERCENTAGE, ABSOLUTE] {
                problems.push(args.problem(field, format!("{PERCENTAGE} and {ABSOLUTE} must not both be 0")));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            min_candidate_percentage: percentage,
            min_candidates: absolute,
            handle: args.handle(),
            under_way: Arc::default(),
            evictions: Turns::new(EVICTIONS_AT_ONCE),
        })
    }

    /// How many candidates are enough.
    fn enough_candidates(&self, nodes: usize) -> usize {
        let share = nodes * self.min_candidate_percentage as usize / 100;
        share.max(self.min_candidates as usize).min(nodes)
    }

    fn nominate(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        self.check_eligible(runner, pod, verdicts)?;
        let cluster = runner.cluster();
        if cluster.node_count() == 0 {
            return Err(Status::error("no nodes available").into());
        }
        let promising: Vec<&NodeInfo> =
            (cluster.nodes()).filter(|node| verdicts.of(node.id).code == Code::Unschedulable).collect();
        let (candidates, refusals) = self.try_nodes(runner, pod, &promising);
        if candidates.is_empty() {
            return Err(nothing_found(refusals, cluster.node_count()));
        }
        match candidate::best(runner.narrow(candidates)?) {
            Some(best) => Ok(Nomination::new(best.node, best.victims)),
            None => Err(Status::unschedulable("no candidate node for preemption").into()),
        }
    }

    /// A pod may evict others unless it says never, or an eviction for it is still under way. So is one for others on its
    /// nominated node: it counts them as there already, and with their victims finds its own room taken.
    fn check_eligible(&self, runner: &dyn FilterRunner, pod: &Pod, verdicts: &NodeVerdicts) -> Verdict {
        if pod.spec.never_preempts {
            return Err(Status::unschedulable(NEVER));
        }
        let nominated = (pod.nominated_node.as_ref()).and_then(|name| runner.cluster().node(name));
        let Some(node) = nominated else {
            return Ok(());
        };
        let hopeless = verdicts.of(node.id).code == Code::UnschedulableAndUnresolvable;
        let leaving = |other: &Pod| other.terminating && other.preempted && is_victim(other, pod);
        if bugs::is_on(Bug::VictimsEvictedAgain) {
            return Ok(());
        }
        let expected = || self.under_way.expects_on(node.name(), &pod.uid);
        if !hopeless && (expected() || node.pods.iter().any(|other| leaving(other))) {
            return Err(Status::unschedulable(
                "not eligible due to a terminating pod on the nominated node.",
            ));
        }
        Ok(())
    }

    /// Tries nodes from a random one on, until there are candidates enough.
    fn try_nodes(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> (Vec<Candidate>, NodeVerdicts) {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut refusals =
            NodeVerdicts { others: Status::unresolvable(NOT_HELPFUL), ..NodeVerdicts::default() };
        let enough = self.enough_candidates(nodes.len());
        let start = start(runner, nodes.len());
        for node in nodes[start..].iter().chain(&nodes[..start]) {
            match DryRun::new(runner, pod, node).candidate() {
                Ok(candidate) => candidates.push(candidate),
                Err(status) => {
                    let plugin = NAME.into();
                    let rejection = Rejection { plugin, status };
                    refusals.rejected.insert(node.id, rejection);
                }
            }
            // One that violates no budget must be among them.
            let harmless = candidates.iter().any(|c| c.budget_violations == 0);
            if harmless && candidates.len() >= enough {
                break;
            }
        }
        (candidates, refusals)
    }
}

/// Where among so many nodes the first is that is tried.
fn start(runner: &dyn FilterRunner, nodes: usize) -> usize {
    match nodes {
        0 => 0,
        count => (runner.seed() % count as u64) as usize,
    }
}

impl DefaultPreemption {
    /// As [`Self::nominate`], where what came of nodes is kept.
    fn nominate_again(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        nodes: &[NodeId],
        dry_runs: &mut DryRuns,
    ) -> Result<Nomination, NotNominated> {
        let cluster = runner.cluster();
        let (enough, start) = (self.enough_candidates(nodes.len()), start(runner, nodes.len()));
        let (mut tried, mut found, mut harmless) = (0, 0, false);
        for node in nodes[start..].iter().chain(&nodes[..start]) {
            let attempt = || DryRun::new(runner, pod, cluster.node_at(*node)).candidate();
            tried += 1;
            if let Ok(candidate) = dry_runs.of(*node, attempt) {
                found += 1;
                harmless |= candidate.budget_violations == 0;
            }
            // One that violates no budget must be among them.
            if harmless && found >= enough {
                break;
            }
        }
        let tried = || nodes[start..].iter().chain(&nodes[..start]).take(tried);
        let candidates: Vec<&Candidate> =
            tried().filter_map(|node| dry_runs.get(*node)?.as_ref().ok()).collect();
        if let Some(best) = candidate::best(candidates) {
            return Ok(Nomination::new(best.node.clone(), best.victims.clone()));
        }
        let mut refusals =
            NodeVerdicts { others: Status::unresolvable(NOT_HELPFUL), ..NodeVerdicts::default() };
        for node in tried() {
            if let Some(Err(status)) = dry_runs.get(*node) {
                let rejection = Rejection { plugin: NAME.into(), status: status.clone() };
                refusals.rejected.insert(*node, rejection);
            }
        }
        Err(nothing_found(refusals, cluster.node_count()))
    }

    /// Calls off, or else evicts, the victims that are not being deleted already; if all are, nothing is done.
    fn evict(
        &self,
        handle: &Arc<dyn Handle>,
        cycle: &mut dyn PreemptionCycle,
        pod: &Arc<Pod>,
        nomination: &Nomination,
    ) {
        let Nomination { node, victims, .. } = nomination;
        let again = bugs::is_on(Bug::VictimsEvictedAgain);
        let to_go: Vec<&Arc<Pod>> = victims.iter().filter(|victim| !victim.terminating || again).collect();
        if to_go.is_empty() {
            return;
        }
        handle.measure(Measurement::Victims(victims.len()));
        let line = format!("preempting: pod={} node={node} victims={}", pod.key(), victims.len());
        handle.log(LogLevel::Info, &line);
        for other in less_important(&cycle.view(), pod, node) {
            cycle.clear_nomination(&other);
        }
        let mut to_evict = Vec::new();
        for victim in to_go {
            if cycle.call_off(&victim.uid, NAME) {
                handle.record(preempted(victim, pod, node, Preempted::CalledOff));
            } else {
                to_evict.push(victim.clone());
            }
        }
        if to_evict.is_empty() {
            return;
        }
        self.under_way.begin(&pod.uid, node, &to_evict);
        let eviction = Eviction {
            handle: handle.clone(),
            turns: self.evictions.clone(),
            under_way: self.under_way.clone(),
            preemptor: pod.clone(),
            node: node.clone(),
        };
        handle.spawn(Work::Preemption, Box::pin(eviction.evict_all(to_evict)));
    }
}

/// Less important pods that are nominated to the node may not fit there any more. That their statuses change gives them
/// their turn.
fn less_important(view: &View<'_>, pod: &Pod, node: &Name) -> Vec<Arc<Pod>> {
    let others = view.nominations.less_important(pod, node);
    let newest = others.filter_map(|other| view.pending.find(&other.uid));
    newest.filter(|newest| newest.nominated_node.is_some()).cloned().collect()
}

fn nothing_found(refusals: NodeVerdicts, node_count: usize) -> NotNominated {
    let fault = (refusals.rejected.values()).find(|r| r.status.code == Code::Error);
    match fault {
        Some(rejection) => Status::error(rejection.status.message()).into(),
        None => {
            let message = no_node_available(node_count, &refusals.summary(node_count));
            NotNominated::clearing(Status::unschedulable(message))
        }
    }
}

fn is_victim(other: &Pod, pod: &Pod) -> bool {
    other.spec.priority < pod.spec.priority
        || bugs::is_on(Bug::EqualsAreEvicted) && other.spec.priority == pod.spec.priority
}

impl PostFilter for DefaultPreemption {
    fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        self.nominate(runner, pod, verdicts).map_err(in_words)
    }

    fn post_filter_again(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        resolvable: &[NodeId],
        dry_runs: &mut DryRuns,
    ) -> Option<Result<Nomination, NotNominated>> {
        Some(self.nominate_again(runner, pod, resolvable, dry_runs).map_err(in_words))
    }

    fn preempts(&self) -> bool {
        true
    }

    fn kept(&self) -> usize {
        self.under_way.len()
    }

    fn preempt(&self, cycle: &mut dyn PreemptionCycle, pod: &Arc<Pod>, nomination: &Nomination) {
        if let Some(handle) = self.handle.get() {
            self.evict(handle, cycle, pod, nomination);
        }
    }

    /// Where nobody is less important, nobody can be evicted, and no node need be tried.
    fn foregone(&self, cluster: &Cluster, pod: &Pod, resolvable: &Resolvable<'_>) -> Option<NotNominated> {
        if pod.spec.never_preempts {
            return Some(in_words(Status::unschedulable(NEVER).into()));
        }
        let is_asked = bugs::is_on(Bug::EqualsAreEvicted);
        if pod.nominated_node.is_some() || cluster.node_count() == 0 || is_asked {
            return None;
        }
        let lowest = cluster.groups().lowest_priority();
        let has_victims = |node: NodeId| cluster.node_at(node).pods.iter().any(|other| is_victim(other, pod));
        let nobody = lowest.is_none_or(|lowest| lowest >= pod.spec.priority)
            || resolvable.count == 0
            || !(resolvable.nodes)().into_iter().any(has_victims);
        nobody.then(|| {
            let tried = (&Status::unresolvable(NO_VICTIMS), resolvable.count);
            let others = (&Status::unresolvable(NOT_HELPFUL), cluster.node_count() - resolvable.count);
            let reasons = summary([tried, others].into_iter());
            let status = Status::unschedulable(no_node_available(cluster.node_count(), &reasons));
            in_words(NotNominated::clearing(status))
        })
    }
}

fn in_words(refused: NotNominated) -> NotNominated {
    let message = format!("preemption: {}", refused.status.message());
    NotNominated { status: Status::new(refused.status.code, [message.into()]), ..refused }
}

impl PreEnqueue for DefaultPreemption {
    /// A pod is held back while evictions for it are under way. What would have woken it meanwhile has to happen again.
    fn pre_enqueue(&self, _: &QueueView<'_>, pod: &Pod) -> Verdict {
        if self.under_way.holds(&pod.uid) { Err(Status::unresolvable(UNDER_WAY)) } else { Ok(()) }
    }
}

impl Observe for DefaultPreemption {
    /// A pod is gone, or its deletion has begun.
    fn observe(&self, _: &Name, observed: &Observed<'_>) {
        let (key, has_left) = match observed {
            Observed::Is { object: Object::Pod(pod), .. } if pod.terminating => {
                (pod.key(), pod.node.is_none())
            }
            Observed::Gone { kind: Kind::Pod, key } => ((*key).clone(), true),
            _ => return,
        };
        let released = self.under_way.leaves(&key);
        // The end of a victim that was never bound is no event that gives anybody a turn. That it left its node was one, and the
        // pod was held back then.
        if has_left && let Some(handle) = self.handle.get() {
            look_again(&**handle, released);
        }
    }
}

impl Requeue for DefaultPreemption {
    /// A pod that is held back for its evictions is let in by whoever carries them out. That a pod is deleted does not
    /// let it in, as others may still have to go.
    fn events(&self) -> Vec<EventInterest> {
        vec![EventInterest::new(EventResource::Pod, [ActionType::Delete]).if_pod(|_, _, _| false)]
    }
}

#[cfg(test)]
mod tests;
