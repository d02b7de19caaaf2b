//! The nodes that have each value of a label, as sets: kept from search to search, until that changes.

use supercargo_model::{Cluster, Name, bits::Bits, changes::ChangeLogId};

/// How many labels are kept: those that scores go by are few.
const MAX_LABELS: usize = 8;

/// The sets of the labels that were asked for last.
#[derive(Default)]
pub(crate) struct LabelSets {
    labels: Vec<LabelSet>,
    /// The next to be replaced, if all places are taken.
    next: usize,
}

struct LabelSet {
    key: Name,
    /// By the number of the value.
    by_value: Vec<Bits>,
    /// Of which cluster, and at which revision of the label, this was so.
    known_at: (ChangeLogId, u64),
}

impl LabelSets {
    /// The nodes with each value of a label, by the value's number and by place; none if no node has the label.
    pub(crate) fn of(&mut self, cluster: &Cluster, key: &Name) -> &[Bits] {
        let Some(column) = cluster.label_columns().get(key) else {
            return &[];
        };
        let (history, revision) = (cluster.changes().history(), column.revision());
        let known = self.labels.iter().position(|label| label.key == *key);
        if let Some(i) = known
            && let (of, at) = &self.labels[i].known_at
            && of.is(history)
            && *at == revision
        {
            return &self.labels[i].by_value;
        }
        let nodes = |number: usize| column.nodes(number as u32).iter().map(|node| node.index());
        let label = LabelSet {
            key: key.clone(),
            by_value: (0..column.range()).map(|number| nodes(number).collect()).collect(),
            known_at: (history.mark(), revision),
        };
        let i = known.unwrap_or_else(|| {
            if self.labels.len() < MAX_LABELS {
                return self.labels.len();
            }
            self.next = (self.next + 1) % MAX_LABELS;
            self.next
        });
        match self.labels.get_mut(i) {
            Some(old) => *old = label,
            None => self.labels.push(label),
        }
        &self.labels[i].by_value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::{Key, kind::Kind, testing::node};

    fn sets(sets: &[Bits]) -> Vec<Vec<usize>> {
        sets.iter().map(|set| set.iter().collect()).collect()
    }

    #[test]
    fn sets_follow_nodes_that_come_go_and_are_labelled_anew() {
        let (mut cluster, mut known) = (Cluster::default(), LabelSets::default());
        let (disk, rack) = (Name::from("disk"), Name::from("rack"));
        for (name, value) in [("a", "ssd"), ("b", "hdd"), ("c", "ssd")] {
            cluster.put_node(node(name).label("disk", value).node());
        }
        assert_eq!(sets(known.of(&cluster, &disk)), [vec![0, 2], vec![1]]);
        assert_eq!(sets(known.of(&cluster, &rack)), Vec::<Vec<usize>>::new());

        cluster.put_node(node("c").label("disk", "hdd").label("rack", "r").node());
        assert_eq!(sets(known.of(&cluster, &disk)), [vec![0], vec![1, 2]]);
        assert_eq!(sets(known.of(&cluster, &rack)), [vec![2]]);

        // What a value was numbered before another takes its number.
        cluster.remove(Kind::Node, &Key::new("", "a"));
        assert_eq!(sets(known.of(&cluster, &disk)), [vec![], vec![1, 2]]);
        cluster.put_node(node("d").label("disk", "nvme").node());
        assert_eq!(sets(known.of(&cluster, &disk)), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn a_label_that_stays_is_not_gone_through_again() {
        let (mut cluster, mut known) = (Cluster::default(), LabelSets::default());
        cluster.put_node(node("a").label("disk", "ssd").node());
        let key = Name::from("disk");
        let before = known.of(&cluster, &key).as_ptr();
        cluster.put_node(node("a").label("disk", "ssd").label("rack", "r").node());
        assert_eq!(known.of(&cluster, &key).as_ptr(), before);
    }

    #[test]
    fn only_some_labels_are_kept() {
        let (mut cluster, mut known) = (Cluster::default(), LabelSets::default());
        let keys: Vec<Name> = (0..3 * MAX_LABELS).map(|i| format!("key-{i}").into()).collect();
        let all = keys.iter().fold(node("a"), |node, key| node.label(key, "value"));
        cluster.put_node(all.node());
        for key in &keys {
            assert_eq!(sets(known.of(&cluster, key)), [vec![0]]);
        }
        assert_eq!(known.labels.len(), MAX_LABELS);
    }
}
