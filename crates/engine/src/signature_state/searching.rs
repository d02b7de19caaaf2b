//! Where only some nodes are scored: nodes that score alike are searched together.

use supercargo_framework::fast::RawScores;
use supercargo_model::{Cluster, NodeId};

use super::{CALM_PODS, FEW_MOVED, SignatureState, column::Column, opening::Moved};
use crate::{
    pick::{TieBreak, reservoir},
    search_classes::{Keys, MAX_KEYS, SearchClasses, Stretch},
};

impl SignatureState {
    /// Whether nodes that score alike are searched together.
    pub(crate) fn is_in_search_classes(&self) -> bool {
        self.search_classes.is_some()
    }

    /// Looks for so many open nodes from a position in the order on, by class; `None` if nodes are not put into classes. What
    /// the best of them are is asked next.
    pub(crate) fn search(&mut self, start: usize, enough: usize) -> Option<Stretch> {
        let Self { columns, search_classes, .. } = self;
        let classes = search_classes.as_mut()?;
        let stretch = classes.search(start, enough);
        for (i, column) in columns.iter_mut().filter(|column| !column.is_settled()).enumerate() {
            if let RawScores::ByDomain(part) = &mut column.scores
                && column.reads_open
            {
                part.settle_among(stretch.found, &mut classes.cells(i));
            }
        }
        Some(stretch)
    }

    /// The highest total of the nodes that were looked for last, and how many have it.
    pub(crate) fn best_found(&mut self) -> Option<(f64, usize)> {
        let mut unsettled = self.columns.iter().filter(|column| !column.is_settled());
        let weighed = std::array::from_fn(|_| unsettled.next().and_then(Column::weighed));
        self.search_classes.as_mut()?.best(&weighed)
    }

    /// One of those, after [`Self::best_found`].
    pub(crate) fn nth_found(&mut self, tie_break: TieBreak, ties: usize, seed: u64) -> Option<NodeId> {
        let classes = self.search_classes.as_mut()?;
        match tie_break {
            // By place, so that the choice does not depend on where the search started.
            TieBreak::Random => classes.nth_best(reservoir(ties, seed)?),
            TieBreak::First => classes.nth_in_order(0),
        }
    }

    /// Puts the nodes into classes in the order of the search, once the same nodes have been open for a while.
    pub(super) fn look_for_search_classes(&mut self, cluster: &Cluster) {
        let Some(calm) = &mut self.calm else {
            return;
        };
        *calm += 1;
        if *calm <= CALM_PODS {
            return;
        }
        self.search_classes = self.make_search_classes(cluster);
        if self.search_classes.is_none() {
            self.calm = None;
            self.leave_search_classes(cluster);
        }
    }

    fn make_search_classes(&mut self, cluster: &Cluster) -> Option<SearchClasses> {
        let Self { columns, open, base, .. } = self;
        let (mut settled, mut unsettled): (Vec<&mut Column>, Vec<&mut Column>) =
            columns.iter_mut().partition(|column| column.is_settled());
        if unsettled.len() > MAX_KEYS || !unsettled.iter_mut().all(|column| column.use_keys(cluster, open)) {
            return None;
        }
        base.clear();
        base.extend_from_slice(open);
        for column in &mut settled {
            column.find_bounds(open);
            base.iter_mut().enumerate().for_each(|(i, base)| *base += column.points(i));
        }
        SearchClasses::new(cluster.order(), base, |node| keys(unsettled.iter_mut().map(|c| &mut **c), node))
    }

    /// Moves the touched nodes to their classes.
    pub(super) fn update_search_classes(&mut self, cluster: &Cluster, moved: Moved) {
        if moved != Moved::Nobody {
            self.calm = self.calm.map(|_| 0);
        }
        if self.search_classes.is_none() {
            return;
        }
        if moved == Moved::Many || self.touched.len() > FEW_MOVED {
            self.leave_search_classes(cluster);
        } else if self.move_touched().is_none() {
            self.calm = None;
            self.leave_search_classes(cluster);
        }
    }

    fn move_touched(&mut self) -> Option<()> {
        let Self { columns, open, base, search_classes, touched, moved, .. } = self;
        let classes = search_classes.as_mut()?;
        for node in touched.iter().chain(moved.iter()) {
            let i = node.index();
            let settled = columns.iter().filter(|column| column.is_settled());
            base[i] = open[i] + settled.map(|column| column.points(i)).sum::<f64>();
            classes.update(*node, base[i], keys(columns.iter_mut().filter(|c| !c.is_settled()), *node)?)?;
        }
        Some(())
    }

    /// Leaves the classes, if nodes are in any, and does not look for them for a while.
    pub(crate) fn stay_out_of_search_classes(&mut self, cluster: &Cluster) {
        self.calm = self.calm.map(|_| 0);
        if self.search_classes.is_some() {
            self.leave_search_classes(cluster);
        }
    }

    /// Goes back from classes to columns. Those that depend on which nodes are open are made anew for each pod.
    fn leave_search_classes(&mut self, cluster: &Cluster) {
        self.search_classes = None;
        self.calm = self.calm.map(|_| 0);
        let by_cell = |column: &Column| matches!(column.scores, RawScores::ByDomain(_)) && !column.reads_open;
        self.fill(cluster, by_cell);
    }
}

/// The cells of a node by the columns that are not settled; `None` if there are too many.
fn keys<'a>(unsettled: impl Iterator<Item = &'a mut Column>, node: NodeId) -> Option<Keys> {
    let mut keys = [0; MAX_KEYS];
    for (key, column) in keys.iter_mut().zip(unsettled) {
        *key = column.key(node.index())?;
    }
    Some(keys)
}
