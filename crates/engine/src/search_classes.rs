//! Nodes that score alike, in the order in which nodes are searched: the best of a stretch of that order is found among a few
//! classes, without a look at each of its nodes.

use std::ops::Range;

use supercargo_framework::{
    fast::Normalization,
    vector::{BLOCK, Bounds, count_in_block, normalized, nth_in_block, vectorized},
};
use supercargo_model::NodeId;

use crate::node_classes::place_of;

/// With more classes than this, looking at each node is as good.
const MAX_CLASSES: usize = 1024;
const WORDS: usize = MAX_CLASSES / 64;
/// How many scores may depend on which nodes are found.
pub(crate) const MAX_KEYS: usize = 4;

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
    /// How many nodes of each class each block has.
    by_block: Vec<Vec<u8>>,
    /// By position in the order.
    class_of: Vec<u16>,
    /// The same by place.
    class_at: Vec<u16>,
    /// How many open nodes each block has.
    open: Vec<u8>,
    /// The classes of the open nodes of each block, as bits: the first 64 classes of all blocks, then the next.
    present_in: Vec<Vec<u64>>,
    order: Vec<NodeId>,
    /// By place.
    position_of: Vec<u32>,
    /// The order is that of the places.
    by_place: bool,
    /// The last stretch: what it has of the order, the later part first, and its classes.
    ranges: [Range<usize>; 2],
    present: Classes,
    /// The same as a list.
    met: Vec<u16>,
    /// The points of each cell by one score.
    points: Vec<f64>,
    /// The classes of it that have the highest total.
    best: Vec<u16>,
    /// How many nodes of those each piece of the stretch has.
    best_in: [usize; 6],
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
            by_block: Vec::new(),
            class_of: vec![0; order.len()],
            class_at: vec![0; base.len()],
            open: vec![0; order.len().div_ceil(BLOCK)],
            present_in: Vec::new(),
            by_place: order.is_sorted(),
            order: order.to_vec(),
            position_of,
            ranges: [0..0, 0..0],
            present: [0; WORDS],
            met: Vec::new(),
            points: Vec::new(),
            best: Vec::new(),
            best_in: [0; 6],
        };
        // Neighbours are often alike, so the class that was used last is tried first.
        let mut last = 0;
        for (position, node) in order.iter().enumerate() {
            let (base, keys) = (base[node.index()], keys(*node)?);
            if this.classes.get(last).is_none_or(|class| class.base != base || class.keys != keys) {
                last = this.find(base, keys)?;
            }
            this.classes[last].nodes += 1;
            this.by_block[last][position / BLOCK] += 1;
            this.class_of[position] = last as u16;
            this.class_at[node.index()] = last as u16;
        }
        (0..this.open.len()).for_each(|block| this.count(block));
        Some(this)
    }

    fn find(&mut self, base: f64, keys: Keys) -> Option<usize> {
        let new = Class { base, keys, nodes: 0, total: 0.0 };
        let same = |class: &Class| class.base == base && class.keys == keys;
        let place = place_of(&mut self.classes, MAX_CLASSES, new, same, |class| class.nodes == 0)?;
        if place == self.by_block.len() {
            let blocks = self.open.len();
            self.by_block.push(vec![0; blocks]);
            if place.is_multiple_of(64) {
                self.present_in.push(vec![0; blocks]);
            }
        }
        Some(place)
    }

    /// Counts the open nodes of a block.
    fn count(&mut self, block: usize) {
        for position in block * BLOCK..self.class_of.len().min((block + 1) * BLOCK) {
            let class = self.class_of[position] as usize;
            if self.classes[class].is_open() {
                self.open[block] += 1;
                self.present_in[class / 64][block] |= 1 << (class % 64);
            }
        }
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
        self.by_block[before][position / BLOCK] -= 1;
        let class = self.find(base, keys)?;
        self.classes[class].nodes += 1;
        self.by_block[class][position / BLOCK] += 1;
        self.class_of[position] = class as u16;
        self.class_at[node.index()] = class as u16;
        let is_open = self.classes[class].is_open();
        let block = position / BLOCK;
        // The class may have been given up, and be another by now.
        if self.by_block[before][block] == 0 || !self.classes[before].is_open() {
            self.present_in[before / 64][block] &= !(1 << (before % 64));
        }
        if is_open {
            self.present_in[class / 64][block] |= 1 << (class % 64);
        }
        self.open[block] = self.open[block] + u8::from(is_open) - u8::from(was_open);
        Some(())
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
        self.met.clear();
        for (word, present) in self.present[..self.present_in.len()].iter().enumerate() {
            self.met.extend(bits(*present).map(|bit| (word * 64 + bit) as u16));
        }
        Stretch { found, looked_at }
    }

    /// Where the search stops; the end of the range if it does not.
    fn scan(&mut self, range: Range<usize>, enough: usize, found: &mut usize) -> usize {
        let mut position = range.start;
        while position < range.end {
            let first = position.div_ceil(BLOCK);
            if position.is_multiple_of(BLOCK) {
                let blocks = &self.open[first..range.end / BLOCK];
                let mut whole = 0;
                while whole < blocks.len() && *found + blocks[whole] as usize <= enough {
                    *found += blocks[whole] as usize;
                    whole += 1;
                }
                for (present, blocks) in self.present.iter_mut().zip(&self.present_in) {
                    *present |= blocks[first..first + whole].iter().fold(0, |all, block| all | block);
                }
                position += whole * BLOCK;
            }
            let end = range.end.min((position / BLOCK + 1) * BLOCK);
            let stop = self.scan_part(position..end, enough, found);
            if stop < end {
                return stop;
            }
            position = end;
        }
        range.end
    }

    /// The same for a part of a block.
    fn scan_part(&mut self, part: Range<usize>, enough: usize, found: &mut usize) -> usize {
        let block = part.start / BLOCK;
        if usize::from(self.open.get(block).copied().unwrap_or(0)) == self.nodes_of_block(block) {
            // Each of them counts, so that where the search stops is known.
            let stop = part.end.min(part.start + enough - *found);
            *found += stop - part.start;
            let classes = &self.class_of[part.start..stop];
            if self.classes.len() <= 64 {
                self.present[0] |= classes.iter().fold(0, |met, class| met | 1 << class);
            } else {
                classes.iter().for_each(|class| insert(&mut self.present, *class));
            }
            return stop;
        }
        for position in part.clone() {
            let class = self.class_of[position];
            if self.classes[class as usize].is_open() {
                if *found == enough {
                    return position;
                }
                *found += 1;
                insert(&mut self.present, class);
            }
        }
        part.end
    }

    fn nodes_of_block(&self, block: usize) -> usize {
        self.class_of.len().min((block + 1) * BLOCK) - block * BLOCK
    }

    /// The cells of a score that the open nodes of the last stretch are in; some may come more than once.
    pub(crate) fn cells(&self, column: usize) -> impl Iterator<Item = u32> {
        self.met.iter().map(move |class| self.classes[*class as usize].keys[column])
    }

    /// The highest total of the last stretch, and how many nodes have it; `None` if it has no open node.
    pub(crate) fn best(&mut self, columns: &[Option<Weighed<'_>>; MAX_KEYS]) -> Option<(f64, usize)> {
        let Self { classes, met, points, best, .. } = self;
        met.iter().for_each(|place| classes[*place as usize].total = classes[*place as usize].base);
        for (i, column) in columns.iter().flatten().enumerate() {
            let Weighed { raw, weight, normalization } = *column;
            let mut bounds = Bounds::NONE;
            for place in &*met {
                bounds.include(normalization, raw[classes[*place as usize].keys[i] as usize]);
            }
            let worth = |raw: f64| weight * normalized(normalization, bounds, raw);
            // Classes share cells, unless there are few of them.
            let by_cell = raw.len() < met.len();
            points.clear();
            points.extend(raw.iter().filter(|_| by_cell).map(|raw| worth(*raw)));
            for place in &*met {
                let class = &mut classes[*place as usize];
                let cell = class.keys[i] as usize;
                class.total += if by_cell { points[cell] } else { worth(raw[cell]) };
            }
        }
        let mut highest = f64::NEG_INFINITY;
        best.clear();
        for place in &*met {
            let total = classes[*place as usize].total;
            if total > highest {
                highest = total;
                best.clear();
            }
            if total == highest {
                best.push(*place);
            }
        }
        self.best_in = self.pieces().map(|piece| self.count_best(piece));
        let nodes = self.best_in.iter().sum();
        (nodes > 0).then_some((highest, nodes))
    }

    /// The last stretch from the first position in the order to the last, by block; whole blocks that follow each other.
    fn pieces(&self) -> [Piece; 6] {
        let [later, earlier] = self.ranges.clone().map(pieces);
        let ([a, b, c], [d, e, f]) = (earlier, later);
        [a, b, c, d, e, f]
    }

    /// How many of the best nodes a piece has.
    fn count_best(&self, piece: Piece) -> usize {
        match piece {
            Piece::Part(range) => count_in_block(&self.class_of[range], &self.best),
            Piece::Blocks(blocks) => {
                let of = |class: &u16| {
                    let counts = &self.by_block[usize::from(*class)][blocks.clone()];
                    counts.iter().map(|count| usize::from(*count)).sum::<usize>()
                };
                self.best.iter().map(of).sum()
            }
        }
    }

    /// The n-th of the best nodes by position in the order.
    pub(crate) fn nth_in_order(&self, mut n: usize) -> Option<NodeId> {
        for (piece, count) in self.pieces().into_iter().zip(self.best_in) {
            if n < count {
                let range = match piece {
                    Piece::Part(range) => range,
                    Piece::Blocks(Range { start: mut block, mut end }) => {
                        while end - block > 1 {
                            let middle = (block + end) / 2;
                            let before = self.count_best(Piece::Blocks(block..middle));
                            if n < before {
                                end = middle;
                            } else {
                                n -= before;
                                block = middle;
                            }
                        }
                        block * BLOCK..(block + 1) * BLOCK
                    }
                };
                let place = nth_in_block(&self.class_of[range.clone()], &self.best, n)?;
                return Some(self.order[range.start + place]);
            }
            n -= count;
        }
        None
    }

    /// The n-th of the best nodes by place.
    pub(crate) fn nth_best(&self, mut n: usize) -> Option<NodeId> {
        if self.by_place {
            return self.nth_in_order(n);
        }
        let [later, earlier] = self.ranges.each_ref().map(|range| (range.start as u32, range.len() as u32));
        let is_within = |position: u32, (start, len): (u32, u32)| position.wrapping_sub(start) < len;
        let is_in = |position: u32| is_within(position, later) | is_within(position, earlier);
        vectorized(
            #[inline(always)]
            || {
                let blocks = self.class_at.chunks(BLOCK).zip(self.position_of.chunks(BLOCK));
                for (block, (classes, positions)) in blocks.enumerate() {
                    let nodes = || classes.iter().zip(positions);
                    let of = |one: &u16| {
                        nodes().map(|(class, at)| u32::from((class == one) & is_in(*at))).sum::<u32>()
                    };
                    let count = self.best.iter().map(of).sum::<u32>() as usize;
                    if n < count {
                        let is_best = |(class, at): (&u16, &u32)| is_in(*at) && self.best.contains(class);
                        let mut places = nodes().enumerate().filter(|(_, node)| is_best(*node));
                        return places.nth(n).map(|(place, _)| NodeId::from_index(block * BLOCK + place));
                    }
                    n -= count;
                }
                None
            },
        )
    }
}

/// A part of a stretch: positions of one block, or whole blocks.
#[derive(Clone)]
enum Piece {
    Part(Range<usize>),
    Blocks(Range<usize>),
}

/// A range of positions: what it has of the block that it begins in, whole blocks, and what it has of the one that it ends in.
fn pieces(Range { start, end }: Range<usize>) -> [Piece; 3] {
    let blocks = start.div_ceil(BLOCK)..end / BLOCK;
    if blocks.start > blocks.end {
        return [Piece::Part(start..end), Piece::Blocks(0..0), Piece::Part(end..end)];
    }
    let (first, last) = (blocks.start * BLOCK, blocks.end * BLOCK);
    [Piece::Part(start..first), Piece::Blocks(blocks), Piece::Part(last..end)]
}

fn insert(classes: &mut Classes, class: u16) {
    classes[usize::from(class / 64)] |= 1 << (class % 64);
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
