//! What all pods came to.

use std::collections::HashMap;

use serde::Serialize;
use supercargo_engine::Outcome;
use supercargo_manifest::Problem;
use supercargo_model::{Cluster, Key, Name};

use crate::{
    style::{Palette, paint},
    utilisation::{UtilisationChange, UtilisationSummary},
};

/// Counts of what came of the pods.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Totals {
    /// Pods that got a node.
    pub(super) scheduled: usize,
    /// Pods that no node is left for.
    pub(super) unschedulable: usize,
    /// Pods that are held back before the queue.
    pub(super) gated: usize,
    /// Pods that a plugin failed on.
    pub(super) failed: usize,
    /// Pods that had to leave for more important ones.
    pub(super) evicted: usize,
    /// Pods that ran elsewhere before.
    pub(super) moved: usize,
    #[serde(skip)]
    pub(super) first_failure: Option<String>,
}

impl Totals {
    /// Counts one more pod.
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Scheduled { .. } => self.scheduled += 1,
            Outcome::Unschedulable => self.unschedulable += 1,
            Outcome::Gated => self.gated += 1,
            Outcome::Error { message } => {
                self.failed += 1;
                // Pods come in no particular order.
                if self.first_failure.as_ref().is_none_or(|first| message < first) {
                    self.first_failure = Some(message.clone());
                }
            }
        }
    }

    /// Counts the pods that are elsewhere now.
    pub(super) fn moved_from(&mut self, was_on: &HashMap<Key, Name>, cluster: &Cluster) {
        let now_on = |pod: &Key| cluster.pod(pod).and_then(|pod| pod.node.as_ref());
        self.moved = was_on.iter().filter(|(pod, was)| now_on(pod).is_some_and(|now| now != *was)).count();
    }

    /// Whether there were no pods.
    pub(super) fn is_empty(&self) -> bool {
        self.pods() == 0
    }

    fn pods(&self) -> usize {
        self.scheduled + self.unschedulable + self.gated + self.failed
    }

    /// All of it in a line.
    pub(super) fn line(&self, seed: u64, palette: &Palette) -> String {
        let counts = [
            (self.scheduled, "scheduled", palette.good),
            (self.unschedulable, "unschedulable", palette.bad),
            (self.gated, "gated", palette.caution),
            (self.failed, "failed", palette.bad),
        ];
        let counts = counts.into_iter().filter(|(count, name, _)| *count > 0 || *name == "scheduled");
        let counts: Vec<String> = counts
            .map(|(count, name, style)| {
                paint(if count > 0 { style } else { palette.faint }, format!("{count} {name}"))
            })
            .collect();
        let besides = [(self.evicted, "evicted", palette.caution), (self.moved, "moved", palette.faint)];
        let besides: String = (besides.into_iter().filter(|(count, ..)| *count > 0))
            .map(|(count, name, style)| format!("; {}", paint(style, format!("{count} {name}"))))
            .collect();
        let noun = if self.pods() == 1 { "pod" } else { "pods" };
        format!("{} {noun}: {}{besides} (seed {seed})", self.pods(), counts.join(", "))
    }

    /// What is to be said of pods that a plugin failed on.
    pub(super) fn failures(&self) -> Problem {
        let pods = if self.failed == 1 { "1 pod".to_owned() } else { format!("{} pods", self.failed) };
        let why = self.first_failure.as_deref().unwrap_or("no reason given");
        Problem::warning(format!("{pods} could not be decided because a plugin failed: {why}"))
    }
}

/// All of it, for programs.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    #[serde(flatten)]
    totals: &'a Totals,
    pods: usize,
    utilisation: UtilisationSummary,
}

impl<'a> Summary<'a> {
    pub(super) fn new(totals: &'a Totals, change: &UtilisationChange) -> Self {
        Self { totals, pods: totals.pods(), utilisation: change.summary() }
    }
}
