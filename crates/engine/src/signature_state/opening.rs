//! Which nodes are open: what the filters say, put together.

use supercargo_framework::{
    fast::{CLOSED, DomainFilter, FilterPart, OPEN},
    vector::vectorized,
};
use supercargo_model::{Cluster, Name, NodeId};

use super::{FEW_MOVED, SignatureState};

/// Whom changes opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// Nobody.
    Nobody,
    /// Some of the touched nodes, and those that are listed in [`SignatureState::moved`].
    Few,
    /// So many that they are not listed.
    Many,
}

impl SignatureState {
    /// Asks the filters that look only at what nodes are about all nodes.
    pub(super) fn find_fixed(&mut self, cluster: &Cluster) {
        self.fixed.clear();
        for (_, filter) in &mut self.filters {
            if let FilterPart::Fixed(filter) = filter {
                if self.fixed.is_empty() {
                    self.fixed.extend_from_slice(&cluster.columns().there);
                }
                filter.close(cluster, &mut self.fixed);
            }
        }
    }

    /// Asks all other filters about all nodes.
    pub(super) fn refilter(&mut self, cluster: &Cluster) {
        self.refusals = None;
        self.room = None;
        self.by_node.clear();
        self.by_node.extend_from_slice(fixed(&self.fixed, cluster));
        for (_, filter) in &mut self.filters {
            if let FilterPart::ByNode(filter) = filter {
                filter.close(cluster, &mut self.by_node);
            }
        }
        self.open.clear();
        self.open.extend_from_slice(&self.by_node);
        for (_, filter) in &mut self.filters {
            match filter {
                FilterPart::Fixed(_) | FilterPart::ByNode(_) => {}
                FilterPart::ByDomain(filter) => filter.close(cluster, &mut self.open),
                FilterPart::Opaque(filter) => {
                    self.failed |= filter.close(cluster, &self.pod, &mut self.open).is_err();
                }
            }
        }
        self.count_open();
    }

    fn count_open(&mut self) {
        self.open_count = vectorized(
            #[inline(always)]
            || self.open.iter().filter(|open| **open == OPEN).count(),
        );
    }

    /// Finds out which of the touched nodes are open, and of the others if some may have been opened or closed.
    pub(super) fn update_open(&mut self, cluster: &Cluster, elsewhere: bool) -> Moved {
        self.moved.clear();
        let mut moved = Moved::Nobody;
        let fixed = fixed(&self.fixed, cluster);
        for node in &self.touched {
            let i = node.index();
            let (mut by_node, mut by_domain) = (fixed[i], OPEN);
            for (_, filter) in &self.filters {
                match filter {
                    FilterPart::ByNode(filter) if by_node == OPEN && !filter.passes(cluster, *node) => {
                        by_node = CLOSED;
                    }
                    FilterPart::ByDomain(filter) => {
                        if let Some(closed) = filter.closed() {
                            by_domain += closed[i];
                        }
                    }
                    _ => {}
                }
            }
            self.by_node[i] = by_node;
            let open = by_node + by_domain;
            if open != self.open[i] && !elsewhere {
                moved = Moved::Few;
                self.open[i] = open;
                self.open_count = if open == OPEN { self.open_count + 1 } else { self.open_count - 1 };
            }
        }
        if elsewhere {
            // Where all are closed, other reasons may hold for any of them.
            self.refusals = None;
            self.room = None;
            return self.put_together(cluster);
        }
        if self.refusals.is_some() {
            self.unsure.extend_from_slice(&self.touched);
        }
        if let Some(room) = &mut self.room {
            room.note(&self.touched);
        }
        moved
    }

    /// Finds out which nodes are open, from which nodes each filter closes; opaque ones are asked.
    fn put_together(&mut self, cluster: &Cluster) -> Moved {
        std::mem::swap(&mut self.spare, &mut self.open);
        let Self { open, by_node, spare, moved, .. } = self;
        open.clear();
        open.extend_from_slice(by_node);
        for closed in domain_filters(&self.filters).filter_map(DomainFilter::closed) {
            vectorized(
                #[inline(always)]
                || open.iter_mut().zip(closed).for_each(|(open, closed)| *open += closed),
            );
        }
        for (_, filter) in &mut self.filters {
            if let FilterPart::Opaque(filter) = filter {
                self.failed |= filter.close(cluster, &self.pod, open).is_err();
            }
        }
        let others: usize = vectorized(
            #[inline(always)]
            || open.iter().zip(spare.iter()).filter(|(open, before)| open != before).count(),
        );
        if others <= FEW_MOVED {
            let pairs = open.iter().zip(spare.iter()).enumerate();
            moved.extend(
                pairs
                    .filter(|(_, (open, before))| open != before)
                    .map(|(place, _)| NodeId::from_index(place))
                    .take(others),
            );
        }
        self.count_open();
        match others {
            0 => Moved::Nobody,
            1..=FEW_MOVED => Moved::Few,
            _ => Moved::Many,
        }
    }
}

/// The nodes that pass the filters which look only at what nodes are: all that are there, where there are no such filters.
fn fixed<'a>(fixed: &'a [f64], cluster: &'a Cluster) -> &'a [f64] {
    if fixed.is_empty() { &cluster.columns().there } else { fixed }
}

/// The filters that keep themselves up to date with the pods that come and leave.
fn domain_filters(filters: &[(Name, FilterPart)]) -> impl Iterator<Item = &dyn DomainFilter> {
    filters.iter().filter_map(|(_, filter)| match filter {
        FilterPart::ByDomain(filter) => Some(&**filter),
        _ => None,
    })
}
