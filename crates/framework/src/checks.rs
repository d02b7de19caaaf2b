//! Checks that plugins' effects wait for: run again when something changes that they depend on.

use std::collections::{BTreeSet, HashMap};

use crate::handle::{Check, Dependency, View};

/// A check that has not found yet what it looks for.
pub struct WaitingCheck {
    /// The check.
    pub check: Check,
    /// Tells whoever waits that it has.
    pub found: Box<dyn FnOnce() + Send>,
}

/// The checks that wait, by number.
#[derive(Default)]
pub struct Checks {
    waiting: HashMap<u64, (WaitingCheck, Vec<Dependency>)>,
    by_dependency: HashMap<Dependency, BTreeSet<u64>>,
}

impl Checks {
    /// Runs a check, and keeps it unless it has found what it looks for.
    pub fn run(&mut self, id: u64, mut waiting: WaitingCheck, view: &View<'_>) {
        match (waiting.check)(view) {
            None => (waiting.found)(),
            Some(dependencies) => {
                for dependency in &dependencies {
                    self.by_dependency.entry(dependency.clone()).or_default().insert(id);
                }
                self.waiting.insert(id, (waiting, dependencies));
            }
        }
    }

    /// Runs those again that depend on something which has come, changed or gone.
    pub fn run_after(&mut self, changed: &Dependency, view: &View<'_>) {
        for id in self.by_dependency.get(changed).cloned().unwrap_or_default() {
            if let Some(waiting) = self.take(id) {
                self.run(id, waiting, view);
            }
        }
    }

    /// Nobody waits for a check any more.
    pub fn take(&mut self, id: u64) -> Option<WaitingCheck> {
        let (waiting, dependencies) = self.waiting.remove(&id)?;
        for dependency in dependencies {
            if let Some(checks) = self.by_dependency.get_mut(&dependency) {
                checks.remove(&id);
                if checks.is_empty() {
                    self.by_dependency.remove(&dependency);
                }
            }
        }
        Some(waiting)
    }

    /// How many checks wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no check waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
