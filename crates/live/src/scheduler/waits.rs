//! Checks that plugins' effects wait for: run again when something changes that they depend on.

use std::collections::BTreeSet;

use supercargo_framework::{
    handle::{Check, Dependency},
    preemption::PreemptionCycle,
};
use supercargo_model::{Key, object::Kind};
use tokio::sync::oneshot;

use super::{HashMap, Scheduler};

/// A check that has not found yet what it looks for.
pub(super) struct Wait {
    pub(super) check: Check,
    pub(super) found: oneshot::Sender<()>,
}

/// The checks that wait, by number.
#[derive(Default)]
pub(super) struct Waits {
    waits: HashMap<u64, (Wait, Vec<Dependency>)>,
    by_dependency: HashMap<Dependency, BTreeSet<u64>>,
}

impl Waits {
    fn insert(&mut self, id: u64, wait: Wait, dependencies: Vec<Dependency>) {
        for dependency in &dependencies {
            self.by_dependency.entry(dependency.clone()).or_default().insert(id);
        }
        self.waits.insert(id, (wait, dependencies));
    }

    /// Nobody waits for a check any more.
    pub(super) fn take(&mut self, id: u64) -> Option<Wait> {
        let (wait, dependencies) = self.waits.remove(&id)?;
        for dependency in dependencies {
            if let Some(waits) = self.by_dependency.get_mut(&dependency) {
                waits.remove(&id);
                if waits.is_empty() {
                    self.by_dependency.remove(&dependency);
                }
            }
        }
        Some(wait)
    }

    fn that_depend_on(&self, dependency: &Dependency) -> BTreeSet<u64> {
        self.by_dependency.get(dependency).cloned().unwrap_or_default()
    }
}

impl Scheduler {
    /// Runs a check, and keeps it unless it has found what it looks for.
    pub(super) fn check(&mut self, id: u64, mut wait: Wait) {
        match (wait.check)(&self.view()) {
            Some(dependencies) => self.waits.insert(id, wait, dependencies),
            // Whoever waited may have given up since.
            None => drop(wait.found.send(())),
        }
    }

    /// Runs the checks that depend on an object which has come, changed or gone.
    pub(super) fn check_after_change_of(&mut self, kind: Kind, key: &Key) {
        if !self.waits.waits.is_empty() {
            self.check_those_that_depend_on(&Dependency::Object(kind, key.clone()));
        }
    }

    pub(super) fn check_those_that_depend_on(&mut self, dependency: &Dependency) {
        for id in self.waits.that_depend_on(dependency) {
            if let Some(wait) = self.waits.take(id) {
                self.check(id, wait);
            }
        }
    }
}
