//! What all pods came to, and how much of the cluster is used before and after.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use supercargo_engine::Outcome;
use supercargo_manifest::Problem;
use supercargo_model::{Cluster, Key, Name};
use supercargo_sim::utilisation::{Amount, Share, Utilisation};

use crate::{
    output::{Console, Grid},
    style::{Palette, paint},
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

/// How much of some nodes is used.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct BeforeAndAfter<T> {
    before: T,
    after: T,
}

/// The cluster's utilisation before and after.
pub(super) struct Change {
    total: BeforeAndAfter<Share>,
    zones: BTreeMap<Name, BeforeAndAfter<Share>>,
}

impl Change {
    pub(super) fn new(before: &Utilisation, after: &Utilisation) -> Self {
        let names: BTreeSet<&Name> = before.zones.keys().chain(after.zones.keys()).collect();
        let zones = names.into_iter().map(|name| {
            let of = |utilisation: &Utilisation| utilisation.zones.get(name).cloned().unwrap_or_default();
            (name.clone(), BeforeAndAfter { before: of(before), after: of(after) })
        });
        let total = BeforeAndAfter { before: before.total.clone(), after: after.total.clone() };
        Self { total, zones: zones.collect() }
    }

    /// Whether there are no nodes.
    pub(super) fn is_empty(&self) -> bool {
        self.total.before.nodes == 0 && self.total.after.nodes == 0
    }

    /// The resources that anybody requests, those that every cluster has first.
    fn resources(&self) -> Vec<&str> {
        let shares = [&self.total.before, &self.total.after];
        let requested = shares.into_iter().flat_map(|share| &share.resources);
        let requested = requested.filter(|(_, amount)| amount.requested != 0).map(|(name, _)| &**name);
        let others: BTreeSet<&str> =
            requested.filter(|name| !matches!(*name, "cpu" | "memory" | "pods")).collect();
        ["cpu", "memory", "pods"].into_iter().chain(others).collect()
    }

    /// A table: a row for each zone, a column for each resource.
    pub(super) fn print(&self, console: &mut Console) -> std::io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        console.heading("Utilisation, before → after")?;
        let resources = self.resources();
        let titles = resources.iter().map(|name| format!(">{}", name.to_uppercase()));
        let titles: Vec<String> =
            ["ZONE".to_owned(), ">NODES".to_owned()].into_iter().chain(titles).collect();
        let mut grid = Grid::new(titles.iter().map(String::as_str)).indented("  ");
        let several = self.zones.len() > 1 || self.zones.keys().any(|zone| !zone.is_empty());
        for (zone, share) in self.zones.iter().filter(|_| several) {
            let zone = if zone.is_empty() { "-" } else { zone };
            grid.row(row(zone, share, &resources));
        }
        grid.row(row("all", &self.total, &resources));
        console.grid(grid)
    }
}

fn row(name: &str, share: &BeforeAndAfter<Share>, resources: &[&str]) -> Vec<String> {
    let (before, after) = (&share.before, &share.after);
    let nodes = change(before.nodes.to_string(), after.nodes.to_string());
    let percent = |share: &Share, resource: &str| match share.resources.get(resource) {
        Some(amount) if amount.allocatable != 0 => format!("{:.0}%", amount.percent()),
        _ => "-".to_owned(),
    };
    let used = resources.iter().map(|resource| change(percent(before, resource), percent(after, resource)));
    [name.to_owned(), nodes].into_iter().chain(used).collect()
}

fn change(before: String, after: String) -> String {
    if before == after { before } else { format!("{before} → {after}") }
}

/// All of it, for programs.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    #[serde(flatten)]
    totals: &'a Totals,
    pods: usize,
    utilisation: UtilisationSummary,
}

#[derive(Serialize)]
struct UtilisationSummary {
    total: Group,
    /// By zone; nodes without one are under `-`.
    zones: BTreeMap<String, Group>,
}

#[derive(Serialize)]
struct Group {
    nodes: BeforeAndAfter<usize>,
    /// Cpu in thousandths of a core, memory and storage in bytes.
    resources: BTreeMap<String, BeforeAndAfter<Amount>>,
}

impl<'a> Summary<'a> {
    pub(super) fn new(totals: &'a Totals, change: &Change) -> Self {
        let zones = change.zones.iter().map(|(zone, share)| {
            let zone = if zone.is_empty() { "-" } else { zone };
            (zone.to_owned(), Group::new(share))
        });
        let utilisation = UtilisationSummary { total: Group::new(&change.total), zones: zones.collect() };
        Self { totals, pods: totals.pods(), utilisation }
    }
}

impl Group {
    fn new(share: &BeforeAndAfter<Share>) -> Self {
        let names = share.before.resources.keys().chain(share.after.resources.keys());
        let of = |share: &Share, name: &str| share.resources.get(name).copied().unwrap_or_default();
        Self {
            nodes: BeforeAndAfter { before: share.before.nodes, after: share.after.nodes },
            resources: names
                .map(|name| {
                    let change =
                        BeforeAndAfter { before: of(&share.before, name), after: of(&share.after, name) };
                    (name.clone(), change)
                })
                .collect(),
        }
    }
}
