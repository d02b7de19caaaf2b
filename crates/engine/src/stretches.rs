//! Parts of the order that nodes are looked at in, as sets of nodes.

use supercargo_model::{Cluster, NodeId, bits::Bits, changes::ChangeLogId};

/// About how many beginnings of the order are kept as sets.
const BEGINNINGS: usize = 32;
/// They are at least so long.
const MIN_STEP: usize = 64;

/// Sets of nodes by where they are in the order.
#[derive(Default)]
pub(crate) struct Stretches {
    order: Vec<NodeId>,
    /// The first `step` nodes, the first 2 × `step`, and so on; before them, none.
    beginnings: Vec<Bits>,
    step: usize,
    /// Of which cluster, and after how many invalidations, this was so.
    known_at: Option<(ChangeLogId, u64)>,
}

impl Stretches {
    /// So many nodes of the order from a position on; it goes on at its beginning.
    pub(crate) fn find(&mut self, cluster: &Cluster, start: usize, count: usize, into: &mut Bits) {
        self.catch_up(cluster);
        let (nodes, end) = (self.order.len(), start + count);
        into.clear();
        // Whatever is before its start is in it only as often as it is before its end.
        if end > nodes {
            self.toggle(nodes, into);
            self.toggle(end - nodes, into);
        } else {
            self.toggle(end, into);
        }
        self.toggle(start, into);
    }

    /// Puts in the first so many nodes, or takes out those of them that are in.
    fn toggle(&self, count: usize, set: &mut Bits) {
        let beginning = &self.beginnings[count / self.step];
        let words = set.words_mut(beginning.words().len());
        words.iter_mut().zip(beginning.words()).for_each(|(word, other)| *word ^= other);
        for node in &self.order[count / self.step * self.step..count] {
            set.toggle(node.index());
        }
    }

    fn catch_up(&mut self, cluster: &Cluster) {
        let (history, invalidations) = (cluster.changes().history(), cluster.changes().invalidations());
        if matches!(&self.known_at, Some((of, at)) if of.is(history) && *at == invalidations) {
            return;
        }
        self.known_at = Some((history.mark(), invalidations));
        if self.order == cluster.order() && self.step > 0 {
            return;
        }
        self.order.clear();
        self.order.extend_from_slice(cluster.order());
        self.step = (self.order.len() / BEGINNINGS).max(MIN_STEP);
        self.beginnings.clear();
        self.beginnings.push(Bits::default());
        let mut beginning = Bits::default();
        for nodes in self.order.chunks_exact(self.step) {
            nodes.iter().for_each(|node| beginning.insert(node.index()));
            self.beginnings.push(beginning.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::{Key, kind::Kind, testing::node};

    #[test]
    fn a_stretch_has_the_nodes_that_follow_each_other_in_the_order() {
        let (mut cluster, mut stretches) = (Cluster::default(), Stretches::default());
        for i in 0..300 {
            let zone = format!("zone-{}", i % 7 % 3);
            cluster.put_node(node(&format!("n{i}")).label("topology.kubernetes.io/zone", &zone).node());
        }
        let check = |cluster: &Cluster, stretches: &mut Stretches| {
            let nodes = cluster.node_count();
            for start in [0, 1, 63, 64, 65, 200, nodes - 1] {
                for count in [1, 2, 64, 100, 128, nodes - 1, nodes] {
                    let mut set = Bits::default();
                    stretches.find(cluster, start, count, &mut set);
                    let order = cluster.order().iter().cycle().skip(start).take(count);
                    let mut expected: Vec<usize> = order.map(|node| node.index()).collect();
                    expected.sort_unstable();
                    assert_eq!(set.iter().collect::<Vec<_>>(), expected, "{count} from {start} of {nodes}");
                }
            }
        };
        check(&cluster, &mut stretches);
        cluster.remove(Kind::Node, &Key::new("", "n17"));
        check(&cluster, &mut stretches);
        cluster.put_node(node("n3").label("topology.kubernetes.io/zone", "zone-9").node());
        check(&cluster, &mut stretches);
    }
}
