//! The pods of a trace as a distribution: what a pod that comes next may ask for.
//!
//! Fragmentation is measured against it, after "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
//! Fragmentation Gradient Descent" (USENIX ATC '23): what is free on a node is of no use to a pod that does not fit there.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use supercargo_model::{
    Key, Name, Node, Pod, PodSpec, Resources,
    object::{Kind, Object},
    resources::{CPU, EPHEMERAL_STORAGE, MEMORY},
    taint::{Taint, TaintEffect, find_untolerated},
};

use crate::trace::{Trace, TraceEvent};

/// More different requests than this are not told apart: the most frequent ones stand for all.
const MAX_SHAPES: usize = 1024;
/// The taint that stands for a cordoned node.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// What pods ask for, and how often. Shapes that may go to the same nodes stand side by side.
#[derive(Clone, Debug, Default)]
pub struct PodMix {
    /// The resources that are measured: cpu, memory, and what else the pods ask for.
    pub resources: Vec<Name>,
    /// By resource: what each shape asks for.
    requests: Vec<Vec<f64>>,
    /// By resource: how often a pod that asks for it is of each shape; the sum is 1, or 0 if none asks.
    shares: Vec<Vec<f64>>,
    /// Who may go to the same nodes: one of them, and the range of their shapes.
    classes: Vec<(Arc<PodSpec>, Range<usize>)>,
}

impl PodMix {
    /// The pods of a trace, those that it begins with included.
    pub fn of(trace: &Trace) -> Self {
        // What happens to a pod later makes no second pod.
        let (mut pods, mut there): (Vec<&Pod>, HashSet<Key>) = Default::default();
        for timed in &trace.events {
            match &timed.event {
                TraceEvent::Arrival(pod) => {
                    there.insert(pod.key());
                    pods.push(pod);
                }
                TraceEvent::Put(object) => {
                    if let Object::Pod(pod) = &**object
                        && there.insert(pod.key())
                    {
                        pods.push(pod);
                    }
                }
                TraceEvent::Remove(Kind::Pod, key) => drop(there.remove(key)),
                TraceEvent::Remove(..) => {}
            }
        }
        Self::of_pods(pods.into_iter())
    }

    fn of_pods<'p>(pods: impl Iterator<Item = &'p Pod>) -> Self {
        let mut counts: HashMap<&Resources, HashMap<NodeWish<'_>, (usize, &'p Arc<PodSpec>)>> =
            HashMap::new();
        let (mut scalars, mut disk) = (BTreeSet::new(), false);
        for pod in pods {
            let requests = &pod.spec.requests.fit;
            scalars.extend(requests.scalars.iter().map(|(name, _)| name.clone()));
            disk |= requests.ephemeral_storage > 0;
            let by_wish = counts.entry(requests).or_default();
            by_wish.entry(NodeWish::of(&pod.spec)).or_insert((0, &pod.spec)).0 += 1;
        }
        let resources: Vec<Name> = [CPU, MEMORY]
            .into_iter()
            .chain(disk.then_some(EPHEMERAL_STORAGE))
            .map(Name::from)
            .chain(scalars)
            .collect();
        let mut shapes: Vec<(usize, &Resources, NodeWish<'_>, &Arc<PodSpec>)> = (counts.into_iter())
            .flat_map(|(requests, wishes)| {
                wishes.into_iter().map(move |(wish, (count, spec))| (count, requests, wish, spec))
            })
            .collect();
        // In an order that no hash has a part in.
        let amounts = |of: &Resources| -> Vec<i64> { resources.iter().map(|name| of.get(name)).collect() };
        shapes.sort_by_cached_key(|(count, requests, wish, _)| {
            (usize::MAX - count, amounts(requests), format!("{wish:?}"))
        });
        shapes.truncate(MAX_SHAPES);
        Self::of_shapes(resources, shapes)
    }

    fn of_shapes(
        resources: Vec<Name>,
        shapes: Vec<(usize, &Resources, NodeWish<'_>, &Arc<PodSpec>)>,
    ) -> Self {
        let mut wishes: Vec<&NodeWish<'_>> = Vec::new();
        let mut numbers: HashMap<&NodeWish<'_>, usize> = HashMap::new();
        for (_, _, wish, _) in &shapes {
            numbers.entry(wish).or_insert_with(|| {
                wishes.push(wish);
                wishes.len() - 1
            });
        }
        let mut ordered: Vec<_> = shapes.iter().collect();
        ordered.sort_by_key(|(_, _, wish, _)| numbers[wish]);
        let mut classes: Vec<(Arc<PodSpec>, Range<usize>)> = Vec::new();
        for (i, (_, _, wish, spec)) in ordered.iter().enumerate() {
            match classes.get_mut(numbers[wish]) {
                Some((_, range)) => range.end = i + 1,
                None => classes.push(((*spec).clone(), i..i + 1)),
            }
        }
        let column =
            |name: &Name| -> Vec<f64> { ordered.iter().map(|(_, r, ..)| r.get(name) as f64).collect() };
        let requests: Vec<Vec<f64>> = resources.iter().map(column).collect();
        let shares = requests.iter().map(|column| {
            let asks = |(count, amount): (f64, &f64)| if *amount > 0.0 { count } else { 0.0 };
            let counts = ordered.iter().map(|(count, ..)| *count as f64).zip(column).map(asks);
            let counts: Vec<f64> = counts.collect();
            let sum = counts.iter().sum::<f64>().max(1.0);
            counts.into_iter().map(|count| count / sum).collect()
        });
        Self { shares: shares.collect(), resources, requests, classes }
    }

    /// Whether any pod asks for the resource at this place.
    pub(super) fn is_asked_for(&self, resource: usize) -> bool {
        self.shares[resource].iter().any(|share| *share > 0.0)
    }

    /// Which of the classes may go to a node, whatever is free there.
    pub(super) fn admitted(&self, node: &Node) -> Vec<bool> {
        self.classes.iter().map(|(spec, _)| admits(node, spec)).collect()
    }

    /// What share of the pods that ask for each resource fits into what is free on a node.
    pub(super) fn fitting(&self, admitted: &[bool], free: &[f64], shares: &mut [f64]) {
        shares.fill(0.0);
        for ((_, range), _) in self.classes.iter().zip(admitted).filter(|(_, admitted)| **admitted) {
            for shape in range.clone() {
                let fits = self.requests.iter().zip(free).all(|(column, free)| column[shape] <= *free);
                if fits {
                    shares.iter_mut().zip(&self.shares).for_each(|(sum, column)| *sum += column[shape]);
                }
            }
        }
    }
}

/// What a pod requires of nodes besides room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NodeWish<'p> {
    selector: &'p supercargo_model::Labels,
    required: &'p Option<supercargo_model::selector::NodeSelector>,
    tolerations: &'p supercargo_model::taint::Tolerations,
}

impl<'p> NodeWish<'p> {
    fn of(spec: &'p PodSpec) -> Self {
        Self {
            selector: &spec.node_selector,
            required: &spec.node_affinity.required,
            tolerations: &spec.tolerations,
        }
    }
}

/// Whether a node lets a pod in, as far as its labels and taints go.
pub(super) fn admits(node: &Node, pod: &PodSpec) -> bool {
    meets_node_affinity(node, pod) && tolerates(node, pod)
}

pub(super) fn meets_node_affinity(node: &Node, pod: &PodSpec) -> bool {
    let required = pod.node_affinity.required.as_ref();
    (pod.node_selector.iter()).all(|(key, value)| node.labels.get(key) == Some(value))
        && required.is_none_or(|required| required.matches(&node.name, &node.labels))
}

pub(super) fn tolerates(node: &Node, pod: &PodSpec) -> bool {
    let cordon =
        Taint { key: UNSCHEDULABLE_TAINT.into(), value: Name::default(), effect: TaintEffect::NoSchedule };
    find_untolerated(&node.taints, &pod.tolerations).is_none()
        && (!node.unschedulable || pod.tolerations.tolerate(&cordon))
}
