//! What was simulated, counted: for whoever asks how much, and of what.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use serde::{Deserialize, Serialize};

use super::{Plan, run::LifeOutcome};

const SECONDS_IN_AN_HOUR: f64 = 3600.0;

/// The sum of several clusters' lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SoakTally {
    /// How many clusters lived.
    pub seeds: u64,
    /// How long, all together, on their own clocks.
    pub cluster_seconds: u64,
    /// How many pods schedulers and others bound.
    pub bindings: u64,
    /// How many pods schedulers evicted.
    pub evictions: u64,
    /// How often a scheduler's process was started.
    pub starts: u64,
    /// How many seeds broke a rule.
    pub broken: u64,
    /// What was done, and what went wrong, how often, by name.
    pub users: BTreeMap<String, u64>,
    /// The same for what went wrong.
    pub faults: BTreeMap<String, u64>,
}

impl SoakTally {
    /// Adds a life.
    pub fn add(&mut self, plan: &Plan, outcome: &LifeOutcome) {
        self.seeds += 1;
        self.cluster_seconds += outcome.cluster_time.as_secs();
        self.bindings += outcome.bindings as u64;
        self.evictions += outcome.evictions as u64;
        self.starts += outcome.starts;
        self.broken += u64::from(!outcome.violations.is_empty());
        for step in &plan.steps {
            let counts = if step.act.is_fault() { &mut self.faults } else { &mut self.users };
            *counts.entry(step.act.name()).or_default() += 1;
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.cluster_seconds += other.cluster_seconds;
        self.bindings += other.bindings;
        self.evictions += other.evictions;
        self.starts += other.starts;
        self.broken += other.broken;
        for (into, from) in [(&mut self.users, &other.users), (&mut self.faults, &other.faults)] {
            for (name, count) in from {
                *into.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// Hours of cluster time.
    pub fn hours(&self) -> f64 {
        self.cluster_seconds as f64 / SECONDS_IN_AN_HOUR
    }
}

/// A table for a document.
impl fmt::Display for SoakTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| simulated | |\n|---|---|")?;
        writeln!(f, "| clusters, a seed each | {} |", grouped(self.seeds))?;
        writeln!(f, "| hours of cluster time | {} |", grouped(self.cluster_seconds / 3600))?;
        writeln!(f, "| pods bound | {} |", grouped(self.bindings))?;
        writeln!(f, "| pods evicted | {} |", grouped(self.evictions))?;
        writeln!(f, "| processes started | {} |", grouped(self.starts))?;
        writeln!(f, "| seeds that broke a rule | {} |", grouped(self.broken))?;
        writeln!(f, "\n| done by users and others | times | gone wrong | times |\n|---|---|---|---|")?;
        let (users, faults) = (sorted(&self.users), sorted(&self.faults));
        for row in 0..users.len().max(faults.len()) {
            let cell = |cells: &[(String, String)]| {
                cells
                    .get(row)
                    .map_or_else(|| " | |".to_owned(), |(name, count)| format!(" {name} | {count} |"))
            };
            writeln!(f, "|{}{}", cell(&users), cell(&faults))?;
        }
        Ok(())
    }
}

/// The most frequent first.
fn sorted(counts: &BTreeMap<String, u64>) -> Vec<(String, String)> {
    let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    sorted.into_iter().map(|(name, count)| (in_words(name), grouped(*count))).collect()
}

/// `relabelNode` as people read it.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            let _ = written.write_char(',');
        }
        let _ = written.write_char(digit);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_reads_as_a_table() {
        let users = BTreeMap::from([("addNode".to_owned(), 3), ("look".to_owned(), 1200)]);
        let faults = BTreeMap::from([("cutWatches".to_owned(), 7)]);
        let once = SoakTally { seeds: 2, cluster_seconds: 7_205, users, faults, ..SoakTally::default() };
        let mut twice = once.clone();
        twice.merge(&once);
        assert_eq!((twice.seeds, twice.users["look"], twice.faults["cutWatches"]), (4, 2400, 14));
        let table = twice.to_string();
        assert!(table.contains("| hours of cluster time | 4 |"), "{table}");
        assert!(table.ends_with("| look | 2,400 | cut watches | 14 |\n| add node | 6 | | |\n"), "{table}");
    }
}
