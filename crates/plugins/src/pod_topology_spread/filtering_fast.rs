//! The fast form of hard constraints: counts by domain, and the domains that are too full.

use std::{collections::BTreeMap, sync::Arc};

use supercargo_framework::{
    Status,
    fast::{CLOSED, Compiled, DomainFilter, FastFilter, FilterPart, NodeFilter, OPEN},
};
use supercargo_model::{
    Cluster, NodeId, NodeSet, Pod,
    changes::PodChange,
    label_columns::{ABSENT, LabelColumn},
    pod::WhenUnsatisfiable,
};

use super::{Constraint, PodTopologySpread, any_key_is_absent, filtering::Obstacle};
use crate::required_nodes::RequiredNodes;

/// A hard constraint, for pods of one signature, with its counts.
struct Counted {
    constraint: Constraint,
    /// For each domain: how many matching pods there are.
    counts: Vec<i64>,
    /// For each domain: whether nodes of it count.
    is_there: Vec<bool>,
    /// How many domains are there; and how many of them have how many pods.
    domains: i64,
    domains_with: BTreeMap<i64, usize>,
    /// How many matching pods the emptiest domain has.
    fewest: i64,
    /// Whether the pod itself counts.
    itself: i64,
    /// For each domain: it is too full.
    too_full: Vec<bool>,
}

/// Hard constraints, for pods of one signature.
struct Hard {
    pod: Arc<Pod>,
    constraints: Vec<Counted>,
    required: RequiredNodes,
    /// The nodes that have the labels of all constraints.
    complete: NodeSet,
    /// By how many constraints each node is closed, and the nodes that are.
    closed_by: Vec<u32>,
    closed: Vec<f64>,
    /// The domains that have become too full, or are so no more.
    flipped: Vec<usize>,
}

impl Counted {
    fn new(constraint: Constraint, pod: &Pod) -> Self {
        Self {
            itself: i64::from(constraint.selector.matches(&pod.spec.labels)),
            constraint,
            counts: Vec::new(),
            is_there: Vec::new(),
            domains: 0,
            domains_with: BTreeMap::new(),
            fewest: 0,
            too_full: Vec::new(),
        }
    }

    fn column<'a>(&self, cluster: &'a Cluster) -> Option<&'a LabelColumn> {
        cluster.label_columns().get(&self.constraint.topology_key)
    }

    /// The domain that a node is in.
    fn domain(&self, cluster: &Cluster, node: NodeId) -> Option<usize> {
        let domain = self.column(cluster)?.of(node);
        (domain != ABSENT).then_some(domain as usize)
    }

    fn find_fewest(&mut self) {
        // Without any domain nothing counts, and nothing is too full.
        let lowest = self.domains_with.first_key_value().map_or(0, |(count, _)| *count);
        self.fewest = self.constraint.fewest_of(self.domains, lowest);
    }

    fn check(&self, cluster: &Cluster, node: NodeId) -> Result<(), Obstacle> {
        let here = self.domain(cluster, node).map(|domain| self.counts.get(domain).copied().unwrap_or(0));
        self.constraint.check(here, self.itself, self.fewest)
    }

    fn is_too_full(&self, domain: usize) -> bool {
        self.constraint.check(Some(self.counts[domain]), self.itself, self.fewest).is_err()
    }

    /// Changes the count of a domain that counts. Whether another domain may have become too full by that, or is so no more.
    fn change(&mut self, domain: usize, by: i64) -> bool {
        let before = self.counts[domain];
        self.counts[domain] = before + by;
        if !self.is_there[domain] {
            return false;
        }
        if let Some(domains) = self.domains_with.get_mut(&before) {
            *domains -= 1;
            if *domains == 0 {
                self.domains_with.remove(&before);
            }
        }
        *self.domains_with.entry(before + by).or_default() += 1;
        let fewest = self.fewest;
        self.find_fewest();
        fewest != self.fewest
    }
}

impl Hard {
    /// The domain that a node's pods count for, by one of the constraints.
    fn counting_domain(&self, i: usize, cluster: &Cluster, node: NodeId) -> Option<usize> {
        let Counted { constraint, .. } = &self.constraints[i];
        let counts = self.complete.contains(node)
            && constraint.includes(&self.required, &self.pod.spec, cluster.node_at(node));
        if counts { self.constraints[i].domain(cluster, node) } else { None }
    }

    fn count_all(&mut self, cluster: &Cluster) {
        let has_all = |node: &NodeId| {
            let labels = &cluster.node_at(*node).node.labels;
            self.constraints.iter().all(|counted| labels.has(&counted.constraint.topology_key))
        };
        self.complete = cluster.columns().live.iter().filter(has_all).collect();
        for i in 0..self.constraints.len() {
            let range = self.constraints[i].column(cluster).map_or(0, LabelColumn::range);
            let (mut counts, mut is_there) = (vec![0; range], vec![false; range]);
            for node in cluster.columns().live.iter() {
                if let Some(domain) = self.counting_domain(i, cluster, node) {
                    is_there[domain] = true;
                }
            }
            let constraint = &self.constraints[i].constraint;
            for group in cluster.groups().selected(&constraint.selector) {
                if constraint.can_count(&group.sample, &self.pod.namespace) {
                    for (node, count) in group.nodes() {
                        if let Some(domain) = self.counting_domain(i, cluster, node) {
                            counts[domain] += i64::from(count);
                        }
                    }
                }
            }
            let counted = &mut self.constraints[i];
            counted.domains_with.clear();
            for (count, _) in counts.iter().zip(&is_there).filter(|(_, is_there)| **is_there) {
                *counted.domains_with.entry(*count).or_default() += 1;
            }
            counted.domains = is_there.iter().filter(|is_there| **is_there).count() as i64;
            (counted.counts, counted.is_there) = (counts, is_there);
            counted.find_fewest();
            counted.too_full = (0..range).map(|domain| counted.is_too_full(domain)).collect();
        }
    }

    /// Finds out about all nodes anew.
    fn close_all(&mut self, cluster: &Cluster) {
        let places = cluster.columns().len();
        self.closed_by.clear();
        self.closed_by.resize(places, 0);
        for node in cluster.columns().live.iter() {
            let closes = |counted: &&Counted| match counted.domain(cluster, node) {
                Some(domain) => counted.too_full[domain],
                None => true,
            };
            self.closed_by[node.index()] = self.constraints.iter().filter(closes).count() as u32;
        }
        self.closed.clear();
        self.closed.extend(self.closed_by.iter().map(|by| if *by > 0 { CLOSED } else { OPEN }));
    }

    /// Why a node will not do: the first constraint's reason.
    fn check(&self, cluster: &Cluster, node: NodeId) -> Result<(), Obstacle> {
        self.constraints.iter().try_for_each(|counted| counted.check(cluster, node))
    }

    /// Finds the domains that have become too full, or are so no more: one that was changed, or any.
    fn find_flipped(&mut self, i: usize, changed: usize, any: bool) {
        let counted = &mut self.constraints[i];
        let domains = if any { 0..counted.counts.len() } else { changed..changed + 1 };
        self.flipped.clear();
        for domain in domains {
            let is_too_full = counted.is_too_full(domain);
            if is_too_full != counted.too_full[domain] {
                counted.too_full[domain] = is_too_full;
                self.flipped.push(domain);
            }
        }
    }

    /// Closes the nodes of domains that have become too full, and opens those of domains that are so no more. Whether others
    /// than this one are among them.
    fn flip(&mut self, i: usize, cluster: &Cluster, node: NodeId) -> bool {
        let Self { constraints, closed_by, closed, flipped, .. } = self;
        let mut elsewhere = false;
        let Some(column) = constraints[i].column(cluster) else {
            return false;
        };
        for domain in flipped.iter() {
            let is_too_full = constraints[i].too_full[*domain];
            for other in column.nodes(*domain as u32) {
                let place = other.index();
                closed_by[place] = if is_too_full { closed_by[place] + 1 } else { closed_by[place] - 1 };
                closed[place] = if closed_by[place] > 0 { CLOSED } else { OPEN };
                elsewhere |= *other != node;
            }
        }
        elsewhere
    }
}

impl NodeFilter for Hard {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        self.count_all(cluster);
        self.close_all(cluster);
        for (open, closed) in open.iter_mut().zip(&self.closed) {
            *open += closed;
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        self.check(cluster, node).is_ok()
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        self.check(cluster, node).err().map(Status::from)
    }
}

impl DomainFilter for Hard {
    fn note(&mut self, cluster: &Cluster, change: &PodChange) -> bool {
        let mut elsewhere = false;
        for i in 0..self.constraints.len() {
            if self.constraints[i].constraint.counts(&change.pod, &self.pod.namespace)
                && let Some(domain) = self.counting_domain(i, cluster, change.node)
            {
                let any = self.constraints[i].change(domain, change.sign());
                self.find_flipped(i, domain, any);
                elsewhere |= self.flip(i, cluster, change.node);
            }
        }
        elsewhere
    }

    fn closed(&self) -> Option<&[f64]> {
        Some(&self.closed)
    }

    fn is_idle(&self) -> bool {
        false
    }
}

/// No node has the labels of all constraints. Nobody counts then, so that nothing is too skewed.
struct Nowhere;

impl NodeFilter for Nowhere {
    fn close(&mut self, _: &Cluster, open: &mut [f64]) {
        open.fill(CLOSED);
    }

    fn passes(&self, _: &Cluster, _: NodeId) -> bool {
        false
    }

    fn refusal(&self, _: &Cluster, _: NodeId) -> Option<Status> {
        Some(Obstacle::NoLabel.into())
    }
}

impl FastFilter for PodTopologySpread {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let constraints = self.constraints(cluster, pod, WhenUnsatisfiable::DoNotSchedule);
        if constraints.is_empty() {
            return Compiled::Idle;
        }
        // A maxSkew below 1, which no API server lets in, is exceeded by the pod itself.
        if any_key_is_absent(cluster, &constraints) && constraints.iter().all(|c| c.max_skew >= 1) {
            return Compiled::Part(FilterPart::Fixed(Box::new(Nowhere)));
        }
        let counted = constraints.into_iter().map(|constraint| Counted::new(constraint, pod));
        Compiled::Part(FilterPart::ByDomain(Box::new(Hard {
            pod: pod.clone(),
            constraints: counted.collect(),
            required: RequiredNodes::new(cluster, &pod.spec),
            complete: NodeSet::default(),
            closed_by: Vec::new(),
            closed: Vec::new(),
            flipped: Vec::new(),
        })))
    }
}
