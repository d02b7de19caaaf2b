//! The fast form of filters and scores: an answer for all nodes at once, made for a pod's shape and kept up to date.
//!
//! A plugin need not have one. One that has none is asked node by node in every cycle, and is just as right.
//!
//! Columns hold whole numbers as `f64` (see [`supercargo_model::columns`]): exact, and what vector units can divide.

use std::sync::Arc;

use supercargo_model::{Cluster, NodeId, Pod, changes::PodChange};

use crate::Status;

/// What a plugin has to say about pods of one shape.
pub enum Compiled<P: ?Sized> {
    /// Nothing: every node passes, or scores the same.
    Idle,
    /// This.
    Part(Box<P>),
    /// It must be asked in the slow way.
    Slow,
}

/// What has to be done again after a pod came or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redo {
    /// Nothing.
    Nothing,
    /// The answer for the pod's node.
    Node,
    /// The answers for all nodes.
    All,
}

/// In a column of open nodes: the node is open.
pub const OPEN: f64 = 0.0;
/// In a column of open nodes: the node is closed. Added to any score it stays below all others.
pub const CLOSED: f64 = f64::NEG_INFINITY;

/// A filter for one shape.
pub trait FilterPart: Send + Sync {
    /// Closes all nodes that do not pass.
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]);

    /// Whether one node passes.
    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool;

    /// What the plugin's Filter says of a node that does not pass; `None` if only that can tell.
    fn refusal(&self, _cluster: &Cluster, _node: NodeId) -> Option<Status> {
        None
    }

    /// Takes note of a pod that came or left. What is read from the node itself need not be noted: the engine asks
    /// about it again anyway.
    fn note(&mut self, _cluster: &Cluster, _change: &PodChange) -> Redo {
        Redo::Nothing
    }

    /// Whether the answer changes with the pods on the node. If not, it is only asked for when the node changes.
    fn reads_load(&self) -> bool {
        true
    }

    /// How it is asked.
    fn asked(&self) -> Asked {
        Asked::WhenChanged
    }

    /// The pod that it is asked about next: of the same shape as the one that the part was made for, but of another name.
    /// Only told if something is asked anew for every pod.
    fn meet(&mut self, _pod: &Arc<Pod>) {}
}

/// How often a part must be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Only about what has changed.
    WhenChanged,
    /// About everything, for every pod: nobody knows what it reads.
    Always,
    /// It failed: the whole cycle must be run in the slow way, which tells what is wrong.
    Failed,
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

/// A score for one shape.
pub trait ScorePart: Send + Sync {
    /// Fills the column from scratch, for all places. Closed nodes may get anything finite.
    fn fill(&mut self, cluster: &Cluster, open: &[f64], column: &mut [f64]);

    /// The raw score of one node whose pods have changed. Only asked of parts that read the load.
    fn score(&self, cluster: &Cluster, node: NodeId) -> f64;

    /// Takes note of a pod that came or left. `All` means that more of the column has changed than the pod's node.
    fn note(&mut self, _cluster: &Cluster, _change: &PodChange, _column: &mut [f64]) -> Redo {
        Redo::Nothing
    }

    /// Mends the column after all changes were noted, if it was not mended then.
    fn settle(&mut self, _cluster: &Cluster, _column: &mut [f64]) {}

    /// Goes over from the column to cells, after a fill: from then on noting and settling keep the cells up to date
    /// and leave the column as it was, until the next fill. `false` if too many nodes differ.
    fn use_cells(&mut self, _cluster: &Cluster) -> bool {
        false
    }

    /// The cells, if it keeps them; it may give them up when too many nodes differ.
    fn cells(&self) -> Option<&Cells> {
        None
    }

    /// The raw score of every node, if it is the same for all and stays so: then there is no column.
    fn constant(&self) -> Option<f64> {
        None
    }

    /// Whether all raw scores are 0 for now.
    fn is_silent(&self) -> bool {
        false
    }

    /// How it is asked.
    fn asked(&self) -> Asked {
        Asked::WhenChanged
    }

    /// The pod that it is asked about next: of the same shape as the one that the part was made for, but of another name.
    /// Only told if something is asked anew for every pod.
    fn meet(&mut self, _pod: &Arc<Pod>) {}

    /// How its scores become scores of 0 to 100.
    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    /// Whether the raw score changes with the pods on the node.
    fn reads_load(&self) -> bool {
        false
    }

    /// Whether the raw scores change with which nodes are open.
    fn reads_open(&self) -> bool {
        false
    }
}

/// A filter plugin that has a fast form.
pub trait FastFilter: Send + Sync {
    /// The filter for pods like this one.
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn FilterPart>;
}

/// A score plugin that has a fast form.
pub trait FastScore: Send + Sync {
    /// The score for pods like this one.
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart>;
}
