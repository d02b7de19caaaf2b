//! Counts by topology domain that can be copied for a "what if" at no cost.

use std::sync::Arc;

use supercargo_model::{Cluster, Name, Node, pod_classes::PodClass};

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
type ByDomain = HashMap<Name, HashMap<Name, i64>>;

/// How many pods count in each domain: a node label's key and value. A copy shares what was counted before it was made.
#[derive(Clone, Default)]
pub(super) struct DomainCounts {
    shared: Arc<ByDomain>,
    /// What was added since, where others share the rest.
    since: ByDomain,
    /// How many domains have a count other than 0.
    occupied: usize,
}

impl DomainCounts {
    /// Adds to the count of a node's domain. Whether the domain came to have somebody by that, or nobody.
    pub(super) fn add(&mut self, node: &Node, key: &Name, by: i64) -> bool {
        node.labels.get(key).is_some_and(|value| self.add_to(key, value, by))
    }

    fn add_to(&mut self, key: &Name, value: &Name, by: i64) -> bool {
        let before = self.get(key, value);
        match (before, before + by) {
            (0, 0) => {}
            (0, _) => self.occupied += 1,
            (_, 0) => self.occupied -= 1,
            _ => {}
        }
        let counts = Arc::get_mut(&mut self.shared).unwrap_or(&mut self.since);
        match counts.get_mut(key).and_then(|by_value| by_value.get_mut(value)) {
            Some(count) => *count += by,
            None => {
                counts.entry(key.clone()).or_default().insert(value.clone(), by);
            }
        }
        (before > 0) != (before + by > 0)
    }

    /// Counts all pods of a class, each so many times.
    pub(super) fn add_class(&mut self, cluster: &Cluster, class: &PodClass, key: &Name, times: i64) {
        let Some(column) = cluster.label_columns().get(key) else {
            return;
        };
        for (node, count) in class.nodes() {
            if let Some(value) = column.value(column.of(node)) {
                self.add_to(key, value, times * i64::from(count));
            }
        }
    }

    /// How many there are in a domain.
    pub(super) fn get(&self, key: &str, value: &str) -> i64 {
        let count = |counts: &ByDomain| counts.get(key).and_then(|by_value| by_value.get(value)).copied();
        count(&self.shared).unwrap_or(0) + count(&self.since).unwrap_or(0)
    }

    /// The domains that somebody is in, by key and value; those counted since a copy was made may come twice.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (&Name, &Name)> {
        let domains = self.shared.iter().chain(&self.since);
        let domains = domains.flat_map(|(key, by_value)| by_value.iter().map(move |domain| (key, domain)));
        let is_whole = self.since.is_empty();
        let count = move |key, value, count| if is_whole { count } else { self.get(key, value) };
        let occupied = domains.filter(move |(key, (value, in_part))| count(key, value, **in_part) > 0);
        occupied.map(|(key, (value, _))| (key, value))
    }

    /// Whether nobody is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::testing::node;

    #[test]
    fn a_copy_counts_for_itself() {
        let (node, key) = (node("n").node(), Name::from("kubernetes.io/hostname"));
        let mut counts = DomainCounts::default();
        counts.add(&node, &key, 2);
        let mut copy = counts.clone();
        copy.add(&node, &key, -2);
        assert_eq!((counts.get(&key, "n"), copy.get(&key, "n")), (2, 0));
        assert_eq!((counts.is_empty(), copy.is_empty()), (false, true));
        copy.add(&node, &key, 1);
        drop(counts);
        copy.add(&node, &key, 1);
        assert_eq!((copy.get(&key, "n"), copy.is_empty()), (2, false));
        copy.add(&node, &"absent".into(), 1);
        assert_eq!(copy.get("absent", ""), 0);
    }
}
