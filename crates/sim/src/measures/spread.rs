//! Whether placements break the spread constraints of pods.

use std::{collections::HashMap, sync::Arc};

use supercargo_model::{
    Cluster, Name, Node, Pod, PodSpec,
    pod::{NodeInclusionPolicy, SpreadConstraint, WhenUnsatisfiable},
    selector::{Requirement, Selector},
};

use super::mix::{meets_node_affinity, tolerates};

/// Which domain each node is in, for one constraint of one spec.
struct Domains {
    /// By the node's place.
    of_node: HashMap<usize, usize>,
    count: usize,
}

/// Counts the constraints that placements break: the pods' own ones, whether they must hold or should.
#[derive(Default)]
pub struct SpreadWatch {
    /// By the spec's address, which the spec that is kept beside makes unique.
    domains: HashMap<usize, (Arc<PodSpec>, Vec<Domains>)>,
    /// The nodes for which the domains hold.
    nodes: Vec<Arc<Node>>,
}

impl SpreadWatch {
    /// How many of a pod's constraints its place breaks, right after it was put there.
    pub fn broken_by(&mut self, cluster: &Cluster, pod: &Pod, node: &Name) -> usize {
        let Some(place) = cluster.node(node).filter(|_| !pod.spec.spread_constraints.is_empty()) else {
            return 0;
        };
        self.renew(cluster);
        let domains = self.domains.entry(Arc::as_ptr(&pod.spec) as usize).or_insert_with(|| {
            let all = pod.spec.spread_constraints.iter();
            (pod.spec.clone(), all.map(|constraint| Domains::new(cluster, &pod.spec, constraint)).collect())
        });
        let constraints = pod.spec.spread_constraints.iter().zip(&domains.1);
        constraints
            .filter(|(constraint, domains)| domains.are_broken(cluster, pod, constraint, place.id.index()))
            .count()
    }

    /// Domains follow from nodes.
    fn renew(&mut self, cluster: &Cluster) {
        let known = self.nodes.len() == cluster.node_count()
            && self.nodes.iter().zip(cluster.nodes()).all(|(known, info)| Arc::ptr_eq(known, &info.node));
        if !known {
            self.domains.clear();
            self.nodes = cluster.nodes().map(|info| info.node.clone()).collect();
        }
    }
}

impl Domains {
    fn new(cluster: &Cluster, spec: &PodSpec, constraint: &SpreadConstraint) -> Self {
        let (mut numbers, mut of_node): (HashMap<&Name, usize>, _) = (HashMap::new(), HashMap::new());
        let labelled = |node: &Node| {
            spec.spread_constraints.iter().all(|constraint| node.labels.has(&constraint.topology_key))
        };
        for info in
            cluster.nodes().filter(|info| labelled(&info.node) && counts(&info.node, spec, constraint))
        {
            if let Some(value) = info.node.labels.get(&constraint.topology_key) {
                let next = numbers.len();
                of_node.insert(info.id.index(), *numbers.entry(value).or_insert(next));
            }
        }
        Self { of_node, count: numbers.len() }
    }

    /// A node that is in no domain breaks nothing: nobody could tell how uneven it is.
    fn are_broken(&self, cluster: &Cluster, pod: &Pod, constraint: &SpreadConstraint, place: usize) -> bool {
        let Some(&here) = self.of_node.get(&place) else { return false };
        let selector = selector(pod, constraint);
        let mut pods = vec![0_i64; self.count];
        let classes = cluster.groups().selected(&selector);
        for class in classes.filter(|class| class.namespace == pod.namespace && !class.terminating) {
            for (node, count) in class.nodes() {
                if let Some(&domain) = self.of_node.get(&node.index()) {
                    pods[domain] += i64::from(count);
                }
            }
        }
        let after = pods[here];
        pods[here] -= i64::from(selector.matches(&pod.spec.labels));
        let hard = constraint.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule;
        let min_domains = constraint.min_domains.filter(|_| hard).unwrap_or(1);
        let too_few = (self.count as i64) < i64::from(min_domains);
        let fewest = if too_few { 0 } else { pods.iter().copied().min().unwrap_or(0) };
        after - fewest > i64::from(constraint.max_skew)
    }
}

/// Whether a node's domain counts.
fn counts(node: &Node, spec: &PodSpec, constraint: &SpreadConstraint) -> bool {
    let honours = |policy: Option<NodeInclusionPolicy>, by_default| {
        policy.unwrap_or(by_default) == NodeInclusionPolicy::Honor
    };
    (!honours(constraint.node_affinity_policy, NodeInclusionPolicy::Honor) || meets_node_affinity(node, spec))
        && (!honours(constraint.node_taints_policy, NodeInclusionPolicy::Ignore) || tolerates(node, spec))
}

/// Which pods a constraint counts: its selector, narrowed to the pod's own values of some labels.
fn selector(pod: &Pod, constraint: &SpreadConstraint) -> Selector {
    let own = constraint.match_label_keys.iter().filter_map(|key| {
        let value = pod.spec.labels.get(key)?;
        Some(Requirement::is_in(key.clone(), [value.clone()]))
    });
    constraint.label_selector.clone().and(own)
}
