//! Which pods are in the way of a pod on a node, or missing there.

use std::collections::BTreeSet;

use serde_json::json;
use supercargo_framework::details::{Detail, listed};
use supercargo_model::{Cluster, Labels, Name, NodeInfo, Pod, pod::AffinityTerm};

use super::filtering::Counts;

/// A domain of the topology that a node is in, as a filter sees it: the node may differ from the cluster's.
struct Domain<'a> {
    key: &'a Name,
    value: &'a Name,
    nodes: Vec<&'a NodeInfo>,
}

impl<'a> Domain<'a> {
    fn of(cluster: &'a Cluster, node: &'a NodeInfo, key: &'a Name) -> Option<Self> {
        let value = node.node.labels.get(key)?;
        let inside = cluster.nodes().filter(|other| other.node.labels.get(key) == Some(value));
        let nodes = inside.map(|other| if other.id == node.id { node } else { other }).collect();
        Some(Self { key, value, nodes })
    }

    /// The pods in it that are meant, as `namespace/name on node`, by name.
    fn pods(&self, meant: impl Fn(&Pod) -> bool) -> Vec<String> {
        let mut pods = BTreeSet::new();
        for node in &self.nodes {
            let here = node.pods.iter().filter(|pod| meant(pod));
            pods.extend(here.map(|pod| format!("{} on {}", pod.key(), node.name())));
        }
        pods.into_iter().collect()
    }
}

pub(super) fn details(counts: &Counts, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let mut details = Vec::new();
    if !counts.satisfies_affinity(&node.node) {
        details.extend(missing(cluster, pod, node));
    }
    if !counts.satisfies_anti_affinity(&node.node) {
        details.extend(unwanted(cluster, pod, node));
    }
    if !counts.satisfies_existing(&node.node) {
        details.extend(not_wanted_by(cluster, pod, node));
    }
    details
}

/// What the pod wants near, and is not. All of its terms have to select one and the same pod.
fn missing(cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let terms = &pod.spec.pod_affinity.required;
    let wanted: Vec<String> = terms.iter().map(|term| term.selector.to_string()).collect();
    let wanted = wanted.join(" and ");
    let selected = |other: &Pod| {
        let labels = cluster.namespace_labels(&other.namespace);
        terms.iter().all(|term| term.matches(other, &labels))
    };
    let keys: BTreeSet<&Name> = terms.iter().map(|term| &term.topology_key).collect();
    let lack = |key: &&Name| match Domain::of(cluster, node, key) {
        None => Some(
            Detail::new(format!("podAffinity goes by {key}, and the node has no such label"))
                .fact("rule", "podAffinity")
                .fact("topologyKey", &***key),
        ),
        Some(domain) => domain.pods(selected).is_empty().then(|| {
            let Domain { key, value, .. } = domain;
            Detail::new(format!("podAffinity wants {wanted} nearby, and no such pod runs in {key}={value}"))
                .fact("rule", "podAffinity")
                .fact("selector", &*wanted)
                .fact("topologyKey", &**key)
                .fact("domain", &**value)
        }),
    };
    keys.iter().filter_map(lack).collect()
}

/// Pods that the pod does not want near.
fn unwanted(cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let mut details = Vec::new();
    for term in &pod.spec.pod_anti_affinity.required {
        let Some(domain) = Domain::of(cluster, node, &term.topology_key) else { continue };
        let pods = domain.pods(|other| term.matches(other, &cluster.namespace_labels(&other.namespace)));
        if !pods.is_empty() {
            let Domain { key, value, .. } = domain;
            let selector = &term.selector;
            let text = format!(
                "podAntiAffinity keeps it from {selector}, and in {key}={value} runs {}",
                listed(&pods)
            );
            details.push(in_the_way(text, "podAntiAffinity", term, value, &pods));
        }
    }
    details
}

/// Pods that do not want the pod near.
fn not_wanted_by(cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let labels = cluster.namespace_labels(&pod.namespace);
    let mut details = Vec::new();
    for (key, value) in node.node.labels.iter() {
        let Some(domain) = Domain::of(cluster, node, key) else { continue };
        let refuses = |other: &Pod| own_terms_against(other, pod, &labels, key).next().is_some();
        let pods = domain.pods(refuses);
        let terms = domain.nodes.iter().flat_map(|node| node.pods.iter());
        let Some(term) = terms.flat_map(|other| own_terms_against(other, pod, &labels, key)).next() else {
            continue;
        };
        let selector = &term.selector;
        let text = format!(
            "the podAntiAffinity of {} keeps {selector} out of {key}={value}, and the pod is that",
            listed(&pods)
        );
        details.push(in_the_way(text, "podAntiAffinity of a running pod", term, value, &pods));
    }
    details
}

/// The terms by which one pod keeps another out of its domain of a topology.
fn own_terms_against<'a>(
    one: &'a Pod,
    other: &'a Pod,
    namespace_labels: &'a Labels,
    key: &'a Name,
) -> impl Iterator<Item = &'a AffinityTerm> {
    let terms = one.spec.pod_anti_affinity.required.iter();
    terms.filter(move |term| term.topology_key == *key && term.matches(other, namespace_labels))
}

fn in_the_way(text: String, rule: &str, term: &AffinityTerm, domain: &Name, pods: &[String]) -> Detail {
    Detail::new(text)
        .fact("rule", rule)
        .fact("selector", term.selector.to_string())
        .fact("topologyKey", &*term.topology_key)
        .fact("domain", &**domain)
        .fact("pods", json!(pods))
}
