//! Nodes by what is taken of them: those of a bucket have the same, and about as much of it is taken. What a pod scores there lies
//! within narrow bounds, so that the best nodes are found without a look at most of the others.

use supercargo_framework::vector::vectorized;
use supercargo_model::{
    Cluster, NodeId,
    bits::Bits,
    changes::ChangeLogId,
    columns::{Columns, LoadColumns, ResourceColumn},
};

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// With fewer nodes than this to a bucket, looking at each node is as good; unless there are few nodes.
const NODES_TO_A_BUCKET: usize = 4;
const FEW_BUCKETS: usize = 128;
/// Into how many steps what there is of a resource is divided, for the fourth root of the number of nodes: many nodes are told
/// apart more finely than few, but there are few buckets then, too.
const STEPS_BY_ROOT: f64 = 128.0;
const MIN_STEPS: f64 = 16.0;
/// The numbers of what nodes have are given anew when there are so many more of them than buckets.
const SPARE_CAPACITIES: usize = 1024;
/// With more than one node to so many words of a set, to put a bucket into a set word by word is quicker than node by node. Those
/// that have become sets stay so down to a quarter of that.
const NODES_TO_A_SET: usize = 4;
/// The bucket of a place without a node.
const NOWHERE: u32 = u32::MAX;

/// What the nodes of a bucket have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct BucketKey {
    /// What they have: its number.
    capacity: u32,
    /// How much is taken of cpu and of memory, and the same with defaults: in steps.
    taken: [u32; 4],
}

struct Bucket {
    key: BucketKey,
    /// Their places.
    nodes: Vec<u32>,
    /// The same as a set, if they are many.
    set: Option<Bits>,
}

impl Bucket {
    /// `words` are those of a set of all places.
    fn add(&mut self, place: u32, words: usize) {
        self.nodes.push(place);
        if let Some(set) = &mut self.set {
            set.insert(place as usize);
        } else if self.nodes.len() * NODES_TO_A_SET > words {
            self.set = Some(self.nodes.iter().map(|place| *place as usize).collect());
        }
    }

    fn take(&mut self, index: usize, words: usize) {
        let place = self.nodes.swap_remove(index);
        if self.nodes.len() * NODES_TO_A_SET * 4 <= words {
            self.set = None;
        } else if let Some(set) = &mut self.set {
            set.remove(place as usize);
        }
    }
}

/// All nodes, by bucket.
#[derive(Default)]
pub(crate) struct LoadBuckets {
    /// Into how many steps a resource is divided; 0 if nodes differ too much for buckets.
    steps: f64,
    /// What nodes have of cpu, memory and room for pods, as bits.
    capacities: HashMap<[u64; 3], u32>,
    by_key: HashMap<BucketKey, u32>,
    /// Some may be empty.
    buckets: Vec<Bucket>,
    empty: Vec<u32>,
    /// Which are, as a column: 0 for one that has nodes, −∞ for one that has none.
    filled: Vec<f64>,
    /// How much is taken of each of their nodes at least, and at most.
    least: LoadColumns,
    most: LoadColumns,
    /// The bucket of each node, and where it is in there, by place.
    bucket_of: Vec<u32>,
    index_of: Vec<u32>,
    /// Of which cluster, and after how many changes of loads, this was so.
    known_at: Option<(ChangeLogId, u64)>,
}

impl LoadBuckets {
    /// Brings them up to date. `None` if the nodes differ too much, or columns cannot hold what they have.
    pub(crate) fn catch_up(&mut self, cluster: &Cluster) -> Option<&Self> {
        let columns = cluster.columns();
        if !self.follow(cluster) {
            self.rebuild(columns);
            self.known_at = Some((cluster.changes().history().mark(), columns.load_changes()));
        }
        (self.steps > 0.0 && columns.inexact.is_empty()).then_some(self)
    }

    /// Follows the changes since; `false` if nodes have to be put into buckets anew.
    fn follow(&mut self, cluster: &Cluster) -> bool {
        let columns = cluster.columns();
        let Some((history, known_at)) = &mut self.known_at else {
            return false;
        };
        let (Some(touched), true) =
            (columns.loads_changed_since(*known_at), history.is(cluster.changes().history()))
        else {
            return false;
        };
        if self.steps == 0.0 {
            // They differed too much: it is tried again when enough of them have changed.
            return touched.len() * NODES_TO_A_BUCKET < columns.len();
        }
        *known_at = columns.load_changes();
        touched.into_iter().all(|node| self.update(columns, node))
    }

    /// How much is taken of the nodes of each bucket at least, and at most; of empty ones it says nothing.
    pub(crate) fn loads(&self) -> (&LoadColumns, &LoadColumns) {
        (&self.least, &self.most)
    }

    /// Which buckets have nodes, as a column: 0 for those, −∞ for the others.
    pub(crate) fn filled(&self) -> &[f64] {
        &self.filled
    }

    /// The places of the nodes of a bucket.
    pub(crate) fn nodes_of(&self, bucket: usize) -> &[u32] {
        &self.buckets[bucket].nodes
    }

    /// Puts the nodes of some buckets into a set.
    pub(crate) fn collect(&self, buckets: &[u32], into: &mut Bits) {
        let into = into.words_mut(self.words());
        vectorized(
            #[inline(always)]
            || {
                for Bucket { nodes, set, .. } in buckets.iter().map(|bucket| &self.buckets[*bucket as usize])
                {
                    match set {
                        Some(set) => into.iter_mut().zip(set.words()).for_each(|(word, more)| *word |= more),
                        None => nodes.iter().for_each(|node| into[*node as usize / 64] |= 1 << (node % 64)),
                    }
                }
            },
        );
    }

    /// How many words a set of all places has.
    fn words(&self) -> usize {
        self.bucket_of.len().div_ceil(64)
    }

    fn rebuild(&mut self, columns: &Columns) {
        self.steps = STEPS_BY_ROOT * (columns.live.len() as f64).sqrt().sqrt();
        while self.steps >= MIN_STEPS && !self.divide(columns) {
            self.steps /= 2.0;
        }
        if self.steps < MIN_STEPS {
            self.steps = 0.0;
        }
    }

    /// Puts all nodes into buckets of this fineness; whether these are few enough.
    fn divide(&mut self, columns: &Columns) -> bool {
        self.capacities.clear();
        self.by_key.clear();
        self.buckets.clear();
        self.empty.clear();
        self.filled.clear();
        self.least.clear();
        self.most.clear();
        self.bucket_of.clear();
        self.bucket_of.resize(columns.len(), NOWHERE);
        self.index_of.clear();
        self.index_of.resize(columns.len(), 0);
        columns.live.iter().all(|node| {
            let key = self.key(&columns.loads, node.index());
            self.enter(&columns.loads, node.index(), key);
            self.are_few()
        })
    }

    fn are_few(&self) -> bool {
        self.by_key.len() <= FEW_BUCKETS.max(self.bucket_of.len() / NODES_TO_A_BUCKET)
            && self.capacities.len() <= self.by_key.len() + SPARE_CAPACITIES
    }

    fn key(&mut self, loads: &LoadColumns, place: usize) -> BucketKey {
        let LoadColumns { cpu, memory, pods, cpu_or_default, memory_or_default, .. } = loads;
        let capacity = [cpu, memory, pods].map(|resource| resource.allocatable[place].to_bits());
        let next = self.capacities.len() as u32;
        let capacity = *self.capacities.entry(capacity).or_insert(next);
        let steps = |resource: &ResourceColumn, taken: &[f64]| {
            // Whatever is out of range ends up at one of its ends.
            (taken[place] * resource.inverse[place] * self.steps) as u32
        };
        let taken = [
            steps(cpu, &cpu.used),
            steps(memory, &memory.used),
            steps(cpu, cpu_or_default),
            steps(memory, memory_or_default),
        ];
        BucketKey { capacity, taken }
    }

    fn enter(&mut self, loads: &LoadColumns, place: usize, key: BucketKey) {
        let bucket = match self.by_key.get(&key) {
            Some(bucket) => {
                let i = *bucket as usize;
                self.least.merge(i, loads, place, f64::min);
                self.most.merge(i, loads, place, f64::max);
                *bucket
            }
            None => {
                let bucket = self.empty.pop().unwrap_or_else(|| {
                    self.buckets.push(Bucket { key, nodes: Vec::new(), set: None });
                    self.filled.push(0.0);
                    self.least.resize(self.buckets.len());
                    self.most.resize(self.buckets.len());
                    self.buckets.len() as u32 - 1
                });
                self.buckets[bucket as usize].key = key;
                self.filled[bucket as usize] = 0.0;
                self.least.copy(bucket as usize, loads, place);
                self.most.copy(bucket as usize, loads, place);
                self.by_key.insert(key, bucket);
                bucket
            }
        };
        let words = self.words();
        let at = &mut self.buckets[bucket as usize];
        self.bucket_of[place] = bucket;
        self.index_of[place] = at.nodes.len() as u32;
        at.add(place as u32, words);
    }

    fn leave(&mut self, place: usize) {
        let (bucket, words) = (self.bucket_of[place], self.words());
        let index = self.index_of[place] as usize;
        let left = &mut self.buckets[bucket as usize];
        left.take(index, words);
        let Bucket { key, nodes, .. } = left;
        self.bucket_of[place] = NOWHERE;
        if let Some(moved) = nodes.get(index) {
            self.index_of[*moved as usize] = index as u32;
        }
        if nodes.is_empty() {
            self.by_key.remove(key);
            self.empty.push(bucket);
            self.filled[bucket as usize] = f64::NEG_INFINITY;
        }
    }

    /// A node came, went, or something else has been taken of it. Whether buckets are still few enough.
    fn update(&mut self, columns: &Columns, node: NodeId) -> bool {
        let (place, loads) = (node.index(), &columns.loads);
        if self.bucket_of.len() < columns.len() {
            self.bucket_of.resize(columns.len(), NOWHERE);
            self.index_of.resize(columns.len(), 0);
        }
        let bucket = self.bucket_of[place];
        let key = columns.live.contains(node).then(|| self.key(loads, place));
        if let (Some(key), Some(at)) = (key, self.buckets.get(bucket as usize))
            && at.key == key
        {
            self.least.merge(bucket as usize, loads, place, f64::min);
            self.most.merge(bucket as usize, loads, place, f64::max);
            return true;
        }
        if bucket != NOWHERE {
            self.leave(place);
        }
        if let Some(key) = key {
            self.enter(loads, place, key);
        }
        self.are_few()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::{
        Key,
        kind::Kind,
        testing::{node, pod},
    };

    /// The nodes of each bucket that has some, by place.
    fn buckets(buckets: &LoadBuckets) -> Vec<Vec<u32>> {
        let nodes = |bucket| buckets.nodes_of(bucket).to_vec();
        let filled = buckets.filled().iter().enumerate().filter(|(_, filled)| filled.is_finite());
        let mut all: Vec<Vec<u32>> = filled.map(|(bucket, _)| nodes(bucket)).collect();
        all.iter_mut().for_each(|nodes| nodes.sort_unstable());
        all.sort_unstable();
        all
    }

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        for (name, cpu) in [("a", "4"), ("b", "4"), ("c", "8")] {
            cluster.put_node(node(name).allocatable("cpu", cpu).node());
        }
        cluster
    }

    #[test]
    fn nodes_that_have_the_same_and_give_about_as_much_share_a_bucket() {
        let (mut cluster, mut known) = (cluster(), LoadBuckets::default());
        assert_eq!(buckets(known.catch_up(&cluster).unwrap()), [vec![0, 1], vec![2]]);

        // Three nodes: 128 × ⁴√3 = 168 steps of 24m or 48m. A pod of 1 cpu is some of them, one of a byte is none.
        cluster.put_pod(pod("p").container(&[("cpu", "1"), ("memory", "1")]).on("b").pod());
        assert_eq!(buckets(known.catch_up(&cluster).unwrap()), [vec![0], vec![1], vec![2]]);
        cluster.put_pod(pod("q").container(&[("cpu", "1"), ("memory", "2")]).on("a").pod());
        assert_eq!(buckets(known.catch_up(&cluster).unwrap()), [vec![0, 1], vec![2]]);
        let at = known.bucket_of[0] as usize;
        assert_eq!((known.least.memory.used[at], known.most.memory.used[at]), (1.0, 2.0));

        // A bucket that nobody is in any more is used again.
        cluster.remove_pod(&pod("p").on("b").pod().key());
        assert_eq!(buckets(known.catch_up(&cluster).unwrap()), [vec![0], vec![1], vec![2]]);
        assert_eq!(known.buckets.len(), 3);

        // Nodes that come, go, and become others.
        cluster.put_node(node("d").allocatable("cpu", "8").node());
        cluster.remove(Kind::Node, &Key::new("", "a"));
        assert_eq!(buckets(known.catch_up(&cluster).unwrap()), [vec![1], vec![2, 3]]);
        cluster.put_node(node("c").allocatable("cpu", "4").node());
        assert_eq!(buckets(known.catch_up(&cluster).unwrap()), [vec![1, 2], vec![3]]);
    }

    #[test]
    fn nodes_that_all_differ_are_told_apart_less_finely() {
        let mut cluster = Cluster::default();
        for i in 0..1000 {
            cluster.put_node(node(&format!("n{i}")).allocatable("cpu", "1000").node());
            cluster.put_pod(
                pod(&format!("p{i}"))
                    .container(&[("cpu", &i.to_string()), ("memory", "1")])
                    .on(&format!("n{i}"))
                    .pod(),
            );
        }
        let mut known = LoadBuckets::default();
        let found = buckets(known.catch_up(&cluster).unwrap());
        // 128 × ⁴√1000 = 720 steps would be a bucket for almost every node, and 360 still more than 1000 / 4; 180 will do.
        assert_eq!((known.steps.round(), found.len()), (180.0, 180));
    }

    #[test]
    fn buckets_are_collected_as_sets_where_they_have_many_nodes() {
        let mut cluster = Cluster::default();
        // 512 places are 8 words, so that a bucket of more than 2 nodes is a set, too, until it is empty.
        for i in 0..512 {
            cluster.put_node(node(&format!("n{i}")).allocatable("cpu", "1000").node());
        }
        let held = |i: usize, node: usize| {
            let cpu = if i < 6 { [100, 100, 200, 200, 200, 300][i] } else { 0 };
            pod(&format!("p{i}")).container(&[("cpu", &cpu.to_string())]).on(&format!("n{node}")).pod()
        };
        let mut known = LoadBuckets::default();
        let check = |cluster: &Cluster, known: &mut LoadBuckets| {
            known.catch_up(cluster).unwrap();
            let all: Vec<u32> = (0..known.buckets.len() as u32).collect();
            for some in [&all[..], &all[..all.len() / 2], &all[1..]] {
                let mut set = Bits::default();
                known.collect(some, &mut set);
                let mut one_by_one: Vec<usize> = (some.iter())
                    .flat_map(|bucket| known.nodes_of(*bucket as usize))
                    .map(|place| *place as usize)
                    .collect();
                one_by_one.sort_unstable();
                assert_eq!(set.iter().collect::<Vec<_>>(), one_by_one);
            }
            let mut sets: Vec<(usize, bool)> =
                known.buckets.iter().map(|bucket| (bucket.nodes.len(), bucket.set.is_some())).collect();
            sets.sort_unstable();
            sets
        };
        for i in 0..6 {
            cluster.put_pod(held(i, i * 80));
        }
        assert_eq!(check(&cluster, &mut known), [(1, false), (2, false), (3, true), (506, true)]);
        cluster.remove_pod(&held(4, 320).key());
        cluster.remove_pod(&held(3, 240).key());
        assert_eq!(check(&cluster, &mut known), [(1, false), (1, true), (2, false), (508, true)]);
        cluster.remove_pod(&held(2, 160).key());
        assert_eq!(check(&cluster, &mut known), [(0, false), (1, false), (2, false), (509, true)]);
    }
}
