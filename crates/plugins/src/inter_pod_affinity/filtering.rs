//! Terms that must hold: the pod's own, and the anti-affinity of pods that run already.

use std::{collections::HashMap, sync::Arc};

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    points::{Filter, PreFilter, PreFilterOutcome},
};
use supercargo_model::{
    Cluster, Labels, Name, Node, NodeId, NodeInfo, Pod,
    pod_classes::{PodClass, TermList},
};

use super::{
    InterPodAffinity, details,
    domain_counts::DomainCounts,
    terms::{ByKey, Classes, Resolver, Term, WeightedTerms, all_match, are_many, met_by_terms_about},
};

const EXISTING_ANTI_AFFINITY: &str = "node(s) didn't satisfy existing pods anti-affinity rules";
const AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";

/// Up to so many terms of a bound pod are asked pod by pod; of more, what they come to is worked out once for its class.
const FEW_TERMS: usize = 8;

/// What a pod requires of pods nearby.
pub(super) struct Required {
    near: Vec<Term>,
    /// The topology keys of the terms, each once: every node must have all of them.
    near_keys: Vec<Name>,
    /// Those of them that some node has.
    counted_keys: Vec<Name>,
    near_itself: bool,
    far: WeightedTerms,
    far_keys: Vec<Name>,
    namespace_labels: Labels,
    /// The pod has no terms.
    is_empty: bool,
}

impl Required {
    pub(super) fn new(cluster: &Cluster, pod: &Pod) -> Self {
        let near = Resolver::new(cluster).resolve_all(&pod.spec.pod_affinity.required);
        let far = pod.spec.pod_anti_affinity.required.iter().map(|term| (term, 1));
        let far = WeightedTerms::new(cluster, far);
        let near_keys = distinct(near.iter().map(|term| &term.topology_key));
        let on_nodes = |key: &&Name| cluster.label_columns().get(key).is_some();
        Self {
            counted_keys: near_keys.iter().filter(on_nodes).cloned().collect(),
            near_itself: all_match(&near, pod),
            near_keys,
            near,
            far_keys: distinct(far.keys()),
            far,
            namespace_labels: cluster.namespace_labels(&pod.namespace),
            is_empty: pod.spec.pod_affinity.required.is_empty()
                && pod.spec.pod_anti_affinity.required.is_empty(),
        }
    }

    fn are_many(&self) -> bool {
        self.far.are_many() || are_many(self.near.iter())
    }

    /// The classes of pods that all terms about pods nearby select.
    fn near_classes<'a>(&self, cluster: &'a Cluster) -> Vec<&'a PodClass> {
        if are_many(self.near.iter()) {
            let places = Classes::new(cluster).select_by_all(&self.near);
            return places.iter().filter_map(|place| cluster.groups().get(place)).collect();
        }
        // Every pod near must meet all terms, so it is enough to look among those that meet the first.
        let first = self.near.first().into_iter();
        let selected = first.flat_map(|first| cluster.groups().selected(first.selector()));
        selected.filter(|group| all_match(&self.near, &group.sample)).collect()
    }
}

fn distinct<'a>(keys: impl Iterator<Item = &'a Name>) -> Vec<Name> {
    let mut seen = std::collections::HashSet::new();
    keys.filter(|key| seen.insert(*key)).cloned().collect()
}

/// What a class of bound pods means to a pod.
#[derive(Default)]
struct Meaning {
    /// All terms about pods nearby select it.
    is_near: bool,
    /// How many terms about pods elsewhere select it, by topology key.
    far: ByKey,
    /// How many of its terms about pods elsewhere select the pod, by topology key.
    about: ByKey,
}

/// By the address of the spec, and the namespace.
type Meanings = HashMap<(usize, Name), Meaning>;

fn address(pod: &Pod) -> usize {
    Arc::as_ptr(&pod.spec) as usize
}

/// What is in each domain that matters to a pod.
#[derive(Clone)]
pub(super) struct Counts {
    required: Arc<Required>,
    /// Running pods that do not want this one near.
    existing_anti_affinity: DomainCounts,
    /// Running pods that this one wants near: those that all its terms select.
    affinity: DomainCounts,
    /// Running pods that this one does not want near.
    anti_affinity: DomainCounts,
    /// What classes mean, where terms are too many to be asked again for every "what if". It holds for one cycle only,
    /// while no spec can go and leave its address to another.
    meanings: Arc<Meanings>,
}

impl Counts {
    /// Nobody counted yet.
    pub(super) fn empty(cluster: &Cluster, pod: &Pod) -> Self {
        Self {
            required: Arc::new(Required::new(cluster, pod)),
            existing_anti_affinity: DomainCounts::default(),
            affinity: DomainCounts::default(),
            anti_affinity: DomainCounts::default(),
            meanings: Arc::default(),
        }
    }

    /// Everybody counted, class by class.
    pub(super) fn by_class(cluster: &Cluster, pod: &Pod) -> Self {
        let mut counts = Self::empty(cluster, pod);
        let required = counts.required.clone();
        for group in required.near_classes(cluster) {
            for key in &required.counted_keys {
                counts.affinity.add_class(cluster, group, key, 1);
            }
        }
        for (key, group, terms) in required.far.met_by_classes(cluster) {
            counts.anti_affinity.add_class(cluster, group, &key, terms);
        }
        for (key, group, terms) in required.met_by_terms_about(cluster, pod) {
            counts.existing_anti_affinity.add_class(cluster, group, &key, terms);
        }
        counts
    }

    /// Everybody counted, pod by pod.
    fn by_pod(cluster: &Cluster, pod: &Pod) -> Self {
        let mut counts = Self::empty(cluster, pod);
        counts.meanings = Arc::new(counts.required.meanings(cluster, pod));
        for node in cluster.nodes() {
            for existing in &node.pods {
                counts.update(pod, existing, &node.node, 1);
            }
        }
        counts
    }

    pub(super) fn update(&mut self, pod: &Pod, existing: &Pod, node: &Node, by: i64) {
        self.update_and_tell(pod, existing, node, by, |_| {});
    }

    /// As [`Self::update`]; tells the keys of the node's domains that came to have somebody, or nobody.
    pub(super) fn update_and_tell(
        &mut self,
        pod: &Pod,
        existing: &Pod,
        node: &Node,
        by: i64,
        mut flipped: impl FnMut(&Name),
    ) {
        let required = self.required.clone();
        if !self.meanings.is_empty()
            && let Some(meaning) = self.meanings.clone().get(&(address(existing), existing.namespace.clone()))
        {
            return self.update_by(meaning, node, by);
        }
        for term in &existing.spec.pod_anti_affinity.required {
            if term.matches(pod, &required.namespace_labels)
                && self.existing_anti_affinity.add(node, &term.topology_key, by)
            {
                flipped(&term.topology_key);
            }
        }
        if all_match(&required.near, existing) {
            for key in &required.counted_keys {
                if self.affinity.add(node, key, by) {
                    flipped(key);
                }
            }
        }
        for (key, terms) in required.far.met_by(existing) {
            if self.anti_affinity.add(node, key, by * terms) {
                flipped(key);
            }
        }
    }

    /// Only within a cycle of the full path, which wants to know no more.
    fn update_by(&mut self, meaning: &Meaning, node: &Node, by: i64) {
        for (key, terms) in &meaning.about.0 {
            self.existing_anti_affinity.add(node, key, by * terms);
        }
        if meaning.is_near {
            for key in &self.required.counted_keys {
                self.affinity.add(node, key, by);
            }
        }
        for (key, terms) in &meaning.far.0 {
            self.anti_affinity.add(node, key, by * terms);
        }
    }

    /// Whether the pod has no terms of its own.
    pub(super) fn requires_nothing(&self) -> bool {
        self.required.is_empty
    }

    /// The topology keys of the pod's terms about pods nearby.
    pub(super) fn near_keys(&self) -> &[Name] {
        &self.required.near_keys
    }

    /// The values of a key whose domains have somebody that the pod wants near.
    pub(super) fn occupied_near<'a>(&'a self, key: &'a Name) -> impl Iterator<Item = &'a Name> {
        self.affinity.occupied(key)
    }

    /// Whether the pod is the first of a group that wants to be together: it may go anywhere.
    pub(super) fn is_first_of_its_group(&self) -> bool {
        self.affinity.is_empty() && self.required.near_itself
    }

    /// The nodes that the pod must not be on because of who is in their domains; some may come more than once.
    pub(super) fn far_from<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = NodeId> {
        // Only domains of the pod's own keys are counted for its own terms.
        [&self.anti_affinity, &self.existing_anti_affinity].into_iter().flat_map(|counts| {
            counts.keys().flat_map(|key| {
                let column = cluster.label_columns().get(key);
                counts.occupied(key).flat_map(move |value| {
                    let nodes = column.and_then(|column| Some(column.nodes(column.number(value)?)));
                    nodes.unwrap_or_default().iter().copied()
                })
            })
        })
    }

    /// Whether there is nobody that the pod wants near.
    pub(super) fn has_nobody_near(&self) -> bool {
        self.affinity.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.existing_anti_affinity.is_empty() && self.required.is_empty
    }

    /// Whether a node will do, or why not.
    pub(super) fn check(&self, node: &Node) -> Verdict {
        if !self.satisfies_affinity(node) {
            Err(Status::unresolvable(AFFINITY))
        } else if !self.satisfies_anti_affinity(node) {
            Err(Status::unschedulable(ANTI_AFFINITY))
        } else if !self.satisfies_existing(node) {
            Err(Status::unschedulable(EXISTING_ANTI_AFFINITY))
        } else {
            Ok(())
        }
    }

    pub(super) fn satisfies_affinity(&self, node: &Node) -> bool {
        let mut pods_exist = true;
        for key in &self.required.near_keys {
            match node.labels.get(key) {
                None => return false,
                Some(value) => pods_exist &= self.affinity.get(key, value) > 0,
            }
        }
        pods_exist || self.is_first_of_its_group()
    }

    pub(super) fn satisfies_anti_affinity(&self, node: &Node) -> bool {
        self.required
            .far_keys
            .iter()
            .all(|key| (node.labels.get(key)).is_none_or(|value| self.anti_affinity.get(key, value) <= 0))
    }

    pub(super) fn satisfies_existing(&self, node: &Node) -> bool {
        self.existing_anti_affinity.is_empty()
            || (node.labels.iter()).all(|(key, value)| self.existing_anti_affinity.get(key, value) <= 0)
    }
}

impl Required {
    /// What classes mean that would cost too much to ask about pod by pod; none, in the ordinary case.
    fn meanings(&self, cluster: &Cluster, pod: &Pod) -> Meanings {
        let many = self.are_many();
        let is_long = |group: &&PodClass| many || group.spec.pod_anti_affinity.required.len() > FEW_TERMS;
        let mut meanings = Meanings::new();
        for group in cluster.groups().iter().filter(is_long) {
            let mut meaning = Meaning::default();
            if !many {
                meaning.is_near = all_match(&self.near, &group.sample);
                for (key, terms) in self.far.met_by(&group.sample) {
                    meaning.far.add(cluster, key, terms);
                }
            }
            meanings.insert(place(group), meaning);
        }
        if meanings.is_empty() {
            return meanings;
        }
        if many {
            for group in self.near_classes(cluster) {
                meanings.entry(place(group)).or_default().is_near = true;
            }
            for (key, group, terms) in self.far.met_by_classes(cluster) {
                meanings.entry(place(group)).or_default().far.add(cluster, &key, terms);
            }
        }
        for (key, group, terms) in self.met_by_terms_about(cluster, pod) {
            if let Some(meaning) = meanings.get_mut(&place(group)) {
                meaning.about.add(cluster, &key, terms);
            }
        }
        meanings
    }

    /// How many anti-affinity terms of bound pods select the pod, by topology key and class.
    fn met_by_terms_about<'a>(&self, cluster: &'a Cluster, pod: &Pod) -> Vec<(Name, &'a PodClass, i64)> {
        met_by_terms_about(cluster, pod, &self.namespace_labels, |about| match about.list {
            TermList::RequiredFar => about.weight,
            _ => 0,
        })
    }
}

fn place(group: &PodClass) -> (usize, Name) {
    (address(&group.sample), group.namespace.clone())
}

impl PreFilter for InterPodAffinity {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let requires_nothing =
            pod.spec.pod_affinity.required.is_empty() && pod.spec.pod_anti_affinity.required.is_empty();
        if requires_nothing && Required::new(cluster, pod).met_by_terms_about(cluster, pod).is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        let counts = Counts::by_pod(cluster, pod);
        if counts.is_idle() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(counts))
    }

    fn add_pod(&self, prepared: &mut Prepared, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get_mut::<Counts>()?.update(pod, added, &node.node, 1);
        Ok(())
    }

    fn remove_pod(&self, prepared: &mut Prepared, pod: &Pod, removed: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get_mut::<Counts>()?.update(pod, removed, &node.node, -1);
        Ok(())
    }
}

impl Filter for InterPodAffinity {
    fn filter(&self, prepared: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get::<Counts>()?.check(&node.node)
    }

    fn details(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let counts = prepared.get::<Counts>();
        counts.map_or_else(|_| Vec::new(), |counts| details::details(counts, cluster, pod, node))
    }
}
