//! Pods that wait for events, found by the events that could help them.
//!
//! Pods that were refused by the same plugins wait for the same events, so they are kept in groups, and an event goes to
//! the groups that wait for it. An event that nobody waits for costs one look-up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use supercargo_framework::{
    event::{ClusterEvent, EventSet},
    queueing::QueueRules,
};
use supercargo_model::Name;

use super::{
    HashMap,
    entry::{Entry, Refusal, Spot},
};

/// What the pods of a group have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Why {
    scheduler_name: Name,
    held_by: Option<Name>,
    refused_by: Refusal,
}

struct Group {
    why: Why,
    awaits: EventSet,
    /// The pods' slots.
    members: Vec<usize>,
}

#[derive(Default)]
pub(super) struct UnschedulablePods {
    groups: Vec<Group>,
    free: Vec<usize>,
    by_why: HashMap<Why, usize>,
    awaited: HashMap<ClusterEvent, BTreeSet<usize>>,
    /// All of them by how long they have waited, then by slot.
    by_time: BTreeSet<(Duration, usize)>,
    /// How many of them are held back by a PreEnqueue plugin.
    held: usize,
}

impl UnschedulablePods {
    /// Takes a pod in, and says where it is.
    pub(super) fn insert(&mut self, slot: usize, entry: &Entry) -> Spot {
        let group = self.group(entry);
        let members = &mut self.groups[group].members;
        members.push(slot);
        let place = members.len() - 1;
        self.by_time.insert((entry.waiting_since(), slot));
        self.held += usize::from(entry.held_by.is_some());
        Spot::UnschedulablePods(group, place)
    }

    /// Lets a pod go, as it was taken in. Another pod of its group may take its place there: that one's slot.
    pub(super) fn remove(&mut self, slot: usize, entry: &Entry, group: usize, place: usize) -> Option<usize> {
        self.by_time.remove(&(entry.waiting_since(), slot));
        let Group { why, members, .. } = &mut self.groups[group];
        self.held -= usize::from(why.held_by.is_some());
        members.swap_remove(place);
        let moved = members.get(place).copied();
        if members.is_empty() {
            self.dissolve(group);
        }
        moved
    }

    fn group(&mut self, entry: &Entry) -> usize {
        let why = Why {
            scheduler_name: entry.rules.scheduler_name().clone(),
            held_by: entry.held_by.clone(),
            refused_by: entry.refused_by.clone(),
        };
        if let Some(group) = self.by_why.get(&why) {
            return *group;
        }
        let awaits = awaits(&entry.rules, &why);
        let number = self.free.pop().unwrap_or(self.groups.len());
        for event in awaits.iter() {
            self.awaited.entry(event).or_default().insert(number);
        }
        let group = Group { why: why.clone(), awaits, members: Vec::new() };
        if number == self.groups.len() {
            self.groups.push(group);
        } else {
            self.groups[number] = group;
        }
        self.by_why.insert(why, number);
        number
    }

    fn dissolve(&mut self, number: usize) {
        let Group { why, awaits, members } = &mut self.groups[number];
        members.shrink_to_fit();
        self.by_why.remove(why);
        for event in awaits.iter() {
            if let Some(groups) = self.awaited.get_mut(&event) {
                groups.remove(&number);
            }
        }
        self.free.push(number);
    }

    /// The slots of the pods that wait for an event.
    pub(super) fn awaiting(&self, event: ClusterEvent) -> impl Iterator<Item = usize> {
        let groups = self.awaited.get(&event).into_iter().flatten();
        groups.flat_map(|group| self.groups[*group].members.iter().copied())
    }

    /// The one that has waited longest: since when, and its slot.
    pub(super) fn longest(&self) -> Option<(Duration, usize)> {
        self.by_time.first().copied()
    }

    /// How many wait, and how many of them are held back.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.by_time.len(), self.held)
    }
}

/// A pod that is held back can only be let in by events of the plugin that does so.
fn awaits(rules: &Arc<QueueRules>, why: &Why) -> EventSet {
    if let Some(plugin) = &why.held_by {
        return rules.interests(plugin).events().clone();
    }
    if why.refused_by.is_empty() {
        return ClusterEvent::all().collect::<EventSet>().union(&rules.events());
    }
    let events = why.refused_by.all().map(|plugin| rules.interests(plugin).events());
    events.fold(EventSet::default(), EventSet::union)
}

/// How many pods each plugin keeps waiting, by scheduler name and plugin.
#[derive(Default)]
pub(super) struct Reasons(BTreeMap<(Name, Name), usize>);

impl Reasons {
    pub(super) fn add(&mut self, entry: &Entry) {
        for plugin in entry.refused_by.all() {
            self.add_one(entry, plugin);
        }
    }

    pub(super) fn add_one(&mut self, entry: &Entry, plugin: &Name) {
        let key = (entry.rules.scheduler_name().clone(), plugin.clone());
        *self.0.entry(key).or_default() += 1;
    }

    pub(super) fn subtract(&mut self, entry: &Entry) {
        for plugin in entry.refused_by.all() {
            let key = (entry.rules.scheduler_name().clone(), plugin.clone());
            if let Some(count) = self.0.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(&key);
                }
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Name, usize)> {
        self.0.iter().map(|((scheduler, plugin), count)| (scheduler, plugin, *count))
    }
}
