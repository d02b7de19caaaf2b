//! Sums by topology domain, and the few cells of nodes that they tell apart.
//!
//! Nodes with the same domains and the same sum of their own are in one cell. A pod that comes to a zone changes one sum,
//! whatever the number of nodes there.

use std::sync::Arc;

use supercargo_framework::fast::Cells;
use supercargo_model::{
    Cluster, Name, NodeId, Pod,
    bits::Bits,
    label_columns::{ABSENT, LabelColumn},
};

/// With more cells than this, looking at each node is as good.
const MAX_CELLS: usize = 256;

/// The sums of one topology.
struct Topology {
    key: Name,
    /// The domain of each node, by place.
    domain_of: Vec<u32>,
    by_domain: Vec<f64>,
    /// Every domain has one node, as host names have.
    is_own: bool,
}

impl Topology {
    fn new(cluster: &Cluster, key: &Name) -> Self {
        let column = cluster.label_columns().get(key);
        let is_single =
            |column: &LabelColumn| (0..column.range() as u32).all(|domain| column.nodes(domain).len() <= 1);
        let mut domain_of = column.map(|column| column.numbers().to_vec()).unwrap_or_default();
        domain_of.resize(cluster.columns().len(), ABSENT);
        Self {
            key: key.clone(),
            domain_of,
            by_domain: vec![0.0; column.map_or(0, LabelColumn::range)],
            is_own: column.is_some_and(is_single),
        }
    }

    fn sum(&self, node: usize) -> f64 {
        self.by_domain.get(self.domain_of[node] as usize).copied().unwrap_or(0.0)
    }
}

/// Nodes that have the same domains in all wide topologies.
struct Area {
    /// One of them.
    sample: usize,
    cells: Vec<u32>,
}

/// What the nodes of a cell share.
struct Cell {
    area: u32,
    /// The sums of the topologies that are a node's own.
    own: Vec<f64>,
    nodes: u32,
}

/// The sums of several topologies.
pub(crate) struct DomainSums {
    topologies: Vec<Topology>,
    area_of: Vec<u32>,
    areas: Vec<Area>,
    list: Vec<Cell>,
    cells: Cells,
    /// The areas that were looked at last.
    looked_at: Vec<u32>,
    spare_sums: Vec<f64>,
    spare_domains: Vec<u32>,
}

impl DomainSums {
    /// Sums of zero, by some keys.
    pub(crate) fn new<'a>(cluster: &Cluster, keys: impl Iterator<Item = &'a Name>) -> Self {
        Self {
            topologies: keys.map(|key| Topology::new(cluster, key)).collect(),
            area_of: Vec::new(),
            areas: Vec::new(),
            list: Vec::new(),
            cells: Cells::default(),
            looked_at: Vec::new(),
            spare_sums: Vec::new(),
            spare_domains: Vec::new(),
        }
    }

    /// The topology with a key.
    pub(crate) fn topology(&self, key: &str) -> Option<usize> {
        self.topologies.iter().position(|topology| &*topology.key == key)
    }

    /// Whether every domain of a topology has one node.
    pub(crate) fn is_own(&self, topology: usize) -> bool {
        self.topologies[topology].is_own
    }

    /// Sets the sum of a node's domain, before nodes are put into cells.
    pub(crate) fn set(&mut self, topology: usize, node: NodeId, sum: f64) {
        let topology = &mut self.topologies[topology];
        let domain = topology.domain_of[node.index()];
        if domain != ABSENT {
            topology.by_domain[domain as usize] = sum;
        }
    }

    /// Adds to the sum of a node's domain, before nodes are put into cells.
    pub(crate) fn add(&mut self, topology: usize, node: NodeId, by: f64) {
        let topology = &mut self.topologies[topology];
        let domain = topology.domain_of[node.index()];
        if domain != ABSENT {
            topology.by_domain[domain as usize] += by;
        }
    }

    /// Puts all nodes into cells; `None` if there are too many.
    pub(crate) fn group(&mut self, cluster: &Cluster) -> Option<()> {
        let places = cluster.columns().len();
        self.area_of = vec![0; places];
        self.cells.of = vec![0; places];
        // Places without a node go with the first node: their cell is never asked for.
        for node in cluster.columns().live.iter() {
            let area = self.find_area(node.index())?;
            self.area_of[node.index()] = area;
            self.enter(node.index())?;
        }
        Some(())
    }

    /// Adds to the sum of a node's domain; `None` if that makes too many cells.
    pub(crate) fn change(&mut self, topology: usize, node: NodeId, by: f64) -> Option<()> {
        self.add(topology, node, by);
        if self.topologies[topology].is_own {
            let cell = self.cells.of[node.index()];
            self.list[cell as usize].nodes -= 1;
            self.enter(node.index())?;
        }
        Some(())
    }

    /// Works out the score of each cell from its sums, in the order of the topologies.
    pub(crate) fn settle(&mut self, score: impl Fn(&[f64]) -> f64) {
        let Self { topologies, areas, list, cells, spare_sums, .. } = self;
        for (cell, raw) in list.iter().zip(&mut cells.raw) {
            let mut own = cell.own.iter();
            let sample = areas[cell.area as usize].sample;
            spare_sums.clear();
            spare_sums.extend(topologies.iter().map(|topology| match topology.is_own {
                true => own.next().copied().unwrap_or(0.0),
                false => topology.sum(sample),
            }));
            *raw = score(spare_sums);
        }
    }

    /// Takes note of the areas that some cells are in.
    pub(crate) fn look_at(&mut self, cells: impl Iterator<Item = u32>) {
        self.looked_at.clear();
        for area in cells.map(|cell| self.list[cell as usize].area) {
            if !self.looked_at.contains(&area) {
                self.looked_at.push(area);
            }
        }
    }

    /// How many domains of a topology are in the areas that were looked at last.
    pub(crate) fn domains_among(&mut self, topology: usize) -> usize {
        let Self { topologies, areas, looked_at, spare_domains, .. } = self;
        let domain = |area: &u32| topologies[topology].domain_of[areas[*area as usize].sample];
        spare_domains.clear();
        spare_domains.extend(looked_at.iter().map(domain));
        spare_domains.sort_unstable();
        spare_domains.dedup();
        spare_domains.len()
    }

    /// The cells.
    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    fn find_area(&mut self, node: usize) -> Option<u32> {
        let wide = || self.topologies.iter().filter(|topology| !topology.is_own);
        let same =
            |area: &Area| wide().all(|topology| topology.domain_of[node] == topology.domain_of[area.sample]);
        if let Some(area) = self.areas.iter().position(same) {
            return Some(area as u32);
        }
        (self.areas.len() < MAX_CELLS).then(|| {
            self.areas.push(Area { sample: node, cells: Vec::new() });
            self.areas.len() as u32 - 1
        })
    }

    /// Puts a node into the cell with its sums.
    fn enter(&mut self, node: usize) -> Option<()> {
        let Self { topologies, area_of, areas, list, cells, .. } = self;
        let own = || topologies.iter().filter(|topology| topology.is_own).map(|topology| topology.sum(node));
        let area = area_of[node];
        let in_area = &mut areas[area as usize].cells;
        let same = |cell: &&u32| list[**cell as usize].own.iter().copied().eq(own());
        let cell = match in_area.iter().find(same).copied() {
            Some(cell) => cell,
            None => match in_area.iter().find(|cell| list[**cell as usize].nodes == 0).copied() {
                // Nobody is left in that one.
                Some(empty) => {
                    for (old, new) in list[empty as usize].own.iter_mut().zip(own()) {
                        *old = new;
                    }
                    empty
                }
                None if list.len() == MAX_CELLS => return None,
                None => {
                    let cell = list.len() as u32;
                    list.push(Cell { area, own: own().collect(), nodes: 0 });
                    cells.raw.push(0.0);
                    in_area.push(cell);
                    cell
                }
            },
        };
        list[cell as usize].nodes += 1;
        cells.of[node] = cell;
        Some(())
    }
}

/// The sums of what nodes have, each node once.
pub(crate) fn sum_by_node(parts: impl Iterator<Item = (NodeId, f64)>) -> Vec<(NodeId, f64)> {
    let mut sums: Vec<(NodeId, f64)> = parts.collect();
    let mut seen = Bits::default();
    let mut is_first = |node: NodeId| {
        let is_first = !seen.contains(node.index());
        seen.insert(node.index());
        is_first
    };
    if sums.iter().all(|(node, _)| is_first(*node)) {
        // As almost always; to find that out is less than to sort.
        return sums;
    }
    sums.sort_unstable_by_key(|(node, _)| *node);
    sums.dedup_by(|(node, part), (before, sum)| {
        let is_same = node == before;
        if is_same {
            *sum += *part;
        }
        is_same
    });
    sums
}

/// What was worked out for the pod that was seen last: it holds for all pods of its template.
pub(crate) struct Remembered<T> {
    of: Option<Arc<Pod>>,
    what: T,
}

impl<T: Default> Default for Remembered<T> {
    fn default() -> Self {
        Self { of: None, what: T::default() }
    }
}

impl<T> Remembered<T> {
    /// What was worked out, if it holds for this pod.
    pub(crate) fn get(&self, pod: &Pod) -> Option<&T> {
        let of = self.of.as_ref()?;
        let same = Arc::ptr_eq(&of.spec, &pod.spec)
            && of.terminating == pod.terminating
            && of.namespace == pod.namespace;
        same.then_some(&self.what)
    }

    /// Remembers what was worked out for a pod.
    pub(crate) fn set(&mut self, pod: &Arc<Pod>, what: T) -> &T {
        self.of = Some(pod.clone());
        self.what = what;
        &self.what
    }
}
