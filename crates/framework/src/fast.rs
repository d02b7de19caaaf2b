//! The fast form of filters and scores: an answer for all nodes at once, made for a pod's signature and kept up to date.
//!
//! A plugin need not have one. One that has none is asked node by node in every cycle, and is just as right.
//!
//! What has to be asked again after a change depends on what a part reads, so there is a kind of part for each: what a node
//! is, what runs on it, what runs in its topology domain, which nodes are open, or nobody knows what. A kind has the methods
//! that it can answer, and no others.
//!
//! Columns hold whole numbers as `f64` (see [`supercargo_model::columns`]): exact, and what vector units can divide.

use std::sync::Arc;

use supercargo_model::{
    Cluster, Name, NodeId, NodeSet, Pod, bits::Bits, changes::PodChange, columns::LoadColumns,
};

use crate::Status;

/// What a plugin is to pods of one signature.
pub enum Compiled<P> {
    /// Nothing: every node passes, or scores the same.
    Idle,
    /// This.
    Part(P),
    /// It has no fast form for such pods: its own Filter or Score is asked for every pod.
    NoFastForm,
}

/// In a column of open nodes: the node is open.
pub const OPEN: f64 = 0.0;
/// In a column of open nodes: the node is closed. Added to any score it stays below all others.
pub const CLOSED: f64 = f64::NEG_INFINITY;

/// A plugin failed: the cycle must be run on the full path, which tells what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginFailed;

/// A filter for one signature.
pub enum FilterPart {
    /// It looks at what nodes are, and is asked anew only when that changes.
    Fixed(Box<dyn NodeFilter>),
    /// It looks at what nodes are and hold: a node is asked about again when a pod comes to it or leaves it.
    ByNode(Box<dyn NodeFilter>),
    /// It counts pods by topology domain as well.
    ByDomain(Box<dyn DomainFilter>),
    /// Nobody knows what it reads: all open nodes are asked about for every pod.
    Opaque(Box<dyn OpaqueFilter>),
}

impl FilterPart {
    /// As a filter that can be asked about one node.
    pub fn by_node(&self) -> Option<&dyn NodeFilter> {
        match self {
            Self::Fixed(filter) | Self::ByNode(filter) => Some(&**filter),
            Self::ByDomain(filter) => Some(&**filter),
            Self::Opaque(_) => None,
        }
    }
}

/// A filter that can be asked about one node.
pub trait NodeFilter: Send + Sync {
    /// Closes all nodes that do not pass.
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]);

    /// Whether one node passes.
    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool;

    /// What the plugin's Filter says of a node that does not pass.
    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status>;

    /// The same by nothing but what is taken of nodes; `None` if it looks at more than that.
    fn by_load(&self) -> Option<&dyn LoadFilter> {
        None
    }
}

/// A filter that looks at what is taken of nodes, where columns hold that exactly. Whoever does not pass would not pass with more
/// taken, either.
pub trait LoadFilter {
    /// Closes all nodes that do not pass.
    fn close(&self, loads: &LoadColumns, open: &mut [f64]);
}

/// A filter that counts pods by topology domain, and keeps which nodes it closes: [`NodeFilter::close`] counts anew.
pub trait DomainFilter: NodeFilter {
    /// Takes note of a pod that came or left. Whether other nodes than its own have been closed or opened by it.
    fn note(&mut self, cluster: &Cluster, change: &PodChange) -> bool;

    /// A column of the nodes that it closes, by what it has noted; `None` if it closes none.
    fn closed(&self) -> Option<&[f64]>;

    /// Whether no pod matters to it, by what it has noted: its plugin would skip itself.
    fn is_idle(&self) -> bool;
}

/// A filter that must be asked about all nodes for every pod.
pub trait OpaqueFilter: Send + Sync {
    /// Closes all nodes that do not pass. The pod is of the signature that the part was made for, and has a name of its own.
    fn close(&mut self, cluster: &Cluster, pod: &Arc<Pod>, open: &mut [f64]) -> Result<(), PluginFailed>;
}

/// How raw scores become scores of 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalization {
    /// They are already.
    None,
    /// The highest becomes 100.
    Proportional,
    /// The highest becomes 0, and 0 becomes 100.
    Reversed,
    /// The lowest becomes 0, the highest 100.
    MinMax,
    /// 100 × (highest + lowest − score) / highest; a negative score stands for a node that gets 0.
    Inverted,
}

/// Scores by cell: the nodes of a cell score the same. A pod that comes to a zone changes a few cells, not every node of it.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The cell of each node, by place.
    pub of: Vec<u32>,
    /// The raw score of each cell.
    pub raw: Vec<f64>,
}

/// Raw scores that nodes share by the value of a label, but for some that have their own: known without a look at each node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedScores {
    /// A label, and the score of each of its values, by number.
    pub by_value: Option<(Name, Vec<f64>)>,
    /// The score of nodes without that label, or of all if none is named.
    pub otherwise: f64,
    /// The nodes that have a score of their own, each once; whether they are scored or not.
    pub own: Vec<(NodeId, f64)>,
    /// Many nodes that share another score, whatever labels they have; none of them has one of its own.
    pub group: Option<(NodeSet, f64)>,
}

impl SharedScores {
    /// Labels with more values than this are not shared by many nodes.
    pub const MAX_VALUES: usize = 64;

    /// Fills a column with them.
    pub fn fill(&self, cluster: &Cluster, column: &mut [f64]) {
        column.fill(self.otherwise);
        if let Some((key, by_value)) = &self.by_value
            && let Some(label) = cluster.label_columns().get(key)
        {
            for (score, number) in column.iter_mut().zip(label.numbers()) {
                *score = by_value.get(*number as usize).copied().unwrap_or(self.otherwise);
            }
        }
        if let Some((nodes, score)) = &self.group {
            nodes.iter().for_each(|node| column[node.index()] = *score);
        }
        self.own.iter().for_each(|(node, score)| column[node.index()] = *score);
    }
}

/// Which nodes are scored.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    /// How many.
    pub count: usize,
    /// Their places; all nodes without it.
    pub places: Option<&'a Bits>,
}

impl Scored<'_> {
    /// Whether a node is.
    #[inline]
    pub fn includes(self, node: NodeId) -> bool {
        self.places.is_none_or(|places| places.contains(node.index()))
    }

    /// Which numbers the scored nodes have that count. `there` is how many there are at most: once so many were met, nobody else is
    /// looked at.
    pub fn numbers_of(
        places: &Bits,
        there: usize,
        number: impl Fn(NodeId) -> Option<usize>,
        range: usize,
    ) -> Vec<bool> {
        let mut met = vec![false; range];
        let numbers = places.iter().filter_map(|place| number(NodeId::from_index(place)));
        let new = numbers.filter(|number| !std::mem::replace(&mut met[*number], true));
        new.take(there).for_each(drop);
        met
    }
}

/// A score for one signature.
pub struct ScorePart {
    /// Where raw scores come from.
    pub scores: RawScores,
    /// How they become scores of 0 to 100.
    pub normalization: Normalization,
}

/// Where raw scores come from.
pub enum RawScores {
    /// Every node has this one.
    Constant(f64),
    /// They follow from what nodes are, and are worked out when the part is made: by place.
    Fixed(Vec<f64>),
    /// They follow from what nodes are, and many nodes share them.
    Shared(SharedScores),
    /// They follow from what a node is and holds.
    ByNode(Box<dyn NodeScore>),
    /// They follow from the pods in a node's topology domains.
    ByDomain(Box<dyn DomainScore>),
    /// They follow from what nodes are, and from which of them are open.
    AmongOpen(Box<dyn OpenScore>),
    /// Nobody knows what they follow from: they are asked for anew for every pod.
    Opaque(Box<dyn OpaqueScore>),
}

impl RawScores {
    /// Already scores of 0 to 100.
    pub fn in_range(self) -> ScorePart {
        self.normalized(Normalization::None)
    }

    /// To be brought to 0 to 100 in this way.
    pub fn normalized(self, normalization: Normalization) -> ScorePart {
        ScorePart { scores: self, normalization }
    }
}

/// Scores that follow from what a node is and holds.
pub trait NodeScore: Send + Sync {
    /// Fills the column from scratch, for all places. Closed nodes may get anything finite.
    fn fill(&mut self, cluster: &Cluster, column: &mut [f64]);

    /// The raw score of one node.
    fn score(&self, cluster: &Cluster, node: NodeId) -> f64;

    /// The same by nothing but what is taken of nodes; `None` if it looks at more than that.
    fn by_load(&self) -> Option<&dyn LoadScore> {
        None
    }
}

/// Scores that follow from what is taken of nodes, where columns hold that exactly.
pub trait LoadScore {
    /// Fills a column with the raw scores of nodes.
    fn fill(&self, loads: &LoadColumns, column: &mut [f64]);

    /// Between which raw scores nodes lie of which at least so much is taken, and at most so much; they have the same in all.
    fn bounds(&self, least: &LoadColumns, most: &LoadColumns, lowest: &mut [f64], highest: &mut [f64]);
}

/// Scores that follow from the pods in a node's topology domains.
pub trait DomainScore: Send + Sync {
    /// Fills the column from scratch, for all places. Closed nodes may get anything finite.
    fn fill(&mut self, cluster: &Cluster, open: &[f64], column: &mut [f64]);

    /// Takes note of a pod that came or left. Whether raw scores have changed with it.
    fn note(&mut self, cluster: &Cluster, change: &PodChange, column: &mut [f64]) -> bool;

    /// Updates the column after all changes were noted, where that was not done then.
    fn settle(&mut self, cluster: &Cluster, column: &mut [f64]);

    /// Goes over from the column to cells, after a fill: from then on noting and settling keep the cells up to date
    /// and leave the column as it was, until the next fill. `false` if too many nodes differ.
    fn use_cells(&mut self, cluster: &Cluster) -> bool;

    /// The cells, if it keeps them; it may give them up when too many nodes differ.
    fn cells(&self) -> Option<&Cells>;

    /// Whether all raw scores are 0 for now.
    fn is_silent(&self) -> bool;

    /// Whether all nodes have the same raw score, whichever are open: it is found out without a column.
    fn is_uniform(&self, _: &Cluster) -> bool {
        false
    }

    /// The raw scores where these nodes are scored, if many nodes share them; `None` if a column is needed.
    fn shared(&self, _: &Cluster, _: Scored<'_>) -> Option<SharedScores> {
        None
    }

    /// Whether the raw scores also change with which nodes are open.
    fn reads_open(&self) -> bool;

    /// Works out the scores of the cells, if it keeps them, as if only so many nodes were open, all of them in these cells and
    /// some in each. Needed only where raw scores change with which nodes are open.
    fn settle_among(&mut self, nodes: usize, cells: &mut dyn Iterator<Item = u32>);
}

/// Scores that follow from which nodes are open.
pub trait OpenScore: Send + Sync {
    /// Fills the column, for all places. Closed nodes may get anything finite.
    fn fill(&mut self, cluster: &Cluster, open: &[f64], column: &mut [f64]);
}

/// Scores that must be asked for anew for every pod.
pub trait OpaqueScore: Send + Sync {
    /// Fills the column, for all places. Closed nodes may get anything finite. The pod is of the signature that the part was
    /// made for, and has a name of its own.
    fn fill(
        &mut self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        open: &[f64],
        column: &mut [f64],
    ) -> Result<(), PluginFailed>;
}

/// Whether the pods of a signature name the same claims. Those of a StatefulSet are alike but for the names of their claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// They do, or name none.
    Same,
    /// Each has claims of its own.
    Differ,
}

/// A filter plugin that has a fast form.
pub trait FastFilter: Send + Sync {
    /// The filter for pods like this one.
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart>;

    /// Whether it looks at the claims to volumes that a pod names. Where pods are alike but for those, it is compiled for each of
    /// them, and others once for all, for a pod whose claims have no names.
    fn reads_claims(&self) -> bool {
        false
    }
}

/// A score plugin that has a fast form.
pub trait FastScore: Send + Sync {
    /// The score for pods like this one.
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart>;
}
