//! Reads what the rules look at in objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use supercargo_model::quantity::Quantity;

use crate::soak::objects::EXCLUSIVE;

/// Amounts by resource; cpu in thousandths.
pub(in crate::soak) type Amounts = BTreeMap<String, i64>;

pub(in crate::soak) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    let found = path.iter().try_fold(value, |value, key| value.get(key));
    found.and_then(Value::as_str).unwrap_or_default()
}

pub(in crate::soak) fn name_of(object: &Value) -> String {
    format!("{}/{}", text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]))
}

pub(super) fn version_of(object: &Value) -> u64 {
    text(object, &["metadata", "resourceVersion"]).parse().unwrap_or(0)
}

fn amount(resource: &str, value: &Value) -> i64 {
    let quantity: Quantity = value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
    if resource == "cpu" { quantity.milli_value() } else { quantity.value() }
}

pub(super) fn amounts(of: &Value) -> Amounts {
    let entries = of.as_object().into_iter().flatten();
    entries.map(|(resource, value)| (resource.clone(), amount(resource, value))).collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["containers"].as_array().into_iter().flatten()
}

pub(in crate::soak) fn demand(pod: &Value) -> Amounts {
    let mut sum = Amounts::from([("pods".to_owned(), 1)]);
    for container in containers(pod) {
        for (resource, asked) in amounts(&container["resources"]["requests"]) {
            let sum = sum.entry(resource).or_default();
            *sum = sum.saturating_add(asked);
        }
    }
    sum
}

/// Whether amounts alone say where the pod fits, and whom it keeps away.
pub(in crate::soak) fn is_plain(pod: &Value) -> bool {
    let spec = &pod["spec"];
    let is_told = |key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    !is_told("affinity")
        && !is_told("topologySpreadConstraints")
        && !is_told("volumes")
        && host_ports(pod).is_empty()
}

/// A claim of the pod's that is for one pod at a time.
pub(super) fn exclusive_claim(pod: &Value) -> Option<String> {
    let mut volumes = pod["spec"]["volumes"].as_array()?.iter();
    let is_exclusive = |volume: &&Value| text(volume, &["persistentVolumeClaim", "claimName"]) == EXCLUSIVE;
    volumes.find(is_exclusive)?;
    Some(format!("{}/{EXCLUSIVE}", text(pod, &["metadata", "namespace"])))
}

pub(super) fn host_ports(pod: &Value) -> BTreeSet<i64> {
    let ports = containers(pod).flat_map(|container| container["ports"].as_array().into_iter().flatten());
    ports.filter_map(|port| port["hostPort"].as_i64()).collect()
}
