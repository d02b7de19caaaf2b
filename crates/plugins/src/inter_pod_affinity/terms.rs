//! A pod's own terms about other pods: namespaces resolved, equal ones merged, and many of them answered at once.
//!
//! A pod may bring as many terms as fit into an object of the API server, some 10⁴. What it costs to answer them all is
//! kept linear in the size of the object: terms × (classes of bound pods / 64) bit operations, then topology keys × bound
//! pods additions. Only keys that nodes have count, so there are few.

use std::{collections::HashMap, sync::Arc};

use supercargo_model::{
    Cluster, Labels, Name, Pod,
    bits::Bits,
    pod::AffinityTerm,
    pod_classes::{PodClass, PodClassSelection, TermAbout},
    selection::{FEW_COMPARISONS, comparisons},
    selector::Selector,
};

/// The namespaces that a term is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Namespaces {
    All,
    /// Sorted.
    These(Arc<[Name]>),
}

/// A term with the namespaces that its selector selects added by name, once for a cycle. As in kube-scheduler the
/// selector stays, and is then asked about a namespace without labels: one that says `DoesNotExist` selects all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    selector: Selector,
    namespaces: Namespaces,
    pub(super) topology_key: Name,
}

impl Term {
    pub(super) fn matches(&self, pod: &Pod) -> bool {
        let here = match &self.namespaces {
            Namespaces::All => true,
            Namespaces::These(names) => names.binary_search(&pod.namespace).is_ok(),
        };
        here && self.selector.matches(&pod.spec.labels)
    }

    pub(super) fn selector(&self) -> &Selector {
        &self.selector
    }

    fn comparisons(&self) -> usize {
        match &self.selector {
            Selector::Nothing => 1,
            Selector::All(requirements) => 1 + comparisons(requirements),
        }
    }
}

/// Whether all of the terms select a pod; no terms select none.
pub(super) fn all_match(terms: &[Term], pod: &Pod) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod))
}

/// Whether terms are worth answering by label rather than pod by pod.
pub(super) fn are_many<'a>(terms: impl Iterator<Item = &'a Term>) -> bool {
    terms.map(Term::comparisons).sum::<usize>() > FEW_COMPARISONS
}

/// Resolves terms. Terms that name the same namespaces share them.
pub(super) struct Resolver<'a> {
    cluster: &'a Cluster,
    known: HashMap<(&'a [Name], &'a Selector), Namespaces>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, known: HashMap::new() }
    }

    pub(super) fn resolve(&mut self, term: &'a AffinityTerm) -> Term {
        let (listed, selector) = (&term.namespaces[..], &term.namespace_selector);
        let cluster = self.cluster;
        let namespaces = match selector {
            Selector::Nothing if listed.len() == 1 => Namespaces::These(listed.into()),
            _ => (self.known.entry((listed, selector)))
                .or_insert_with(|| namespaces(cluster, listed, selector))
                .clone(),
        };
        Term { selector: term.selector.clone(), namespaces, topology_key: term.topology_key.clone() }
    }

    pub(super) fn resolve_all(&mut self, terms: &'a [AffinityTerm]) -> Vec<Term> {
        terms.iter().map(|term| self.resolve(term)).collect()
    }
}

fn namespaces(cluster: &Cluster, listed: &[Name], selector: &Selector) -> Namespaces {
    if selector.matches(&Labels::default()) {
        return Namespaces::All;
    }
    let selected = cluster.namespaces().filter(|ns| selector.matches(&ns.labels));
    let mut names: Vec<Name> = listed.iter().cloned().chain(selected.map(|ns| ns.name.clone())).collect();
    names.sort_unstable();
    names.dedup();
    Namespaces::These(names.into())
}

/// Sums by topology key. There are few: only keys that nodes have count.
#[derive(Clone, Debug, Default)]
pub(super) struct ByKey(pub(super) Vec<(Name, i64)>);

impl ByKey {
    pub(super) fn add(&mut self, cluster: &Cluster, key: &Name, worth: i64) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, sum)) => *sum += worth,
            None if cluster.label_columns().get(key).is_some() => self.0.push((key.clone(), worth)),
            None => {}
        }
    }
}

/// Terms and what each is worth; those whose topology key no node has are left out, as they change nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct WeightedTerms {
    list: Vec<(Term, i64)>,
    many: bool,
}

impl WeightedTerms {
    pub(super) fn new<'a>(
        cluster: &'a Cluster,
        terms: impl IntoIterator<Item = (&'a AffinityTerm, i64)>,
    ) -> Self {
        let mut resolver = Resolver::new(cluster);
        let counts = |(term, _): &(&AffinityTerm, i64)| {
            cluster.label_columns().get(&term.topology_key).is_some() && term.selector != Selector::Nothing
        };
        let mut list: Vec<(Term, i64)> =
            (terms.into_iter().filter(counts)).map(|(term, worth)| (resolver.resolve(term), worth)).collect();
        if list.len() > 1 {
            list = merged(list);
        }
        let many = are_many(list.iter().map(|(term, _)| term));
        Self { list, many }
    }

    /// Whether it is better not to ask pod by pod.
    pub(super) fn are_many(&self) -> bool {
        self.many
    }

    /// The terms, with what they are worth.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Term, i64)> {
        self.list.iter().map(|(term, worth)| (term, *worth))
    }

    /// The topology keys, some of them several times.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Name> {
        self.list.iter().map(|(term, _)| &term.topology_key)
    }

    /// What the terms that select a pod are worth.
    pub(super) fn met_by<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = (&'a Name, i64)> + 'a {
        self.iter().filter(|(term, _)| term.matches(pod)).map(|(term, worth)| (&term.topology_key, worth))
    }

    /// What the terms are worth to bound pods, by topology key and class.
    pub(super) fn met_by_classes<'a>(&self, cluster: &'a Cluster) -> Vec<(Name, &'a PodClass, i64)> {
        if self.many {
            return self.met_by_label(cluster);
        }
        let mut met = Vec::new();
        for (term, worth) in self.iter() {
            let selected = cluster.groups().selected(&term.selector);
            let selected = selected.filter(|group| term.matches(&group.sample));
            met.extend(selected.map(|group| (term.topology_key.clone(), group, worth)));
        }
        met
    }

    fn met_by_label<'a>(&self, cluster: &'a Cluster) -> Vec<(Name, &'a PodClass, i64)> {
        let mut keys: Vec<(&Name, Vec<f64>)> = Vec::new();
        let mut classes = Classes::new(cluster);
        for (term, worth) in self.iter() {
            let selected = classes.select(term);
            let place = keys.iter().position(|(key, _)| *key == &term.topology_key).unwrap_or_else(|| {
                keys.push((&term.topology_key, vec![0.0; cluster.groups().places()]));
                keys.len() - 1
            });
            selected.add_to(&mut keys[place].1, worth as f64);
        }
        let mut met = Vec::new();
        for (key, worths) in keys {
            let worths = worths.into_iter().enumerate().filter(|(_, worth)| *worth != 0.0);
            let groups = worths.filter_map(|(i, worth)| Some((cluster.groups().get(i)?, worth as i64)));
            met.extend(groups.map(|(group, worth)| (key.clone(), group, worth)));
        }
        met
    }
}

/// Equal terms as one, worth what they are worth together.
fn merged(list: Vec<(Term, i64)>) -> Vec<(Term, i64)> {
    let mut worths: HashMap<Term, i64> = HashMap::with_capacity(list.len());
    for (term, worth) in list {
        *worths.entry(term).or_default() += worth;
    }
    worths.into_iter().filter(|(_, worth)| *worth != 0).collect()
}

/// For so many lists of namespaces it is remembered which classes are there.
const KEPT_NAMESPACES: usize = 64;

/// The classes of bound pods that terms select, found by label and namespace.
pub(super) struct Classes<'a> {
    selection: PodClassSelection<'a>,
    /// By the address of the names, which are kept so that it stays theirs.
    in_namespaces: HashMap<usize, (Arc<[Name]>, Bits)>,
    selected: Bits,
}

impl<'a> Classes<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        let selection = cluster.groups().selection();
        Self { selection, in_namespaces: HashMap::new(), selected: Bits::default() }
    }

    /// The places of the classes that a term selects.
    pub(super) fn select(&mut self, term: &Term) -> &Bits {
        self.selection.select(&term.selector, &mut self.selected);
        if let Namespaces::These(names) = &term.namespaces {
            if self.in_namespaces.len() > KEPT_NAMESPACES {
                self.in_namespaces.clear();
            }
            let selection = &mut self.selection;
            let inside = (self.in_namespaces.entry(names.as_ptr() as usize))
                .or_insert_with(|| (names.clone(), selection.in_namespaces(names.iter())));
            self.selected.keep_only(&inside.1);
        }
        &self.selected
    }

    /// The places of the classes that all of the terms select; no terms select none.
    pub(super) fn select_by_all(&mut self, terms: &[Term]) -> Bits {
        let mut all: Option<Bits> = None;
        for term in terms {
            let selected = self.select(term);
            match &mut all {
                None => all = Some(selected.clone()),
                Some(all) => all.keep_only(selected),
            }
        }
        all.unwrap_or_default()
    }
}

/// What the terms of bound pods that select a pod are worth to it, by topology key and class.
pub(super) fn met_by_terms_about<'a>(
    cluster: &'a Cluster,
    pod: &Pod,
    namespace_labels: &Labels,
    worth: impl Fn(&TermAbout<'_>) -> i64,
) -> Vec<(Name, &'a PodClass, i64)> {
    let mut met = Vec::new();
    let mut last: Option<(&PodClass, ByKey)> = None;
    for about in cluster.groups().terms_about(&pod.spec) {
        let worth = worth(&about);
        if worth == 0 || !about.term.matches(pod, namespace_labels) {
            continue;
        }
        if last.as_ref().is_none_or(|(group, _)| !std::ptr::eq(*group, about.group)) {
            met.extend(last.replace((about.group, ByKey::default())).into_iter().flat_map(by_class));
        }
        if let Some((_, by_key)) = &mut last {
            by_key.add(cluster, &about.term.topology_key, worth);
        }
    }
    met.extend(last.into_iter().flat_map(by_class));
    met
}

fn by_class((group, ByKey(worths)): (&PodClass, ByKey)) -> impl Iterator<Item = (Name, &PodClass, i64)> {
    worths.into_iter().map(move |(key, worth)| (key, group, worth))
}
