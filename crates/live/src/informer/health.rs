//! Which resources are out of sight, for whoever tells whether the scheduler is ready.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use supercargo_model::object::Kind;

use super::Resource;

/// Since when resources can be neither listed nor watched, by the time of the world that they are followed in.
#[derive(Clone, Debug, Default)]
pub struct InformerHealth(Arc<Mutex<Outages>>);

/// By path and selector.
type Outages = HashMap<(String, String), (Kind, Duration)>;

impl InformerHealth {
    /// The kinds that have been out of sight for longer than `limit`, in the order of their names.
    pub fn blind_to(&self, now: Duration, limit: Duration) -> Vec<Kind> {
        let outages = self.outages();
        let long = outages.values().filter(|(_, since)| now.saturating_sub(*since) > limit);
        let mut kinds: Vec<Kind> = long.map(|(kind, _)| *kind).collect();
        kinds.sort_by_key(|kind| kind.name());
        kinds.dedup();
        kinds
    }

    /// A resource cannot be read; that counts from the first time on.
    pub(super) fn lost(&self, resource: &Resource, now: Duration) {
        self.outages().entry(place(resource)).or_insert((resource.kind, now));
    }

    /// A resource can be read again.
    pub(super) fn regained(&self, resource: &Resource) {
        let mut outages = self.outages();
        // Every line of a watch comes by here.
        if !outages.is_empty() {
            outages.remove(&place(resource));
        }
    }

    fn outages(&self) -> MutexGuard<'_, Outages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(resource: &Resource) -> (String, String) {
    (resource.path.clone(), resource.field_selector.clone())
}
