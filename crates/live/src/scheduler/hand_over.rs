//! From one leader to the next: the watch of whoever takes over may be behind the bindings of whoever gave the lease back,
//! and a decision on such a view gives room away that is taken.

use std::time::Duration;

use supercargo_framework::bugs::{self, Bug};
use supercargo_model::object::{Kind, Object};

use super::{HashMap, Scheduler};
use crate::{informer::WatchEvent, lease::SeenVersions};

/// How long a new leader waits for its watch. A server that was set back to an earlier state may never show what the last
/// leader had seen.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(30);

/// How far the watch has come, with each kind.
#[derive(Default)]
pub(super) struct Seen(HashMap<Kind, Progress>);

#[derive(Default)]
struct Progress {
    /// The newest version of an object. Every other watch comes to see it, or something newer.
    newest: u64,
    /// The version up to which everything was told.
    up_to: u64,
}

impl Seen {
    pub(super) fn take_in(&mut self, event: &WatchEvent) {
        let (kind, version, is_object) = match event {
            // Each ConfigMap has a watch of its own: what one of them shows says nothing about another.
            WatchEvent::Put { object: Object::ConfigMap(_), .. } | WatchEvent::UpTo(Kind::ConfigMap, _) => {
                return;
            }
            WatchEvent::Put { object, version, .. } => match version.parse() {
                Ok(version) => (object.kind(), version, true),
                Err(_) => return,
            },
            WatchEvent::UpTo(kind, version) => (*kind, *version, false),
            WatchEvent::Gone { .. } | WatchEvent::Unreadable { .. } | WatchEvent::Synced(_) => return,
        };
        let progress = self.0.entry(kind).or_default();
        if is_object {
            progress.newest = progress.newest.max(version);
        }
        progress.up_to = progress.up_to.max(version);
    }

    /// The newest versions, by resource.
    pub(super) fn versions(&self) -> SeenVersions {
        let newest = self.0.iter().filter(|(_, progress)| progress.newest > 0);
        newest.map(|(kind, progress)| (resource_of(*kind), progress.newest)).collect()
    }

    /// The resources that it has not seen as far as somebody else. Those that it does not watch are none of them.
    fn behind(&self, other: &SeenVersions) -> Vec<String> {
        let of_kind = self.0.iter().map(|(kind, progress)| (resource_of(*kind), progress.up_to));
        let is_behind =
            |(resource, up_to): &(String, u64)| other.get(resource).is_some_and(|seen| up_to < seen);
        of_kind.filter(is_behind).map(|(resource, _)| resource).collect()
    }
}

/// As `kubectl` names it: `pods`, `deployments.apps`.
fn resource_of(kind: Kind) -> String {
    let api = kind.api();
    if api.group.is_empty() { api.plural.to_owned() } else { format!("{}.{}", api.plural, api.group) }
}

impl Scheduler {
    /// Whether what we see is no older than what the leader before us had seen.
    pub(super) fn has_caught_up(&mut self) -> bool {
        let Some(lease) = &self.lease else { return true };
        if self.has_caught_up || bugs::is_on(Bug::HandOverNotAwaited) {
            return true;
        }
        if !lease.is_held() {
            return bugs::is_on(Bug::BindsWithoutLease);
        }
        let (handed_over, led_since) = lease.handed_over();
        let behind = self.seen.behind(&handed_over);
        let waits = self.world.uptime().saturating_sub(led_since) < CATCHES_UP_WITHIN;
        if !behind.is_empty() && waits {
            return false;
        }
        if !behind.is_empty() {
            let behind = behind.join(", ");
            tracing::warn!(
                behind,
                "the watch does not show what the last leader had seen; going on without it"
            );
        }
        self.has_caught_up = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(kind: Kind, version: &str) -> WatchEvent {
        let object = Object::deserialize(kind, &[], &json!({"metadata": {"name": "x"}})).unwrap();
        WatchEvent::Put { object, uid: "u".into(), version: version.into(), text: None }
    }

    #[test]
    fn what_is_handed_over_is_what_others_come_to_see() {
        let (mut old, mut new) = (Seen::default(), Seen::default());
        for event in
            [put(Kind::Pod, "7"), put(Kind::Pod, "5"), put(Kind::Node, "3"), WatchEvent::UpTo(Kind::Pod, 90)]
        {
            old.take_in(&event);
        }
        let handed_over = old.versions();
        // A bookmark is no object: another watch may not get one for a minute.
        assert_eq!(handed_over, SeenVersions::from([("nodes".to_owned(), 3), ("pods".to_owned(), 7)]));
        new.take_in(&put(Kind::Pod, "6"));
        assert_eq!(new.behind(&handed_over), ["pods"], "nodes are not watched");
        // The pod is gone meanwhile, which a list tells just as well.
        new.take_in(&WatchEvent::UpTo(Kind::Pod, 8));
        assert_eq!(new.behind(&handed_over), [""; 0]);
    }

    #[test]
    fn versions_that_are_no_numbers_say_nothing() {
        let mut seen = Seen::default();
        seen.take_in(&put(Kind::Pod, "seven"));
        assert_eq!(seen.versions(), SeenVersions::new());
    }
}
