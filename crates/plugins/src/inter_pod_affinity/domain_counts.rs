//! Counts by topology domain that can be copied for a "what if" at no cost.

use std::sync::Arc;

use supercargo_model::{
    Cluster, Name, Node,
    label_columns::{ABSENT, LabelColumn},
    pod_classes::PodClass,
};

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
        self.occupied = still_occupied(self.occupied, before, before + by);
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
        let domains = class.nodes().map(|(node, count)| (column.of(node), times * i64::from(count)));
        if column.range() > domains.len() {
            return self.add_domains(column, key, domains);
        }
        // Many nodes in few domains are summed up first.
        let mut sums = vec![0; column.range()];
        for (domain, count) in domains.filter(|(domain, _)| *domain != ABSENT) {
            sums[domain as usize] += count;
        }
        self.add_domains(column, key, (0..).zip(sums).filter(|(_, sum)| *sum != 0));
    }

    /// Adds to the counts of some domains of a key, by the numbers of their values.
    fn add_domains(&mut self, column: &LabelColumn, key: &Name, domains: impl Iterator<Item = (u32, i64)>) {
        let domains = domains.filter_map(|(domain, by)| Some((column.value(domain)?, by)));
        let Some(counts) = Arc::get_mut(&mut self.shared).filter(|_| self.since.is_empty()) else {
            for (value, by) in domains {
                self.add_to(key, value, by);
            }
            return;
        };
        let counts = counts.entry(key.clone()).or_default();
        for (value, by) in domains {
            let count = counts.entry(value.clone()).or_insert(0);
            self.occupied = still_occupied(self.occupied, *count, *count + by);
            *count += by;
        }
    }

    /// How many there are in a domain.
    pub(super) fn get(&self, key: &str, value: &str) -> i64 {
        let count = |counts: &ByDomain| counts.get(key).and_then(|by_value| by_value.get(value)).copied();
        count(&self.shared).unwrap_or(0) + count(&self.since).unwrap_or(0)
    }

    /// The keys of the domains that somebody may be in; one that was counted since a copy was made may come twice.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Name> {
        self.shared.keys().chain(self.since.keys())
    }

    /// The values of a key whose domains somebody is in; those counted since a copy was made may come twice.
    pub(super) fn occupied<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Name> {
        let domains = self.shared.get(key).into_iter().chain(self.since.get(key)).flatten();
        let is_whole = self.since.is_empty();
        let count = move |value, count| if is_whole { count } else { self.get(key, value) };
        domains.filter(move |(value, in_part)| count(value, **in_part) > 0).map(|(value, _)| value)
    }

    /// Whether nobody is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }
}

/// How many domains have a count other than 0, when that of one has changed.
fn still_occupied(occupied: usize, before: i64, after: i64) -> usize {
    match (before, after) {
        (0, 0) => occupied,
        (0, _) => occupied + 1,
        (_, 0) => occupied - 1,
        _ => occupied,
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
