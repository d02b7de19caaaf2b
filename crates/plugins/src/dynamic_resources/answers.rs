//! Whether nodes have the devices that claims ask for, as far as that is known. What claims of the same kind ask for is the
//! same, so that it is worked out once and kept until the devices of a node change.

use std::sync::{Arc, Mutex};

use supercargo_framework::{
    Code, Status,
    fast::{CLOSED, OPEN},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, NodeId, NodeInfo, Pod,
    changes::ChangeLogId,
    devices::{DeviceChange, ResourceClaim},
    pod::PodSpec,
};

use super::{allocator::SelectorCache, cycle::PodClaims, extended::is_in_memory};

/// How many kinds of claims are kept, and about how much memory they may take together.
const MOST_KINDS: usize = 64;
const FEWEST_KINDS: usize = 4;
const MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// What is known, by what claims ask for.
#[derive(Default)]
pub(super) struct Answers {
    /// The one that was asked for last comes first.
    kept: Vec<KnownNodes>,
}

/// What is known of the nodes for claims that ask for the same.
pub(super) struct KnownNodes {
    claims: Vec<Arc<ResourceClaim>>,
    /// Whose extended resources, and the claim for them, if there is one.
    extended: Option<(Arc<PodSpec>, Arc<ResourceClaim>)>,
    history: ChangeLogId,
    invalidations: u64,
    /// How many changes of devices it knows of.
    changes: u64,
    /// By place: which nodes are open.
    open: Vec<f64>,
    /// By place: points for alternatives.
    points: Vec<f64>,
    answers: Vec<Answer>,
    /// Places that nothing is known of.
    unknown: Vec<NodeId>,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq)]
enum Answer {
    #[default]
    Unknown,
    Fits,
    /// Why it will not do, in words that hold for all claims that ask for the same.
    Lacks(Status),
}

/// How a pod's claims are looked at.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) pod: &'a Pod,
    pub(super) claims: &'a PodClaims,
    pub(super) selectors: &'a Mutex<SelectorCache>,
}

impl Answers {
    /// What is known for a pod's claims, brought up to date.
    pub(super) fn of(&mut self, question: Question<'_>) -> &mut KnownNodes {
        match self.kept.iter().position(|known| known.is_about(question)) {
            Some(place) => self.kept[..=place].rotate_right(1),
            None => {
                self.kept.truncate(most_kinds(question.cluster) - 1);
                self.kept.insert(0, KnownNodes::new(question));
            }
        }
        let known = &mut self.kept[0];
        known.catch_up(question.cluster);
        known
    }
}

fn most_kinds(cluster: &Cluster) -> usize {
    let bytes_of_one = cluster.columns().len() * (2 * size_of::<f64>() + size_of::<Answer>());
    (MEMORY_BYTES / bytes_of_one.max(1)).clamp(FEWEST_KINDS, MOST_KINDS)
}

impl KnownNodes {
    fn new(Question { cluster, pod, claims, .. }: Question<'_>) -> Self {
        let mut known = Self {
            claims: asked(claims).cloned().collect(),
            extended: claims.extended().map(|claim| (pod.spec.clone(), claim.clone())),
            history: cluster.devices().changes().history().mark(),
            invalidations: 0,
            changes: 0,
            open: Vec::new(),
            points: Vec::new(),
            answers: Vec::new(),
            unknown: Vec::new(),
        };
        known.start(cluster);
        known
    }

    fn is_about(&self, Question { cluster, pod, claims, .. }: Question<'_>) -> bool {
        let alike = |one: &Arc<ResourceClaim>, other: &Arc<ResourceClaim>| {
            Arc::ptr_eq(one, other) || one.requests == other.requests && one.constraints == other.constraints
        };
        let same_extended = match (&self.extended, claims.extended()) {
            (None, None) => true,
            (Some((spec, one)), Some(other)) => {
                let alike = Arc::ptr_eq(one, other) || is_in_memory(one) && is_in_memory(other);
                alike && Arc::ptr_eq(spec, &pod.spec)
            }
            _ => false,
        };
        self.history.is(cluster.devices().changes().history())
            && same_extended
            && self.claims.len() == asked(claims).count()
            && self.claims.iter().zip(asked(claims)).all(|(one, other)| alike(one, other))
    }

    /// Forgets everything.
    fn start(&mut self, cluster: &Cluster) {
        let places = cluster.columns().len();
        self.invalidations = cluster.changes().invalidations();
        self.changes = cluster.devices().changes().count();
        self.open.clear();
        self.open.resize(places, CLOSED);
        self.points.clear();
        self.points.resize(places, 0.0);
        self.answers.clear();
        self.answers.resize(places, Answer::Unknown);
        self.unknown.clear();
        self.unknown.extend(cluster.columns().live.iter());
    }

    /// Forgets what may have changed.
    fn catch_up(&mut self, cluster: &Cluster) {
        let changes = cluster.devices().changes();
        if self.invalidations != cluster.changes().invalidations() {
            return self.start(cluster);
        }
        if self.changes == changes.count() {
            return;
        }
        let Some(missed) = changes.since(self.changes) else { return self.start(cluster) };
        for change in missed {
            match change {
                DeviceChange::Everywhere => return self.start(cluster),
                DeviceChange::OnNode(name) => {
                    let Some(node) = cluster.node(name) else { continue };
                    if std::mem::take(&mut self.answers[node.id.index()]) != Answer::Unknown {
                        self.unknown.push(node.id);
                    }
                }
            }
        }
        self.changes = changes.count();
    }

    /// Whether a node has what the claims ask for.
    ///
    /// # Errors
    /// Why it has not, or why that cannot be told.
    pub(super) fn check(&mut self, question: Question<'_>, node: &NodeInfo) -> Result<(), Status> {
        let place = node.id.index();
        if self.answers[place] == Answer::Unknown {
            // What was found about a pod's own node may differ from what the cluster has: only the pods on it do.
            self.ask(question, node)?;
            self.unknown.retain(|unknown| *unknown != node.id);
        }
        match &self.answers[place] {
            Answer::Lacks(status) => Err(status.clone()),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, question: Question<'_>, node: &NodeInfo) -> Result<(), Status> {
        let Question { cluster, pod, claims, selectors } = question;
        let place = node.id.index();
        let found = claims.allocate(cluster.devices(), pod, node, selectors, &mut || "".into());
        let (answer, open, points) = match found {
            Ok(found) => (Answer::Fits, OPEN, found.map_or(0, |found| claims.points(&found))),
            // What is wrong with a claim is told with its name.
            Err(status) if status.code == Code::Error => return Err(status),
            Err(status) => (Answer::Lacks(status), CLOSED, 0),
        };
        self.answers[place] = answer;
        self.open[place] = open;
        self.points[place] = points as f64;
        Ok(())
    }

    /// Closes all nodes that lack what the claims ask for.
    pub(super) fn close(&mut self, question: Question<'_>, open: &mut [f64]) -> Result<(), Status> {
        let mut unknown = std::mem::take(&mut self.unknown);
        let mut failed = None;
        unknown.retain(|node| {
            if failed.is_some() || open[node.index()] != OPEN {
                return true;
            }
            failed = self.ask(question, question.cluster.node_at(*node)).err();
            failed.is_some()
        });
        self.unknown = unknown;
        if let Some(status) = failed {
            return Err(status);
        }
        let known = &self.open;
        // Open is nothing, and closed is infinitely little.
        vectorized(
            #[inline(always)]
            || open.iter_mut().zip(known).for_each(|(open, known)| *open += known),
        );
        Ok(())
    }

    /// The points of all nodes that are known to be open.
    pub(super) fn points(&self) -> &[f64] {
        &self.points
    }
}

/// The claims that are to be allocated, but for the one that differs from node to node.
fn asked(claims: &PodClaims) -> impl Iterator<Item = &Arc<ResourceClaim>> {
    claims.claims[..claims.named].iter().filter(|claim| claim.allocation.is_none())
}
