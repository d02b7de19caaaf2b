//! The fast form of soft constraints: how many pods each node's domain has, in a column for each constraint.

use std::sync::Arc;

use supercargo_framework::{
    fast::{
        Cells, Compiled, DomainScore, FastScore, Normalization, OPEN, RawScores, ScorePart, Scored,
        SharedScores,
    },
    vector::vectorized,
};
use supercargo_model::{
    Cluster, NodeId, Pod,
    changes::PodChange,
    label_columns::{ABSENT, LabelColumn},
    pod::WhenUnsatisfiable,
    pod_classes::PodClass,
};

use crate::domain_sums::{DomainSums, Remembered, sum_by_node};

use super::{
    Constraint, Formula, PodTopologySpread, any_key_is_absent, has_all_keys,
    scoring::{Term, is_host, raw_score},
};
use crate::required_nodes::RequiredNodes;

/// A node that lacks a label and is left out.
const LEFT_OUT: f64 = -1.0;

/// Soft constraints, for pods of one signature.
struct Soft {
    pod: Arc<Pod>,
    constraints: Vec<Constraint>,
    required: RequiredNodes,
    /// Nodes must have the labels of all constraints.
    all_keys: bool,
    /// All nodes have the labels of all constraints.
    everywhere: bool,
    /// For each constraint and node: how many matching pods its domain has.
    counts: Vec<Vec<f64>>,
    /// For each constraint: what a count is worth, by the domains that are open.
    terms: Vec<Term>,
    /// The same counts by domain, instead of `counts`.
    sums: Option<DomainSums>,
    /// For each constraint: whether it counts the pod that came or left last.
    counted: Remembered<Vec<bool>>,
}

/// Nodes without the label are a domain of their own where they are let in, but no score comes from it.
fn column<'a>(cluster: &'a Cluster, constraint: &Constraint) -> Option<&'a LabelColumn> {
    cluster.label_columns().get(&constraint.topology_key)
}

/// Whether some nodes have a constraint's label with an empty value, and others do not have it.
fn has_empty_value_and_none(cluster: &Cluster, constraint: &Constraint) -> bool {
    let is_both =
        |column: &LabelColumn| column.number("").is_some() && !column.all_have(cluster.node_count());
    !is_host(constraint) && column(cluster, constraint).is_some_and(is_both)
}

impl Soft {
    fn counts_here(&self, cluster: &Cluster, node: NodeId) -> bool {
        !self.all_keys
            || self.everywhere
            || has_all_keys(&cluster.node_at(node).node.labels, &self.constraints)
    }

    /// Whether pods on a node count for its domain.
    fn includes(&self, i: usize, cluster: &Cluster, node: NodeId) -> bool {
        // A host counts its own pods, whatever the policies say.
        is_host(&self.constraints[i])
            || (self.counts_here(cluster, node)
                && (self.constraints[i].includes_all(&self.pod.spec)
                    || self.constraints[i].includes(&self.required, &self.pod.spec, cluster.node_at(node))))
    }

    /// Adds pods on a node to the counts of all nodes of its domain.
    fn add(&mut self, i: usize, cluster: &Cluster, node: NodeId, by: f64) {
        if !self.includes(i, cluster, node) {
            return;
        }
        if let Some(sums) = &mut self.sums {
            if sums.change(i, node, by).is_none() {
                self.sums = None;
            }
        } else if is_host(&self.constraints[i]) {
            self.counts[i][node.index()] += by;
        } else if let Some(column) = column(cluster, &self.constraints[i]) {
            for other in column.nodes(column.of(node)) {
                self.counts[i][other.index()] += by;
            }
        }
    }

    /// The counts by domain, taken from those by node.
    fn sums(&self, cluster: &Cluster) -> Option<DomainSums> {
        let mut sums = DomainSums::new(cluster, self.constraints.iter().map(|c| &c.topology_key));
        for (i, counts) in self.counts.iter().enumerate() {
            if is_host(&self.constraints[i]) && !sums.is_own(i) {
                return None;
            }
            for node in cluster.columns().live.iter() {
                sums.set(i, node, counts[node.index()]);
            }
        }
        sums.group(cluster)?;
        Some(sums)
    }

    fn count_all(&mut self, cluster: &Cluster) {
        let places = cluster.columns().len();
        self.counts.resize(self.constraints.len(), Vec::new());
        for counts in &mut self.counts {
            counts.clear();
            counts.resize(places, 0.0);
        }
        for i in 0..self.constraints.len() {
            // Summed by domain first: a domain may have thousands of nodes.
            let by_node: Vec<(NodeId, f64)> = (self.counted_classes(i, cluster))
                .flat_map(|class| class.nodes().map(|(node, count)| (node, f64::from(count))))
                .collect();
            self.spread_out(i, cluster, &by_node);
        }
    }

    /// The pods that a constraint counts.
    fn counted_classes<'a>(&'a self, i: usize, cluster: &'a Cluster) -> impl Iterator<Item = &'a PodClass> {
        let constraint = &self.constraints[i];
        let classes = cluster.groups().selected(&constraint.selector);
        classes.filter(|class| constraint.can_count(&class.sample, &self.pod.namespace))
    }

    /// Whether all nodes have the labels of all constraints.
    fn is_everywhere(&self, cluster: &Cluster) -> bool {
        let nodes = cluster.node_count();
        self.constraints.iter().all(|c| column(cluster, c).is_some_and(|column| column.all_have(nodes)))
    }

    fn spread_out(&mut self, i: usize, cluster: &Cluster, by_node: &[(NodeId, f64)]) {
        if is_host(&self.constraints[i]) {
            for (node, count) in by_node {
                self.counts[i][node.index()] += count;
            }
            return;
        }
        let Some(column) = column(cluster, &self.constraints[i]) else {
            return;
        };
        let mut by_domain = vec![0.0; column.range()];
        for (node, count) in by_node {
            let domain = column.of(*node);
            if domain != ABSENT
                && self.counts_here(cluster, *node)
                && self.constraints[i].includes(&self.required, &self.pod.spec, cluster.node_at(*node))
            {
                by_domain[domain as usize] += count;
            }
        }
        for (count, domain) in self.counts[i].iter_mut().zip(column.numbers()) {
            if *domain != ABSENT {
                *count = by_domain[*domain as usize];
            }
        }
    }

    /// The number of domains among the open nodes that are not left out.
    fn weigh(&mut self, cluster: &Cluster, open: &[f64]) {
        let domains = |constraint: &Constraint| {
            let inside = |node: &NodeId| open[node.index()] == OPEN && self.counts_here(cluster, *node);
            if is_host(constraint) {
                return if self.everywhere || !self.all_keys {
                    vectorized(
                        #[inline(always)]
                        || open.iter().filter(|open| **open == OPEN).count(),
                    )
                } else {
                    cluster.columns().live.iter().filter(inside).count()
                };
            }
            let Some(column) = column(cluster, constraint) else {
                return usize::from(cluster.columns().live.iter().any(|node| inside(&node)));
            };
            let labelled =
                (0..column.range() as u32).filter(|domain| column.nodes(*domain).iter().any(inside));
            let unlabelled = || {
                let mut without = cluster.columns().live.iter().filter(|node| column.of(*node) == ABSENT);
                without.any(|node| inside(&node))
            };
            let all_have = column.all_have(cluster.node_count());
            labelled.count() + usize::from(!all_have && unlabelled())
        };
        let terms = self.constraints.iter().map(|constraint| Term::new(constraint, domains(constraint)));
        self.terms = terms.collect();
    }

    fn write(&self, cluster: &Cluster, scores: &mut [f64]) {
        match (&self.counts[..], &self.terms[..]) {
            // The common cases in one pass.
            ([only], [term]) if self.everywhere => {
                let term = *term;
                vectorized(
                    #[inline(always)]
                    || {
                        for (score, count) in scores.iter_mut().zip(only) {
                            *score = raw_score(term.of(*count));
                        }
                    },
                );
            }
            ([one, other], [term1, term2]) if self.everywhere => {
                let (term1, term2) = (*term1, *term2);
                vectorized(
                    #[inline(always)]
                    || {
                        for ((score, one), other) in scores.iter_mut().zip(one).zip(other) {
                            *score = raw_score(term1.of(*one) + term2.of(*other));
                        }
                    },
                );
            }
            _ => self.write_any(cluster, scores),
        }
    }

    /// Any number of constraints, whose labels some nodes may lack.
    fn write_any(&self, cluster: &Cluster, scores: &mut [f64]) {
        scores.fill(0.0);
        for ((constraint, counts), term) in self.constraints.iter().zip(&self.counts).zip(&self.terms) {
            let Some(column) = column(cluster, constraint) else {
                continue;
            };
            let nodes = scores.iter_mut().zip(counts).zip(column.numbers());
            for ((score, count), _) in nodes.filter(|(_, domain)| **domain != ABSENT) {
                *score += term.of(*count);
            }
        }
        for score in scores.iter_mut() {
            *score = raw_score(*score);
        }
        if self.all_keys {
            self.mark_left_out(cluster, scores);
        }
    }

    fn mark_left_out(&self, cluster: &Cluster, scores: &mut [f64]) {
        for constraint in &self.constraints {
            match column(cluster, constraint) {
                Some(column) if column.all_have(cluster.node_count()) => {}
                Some(column) => {
                    for node in cluster.columns().live.iter() {
                        if column.of(node) == ABSENT {
                            scores[node.index()] = LEFT_OUT;
                        }
                    }
                }
                None => scores.fill(LEFT_OUT),
            }
        }
    }
}

impl DomainScore for Soft {
    fn fill(&mut self, cluster: &Cluster, open: &[f64], scores: &mut [f64]) {
        self.sums = None;
        self.everywhere = self.is_everywhere(cluster);
        self.count_all(cluster);
        self.weigh(cluster, open);
        self.write(cluster, scores);
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange, _: &mut [f64]) -> bool {
        if self.counted.get(&change.pod).is_none() {
            let namespace = &self.pod.namespace;
            let counted = self.constraints.iter().map(|c| c.counts(&change.pod, namespace));
            self.counted.set(&change.pod, counted.collect());
        }
        let mut any = false;
        for i in 0..self.constraints.len() {
            if self.counted.get(&change.pod).is_some_and(|counted| counted[i]) {
                self.add(i, cluster, change.node, change.sign() as f64);
                any = true;
            }
        }
        any
    }

    fn settle(&mut self, cluster: &Cluster, scores: &mut [f64]) {
        match &mut self.sums {
            Some(sums) => settle(sums, &self.terms),
            None => self.write(cluster, scores),
        }
    }

    fn use_cells(&mut self, cluster: &Cluster) -> bool {
        self.sums = if self.everywhere { self.sums(cluster) } else { None };
        if let Some(sums) = &mut self.sums {
            settle(sums, &self.terms);
        }
        self.sums.is_some()
    }

    fn cells(&self) -> Option<&Cells> {
        self.sums.as_ref().map(DomainSums::cells)
    }

    fn is_silent(&self) -> bool {
        false
    }

    fn is_uniform(&self, cluster: &Cluster) -> bool {
        let counts_nobody = |i| self.counted_classes(i, cluster).next().is_none();
        self.is_everywhere(cluster) && (0..self.constraints.len()).all(counts_nobody)
    }

    fn shared(&self, cluster: &Cluster, scored: Scored<'_>) -> Option<SharedScores> {
        let only = |of_hosts: bool| {
            let mut found =
                (0..self.constraints.len()).filter(|i| is_host(&self.constraints[*i]) == of_hosts);
            let first = found.next();
            found.next().is_none().then_some(first)
        };
        // One of each kind, or none.
        let (wide, host) = (only(false)?, only(true)?);
        let label = wide.and_then(|i| column(cluster, &self.constraints[i]));
        let range = label.map_or(0, LabelColumn::range);
        if range > SharedScores::MAX_VALUES || !self.is_everywhere(cluster) {
            return None;
        }
        let mut in_domains = vec![0.0; range];
        if let (Some(i), Some(label)) = (wide, label) {
            let (constraint, spec) = (&self.constraints[i], &self.pod.spec);
            let all_count = constraint.includes_all(spec);
            for (node, count) in self.counted_classes(i, cluster).flat_map(PodClass::nodes) {
                if all_count || constraint.includes(&self.required, spec, cluster.node_at(node)) {
                    in_domains[label.of(node) as usize] += f64::from(count);
                }
            }
        }
        let on_hosts = host.into_iter().flat_map(|i| self.counted_classes(i, cluster));
        let on_hosts = sum_by_node(on_hosts.flat_map(PodClass::nodes).map(|(node, n)| (node, f64::from(n))));

        let domains = label.map_or(0, |label| {
            let there = (0..range as u32).filter(|value| !label.nodes(*value).is_empty()).count();
            let number = |node| Some(label.of(node) as usize);
            let among = |places| Scored::numbers_of(places, there, number, range);
            scored.places.map_or(there, |places| among(places).into_iter().filter(|met| *met).count())
        });
        let term = |i: usize, domains| Term::new(&self.constraints[i], domains);
        let wide_term = wide.map(|i| term(i, domains));
        let host_term = host.map(|i| term(i, scored.count));
        let raw = |in_domain: f64, on_host: f64| {
            let of = |term: Option<Term>, count| term.map_or(0.0, |term| term.of(count));
            raw_score(of(wide_term, in_domain) + of(host_term, on_host))
        };
        let in_domain = |node| label.map_or(0.0, |label| in_domains[label.of(node) as usize]);
        let own = on_hosts.into_iter().map(|(node, on_host)| (node, raw(in_domain(node), on_host)));
        let by_value = wide.map(|i| {
            let values = in_domains.iter().map(|count| raw(*count, 0.0));
            (self.constraints[i].topology_key.clone(), values.collect())
        });
        Some(SharedScores { by_value, otherwise: raw(0.0, 0.0), own: own.collect(), group: None })
    }

    fn reads_open(&self) -> bool {
        true
    }

    fn settle_among(&mut self, nodes: usize, cells: &mut dyn Iterator<Item = u32>) {
        let Some(sums) = &mut self.sums else {
            return;
        };
        sums.look_at(cells);
        let mut differ = false;
        for (i, constraint) in self.constraints.iter().enumerate() {
            // Sums are kept only where all nodes have the labels of all constraints.
            let domains = if sums.is_own(i) { nodes } else { sums.domains_among(i) };
            match self.terms.get_mut(i) {
                Some(term) if term.domains == domains => continue,
                Some(term) => *term = Term::new(constraint, domains),
                None => self.terms.push(Term::new(constraint, domains)),
            }
            differ = true;
        }
        if differ {
            settle(sums, &self.terms);
        }
    }
}

/// Works out the score of each cell.
fn settle(sums: &mut DomainSums, terms: &[Term]) {
    sums.settle(|counts| raw_score(counts.iter().zip(terms).map(|(count, term)| term.of(*count)).sum()));
}

impl FastScore for PodTopologySpread {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        let constraints = self.constraints(cluster, pod, WhenUnsatisfiable::ScheduleAnyway);
        if constraints.is_empty() {
            return Compiled::Idle;
        }
        // A maxSkew below 1, which no API server lets in, makes scores that look like a node left out.
        if self.formula != Formula::LogWeighted || constraints.iter().any(|c| c.max_skew < 1) {
            return Compiled::NoFastForm;
        }
        let all_keys = !pod.spec.spread_constraints.is_empty() || !self.system_defaults;
        if all_keys && any_key_is_absent(cluster, &constraints) {
            // Every node is left out.
            return Compiled::Idle;
        }
        // Nodes without a label and nodes with an empty one are one domain where they are let in both.
        if !all_keys && constraints.iter().any(|c| has_empty_value_and_none(cluster, c)) {
            return Compiled::NoFastForm;
        }
        let scores = RawScores::ByDomain(Box::new(Soft {
            pod: pod.clone(),
            required: RequiredNodes::new(cluster, &pod.spec),
            all_keys,
            everywhere: false,
            constraints,
            counts: Vec::new(),
            terms: Vec::new(),
            sums: None,
            counted: Remembered::default(),
        }));
        Compiled::Part(scores.normalized(Normalization::Inverted))
    }
}
