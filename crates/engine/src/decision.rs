//! The record of one cycle: everything that explains why a pod went where it went, or nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use supercargo_framework::{
    Code, Status,
    bugs::{self, Bug},
    preemption::{Claim, FollowUp, NodeVerdicts, Nomination, Rejection, no_node_available},
    profile::Scores,
};
use supercargo_model::{Key, Name, Pod};

use crate::{
    extender_calls::EXTENDER,
    queue::{AttemptFailure, Refusal},
};

/// How a cycle ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A node was chosen.
    Scheduled {
        /// The node.
        node: Name,
    },
    /// No node is left.
    Unschedulable,
    /// Held back before the queue.
    Gated,
    /// A plugin failed; the pod is tried again later.
    Error {
        /// What failed.
        message: String,
    },
}

/// The record of one cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The pod.
    pub pod: Key,
    /// The profile that was asked.
    pub scheduler_name: Name,
    /// What ties were broken by.
    pub seed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// How many nodes the cluster had.
    pub node_count: usize,
    /// The pod was refused for every node, before any was looked at.
    pub refused: Option<Rejection>,
    /// The nodes that were looked at and refused, by name.
    pub rejected: BTreeMap<Name, Rejection>,
    /// The extenders that took nodes away. Each is the `plugin` of what it refused.
    pub extenders: BTreeSet<Name>,
    /// The nodes that a PreFilter plugin ruled out unseen, by name.
    pub ruled_out: Vec<Name>,
    /// The PreFilter plugins that did.
    pub narrowed_by: BTreeSet<Name>,
    /// The same by the nodes' places, and what is said of all other nodes.
    pub verdicts: NodeVerdicts,
    /// The feasible nodes, in the order in which they were found. The scores follow it.
    pub feasible: Vec<Name>,
    /// What each plugin gave, and the totals.
    pub scores: Scores,
    /// The nodes that share the highest total.
    pub best: Vec<Name>,
    /// What came of making room, if it was tried: where, and who has to go; or why not.
    pub preemption: Option<Result<Nomination, Status>>,
    /// A nomination that the pod has from before is taken back, unless there is a new one.
    pub clears_nomination: bool,
    /// What a plugin does about it, besides making room or instead.
    pub follow_up: Option<FollowUp>,
    /// What `rejected` and `verdicts` come to, where they were left out because pods of the same template were refused
    /// before: see [`crate::Inspection::verdicts`].
    pub brief: Option<BriefRefusal>,
}

/// What the refusals of all nodes come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BriefRefusal {
    /// How many nodes were refused for each reason, in kube-scheduler's words.
    pub summary: String,
    /// By whom.
    pub refusal: Refusal,
}

impl Decision {
    pub(crate) fn new(pod: &Pod, scheduler_name: Name, seed: u64, node_count: usize) -> Self {
        Self {
            pod: pod.key(),
            scheduler_name,
            seed,
            outcome: Outcome::Unschedulable,
            node_count,
            refused: None,
            rejected: BTreeMap::new(),
            extenders: BTreeSet::new(),
            ruled_out: Vec::new(),
            narrowed_by: BTreeSet::new(),
            verdicts: NodeVerdicts::default(),
            feasible: Vec::new(),
            scores: Scores::default(),
            best: Vec::new(),
            preemption: None,
            clears_nomination: true,
            follow_up: None,
            brief: None,
        }
    }

    /// The chosen node.
    pub fn node(&self) -> Option<&Name> {
        match &self.outcome {
            Outcome::Scheduled { node } => Some(node),
            _ => None,
        }
    }

    /// How many nodes were looked at.
    pub fn evaluated(&self) -> usize {
        match &self.brief {
            Some(_) => self.node_count,
            None => self.feasible.len() + self.rejected.len(),
        }
    }

    /// The highest total.
    pub fn best_total(&self) -> Option<i64> {
        self.scores.totals.iter().copied().max()
    }

    /// Why no node is left, in kube-scheduler's words; without what came of making room.
    pub fn unschedulable_message(&self) -> Option<String> {
        if self.outcome != Outcome::Unschedulable {
            return None;
        }
        if self.node_count == 0 {
            return Some("no nodes available to schedule pods".to_owned());
        }
        let reasons = match (&self.refused, &self.brief) {
            (Some(rejection), _) => rejection.status.message(),
            (None, Some(brief)) => brief.summary.clone(),
            (None, None) => self.verdicts.summary(self.node_count),
        };
        Some(no_node_available(self.node_count, &reasons))
    }

    /// The whole message of a FailedScheduling event.
    pub fn message(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Scheduled { .. } => None,
            Outcome::Error { message } => Some(message.clone()),
            Outcome::Gated => self.refused.as_ref().map(|r| r.status.message()),
            Outcome::Unschedulable => {
                let mut message = self.unschedulable_message()?;
                if let Some(Err(status)) = &self.preemption {
                    message.push(' ');
                    message.push_str(&status.message());
                }
                Some(message)
            }
        }
    }

    /// How the attempt failed, as the queue wants to know it; `None` if a node was chosen, or the pod was never tried.
    pub fn failure(&self) -> Option<AttemptFailure> {
        match &self.outcome {
            Outcome::Scheduled { .. } | Outcome::Gated => None,
            Outcome::Error { .. } => Some(AttemptFailure::Error),
            Outcome::Unschedulable if self.node_count == 0 => Some(AttemptFailure::Error),
            Outcome::Unschedulable => {
                let mut refusal = self.brief.as_ref().map(|brief| brief.refusal.clone()).unwrap_or_default();
                refusal.plugins.extend(self.narrowed_by.iter().cloned());
                let refused = self.refused.iter().filter(|rejection| !rejection.plugin.is_empty());
                for Rejection { plugin, status } in self.rejected.values().chain(refused) {
                    let pending = status.code == Code::Pending;
                    let plugins = if pending { &mut refusal.pending } else { &mut refusal.plugins };
                    let by_extender = self.extenders.contains(plugin);
                    if by_extender && bugs::is_on(Bug::ExtenderRefusalForgotten) {
                        continue;
                    }
                    plugins.insert(if by_extender { EXTENDER.into() } else { plugin.clone() });
                }
                Some(AttemptFailure::Refused(refusal))
            }
        }
    }

    /// What becomes of the pod's claim to a node after an attempt that found none.
    pub fn claim(&self) -> Claim {
        match &self.preemption {
            Some(Ok(nomination)) => Claim::On(nomination.node.clone()),
            _ if self.clears_nomination || bugs::is_on(Bug::NominationDroppedEarly) => Claim::Dropped,
            // It is no time to evict anybody: what was promised before is still under way.
            _ => Claim::Kept,
        }
    }

    /// Who has to go, if room can be made.
    pub fn victims(&self) -> &[Arc<Pod>] {
        match &self.preemption {
            Some(Ok(nomination)) => &nomination.victims,
            _ => &[],
        }
    }
}
