//! Which taints a pod does not tolerate, and what toleration it lacks.

use serde_json::json;
use supercargo_framework::details::{Detail, RefusalKind, listed};
use supercargo_model::{
    NodeInfo, Pod,
    taint::{Taint, Toleration, TolerationOperator, find_untolerated},
};

use super::UNTOLERATED;

pub(super) fn details(pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let tolerations = &pod.spec.tolerations;
    let untolerated = |taint: &&Taint| taint.effect.repels() && !tolerations.tolerate(taint);
    node.node.taints.iter().filter(untolerated).map(|taint| detail(taint, tolerations)).collect()
}

/// Counted by the taint that kube-scheduler meets first.
pub(super) fn kinds(pod: &Pod, node: &NodeInfo) -> Vec<RefusalKind> {
    let first = find_untolerated(&node.node.taints, &pod.spec.tolerations);
    let kind =
        |taint: &Taint| RefusalKind { reason: UNTOLERATED.into(), kind: format!("have {taint}").into() };
    first.map(kind).into_iter().collect()
}

fn detail(taint: &Taint, tolerations: &[Toleration]) -> Detail {
    let Taint { key, value, effect } = taint;
    let operator = if value.is_empty() { "Exists" } else { "Equal" };
    let with_value = if value.is_empty() { String::new() } else { format!(", value: {value}") };
    let lacking = format!("{{key: {key}, operator: {operator}{with_value}, effect: {effect:?}}}");
    let near: Vec<String> =
        tolerations.iter().filter(|toleration| toleration.key == *key).map(in_words).collect();
    let but = if near.is_empty() { String::new() } else { format!("; it has {}", listed(&near)) };
    let mut toleration = json!({"key": key, "operator": operator, "effect": format!("{effect:?}")});
    if !value.is_empty() {
        toleration["value"] = json!(value);
    }
    Detail::new(format!("taint {taint} is not tolerated: the pod lacks the toleration {lacking}{but}"))
        .fact("taint", taint.to_string())
        .fact("missingToleration", toleration)
}

fn in_words(toleration: &Toleration) -> String {
    let Toleration { key, operator, value, effect } = toleration;
    let value = match operator {
        TolerationOperator::Equal => format!(", value: {value}"),
        _ => String::new(),
    };
    let effect = effect.map_or_else(String::new, |effect| format!(", effect: {effect:?}"));
    format!("{{key: {key}, operator: {operator:?}{value}{effect}}}")
}
