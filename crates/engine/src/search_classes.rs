//! Nodes that score alike, in the order in which nodes are searched: the best of a stretch of that order is found among a few
//! classes, without a look at each of its nodes.

use std::ops::Range;

use supercargo_framework::{
    fast::Normalization,
    vector::{Bounds, count_of, normalized, nth_of},
};
use supercargo_model::NodeId;

use crate::node_classes::place_of;

/// With more classes than this, looking at each node is as good.
const MAX_CLASSES: usize = 1024;
const WORDS: usize = MAX_CLASSES / 64;
/// How many scores may depend on which nodes are found.
pub(crate) const MAX_KEYS: usize = 4;
/// Nodes that are counted together.
const BLOCK: usize = 64;

/// What tells the classes of nodes with the same base apart: the cell of each score that depends on which nodes are found.
pub(crate) type Keys = [u32; MAX_KEYS];

/// A score that is given by cell.
#[derive(Clone, Copy)]
pub(crate) struct Weighed<'a> {
    pub(crate) raw: &'a [f64],
    pub(crate) weight: f64,
    pub(crate) normalization: Normalization,
}

#[derive(Clone, Copy)]
struct Class {
    /// The sum of the scores that do not depend on which nodes are found; below all others for closed nodes.
    base: f64,
    keys: Keys,
    nodes: u32,
    total: f64,
}

impl Class {
    fn is_open(&self) -> bool {
        self.base.is_finite()
    }
}

/// A set of classes.
type Classes = [u64; WORDS];

#[derive(Clone, Copy)]
struct Block {
    open: u32,
    classes: Classes,
}

/// A stretch of the order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// How many open nodes it has.
    pub(crate) found: usize,
    /// How many nodes it has.
    pub(crate) looked_at: usize,
}

/// All nodes by class, in the order in which they are searched.
pub(crate) struct SearchClasses {
    classes: Vec<Class>,
    /// By position in the order.
    class_of: Vec<u16>,
    blocks: Vec<Block>,
    order: Vec<NodeId>,
    /// By place.
    position_of: Vec<u32>,
    /// The order is that of the places.
    by_place: bool,
    /// The last stretch: what it has of the order, the later part first, and its classes.
    ranges: [Range<usize>; 2],
    present: Classes,
    /// The classes of it that have the highest total.
    best: Vec<u16>,
    /// Places, as bits.
    places: Vec<u64>,
}

impl SearchClasses {
    /// Puts all nodes into classes; `None` if there are too many. A closed node's base is below all others.
    pub(crate) fn new(
        order: &[NodeId],
        base: &[f64],
        mut keys: impl FnMut(NodeId) -> Option<Keys>,
    ) -> Option<Self> {
        let mut position_of = vec![u32::MAX; base.len()];
        for (position, node) in order.iter().enumerate() {
            position_of[node.index()] = position as u32;
        }
        let mut this = Self {
            classes: Vec::new(),
            class_of: vec![0; order.len()],
            blocks: vec![Block { open: 0, classes: [0; WORDS] }; order.len().div_ceil(BLOCK)],
            by_place: order.is_sorted(),
            order: order.to_vec(),
            position_of,
            ranges: [0..0, 0..0],
            present: [0; WORDS],
            best: Vec::new(),
            places: vec![0; base.len().div_ceil(64)],
        };
        // Neighbours are often alike, so the class that was used last is tried first.
        let mut last = 0;
        for (position, node) in order.iter().enumerate() {
            let (base, keys) = (base[node.index()], keys(*node)?);
            if this.classes.get(last).is_none_or(|class| class.base != base || class.keys != keys) {
                last = this.find(base, keys)?;
            }
            this.classes[last].nodes += 1;
            this.class_of[position] = last as u16;
        }
        (0..this.blocks.len()).for_each(|block| this.count(block));
        Some(this)
    }

    fn find(&mut self, base: f64, keys: Keys) -> Option<usize> {
        let new = Class { base, keys, nodes: 0, total: 0.0 };
        let same = |class: &Class| class.base == base && class.keys == keys;
        place_of(&mut self.classes, MAX_CLASSES, new, same, |class| class.nodes == 0)
    }

    /// Counts the nodes of a block anew.
    fn count(&mut self, block: usize) {
        let mut counted = Block { open: 0, classes: [0; WORDS] };
        for class in self.nodes(block) {
            if self.classes[*class as usize].is_open() {
                counted.open += 1;
                insert(&mut counted.classes, *class);
            }
        }
        self.blocks[block] = counted;
    }

    /// A node's base or keys have changed; `None` if that makes too many classes.
    pub(crate) fn update(&mut self, node: NodeId, base: f64, keys: Keys) -> Option<()> {
        let position = self.position_of[node.index()] as usize;
        let before = self.class_of[position] as usize;
        let class = &self.classes[before];
        if class.base == base && class.keys == keys {
            return Some(());
        }
        let was_open = class.is_open();
        self.classes[before].nodes -= 1;
        let class = self.find(base, keys)?;
        self.classes[class].nodes += 1;
        self.class_of[position] = class as u16;
        let is_open = self.classes[class].is_open();
        let is_left = self.nodes(position / BLOCK).contains(&(before as u16));
        let block = &mut self.blocks[position / BLOCK];
        // The class may have been given up, and be another by now.
        if !is_left || !self.classes[before].is_open() {
            remove(&mut block.classes, before as u16);
        }
        if is_open {
            insert(&mut block.classes, class as u16);
        }
        block.open = block.open + u32::from(is_open) - u32::from(was_open);
        Some(())
    }

    /// The classes of the nodes of a block.
    fn nodes(&self, block: usize) -> &[u16] {
        &self.class_of[block * BLOCK..self.class_of.len().min((block + 1) * BLOCK)]
    }

    /// The classes of the open nodes of the last stretch.
    fn present(&self) -> impl Iterator<Item = usize> + use<> {
        let (present, words) = (self.present, self.classes.len().div_ceil(64));
        (0..words).flat_map(move |word| bits(present[word]).map(move |bit| word * 64 + bit))
    }

    /// Looks for so many open nodes from a position on. It only stops when it meets one more: the closed ones on the way
    /// there count as looked at.
    pub(crate) fn search(&mut self, start: usize, enough: usize) -> Stretch {
        self.present = [0; WORDS];
        let mut found = 0;
        let later = start..self.scan(start..self.class_of.len(), enough, &mut found);
        let goes_on = later.end == self.class_of.len();
        let earlier = 0..if goes_on { self.scan(0..start, enough, &mut found) } else { 0 };
        let looked_at = later.len() + earlier.len();
        self.ranges = [later, earlier];
        Stretch { found, looked_at }
    }

    /// Where the search stops; the end of the range if it does not.
    fn scan(&mut self, range: Range<usize>, enough: usize, found: &mut usize) -> usize {
        let words = self.classes.len().div_ceil(64);
        let mut position = range.start;
        while position < range.end {
            let block = &self.blocks[position / BLOCK];
            let is_whole = position.is_multiple_of(BLOCK) && position + BLOCK <= range.end;
            if is_whole && *found + block.open as usize <= enough {
                *found += block.open as usize;
                for (present, classes) in self.present.iter_mut().zip(&block.classes).take(words) {
                    *present |= classes;
                }
                position += BLOCK;
                continue;
            }
            let class = self.class_of[position];
            if self.classes[class as usize].is_open() {
                if *found == enough {
                    return position;
                }
                *found += 1;
                insert(&mut self.present, class);
            }
            position += 1;
        }
        range.end
    }

    /// The cells of a score that the open nodes of the last stretch are in; some may come more than once.
    pub(crate) fn cells(&self, column: usize) -> impl Iterator<Item = u32> {
        self.present().map(move |class| self.classes[class].keys[column])
    }

    /// The highest total of the last stretch, and how many nodes have it; `None` if it has no open node.
    pub(crate) fn best(&mut self, columns: &[Option<Weighed<'_>>; MAX_KEYS]) -> Option<(f64, usize)> {
        let mut bounds = [Bounds::NONE; MAX_KEYS];
        for (i, column) in columns.iter().flatten().enumerate() {
            for class in self.present() {
                let cell = self.classes[class].keys[i] as usize;
                bounds[i].include(column.normalization, column.raw[cell]);
            }
        }
        let mut highest = f64::NEG_INFINITY;
        self.best.clear();
        for place in self.present() {
            let class = &mut self.classes[place];
            class.total = class.base;
            for (i, column) in columns.iter().flatten().enumerate() {
                let raw = column.raw[class.keys[i] as usize];
                class.total += column.weight * normalized(column.normalization, bounds[i], raw);
            }
            if class.total > highest {
                highest = class.total;
                self.best.clear();
            }
            if class.total == highest {
                self.best.push(place as u16);
            }
        }
        let nodes = self.ranges.iter().map(|range| count_of(&self.class_of[range.clone()], &self.best)).sum();
        (nodes > 0).then_some((highest, nodes))
    }

    /// The n-th of the best nodes by position in the order.
    pub(crate) fn nth_in_order(&self, mut n: usize) -> Option<NodeId> {
        let [later, earlier] = &self.ranges;
        for range in [earlier, later] {
            let classes = &self.class_of[range.clone()];
            if let Some(found) = nth_of(classes, &self.best, n) {
                return Some(self.order[range.start + found]);
            }
            n -= count_of(classes, &self.best);
        }
        None
    }

    /// The n-th of the best nodes by place.
    pub(crate) fn nth_best(&mut self, mut n: usize) -> Option<NodeId> {
        if self.by_place {
            return self.nth_in_order(n);
        }
        self.places.fill(0);
        for range in self.ranges.clone() {
            for position in range {
                if self.best.contains(&self.class_of[position]) {
                    let place = self.order[position].index();
                    self.places[place / 64] |= 1 << (place % 64);
                }
            }
        }
        for (word, places) in self.places.iter().enumerate() {
            let count = places.count_ones() as usize;
            if n < count {
                return bits(*places).nth(n).map(|bit| NodeId::from_index(word * 64 + bit));
            }
            n -= count;
        }
        None
    }
}

fn insert(classes: &mut Classes, class: u16) {
    classes[usize::from(class / 64)] |= 1 << (class % 64);
}

fn remove(classes: &mut Classes, class: u16) {
    classes[usize::from(class / 64)] &= !(1 << (class % 64));
}

fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use supercargo_framework::vector::normalized;

    use super::*;

    const CLOSED: f64 = f64::NEG_INFINITY;

    fn nodes(places: impl IntoIterator<Item = usize>) -> Vec<NodeId> {
        places.into_iter().map(NodeId::from_index).collect()
    }

    #[test]
    fn the_best_of_a_stretch_are_those_of_its_nodes_alone() {
        // Six nodes; the third is closed. A score by cell: raw 4 for even places, 2 for odd ones.
        let base = [10.0, 10.0, CLOSED, 10.0, 10.0, 12.0];
        let keys = |node: NodeId| Some([node.index() as u32 % 2, 0, 0, 0]);
        let mut classes = SearchClasses::new(&nodes(0..6), &base, keys).unwrap();
        let by_cell = Weighed { raw: &[4.0, 2.0], weight: 1.0, normalization: Normalization::MinMax };
        let columns = [Some(by_cell), None, None, None];

        // Nodes 1 and 3, and the closed one between them: both have raw 2, so that both get nothing on top of 10.
        assert_eq!(classes.search(1, 2), Stretch { found: 2, looked_at: 3 });
        assert_eq!(classes.best(&columns), Some((10.0, 2)));
        assert_eq!(
            [0, 1, 2].map(|n| classes.nth_best(n)),
            [1, 3, 9].map(|n| nodes([n]).pop().filter(|_| n < 9))
        );

        // From node 4 on, over the end: nodes 4 and 0 get 100 on top of 10, and node 5 nothing on top of 12.
        assert_eq!(classes.search(4, 3), Stretch { found: 3, looked_at: 3 });
        assert_eq!(classes.best(&columns), Some((110.0, 2)));
        assert_eq!(classes.nth_best(0), nodes([0]).pop());
        assert_eq!(classes.cells(0).collect::<Vec<_>>().len(), 2);

        // Node 4 closes: four open nodes are left, whatever is asked for.
        classes.update(NodeId::from_index(4), CLOSED, [0; MAX_KEYS]).unwrap();
        assert_eq!(classes.search(4, 100), Stretch { found: 4, looked_at: 6 });
    }

    #[test]
    fn many_nodes_in_any_order_are_as_if_each_was_looked_at() {
        const NODES: usize = 1_000;
        // Any order that is not that of the places, with some nodes closed.
        let order = nodes((0..NODES).map(|i| i * 7 % NODES));
        let mut base: Vec<f64> =
            (0..NODES).map(|i| if i % 11 == 3 { CLOSED } else { (i % 5) as f64 }).collect();
        let cell = |place: usize| place as u32 * 3 % 7;
        let raw: Vec<f64> = (0..7).map(f64::from).collect();
        let mut classes =
            SearchClasses::new(&order, &base, |node| Some([cell(node.index()), 0, 0, 0])).unwrap();
        for step in 0..200 {
            let place = step * 37 % NODES;
            base[place] = if step % 3 == 0 { CLOSED } else { (step % 9) as f64 };
            classes.update(NodeId::from_index(place), base[place], [cell(place), 0, 0, 0]).unwrap();
            let (start, enough) = (step * 131 % NODES, 1 + step * 17 % 700);
            let mut found = Vec::new();
            let mut looked_at = 0;
            for node in order[start..].iter().chain(&order[..start]) {
                if base[node.index()] != CLOSED {
                    if found.len() == enough {
                        break;
                    }
                    found.push(*node);
                }
                looked_at += 1;
            }
            for normalization in [Normalization::MinMax, Normalization::Inverted, Normalization::Reversed] {
                let mut bounds = Bounds::NONE;
                found.iter().for_each(|n| bounds.include(normalization, raw[cell(n.index()) as usize]));
                let total = |n: &NodeId| {
                    base[n.index()] + 3.0 * normalized(normalization, bounds, raw[cell(n.index()) as usize])
                };
                let highest = found.iter().map(total).fold(CLOSED, f64::max);
                let mut best: Vec<NodeId> = found.iter().copied().filter(|n| total(n) == highest).collect();
                best.sort();

                let stretch = classes.search(start, enough);
                assert_eq!(stretch, Stretch { found: found.len(), looked_at }, "step {step}");
                let by_cell = Weighed { raw: &raw, weight: 3.0, normalization };
                assert_eq!(classes.best(&[Some(by_cell), None, None, None]), Some((highest, best.len())));
                let told: Vec<NodeId> = (0..best.len()).filter_map(|n| classes.nth_best(n)).collect();
                assert_eq!(told, best, "step {step}");
            }
        }
    }

    #[test]
    fn too_many_classes_are_refused() {
        let base: Vec<f64> = (0..=MAX_CLASSES).map(|i| i as f64).collect();
        assert!(SearchClasses::new(&nodes(0..base.len()), &base, |_| Some([0; MAX_KEYS])).is_none());
    }
}
