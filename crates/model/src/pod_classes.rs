//! Bound pods that are alike, counted by node: what is true of one of them is asked once for all.

use std::{
    collections::{BTreeMap, hash_map::Entry},
    sync::Arc,
};

use crate::{
    HashMap, HashSet, Name, NodeId, Pod, PodSpec,
    bits::Bits,
    pod::AffinityTerm,
    selection::{ByLabel, FEW_COMPARISONS, Selection, comparisons},
    selector::{Operator, Requirement, Selector},
    work,
};

/// Pods of one namespace with one spec, all of them running or all of them terminating.
#[derive(Clone, Debug)]
pub struct PodClass {
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

impl PodClass {
    /// How many there are on each node.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, u32)> {
        work::done(self.nodes.len());
        self.nodes.iter().map(|(node, count)| (*node, *count))
    }
}

/// Which of a pod's lists of terms about other pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// A term of the pods of a group; equal ones of a list are one.
#[derive(Clone, Copy, Debug)]
struct TermRef {
    group: u32,
    list: TermList,
    index: u32,
    /// The sum of the weights of all equal ones; of required ones, their number.
    weight: i64,
}

/// A term of bound pods that may select a pod.
#[derive(Clone, Copy, Debug)]
pub struct TermAbout<'a> {
    /// The pods whose term it is.
    pub group: &'a PodClass,
    /// The list it stands in.
    pub list: TermList,
    /// The sum of the weights of all equal ones; of required ones, their number.
    pub weight: i64,
    /// The term.
    pub term: &'a AffinityTerm,
}

/// The groups, and indexes into them.
#[derive(Clone, Debug, Default)]
pub struct PodClasses {
    slots: Vec<Option<PodClass>>,
    free: Vec<u32>,
    /// By the spec's address (specs are shared) and whether the pods terminate; the namespace is compared.
    by_spec: HashMap<(usize, bool), Vec<u32>>,
    by_label: ByLabel,
    by_namespace: HashMap<Name, Vec<u32>>,
    /// How many groups there are of each priority.
    priorities: BTreeMap<i32, usize>,
    terms: TermIndex,
    specs: HashSet<Arc<PodSpec>>,
    addresses: HashSet<usize>,
    /// About how much memory the specs take.
    spec_bytes: usize,
    /// So many specs, or so many bytes, are worth looking for some that nobody uses any more.
    sweep_at: usize,
    sweep_at_bytes: usize,
}

const MIN_SWEEP: usize = 1024;
const MIN_SWEEP_BYTES: usize = 16 * 1024 * 1024;

/// Terms by a label that a pod must have for the term to select it.
#[derive(Clone, Debug, Default)]
struct TermIndex {
    by_label: HashMap<Name, HashMap<Name, Vec<TermRef>>>,
    /// Terms that ask for no label in particular.
    others: Vec<TermRef>,
}

impl PodClasses {
    /// All groups.
    pub fn iter(&self) -> impl Iterator<Item = &PodClass> {
        self.slots.iter().flatten()
    }

    /// The group at a place; a place may be empty.
    pub fn get(&self, place: usize) -> Option<&PodClass> {
        self.slots.get(place)?.as_ref()
    }

    /// One past the highest place of a group.
    pub fn places(&self) -> usize {
        self.slots.len()
    }

    /// The groups whose labels a selector selects.
    pub fn selected<'a: 's, 's>(
        &'a self,
        selector: &'s Selector,
    ) -> Box<dyn Iterator<Item = &'a PodClass> + 's> {
        let Selector::All(requirements) = selector else {
            return Box::new(std::iter::empty());
        };
        if comparisons(requirements) > FEW_COMPARISONS {
            let mut found = Bits::default();
            self.selection().select(selector, &mut found);
            let places: Vec<usize> = found.iter().collect();
            return Box::new(places.into_iter().filter_map(|place| self.get(place)));
        }
        let matches = move |group: &&PodClass| selector.matches(&group.spec.labels);
        match requirements.iter().find(|r| is_pivot(r)) {
            None => Box::new(self.iter().filter(matches)),
            Some(pivot) => {
                let by_value = self.by_label.get(&pivot.key);
                let found = distinct(&pivot.values).into_iter().filter_map(move |value| by_value?.get(value));
                let groups = found.flatten().filter_map(|id| self.slots[*id as usize].as_ref());
                Box::new(groups.filter(matches))
            }
        }
    }

    /// The lowest priority of a pod on a node; `None` if there are none.
    pub fn lowest_priority(&self) -> Option<i32> {
        self.priorities.keys().next().copied()
    }

    /// For many selectors, or long ones.
    pub fn selection(&self) -> PodClassSelection<'_> {
        let is_used = |place: &usize| self.slots[*place].is_some();
        let everyone = (0..self.slots.len()).filter(is_used).collect();
        let labels = Selection::new(&self.by_label, everyone);
        PodClassSelection { groups: self, labels, large_namespaces: HashMap::default() }
    }

    /// The terms of bound pods that may select a pod with these labels. Whether they do must still be asked. Those of one
    /// group follow one another as long as they are about the same label.
    pub fn terms_about<'a: 's, 's>(&'a self, spec: &'s PodSpec) -> impl Iterator<Item = TermAbout<'a>> + 's {
        let by_label = spec.labels.iter().filter_map(|(key, value)| self.terms.by_label.get(key)?.get(value));
        by_label.flatten().chain(&self.terms.others).filter_map(|term| self.resolve(term))
    }

    fn resolve(&self, found: &TermRef) -> Option<TermAbout<'_>> {
        let group = self.slots[found.group as usize].as_ref()?;
        let (near, far) = (&group.spec.pod_affinity, &group.spec.pod_anti_affinity);
        let i = found.index as usize;
        let term = match found.list {
            TermList::RequiredNear => near.required.get(i)?,
            TermList::RequiredFar => far.required.get(i)?,
            TermList::PreferredNear => &near.preferred.get(i)?.term,
            TermList::PreferredFar => &far.preferred.get(i)?.term,
        };
        Some(TermAbout { group, list: found.list, weight: found.weight, term })
    }

    /// About how much memory the specs take that are kept to be shared, also of pods that are gone.
    pub fn spec_bytes(&self) -> usize {
        self.spec_bytes
    }

    /// The spec that stands for all equal ones.
    pub(crate) fn share(&mut self, spec: &Arc<PodSpec>) -> Arc<PodSpec> {
        if self.addresses.contains(&address(spec)) {
            return spec.clone();
        }
        if let Some(shared) = self.specs.get(spec) {
            return shared.clone();
        }
        if self.specs.len() >= self.sweep_at.max(MIN_SWEEP)
            || self.spec_bytes >= self.sweep_at_bytes.max(MIN_SWEEP_BYTES)
        {
            self.drop_unused_specs();
            self.sweep_at = 2 * self.specs.len();
            self.sweep_at_bytes = 2 * self.spec_bytes;
        }
        self.spec_bytes += spec.bytes;
        self.specs.insert(spec.clone());
        self.addresses.insert(address(spec));
        spec.clone()
    }

    fn drop_unused_specs(&mut self) {
        let Self { specs, addresses, spec_bytes, .. } = self;
        specs.retain(|spec| {
            let used = Arc::strong_count(spec) > 1;
            if !used {
                addresses.remove(&address(spec));
                *spec_bytes -= spec.bytes;
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

    /// Gives up the places that were made since there were so many. They must be empty.
    pub(crate) fn shrink(&mut self, places: usize) {
        debug_assert!(self.slots[places..].iter().all(Option::is_none), "a class beyond {places} places");
        self.slots.truncate(places);
        self.free.retain(|id| (*id as usize) < places);
    }

    fn find(&self, pod: &Pod) -> Option<u32> {
        let ids = self.by_spec.get(&(address(&pod.spec), pod.terminating))?;
        let of = |id: &&u32| self.slots[**id as usize].as_ref().is_some_and(|g| g.namespace == pod.namespace);
        ids.iter().find(of).copied()
    }

    fn insert(&mut self, pod: &Arc<Pod>) -> u32 {
        let group = PodClass {
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
        self.by_namespace.entry(pod.namespace.clone()).or_default().push(id);
        *self.priorities.entry(pod.spec.priority).or_insert(0) += 1;
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
        if let Some(ids) = self.by_namespace.get_mut(&group.namespace) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_namespace.remove(&group.namespace);
            }
        }
        if let Some(groups) = self.priorities.get_mut(&group.spec.priority) {
            *groups -= 1;
            if *groups == 0 {
                self.priorities.remove(&group.spec.priority);
            }
        }
        self.terms.remove(id, &group.spec);
    }
}

/// Selects among groups by label and by namespace, for many selectors or long ones.
pub struct PodClassSelection<'a> {
    groups: &'a PodClasses,
    labels: Selection<'a, ByLabel>,
    /// The groups of namespaces that have many.
    large_namespaces: HashMap<&'a Name, Bits>,
}

impl<'a> PodClassSelection<'a> {
    /// The places of the groups whose labels a selector selects.
    pub fn select(&mut self, selector: &Selector, selected: &mut Bits) {
        self.labels.select(selector, selected);
    }

    /// The places of the groups in some namespaces.
    pub fn in_namespaces<'n>(&mut self, names: impl IntoIterator<Item = &'n Name>) -> Bits {
        let mut found = Bits::default();
        for name in names {
            let Some((name, ids)) = self.groups.by_namespace.get_key_value(name) else {
                continue;
            };
            if ids.len() <= self.labels.words() {
                work::done(ids.len());
                ids.iter().for_each(|id| found.insert(*id as usize));
            } else {
                let bits = || ids.iter().map(|id| *id as usize).collect();
                found.add_all(self.large_namespaces.entry(name).or_insert_with(bits));
            }
        }
        found
    }

    /// The group at a place.
    pub fn group(&self, place: usize) -> Option<&'a PodClass> {
        self.groups.get(place)
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
fn distinct(values: &[Name]) -> Vec<&Name> {
    let mut values: Vec<&Name> = values.iter().collect();
    if values.len() > 1 {
        values.sort_unstable();
        values.dedup();
    }
    values
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

/// All terms of a spec: list, index, term and weight. Equal ones of a list come once, with the sum of their weights.
fn terms(spec: &PodSpec) -> Vec<ListedTerm<'_>> {
    let (near, far) = (&spec.pod_affinity, &spec.pod_anti_affinity);
    let mut all: Vec<ListedTerm<'_>> = Vec::new();
    for (list, required) in [(TermList::RequiredNear, &near.required), (TermList::RequiredFar, &far.required)]
    {
        all.extend(required.iter().enumerate().map(|(i, term)| (list, i as u32, term, 1)));
    }
    for (list, preferred) in
        [(TermList::PreferredNear, &near.preferred), (TermList::PreferredFar, &far.preferred)]
    {
        let weighted = preferred.iter().map(|w| (&w.term, i64::from(w.weight))).enumerate();
        all.extend(weighted.map(|(i, (term, weight))| (list, i as u32, term, weight)));
    }
    merged(all)
}

type ListedTerm<'a> = (TermList, u32, &'a AffinityTerm, i64);

fn merged(all: Vec<ListedTerm<'_>>) -> Vec<ListedTerm<'_>> {
    if all.len() < 2 {
        return all;
    }
    let mut kept: Vec<ListedTerm<'_>> = Vec::with_capacity(all.len());
    let mut places: HashMap<(TermList, &AffinityTerm), usize> = HashMap::default();
    for term in all {
        match places.entry((term.0, term.2)) {
            Entry::Occupied(known) => kept[*known.get()].3 += term.3,
            Entry::Vacant(new) => {
                new.insert(kept.len());
                kept.push(term);
            }
        }
    }
    kept
}

/// The label that a pod must have, with one of these values, for a term to select it; `None` if there is none. A term that
/// selects nobody has no values.
fn pivot(term: &AffinityTerm) -> Option<(&Name, Vec<&Name>)> {
    match &term.selector {
        Selector::Nothing => Some((&term.topology_key, Vec::new())),
        Selector::All(requirements) => {
            let pivot = requirements.iter().find(|r| is_pivot(r))?;
            Some((&pivot.key, distinct(&pivot.values)))
        }
    }
}

impl TermIndex {
    fn add(&mut self, group: u32, spec: &PodSpec) {
        for (list, index, term, weight) in terms(spec) {
            let found = TermRef { group, list, index, weight };
            match pivot(term) {
                None => self.others.push(found),
                Some((key, values)) => {
                    for value in values {
                        let by_value = self.by_label.entry(key.clone()).or_default();
                        by_value.entry(value.clone()).or_default().push(found);
                    }
                }
            }
        }
    }

    /// Each list is gone through once, however many of the terms it holds.
    fn remove(&mut self, group: u32, spec: &PodSpec) {
        let mut labels: Vec<(&Name, &Name)> = Vec::new();
        let mut in_others = false;
        let (near, far) = (&spec.pod_affinity, &spec.pod_anti_affinity);
        let preferred = near.preferred.iter().chain(&far.preferred).map(|weighted| &weighted.term);
        for term in near.required.iter().chain(&far.required).chain(preferred) {
            match pivot(term) {
                None => in_others = true,
                Some((key, values)) => labels.extend(values.into_iter().map(|value| (key, value))),
            }
        }
        labels.sort_unstable();
        labels.dedup();
        for (key, value) in labels {
            remove_entry(&mut self.by_label, key, value, |term| term.group == group);
        }
        if in_others {
            self.others.retain(|term| term.group != group);
        }
    }
}
