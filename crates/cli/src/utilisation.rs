//! How much of a cluster is used before and after something, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use supercargo_model::Name;
use supercargo_sim::utilisation::{Amount, NodeTotals, Utilisation};

use crate::output::{Console, Grid};

/// How much of some nodes is used.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct BeforeAndAfter<T> {
    before: T,
    after: T,
}

/// The cluster's utilisation before and after.
pub(crate) struct UtilisationChange {
    total: BeforeAndAfter<NodeTotals>,
    zones: BTreeMap<Name, BeforeAndAfter<NodeTotals>>,
}

impl UtilisationChange {
    pub(crate) fn new(before: &Utilisation, after: &Utilisation) -> Self {
        let names: BTreeSet<&Name> = before.zones.keys().chain(after.zones.keys()).collect();
        let zones = names.into_iter().map(|name| {
            let of = |utilisation: &Utilisation| utilisation.zones.get(name).cloned().unwrap_or_default();
            (name.clone(), BeforeAndAfter { before: of(before), after: of(after) })
        });
        let total = BeforeAndAfter { before: before.total.clone(), after: after.total.clone() };
        Self { total, zones: zones.collect() }
    }

    /// All of it, for programs.
    pub(crate) fn summary(&self) -> UtilisationSummary {
        let zones = self.zones.iter().map(|(zone, share)| {
            let zone = if zone.is_empty() { "-" } else { zone };
            (zone.to_owned(), Group::new(share))
        });
        UtilisationSummary { total: Group::new(&self.total), zones: zones.collect() }
    }

    /// Whether there are no nodes.
    pub(crate) fn is_empty(&self) -> bool {
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
    pub(crate) fn print(&self, console: &mut Console) -> std::io::Result<()> {
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

fn row(name: &str, share: &BeforeAndAfter<NodeTotals>, resources: &[&str]) -> Vec<String> {
    let (before, after) = (&share.before, &share.after);
    let nodes = change(before.nodes.to_string(), after.nodes.to_string());
    let percent = |share: &NodeTotals, resource: &str| match share.resources.get(resource) {
        Some(amount) if amount.allocatable != 0 => format!("{:.0}%", amount.percent()),
        _ => "-".to_owned(),
    };
    let used = resources.iter().map(|resource| change(percent(before, resource), percent(after, resource)));
    [name.to_owned(), nodes].into_iter().chain(used).collect()
}

fn change(before: String, after: String) -> String {
    if before == after { before } else { format!("{before} → {after}") }
}

/// The same for programs.
#[derive(Serialize)]
pub(crate) struct UtilisationSummary {
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

impl Group {
    fn new(share: &BeforeAndAfter<NodeTotals>) -> Self {
        let names = share.before.resources.keys().chain(share.after.resources.keys());
        let of = |share: &NodeTotals, name: &str| share.resources.get(name).copied().unwrap_or_default();
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
