//! Changes of a cluster that somebody thinks about: more nodes, a node drained or gone, everything decided anew.

use std::collections::{BTreeMap, HashSet};

use supercargo_manifest::{Problem, nearest};
use supercargo_model::{
    Key, Name, Node, Pod,
    node::HOSTNAME_LABEL,
    object::Object,
    taint::{Taint, TaintEffect},
};

/// The taint that a cordoned node gets.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// What comes of taking pods off their nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisplacedPods {
    /// The pods that wait for a node now, and the one they were on.
    pub pods: Vec<(Key, Name)>,
    /// How many daemons and static pods stayed, or went with their node.
    pub daemons: usize,
    /// How many pods have no controller that would make them anew.
    pub unmanaged: usize,
    /// Budgets that allow fewer disruptions than there would be: who, how many it allows, how many of its pods move.
    pub budgets: Vec<(Key, i32, usize)>,
}

/// Adds copies of nodes. Each gets a name of its own, and the host name that goes with it.
pub fn add_nodes(objects: &mut Vec<Object>, nodes: &[Node], copies: u32) {
    let mut taken: HashSet<Name> = self::nodes(objects).map(|node| node.name.clone()).collect();
    for node in nodes {
        for number in 1..=copies {
            let numbered = |number: u32| Name::from(format!("{}-{number}", node.name));
            let own = Some(node.name.clone()).filter(|name| copies == 1 && !taken.contains(name));
            let later = || (number..).map(numbered).find(|name| !taken.contains(name));
            let Some(name) = own.or_else(later) else { continue };
            taken.insert(name.clone());
            let host = [(Name::from(HOSTNAME_LABEL), name.clone())];
            let labels = node.labels.iter().map(|(key, value)| (key.clone(), value.clone())).chain(host);
            objects.push(Object::Node(Node {
                labels: labels.collect(),
                uid: format!("added/{name}").into(),
                name,
                ..node.clone()
            }));
        }
    }
}

/// Cordons a node and makes its pods wait, as `kubectl drain` would: daemons and static pods stay.
pub fn drain(objects: &mut [Object], node: &str) -> Result<DisplacedPods, Problem> {
    let cordoned = find_node(objects, node)?;
    cordoned.unschedulable = true;
    let taint = Taint { key: UNSCHEDULABLE_TAINT.into(), value: "".into(), effect: TaintEffect::NoSchedule };
    if !cordoned.taints.contains(&taint) {
        cordoned.taints.push(taint);
    }
    Ok(unbind(objects, |pod| pod.node.as_deref() == Some(node)))
}

/// Takes a node away, as if it had failed: its pods wait, and its daemons are gone with it.
pub fn remove_node(objects: &mut Vec<Object>, node: &str) -> Result<DisplacedPods, Problem> {
    find_node(objects, node)?;
    let moved = unbind(objects, |pod| pod.node.as_deref() == Some(node));
    objects.retain(|object| match object {
        Object::Node(other) => &*other.name != node,
        Object::CsiNode(other) => &*other.name != node,
        Object::Pod(pod) => pod.node.as_deref() != Some(node),
        _ => true,
    });
    Ok(moved)
}

/// Makes all pods wait that are on a node, but for daemons, static pods, and those of schedulers that are not asked.
pub fn reschedule(objects: &mut [Object], asked: &HashSet<Name>) -> DisplacedPods {
    unbind(objects, |pod| asked.contains(&pod.spec.scheduler_name))
}

fn unbind(objects: &mut [Object], chosen: impl Fn(&Pod) -> bool) -> DisplacedPods {
    let mut moved = DisplacedPods::default();
    let mut by_budget: BTreeMap<Key, (i32, usize)> = BTreeMap::new();
    let budgets: Vec<_> = objects
        .iter()
        .filter_map(|object| match object {
            Object::PodDisruptionBudget(budget) => Some(budget.clone()),
            _ => None,
        })
        .collect();
    for object in objects {
        let Object::Pod(pod) = object else { continue };
        let Some(node) = pod.node.clone().filter(|_| chosen(pod) && !pod.finished && !pod.terminating) else {
            continue;
        };
        if is_daemon(pod) {
            moved.daemons += 1;
            continue;
        }
        moved.unmanaged += usize::from(pod.spec.controller.is_none());
        let protects = budgets
            .iter()
            .filter(|budget| budget.namespace == pod.namespace && budget.selector.matches(&pod.spec.labels));
        for budget in protects {
            by_budget.entry(budget.key()).or_insert((budget.disruptions_allowed, 0)).1 += 1;
        }
        moved.pods.push((pod.key(), node));
        *pod = Pod { node: None, nominated_node: None, started: None, not_scheduled: None, ..pod.clone() };
    }
    let too_few = by_budget.into_iter().filter(|(_, (allowed, pods))| i64::from(*allowed) < *pods as i64);
    moved.budgets = too_few.map(|(key, (allowed, pods))| (key, allowed, pods)).collect();
    moved
}

/// Whether a pod belongs to its node, and would not be made elsewhere: daemons, and static pods, which the node owns.
fn is_daemon(pod: &Pod) -> bool {
    pod.spec.controller.as_ref().is_some_and(|owner| matches!(&*owner.kind, "DaemonSet" | "Node"))
}

fn nodes(objects: &[Object]) -> impl Iterator<Item = &Node> {
    objects.iter().filter_map(|object| match object {
        Object::Node(node) => Some(node),
        _ => None,
    })
}

fn find_node<'o>(objects: &'o mut [Object], name: &str) -> Result<&'o mut Node, Problem> {
    let unknown = unknown_node(objects, name);
    let mut nodes = objects.iter_mut().filter_map(|object| match object {
        Object::Node(node) => Some(node),
        _ => None,
    });
    nodes.find(|node| &*node.name == name).ok_or(unknown)
}

fn unknown_node(objects: &[Object], name: &str) -> Problem {
    let problem = Problem::error(format!("there is no node {name}"));
    match nearest(name, nodes(objects).map(|node| &*node.name)) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => {
            problem.hint(format!("{} nodes were read, none with a name like this", nodes(objects).count()))
        }
    }
}
