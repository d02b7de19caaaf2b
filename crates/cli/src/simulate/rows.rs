//! What people and scripts are shown: a row for each pod, and what is to be said about those that need it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use supercargo_engine::{Outcome, Placement};
use supercargo_framework::preemption::Nomination;
use supercargo_model::{Key, Name, Pod};
use supercargo_scheduler::offline::Attempt;

use super::{Format, Options, nomination, totals::Totals, victims};
use crate::{
    explain::print_nomination,
    failure::Failure,
    output::{Console, Grid, listed},
    style::harmless,
};

/// How many pods are listed above a message that they share.
const MAX_PODS_OF_A_MESSAGE: usize = 20;
/// How many nodes are listed that have the same total.
const MAX_TIED_NODES: usize = 3;
/// How many devices of a pod are listed.
const MAX_DEVICES: usize = 4;

/// What came of a pod: its last attempt.
struct Row {
    pod: Arc<Pod>,
    outcome: Outcome,
    total: Option<i64>,
    ties: usize,
    feasible: usize,
    /// How many nodes were looked at, or ruled out unseen.
    seen: usize,
    /// The other nodes with the same total, where they are shown.
    tied_with: String,
    /// Why there is no node.
    message: Option<Arc<str>>,
    /// How room was made for it, and why that was necessary.
    preemption: Option<(Option<Arc<str>>, Nomination)>,
    /// The devices that it has got, where they are shown.
    devices: Vec<String>,
    took: Option<Duration>,
    evicted: bool,
}

impl Row {
    /// How many nodes were feasible. Where the search stopped early, the others were not refused: nobody looked at them.
    fn feasible_of(&self, nodes: usize) -> String {
        if self.feasible > 0 && self.seen < nodes {
            format!("{} of {} seen", self.feasible, self.seen)
        } else {
            format!("{}/{nodes}", self.feasible)
        }
    }
}

/// The rows, in the order in which the pods were first tried.
pub(super) struct Rows<'o> {
    rows: Vec<Row>,
    by_uid: HashMap<Name, usize>,
    /// Pods that are told the same share it.
    messages: HashSet<Arc<str>>,
    nodes: usize,
    evicted: usize,
    options: &'o Options,
    /// Where pods were that are decided anew.
    was_on: &'o HashMap<Key, Name>,
}

impl<'o> Rows<'o> {
    /// No rows yet, of a cluster with so many nodes.
    pub(super) fn new(nodes: usize, options: &'o Options, was_on: &'o HashMap<Key, Name>) -> Self {
        Self {
            rows: Vec::new(),
            by_uid: HashMap::new(),
            messages: HashSet::new(),
            nodes,
            evicted: 0,
            options,
            was_on,
        }
    }

    /// How many pods there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What all of them came to.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { evicted: self.evicted, ..Totals::default() };
        self.rows.iter().for_each(|row| totals.count(&row.outcome));
        totals
    }

    /// Takes an attempt in; it replaces an earlier one of the same pod.
    pub(super) fn add(&mut self, attempt: Attempt, devices: Vec<String>, took: Option<Duration>) {
        for victim in victims(&attempt.placement).filter(|victim| !victim.terminating) {
            self.evicted += 1;
            if let Some(row) = self.by_uid.get(&victim.uid) {
                self.rows[*row].evicted = true;
            }
        }
        let mut row = Row { devices, ..self.row(attempt, took) };
        match self.by_uid.get(&row.pod.uid) {
            Some(earlier) => {
                let earlier = &mut self.rows[*earlier];
                row.preemption = row.preemption.or(earlier.preemption.take());
                *earlier = row;
            }
            None => {
                self.by_uid.insert(row.pod.uid.clone(), self.rows.len());
                self.rows.push(row);
            }
        }
    }

    fn row(&mut self, Attempt { pod, placement, .. }: Attempt, took: Option<Duration>) -> Row {
        let made_room = nomination(&placement).cloned();
        match placement {
            Placement::On { node, total, ties, feasible, evaluated } => Row {
                pod,
                outcome: Outcome::Scheduled { node },
                total: Some(total),
                ties,
                feasible,
                seen: evaluated,
                tied_with: String::new(),
                message: None,
                preemption: None,
                devices: Vec::new(),
                took,
                evicted: false,
            },
            Placement::Decided(decision) => {
                let others = decision.best.iter().filter(|name| Some(*name) != decision.node());
                let others: Vec<String> = others.map(ToString::to_string).collect();
                let message = decision.message().map(|message| self.shared(message));
                Row {
                    pod,
                    total: decision.best_total(),
                    ties: decision.best.len(),
                    feasible: decision.feasible.len(),
                    seen: decision.evaluated() + decision.ruled_out.len(),
                    tied_with: listed(&others, MAX_TIED_NODES),
                    preemption: made_room.map(|nomination| (message.clone(), nomination)),
                    message,
                    outcome: decision.outcome,
                    devices: Vec::new(),
                    took,
                    evicted: false,
                }
            }
        }
    }

    fn shared(&mut self, message: String) -> Arc<str> {
        if let Some(known) = self.messages.get(&*message) {
            return known.clone();
        }
        let message: Arc<str> = message.into();
        self.messages.insert(message.clone());
        message
    }

    /// Prints all of it.
    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        if self.options.output == Format::Name {
            return self.print_names(console);
        }
        if !self.rows.is_empty() {
            let grid = self.grid(console);
            console.grid(grid)?;
        }
        let of = |wanted: fn(&Row) -> bool| self.rows.iter().filter(move |row| wanted(row));
        let waits = |row: &Row| row.outcome == Outcome::Unschedulable && row.preemption.is_none();
        print_messages("Unschedulable", of(waits), console)?;
        print_preemptions(of(|row| row.preemption.is_some()), console)?;
        print_messages("Gated", of(|row| row.outcome == Outcome::Gated), console)?;
        let failed = |row: &Row| matches!(row.outcome, Outcome::Error { .. });
        print_messages("Failed", of(failed), console)
    }

    /// Pods and their nodes, for scripts.
    fn print_names(&self, console: &mut Console) -> Result<(), Failure> {
        for row in &self.rows {
            let node = match &row.outcome {
                Outcome::Scheduled { node } if !row.evicted => node,
                _ => "-",
            };
            console.line(harmless(&format!("{} {node}", row.pod.key())))?;
        }
        Ok(())
    }

    fn grid(&self, console: &Console) -> Grid {
        let mut header = vec!["POD", "NODE"];
        if !self.was_on.is_empty() {
            header.push("WAS ON");
        }
        header.extend([">TOTAL", ">TIES", ">FEASIBLE"]);
        if self.options.time {
            header.push(">TIME");
        }
        let wide = self.options.output == Format::Wide;
        let has_devices = self.rows.iter().any(|row| !row.devices.is_empty());
        if has_devices {
            header.push("DEVICES");
        }
        if wide {
            header.extend([">PRIORITY", "SCHEDULER", "TIED WITH"]);
        }
        let mut grid = Grid::new(header);
        for row in &self.rows {
            let dash = || "-".to_owned();
            let mut cells = vec![row.pod.key().to_string(), row.place()];
            if !self.was_on.is_empty() {
                cells.push(self.was_on.get(&row.pod.key()).map_or_else(dash, ToString::to_string));
            }
            cells.extend([
                row.total.map_or_else(dash, |total| total.to_string()),
                if row.ties == 0 { dash() } else { row.ties.to_string() },
                // A pod that is held back is not compared with nodes.
                if row.outcome == Outcome::Gated { dash() } else { row.feasible_of(self.nodes) },
            ]);
            cells.extend(row.took.map(|took| format!("{took:.1?}")));
            if has_devices {
                let listed = listed(&row.devices, MAX_DEVICES);
                cells.push(if listed.is_empty() { dash() } else { listed });
            }
            if wide {
                cells.push(row.pod.spec.priority.to_string());
                cells.push(row.pod.spec.scheduler_name.to_string());
                cells.push(if row.tied_with.is_empty() { dash() } else { row.tied_with.clone() });
            }
            let palette = &console.palette;
            let style = match &row.outcome {
                Outcome::Scheduled { .. } if row.evicted => palette.caution,
                Outcome::Scheduled { .. } => anstyle::Style::new(),
                Outcome::Unschedulable if row.preemption.is_none() => palette.bad,
                Outcome::Unschedulable => palette.caution,
                Outcome::Gated => palette.faint,
                Outcome::Error { .. } => palette.bad,
            };
            grid.styled_row(style, cells);
        }
        grid
    }
}

impl Row {
    /// The node, or why there is none.
    fn place(&self) -> String {
        match (&self.outcome, &self.preemption) {
            (Outcome::Scheduled { node }, _) if self.evicted => format!("<evicted: {node}>"),
            (Outcome::Scheduled { node }, _) => node.to_string(),
            (Outcome::Unschedulable, Some((_, nomination))) => format!("<nominated: {}>", nomination.node),
            (Outcome::Unschedulable, None) => "<unschedulable>".to_owned(),
            (Outcome::Gated, _) => "<gated>".to_owned(),
            (Outcome::Error { .. }, _) => "<error>".to_owned(),
        }
    }
}

/// Pods that are told the same are told it together.
fn print_messages<'r>(
    title: &str,
    rows: impl Iterator<Item = &'r Row>,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    let mut group_of: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        let message = row.message.as_deref().unwrap_or_default();
        let group = *group_of.entry(message).or_insert_with(|| {
            groups.push((message, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(row.pod.key().to_string());
    }
    if !groups.is_empty() {
        console.heading(title)?;
    }
    for (message, pods) in groups {
        console.paragraph("  ", &listed(&pods, MAX_PODS_OF_A_MESSAGE))?;
        console.paragraph("    ", message)?;
    }
    Ok(())
}

fn print_preemptions<'r>(rows: impl Iterator<Item = &'r Row>, console: &mut Console) -> Result<(), Failure> {
    let mut rows = rows.peekable();
    if rows.peek().is_some() {
        console.heading("Preemption")?;
    }
    for row in rows {
        let Some((message, nomination)) = &row.preemption else { continue };
        console.paragraph("  ", &row.pod.key().to_string())?;
        console.paragraph("    ", message.as_deref().unwrap_or_default())?;
        print_nomination("    ", nomination, console)?;
    }
    Ok(())
}
