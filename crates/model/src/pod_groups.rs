//! Bound pods that are alike, counted by node: what is true of one of them is asked once for all.

use std::sync::Arc;

use crate::{
    HashMap, HashSet, Name, NodeId, Pod, PodSpec,
    pod::AffinityTerm,
    selector::{Operator, Requirement, Selector},
};

/// Pods of one namespace with one spec, all of them running or all of them terminating.
#[derive(Clone, Debug)]
pub struct PodGroup {
    /// Their namespace.
    pub namespace: Name,
    /// Their spec.
    pub spec: Arc<PodSpec>,
    /// Their deletion was asked for.
    pub terminating: bool,
    /// One of them, to ask questions about.
    pub sample: Arc<Pod>,
    nodes: HashMap<NodeId, u32>,
}

impl PodGroup {
    /// How many there are on each node.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, u32)> {
        self.nodes.iter().map(|(node, count)| (*node, *count))
    }
}

/// Which of a pod's lists of terms about other pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermList {
    /// Must be near.
    RequiredNear,
    /// Must be far.
    RequiredFar,
    /// Should be near.
    PreferredNear,
    /// Should be far.
    PreferredFar,
}

/// A term of the pods of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermRef {
    group: u32,
    /// The list it stands in.
    pub list: TermList,
    index: u32,
}

/// The groups, and indexes into them.
#[derive(Clone, Debug, Default)]
pub struct PodGroups {
    slots: Vec<Option<PodGroup>>,
    free: Vec<u32>,
    /// By the spec's address (specs are shared) and whether the pods terminate; the namespace is compared.
    by_spec: HashMap<(usize, bool), Vec<u32>>,
    by_label: HashMap<Name, HashMap<Name, Vec<u32>>>,
    terms: TermIndex,
    specs: HashSet<Arc<PodSpec>>,
    addresses: HashSet<usize>,
    /// So many specs are worth looking for some that nobody uses any more.
    sweep_at: usize,
}

const MIN_SWEEP: usize = 1024;

/// Terms by a label that a pod must have for the term to select it.
#[derive(Clone, Debug, Default)]
struct TermIndex {
    by_label: HashMap<Name, HashMap<Name, Vec<TermRef>>>,
    /// Terms that ask for no label in particular.
    others: Vec<TermRef>,
}

impl PodGroups {
    /// All groups.
    pub fn iter(&self) -> impl Iterator<Item = &PodGroup> {
        self.slots.iter().flatten()
    }

    /// The groups whose labels a selector selects.
    pub fn selected<'a>(&'a self, selector: &'a Selector) -> Box<dyn Iterator<Item = &'a PodGroup> + 'a> {
        let Selector::All(requirements) = selector else {
            return Box::new(std::iter::empty());
        };
        let matches = move |group: &&PodGroup| selector.matches(&group.spec.labels);
        match requirements.iter().find(|r| is_pivot(r)) {
            None => Box::new(self.iter().filter(matches)),
            Some(pivot) => {
                let by_value = self.by_label.get(&pivot.key);
                let found = distinct(&pivot.values).filter_map(move |value| by_value?.get(value));
                let groups = found.flatten().filter_map(|id| self.slots[*id as usize].as_ref());
                Box::new(groups.filter(matches))
            }
        }
    }

    /// The terms of bound pods that may select a pod with these labels. Whether they do must still be asked.
    pub fn terms_about<'a>(
        &'a self,
        spec: &'a PodSpec,
    ) -> impl Iterator<Item = (&'a PodGroup, TermList, i32, &'a AffinityTerm)> {
        let by_label = spec.labels.iter().filter_map(|(key, value)| self.terms.by_label.get(key)?.get(value));
        by_label.flatten().chain(&self.terms.others).filter_map(|term| self.resolve(*term))
    }

    fn resolve(&self, term: TermRef) -> Option<(&PodGroup, TermList, i32, &AffinityTerm)> {
        let group = self.slots[term.group as usize].as_ref()?;
        let (near, far) = (&group.spec.pod_affinity, &group.spec.pod_anti_affinity);
        let i = term.index as usize;
        let (weight, found) = match term.list {
            TermList::RequiredNear => (0, near.required.get(i)?),
            TermList::RequiredFar => (0, far.required.get(i)?),
            TermList::PreferredNear => near.preferred.get(i).map(|w| (w.weight, &w.term))?,
            TermList::PreferredFar => far.preferred.get(i).map(|w| (w.weight, &w.term))?,
        };
        Some((group, term.list, weight, found))
    }

    /// The spec that stands for all equal ones.
    pub(crate) fn share(&mut self, spec: &Arc<PodSpec>) -> Arc<PodSpec> {
        if self.addresses.contains(&address(spec)) {
            return spec.clone();
        }
        if let Some(shared) = self.specs.get(spec) {
            return shared.clone();
        }
        if self.specs.len() >= self.sweep_at.max(MIN_SWEEP) {
            self.drop_unused_specs();
            self.sweep_at = 2 * self.specs.len();
        }
        self.specs.insert(spec.clone());
        self.addresses.insert(address(spec));
        spec.clone()
    }

    fn drop_unused_specs(&mut self) {
        let addresses = &mut self.addresses;
        self.specs.retain(|spec| {
            let used = Arc::strong_count(spec) > 1;
            if !used {
                addresses.remove(&address(spec));
            }
            used
        });
    }

    /// Counts a pod whose spec is a shared one.
    pub(crate) fn add(&mut self, pod: &Arc<Pod>, node: NodeId) {
        let id = self.find(pod).unwrap_or_else(|| self.insert(pod));
        if let Some(group) = &mut self.slots[id as usize] {
            *group.nodes.entry(node).or_insert(0) += 1;
        }
    }

    pub(crate) fn remove(&mut self, pod: &Pod, node: NodeId) {
        let Some(id) = self.find(pod) else {
            return;
        };
        let Some(group) = &mut self.slots[id as usize] else {
            return;
        };
        if let Some(count) = group.nodes.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                group.nodes.remove(&node);
            }
        }
        if group.nodes.is_empty() {
            self.forget(id);
        }
    }

    fn find(&self, pod: &Pod) -> Option<u32> {
        let ids = self.by_spec.get(&(address(&pod.spec), pod.terminating))?;
        let of = |id: &&u32| self.slots[**id as usize].as_ref().is_some_and(|g| g.namespace == pod.namespace);
        ids.iter().find(of).copied()
    }

    fn insert(&mut self, pod: &Arc<Pod>) -> u32 {
        let group = PodGroup {
            namespace: pod.namespace.clone(),
            spec: pod.spec.clone(),
            terminating: pod.terminating,
            sample: pod.clone(),
            nodes: HashMap::default(),
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.by_spec.entry((address(&pod.spec), pod.terminating)).or_default().push(id);
        for (key, value) in pod.spec.labels.iter() {
            self.by_label.entry(key.clone()).or_default().entry(value.clone()).or_default().push(id);
        }
        self.terms.add(id, &pod.spec);
        self.slots[id as usize] = Some(group);
        id
    }

    fn forget(&mut self, id: u32) {
        let Some(group) = self.slots[id as usize].take() else {
            return;
        };
        self.free.push(id);
        let key = (address(&group.spec), group.terminating);
        if let Some(ids) = self.by_spec.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_spec.remove(&key);
            }
        }
        for (key, value) in group.spec.labels.iter() {
            remove_entry(&mut self.by_label, key, value, |other| *other == id);
        }
        self.terms.remove(id, &group.spec);
    }
}

fn address(spec: &Arc<PodSpec>) -> usize {
    Arc::as_ptr(spec) as usize
}

/// A requirement that only labels with one of a few values meet: a good one to look up by.
fn is_pivot(requirement: &Requirement) -> bool {
    requirement.operator == Operator::In
}

/// The values, each once: nobody is to be counted twice.
fn distinct(values: &[Name]) -> impl Iterator<Item = &Name> {
    values.iter().enumerate().filter(|(i, value)| !values[..*i].contains(value)).map(|(_, value)| value)
}

fn remove_entry<T>(
    map: &mut HashMap<Name, HashMap<Name, Vec<T>>>,
    key: &Name,
    value: &Name,
    gone: impl Fn(&T) -> bool,
) {
    if let Some(by_value) = map.get_mut(key) {
        if let Some(entries) = by_value.get_mut(value) {
            entries.retain(|entry| !gone(entry));
            if entries.is_empty() {
                by_value.remove(value);
            }
        }
        if by_value.is_empty() {
            map.remove(key);
        }
    }
}

/// All terms of a spec: list, index and selector.
fn terms(spec: &PodSpec) -> impl Iterator<Item = (TermList, u32, &Selector)> {
    let (near, far) = (&spec.pod_affinity, &spec.pod_anti_affinity);
    let near_required = near.required.iter().map(|t| (TermList::RequiredNear, &t.selector)).enumerate();
    let far_required = far.required.iter().map(|t| (TermList::RequiredFar, &t.selector)).enumerate();
    let near_preferred =
        near.preferred.iter().map(|w| (TermList::PreferredNear, &w.term.selector)).enumerate();
    let far_preferred = far.preferred.iter().map(|w| (TermList::PreferredFar, &w.term.selector)).enumerate();
    (near_required.chain(far_required).chain(near_preferred).chain(far_preferred))
        .map(|(i, (list, selector))| (list, i as u32, selector))
}

impl TermIndex {
    fn add(&mut self, group: u32, spec: &PodSpec) {
        for (list, index, selector) in terms(spec) {
            let term = TermRef { group, list, index };
            let Selector::All(requirements) = selector else {
                continue;
            };
            match requirements.iter().find(|r| is_pivot(r)) {
                None => self.others.push(term),
                Some(pivot) => {
                    let by_value = self.by_label.entry(pivot.key.clone()).or_default();
                    for value in distinct(&pivot.values) {
                        by_value.entry(value.clone()).or_default().push(term);
                    }
                }
            }
        }
    }

    fn remove(&mut self, group: u32, spec: &PodSpec) {
        for (_, _, selector) in terms(spec) {
            let Selector::All(requirements) = selector else {
                continue;
            };
            match requirements.iter().find(|r| is_pivot(r)) {
                None => self.others.retain(|term| term.group != group),
                Some(pivot) => {
                    for value in distinct(&pivot.values) {
                        remove_entry(&mut self.by_label, &pivot.key, value, |term| term.group == group);
                    }
                }
            }
        }
    }
}
