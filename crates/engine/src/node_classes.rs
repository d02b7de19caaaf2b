//! Nodes that score alike, counted once: the best are found among a few classes of nodes instead of among all nodes.

use supercargo_framework::{
    fast::{Cells, Normalization},
    vector::{Bounds, normalized, nth_of},
};

/// With more classes than this, looking at each node is as good.
const MAX_CLASSES: usize = 1024;
/// Scores that are given by cell.
pub(crate) const MAX_COLUMNS: usize = 2;

/// The place of a class: where the same one is, else in place of an empty one, else at the end, unless there are `most`.
pub(crate) fn place_of<T>(
    classes: &mut Vec<T>,
    most: usize,
    new: T,
    is_same: impl Fn(&T) -> bool,
    is_empty: impl Fn(&T) -> bool,
) -> Option<usize> {
    if let Some(same) = classes.iter().position(is_same) {
        return Some(same);
    }
    if let Some(empty) = classes.iter().position(is_empty) {
        classes[empty] = new;
        return Some(empty);
    }
    (classes.len() < most).then(|| {
        classes.push(new);
        classes.len() - 1
    })
}

/// A score that is given by cell.
pub(crate) struct ByCell<'a> {
    pub(crate) cells: &'a Cells,
    pub(crate) weight: f64,
    pub(crate) normalization: Normalization,
}

/// Nodes with the same base and the same cells, so with the same total.
#[derive(Clone, Copy)]
struct NodeClass {
    base: f64,
    cells: [u32; MAX_COLUMNS],
    nodes: u32,
    total: f64,
}

/// All nodes, by class.
pub(crate) struct NodeClasses {
    classes: Vec<NodeClass>,
    class_of: Vec<u16>,
    /// The points of each cell, for each score.
    points: [Vec<f64>; MAX_COLUMNS],
    /// The classes that have the highest total.
    best: Vec<u16>,
}

impl NodeClasses {
    /// Puts all places into classes; `None` if there are too many. A closed node's base is below all others.
    pub(crate) fn new(
        base: impl ExactSizeIterator<Item = f64>,
        columns: &[Option<&Cells>; MAX_COLUMNS],
    ) -> Option<Self> {
        let mut classes = Self {
            classes: Vec::new(),
            class_of: vec![0; base.len()],
            points: std::array::from_fn(|_| Vec::new()),
            best: Vec::new(),
        };
        // Neighbours are often alike, so the class that was used last is tried first.
        let mut last = 0;
        for (place, base) in base.enumerate() {
            let cells = cells_of(columns, place);
            if classes.classes.get(last).is_none_or(|class| class.base != base || class.cells != cells) {
                last = classes.find(base, cells)?;
            }
            classes.classes[last].nodes += 1;
            classes.class_of[place] = last as u16;
        }
        Some(classes)
    }

    /// A node's base or cells have changed; `None` if that makes too many classes.
    pub(crate) fn update(
        &mut self,
        place: usize,
        base: f64,
        columns: &[Option<&Cells>; MAX_COLUMNS],
    ) -> Option<()> {
        self.classes[self.class_of[place] as usize].nodes -= 1;
        let class = self.find(base, cells_of(columns, place))?;
        self.classes[class].nodes += 1;
        self.class_of[place] = class as u16;
        Some(())
    }

    fn find(&mut self, base: f64, cells: [u32; MAX_COLUMNS]) -> Option<usize> {
        let new = NodeClass { base, cells, nodes: 0, total: 0.0 };
        let same = |class: &NodeClass| class.base == base && class.cells == cells;
        place_of(&mut self.classes, MAX_CLASSES, new, same, |class| class.nodes == 0)
    }

    /// Open classes that some node is of.
    fn open(&self) -> impl Iterator<Item = &NodeClass> {
        self.classes.iter().filter(|class| class.nodes > 0 && class.base.is_finite())
    }

    /// Works out all totals. Returns the bounds of each score.
    pub(crate) fn sum(&mut self, columns: &[Option<ByCell<'_>>; MAX_COLUMNS]) -> [Bounds; MAX_COLUMNS] {
        let mut bounds = [Bounds::NONE; MAX_COLUMNS];
        for (i, column) in columns.iter().flatten().enumerate() {
            for class in self.open() {
                bounds[i].include(column.normalization, column.cells.raw[class.cells[i] as usize]);
            }
            self.points[i].clear();
            let points = |raw: &f64| column.weight * normalized(column.normalization, bounds[i], *raw);
            self.points[i].extend(column.cells.raw.iter().map(points));
        }
        let used = columns.iter().flatten().count();
        for class in &mut self.classes {
            let on_top = (0..used).map(|i| self.points[i][class.cells[i] as usize]);
            class.total = class.base + on_top.sum::<f64>();
        }
        bounds
    }

    /// The highest total, and how many nodes have it; `None` if all are closed.
    pub(crate) fn best(&mut self) -> Option<(f64, usize)> {
        let highest = self.open().map(|class| class.total).fold(f64::NEG_INFINITY, f64::max);
        self.best.clear();
        let mut nodes = 0;
        for (i, class) in self.classes.iter().enumerate() {
            if class.nodes > 0 && class.total == highest && highest.is_finite() {
                self.best.push(i as u16);
                nodes += class.nodes as usize;
            }
        }
        (nodes > 0).then_some((highest, nodes))
    }

    /// A node's total.
    pub(crate) fn total(&self, place: usize) -> f64 {
        self.classes[self.class_of[place] as usize].total
    }

    /// The n-th of the best nodes, by place, after [`Self::best`].
    pub(crate) fn nth_best(&self, n: usize) -> Option<usize> {
        nth_of(&self.class_of, &self.best, n)
    }
}

fn cells_of(columns: &[Option<&Cells>; MAX_COLUMNS], place: usize) -> [u32; MAX_COLUMNS] {
    let mut cells = [0; MAX_COLUMNS];
    for (cell, column) in cells.iter_mut().zip(columns.iter().flatten()) {
        *cell = column.of[place];
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_counted_by_kind_and_found_by_place() {
        // Four nodes in two cells; the last one is closed.
        let cells = Cells { of: vec![0, 1, 0, 1], raw: vec![4.0, 2.0] };
        let base = [10.0, 10.0, 10.0, f64::NEG_INFINITY];
        let mut classes = NodeClasses::new(base.into_iter(), &[Some(&cells), None]).unwrap();
        let by_cell = || ByCell { cells: &cells, weight: 2.0, normalization: Normalization::MinMax };
        // Raw 2 becomes 0 and 4 becomes 100, times 2.
        assert_eq!(classes.sum(&[Some(by_cell()), None])[0], Bounds { lowest: 2.0, highest: 4.0 });
        assert_eq!(classes.best(), Some((210.0, 2)));
        assert_eq!([0, 1, 2].map(|n| classes.nth_best(n)), [Some(0), Some(2), None]);
        assert_eq!(classes.total(1), 10.0);

        // The first node is closed now, and the other two keep their totals.
        classes.update(0, f64::NEG_INFINITY, &[Some(&cells), None]).unwrap();
        classes.sum(&[Some(by_cell()), None]);
        assert_eq!((classes.best(), classes.nth_best(0)), (Some((210.0, 1)), Some(2)));
    }

    #[test]
    fn too_many_kinds_are_refused() {
        let base: Vec<f64> = (0..=MAX_CLASSES).map(|i| i as f64).collect();
        assert!(NodeClasses::new(base.iter().copied(), &[None, None]).is_none());
        assert!(NodeClasses::new(base[1..].iter().copied(), &[None, None]).is_some());
    }
}
