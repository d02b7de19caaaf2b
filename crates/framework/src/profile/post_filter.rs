//! PostFilter: who can make room for a pod that fits nowhere.

use std::{borrow::Cow, sync::Arc};

use supercargo_model::{Cluster, NodeId, NodeInfo, Pod};

use super::{Named, Profile};
use crate::{
    points::PostFilter,
    preemption::{
        Adviser, Candidate, DryRuns, FilterRunner, FilterState, FollowUp, NodeVerdicts, Nomination,
        Nominations, NotNominated, PreemptionCycle, Rejection, Resolvable,
    },
    registry::Point,
    status::{Code, Status, Verdict},
};

impl Profile {
    /// Runs the PostFilter plugins until one finds a way to make room, or fails, or says that nobody can. The last that
    /// takes an earlier nomination back decides about it.
    pub fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        let mut merged = MergedPostFilter::default();
        for Named { name, plugin } in &self.post_filter {
            let run = || plugin.post_filter(runner, pod, verdicts);
            let code = |refused: &NotNominated| refused.status.code;
            let answer = self.timed_plugin(name, Point::PostFilter, run, code);
            self.count_preemption(&**plugin);
            match answer {
                Ok(nomination) => {
                    let follow_up = merged.follow_up;
                    return Ok(Nomination { plugin: name.clone(), follow_up, ..nomination });
                }
                Err(refused) => merged.add(refused)?,
            }
        }
        Err(merged.refused())
    }

    fn count_preemption(&self, plugin: &dyn PostFilter) {
        if let Some(stopwatch) = self.stopwatch.get().filter(|_| plugin.preempts()) {
            stopwatch.preemption_attempted();
        }
    }

    /// Lets the plugin that found room for a pod begin to make it.
    pub fn preempt(&self, cycle: &mut dyn PreemptionCycle, pod: &Arc<Pod>, nomination: &Nomination) {
        let found = self.post_filter.iter().find(|named| named.name == nomination.plugin);
        if let Some(Named { plugin, .. }) = found {
            plugin.preempt(cycle, pod, nomination);
        }
    }

    /// Lets a plugin begin with what it does about a pod that fits nowhere.
    pub fn follow_up(&self, pod: &Arc<Pod>, follow_up: &FollowUp) {
        let asked = self.post_filter.iter().find(|named| named.name == follow_up.plugin);
        if let Some(Named { plugin, .. }) = asked {
            plugin.follow_up(pod, follow_up);
        }
    }

    /// What [`Self::post_filter`] says of a pod that fits nowhere, if that follows without trying anything.
    pub fn foregone_post_filter(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        resolvable: &Resolvable<'_>,
    ) -> Option<NotNominated> {
        let plugins = self.post_filter.iter();
        let foregone: Vec<NotNominated> = plugins
            .map(|Named { plugin, .. }| plugin.foregone(cluster, pod, resolvable))
            .collect::<Option<_>>()?;
        let mut merged = MergedPostFilter::default();
        for (Named { name, plugin }, refused) in self.post_filter.iter().zip(foregone) {
            let code = |refused: &NotNominated| refused.status.code;
            // They were asked, and it is counted.
            let answer = self.timed_plugin(name, Point::PostFilter, || Err::<(), _>(refused), code);
            self.count_preemption(&**plugin);
            if let Err(last) = answer.or_else(|refused| merged.add(refused)) {
                return Some(last);
            }
        }
        Some(merged.refused())
    }
}

impl Profile {
    /// As [`Self::post_filter`], from what is kept for each plugin about nodes that were tried before: see
    /// [`PostFilter::post_filter_again`]. `None` if a plugin must be asked as ever.
    pub fn post_filter_again(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        resolvable: &Resolvable<'_>,
        in_order: &[NodeId],
        dry_runs: &mut Vec<DryRuns>,
    ) -> Option<Result<Nomination, NotNominated>> {
        dry_runs.resize_with(self.post_filter.len(), DryRuns::default);
        let mut answers = Vec::new();
        for (Named { plugin, .. }, dry_runs) in self.post_filter.iter().zip(dry_runs) {
            let answer = match plugin.foregone(runner.cluster(), pod, resolvable) {
                Some(refused) => Err(refused),
                None => plugin.post_filter_again(runner, pod, in_order, dry_runs)?,
            };
            let ends = !matches!(&answer, Err(refused) if refused.status.code == Code::Unschedulable);
            answers.push(answer);
            if ends {
                break;
            }
        }
        let mut merged = MergedPostFilter::default();
        for (Named { name, plugin }, answer) in self.post_filter.iter().zip(answers) {
            let code = |refused: &NotNominated| refused.status.code;
            let answer = self.timed_plugin(name, Point::PostFilter, || answer, code);
            self.count_preemption(&**plugin);
            match answer {
                Ok(nomination) => {
                    let follow_up = merged.follow_up;
                    return Some(Ok(Nomination { plugin: name.clone(), follow_up, ..nomination }));
                }
                Err(refused) => {
                    if let Err(last) = merged.add(refused) {
                        return Some(Err(last));
                    }
                }
            }
        }
        Some(Err(merged.refused()))
    }
}

/// Runs a profile's filters for PostFilter plugins.
pub struct ProfileRunner<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Pods for which room is being made.
    pub nominations: &'a Nominations,
    /// What was prepared for the pod.
    pub state: &'a FilterState,
    /// For choices that are otherwise equal.
    pub seed: u64,
    /// Whoever else has a say, besides the plugins.
    pub adviser: Option<&'a dyn Adviser>,
}

impl FilterRunner for ProfileRunner<'_> {
    fn cluster(&self) -> &Cluster {
        self.cluster
    }

    fn state(&self) -> FilterState {
        self.state.clone()
    }

    fn was_pre_filtered_by(&self, plugin: &str) -> bool {
        self.profile.pre_filter.iter().take(self.state.0.len()).any(|step| *step.name == *plugin)
    }

    fn filter(&self, state: &FilterState, pod: &Pod, node: &NodeInfo) -> Result<(), Rejection> {
        self.profile.filter_with_nominated(state, self.cluster, self.nominations, pod, node)
    }

    fn add_pod(&self, state: &mut FilterState, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict {
        self.profile.tell_added(state, pod, added, node)
    }

    fn remove_pod(&self, state: &mut FilterState, pod: &Pod, removed: &Pod, node: &NodeInfo) -> Verdict {
        self.profile.tell(state, |plugin, prepared| plugin.remove_pod(prepared, pod, removed, node))
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn narrow(&self, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Status> {
        match self.adviser {
            Some(adviser) => adviser.narrow(self.cluster, candidates),
            None => Ok(candidates),
        }
    }
}

/// What several PostFilter plugins that cannot help come to.
#[derive(Default)]
struct MergedPostFilter {
    reasons: Vec<Cow<'static, str>>,
    clears: bool,
    follow_up: Option<FollowUp>,
}

impl MergedPostFilter {
    /// Goes on after a refusal; ends with anything else.
    fn add(&mut self, refused: NotNominated) -> Result<(), NotNominated> {
        let follow_up = self.follow_up.take().or(refused.follow_up);
        if refused.status.code != Code::Unschedulable {
            return Err(NotNominated { follow_up, ..refused });
        }
        self.clears |= refused.clears;
        self.follow_up = follow_up;
        self.reasons.extend(refused.status.reasons.iter().cloned());
        Ok(())
    }

    fn refused(self) -> NotNominated {
        let status = Status::new(Code::Unschedulable, self.reasons);
        NotNominated { status, clears: self.clears, follow_up: self.follow_up }
    }
}
