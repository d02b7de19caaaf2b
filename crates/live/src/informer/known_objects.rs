//! What has been told of a resource, so that a new list yields the difference: names, identities and versions, not the
//! objects.

use std::{collections::HashMap, hash::BuildHasher};

use foldhash::fast::RandomState;
use supercargo_model::{Key, Name};

/// The objects of one resource that have been told.
#[derive(Default)]
pub(super) struct KnownObjects {
    by_namespace: HashMap<Name, HashMap<Name, Seen, RandomState>, RandomState>,
    /// Counts the lists. An object that the present list has not named is not there any more.
    round: u32,
    /// Counts how often the server was set back.
    course: u32,
    hasher: RandomState,
}

struct Seen {
    uid: Name,
    version: u64,
    round: u32,
}

/// How an object stands to what has been told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KnownAs {
    /// This very version has been told.
    Same,
    /// It has been told in another version, or not at all.
    Changed,
    /// An earlier object of the same name has been told, with this identity.
    Recreated(Name),
}

impl KnownObjects {
    /// How an object stands; it counts as named by the present list.
    pub(super) fn known_as(&mut self, namespace: &str, name: &str, uid: &str, version: &str) -> KnownAs {
        let version = self.hash(version);
        let round = self.round;
        let Some(told) = self.by_namespace.get_mut(namespace).and_then(|names| names.get_mut(name)) else {
            return KnownAs::Changed;
        };
        if *told.uid != *uid {
            return KnownAs::Recreated(told.uid.clone());
        }
        told.round = round;
        if told.version == version { KnownAs::Same } else { KnownAs::Changed }
    }

    /// Keeps what is being told.
    pub(super) fn keep(&mut self, key: &Key, uid: Name, version: &str) {
        let told = Seen { uid, version: self.hash(version), round: self.round };
        match self.by_namespace.get_mut(&key.namespace) {
            Some(names) => {
                names.insert(key.name.clone(), told);
            }
            None => {
                let names = HashMap::from_iter([(key.name.clone(), told)]);
                self.by_namespace.insert(key.namespace.clone(), names);
            }
        }
    }

    /// Forgets an object, and gives its identity if it had been told.
    pub(super) fn forget(&mut self, namespace: &str, name: &str) -> Option<Name> {
        let names = self.by_namespace.get_mut(namespace)?;
        let told = names.remove(name)?;
        if names.is_empty() {
            self.by_namespace.remove(namespace);
        }
        Some(told.uid)
    }

    /// The server was set back to an earlier state: versions may repeat, so that none that was told means anything.
    pub(super) fn distrust_versions(&mut self) {
        self.course = self.course.wrapping_add(1);
    }

    /// A new list begins.
    pub(super) fn begin_list(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The list is complete: forgets and gives whatever it did not name, in the order of names.
    pub(super) fn end_list(&mut self) -> Vec<(Key, Name)> {
        let round = self.round;
        let mut gone = Vec::new();
        self.by_namespace.retain(|namespace, names| {
            let missing = names.extract_if(|_, told| told.round != round);
            gone.extend(missing.map(|(name, told)| (Key { namespace: namespace.clone(), name }, told.uid)));
            names.shrink_to(names.len() * 2);
            !names.is_empty()
        });
        gone.sort_unstable();
        gone
    }

    fn hash(&self, version: &str) -> u64 {
        self.hasher.hash_one((self.course, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(known: &mut KnownObjects, name: &str, uid: &str, version: &str) {
        known.keep(&Key::new("ns", name), uid.into(), version);
    }

    #[test]
    fn a_list_yields_the_difference() {
        let mut known = KnownObjects::default();
        keep(&mut known, "a", "u1", "1");
        keep(&mut known, "b", "u2", "1");
        keep(&mut known, "c", "u3", "1");
        known.begin_list();
        assert_eq!(known.known_as("ns", "a", "u1", "1"), KnownAs::Same);
        assert_eq!(known.known_as("ns", "b", "u2", "2"), KnownAs::Changed);
        assert_eq!(known.known_as("ns", "d", "u4", "2"), KnownAs::Changed);
        assert_eq!(known.end_list(), [(Key::new("ns", "c"), "u3".into())]);
        assert_eq!(known.forget("ns", "c"), None);
    }

    #[test]
    fn after_the_server_was_set_back_a_version_means_something_else() {
        let mut known = KnownObjects::default();
        keep(&mut known, "a", "u1", "1");
        known.distrust_versions();
        known.begin_list();
        assert_eq!(known.known_as("ns", "a", "u1", "1"), KnownAs::Changed);
        keep(&mut known, "a", "u1", "1");
        assert_eq!(known.known_as("ns", "a", "u1", "1"), KnownAs::Same);
    }

    #[test]
    fn another_identity_under_the_same_name_is_another_object() {
        let mut known = KnownObjects::default();
        keep(&mut known, "a", "u1", "5");
        assert_eq!(known.known_as("ns", "a", "u2", "5"), KnownAs::Recreated("u1".into()));
    }
}
