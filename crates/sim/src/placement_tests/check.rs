//! Whether an expectation holds, and why not.

use std::collections::BTreeMap;

use supercargo_engine::{AttemptFailure, Decision, Engine, Outcome};
use supercargo_model::{Key, Name, Node, Pod};

use super::{NodeMatch, PendingReason, Placed, PlacementExpectation, Placements, Spread};
use crate::capacity;

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// How many pods or nodes are told of in a failure.
const MAX_TOLD: usize = 5;

/// What is not as expected, a sentence or two for each thing; empty if all is.
pub fn check(expectation: &PlacementExpectation, placements: &mut Placements) -> Vec<String> {
    let chosen: Vec<usize> = (0..placements.pods.len())
        .filter(|i| expectation.pods.as_ref().is_none_or(|name| is_named(&placements.pods[*i].pod, name)))
        .collect();
    if chosen.is_empty() {
        return vec![no_such_pods(expectation, placements)];
    }
    let pods: Vec<&Placed> = chosen.iter().map(|i| &placements.pods[*i]).collect();
    let mut failures = Vec::new();
    for placed in &pods {
        failures.extend(expectation.goes_to.as_ref().and_then(|to| goes_to(placed, to, &placements.engine)));
        let away = expectation.stays_away_from.as_ref();
        failures.extend(away.and_then(|from| stays_away(placed, from, &placements.engine)));
        failures.extend(expectation.pending_because.as_ref().and_then(|why| pending(placed, why)));
    }
    failures
        .extend(expectation.spreads_within.as_ref().and_then(|how| spread(&pods, how, &placements.engine)));
    failures.extend(preemption(&pods, expectation));
    if let Some(wanted) = expectation.would_fit {
        let pod = (*pods[0].pod).clone();
        failures.extend(would_fit(&mut placements.engine, &pod, wanted));
    }
    let more = failures.len().saturating_sub(MAX_TOLD);
    failures.truncate(MAX_TOLD);
    if more > 0 {
        failures.push(format!("… and {more} more"));
    }
    failures
}

/// Whether a pod is meant: by its name, its workload's, or a pattern.
fn is_named(pod: &Pod, pattern: &str) -> bool {
    let (namespace, pattern) = match pattern.split_once('/') {
        Some((namespace, pattern)) => (Some(namespace), pattern),
        None => (None, pattern),
    };
    let owner = pod.spec.controller.as_ref();
    // A deployment's replica sets are called after it.
    let of_owner = owner.is_some_and(|owner| {
        let deployment = owner.name.rsplit_once('-').map(|(name, _)| name);
        matches(pattern, &owner.name)
            || &*owner.kind == "ReplicaSet" && deployment.is_some_and(|name| matches(pattern, name))
    });
    namespace.is_none_or(|namespace| matches(namespace, &pod.namespace))
        && (matches(pattern, &pod.name) || of_owner)
}

/// Whether a text is like a pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    rest.char_indices().map(|(i, _)| i).chain([rest.len()]).any(|i| matches(after, &rest[i..]))
}

fn no_such_pods(expectation: &PlacementExpectation, placements: &Placements) -> String {
    let names = placements.pods.iter().map(|placed| placed.pod.key().to_string());
    let pattern = expectation.pods.as_deref().unwrap_or("*");
    match placements.pods.len() {
        0 => "there are no pods to place".to_owned(),
        _ => format!("no pod is called {pattern}; there are {}", listed(names)),
    }
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MAX_TOLD);
    let mut told = names[..names.len() - more].join(", ");
    if more > 0 {
        told.push_str(&format!(" and {more} more"));
    }
    told
}

impl NodeMatch {
    fn contain(&self, node: &Node) -> bool {
        let zone = node.labels.get(ZONE_LABEL);
        (self.nodes.is_empty() || self.nodes.iter().any(|pattern| matches(pattern, &node.name)))
            && (self.zones.is_empty()
                || self.zones.iter().any(|known| zone.is_some_and(|zone| **known == **zone)))
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&node.labels))
    }
}

/// The nodes of a cluster that are meant.
fn chosen<'e>(nodes: &'e NodeMatch, engine: &'e Engine) -> impl Iterator<Item = &'e Name> {
    engine.cluster().nodes().filter(|info| nodes.contain(&info.node)).map(|info| info.name())
}

fn goes_to(placed: &Placed, to: &NodeMatch, engine: &Engine) -> Option<String> {
    let key = placed.pod.key();
    let why = || {
        let nodes = chosen(to, engine).map(|node| format!("{node}: {}", why_not(&placed.decision, node)));
        let told = listed(nodes);
        if told.is_empty() { "no node is like that".to_owned() } else { told }
    };
    match placed.decision.node() {
        Some(node) if engine.cluster().node(node).is_some_and(|info| to.contain(&info.node)) => None,
        Some(node) => Some(format!("{key} goes to {node}; of the expected nodes, {}", why())),
        None => Some(format!("{key} stays pending: {}; of the expected nodes, {}", message(placed), why())),
    }
}

fn stays_away(placed: &Placed, from: &NodeMatch, engine: &Engine) -> Option<String> {
    let node = placed.decision.node()?;
    let is_there = engine.cluster().node(node).is_some_and(|info| from.contain(&info.node));
    let others = placed.decision.feasible.iter().filter(|other| *other != node).count();
    is_there.then(|| {
        let total = placed.decision.best_total().unwrap_or_default();
        format!(
            "{} goes to {node}, with a total of {total}; {others} other nodes are feasible",
            placed.pod.key()
        )
    })
}

/// Why a pod did not get a node.
fn why_not(decision: &Decision, node: &Name) -> String {
    if let Some(rejection) = decision.rejected.get(node).or(decision.refused.as_ref()) {
        return format!("{} ({})", rejection.status.message(), rejection.plugin);
    }
    let Some(place) = decision.feasible.iter().position(|feasible| feasible == node) else {
        return "not among the nodes that the pod asks for".to_owned();
    };
    let total = decision.scores.totals.get(place).copied().unwrap_or_default();
    let best = decision.best_total().unwrap_or_default();
    if total == best {
        return format!("as good, with a total of {total}: the tie was broken by the seed");
    }
    let winner = decision.node().and_then(|node| decision.feasible.iter().position(|other| other == node));
    let mut behind: Vec<(i64, &str)> = (decision.scores.columns.iter())
        .filter_map(|column| {
            let points =
                |place: usize| column.normalized.get(place).map(|score| score * i64::from(column.weight));
            let by = points(winner?)? - points(place)?;
            (by > 0).then_some((by, &*column.plugin))
        })
        .collect();
    behind.sort_by_key(|(by, _)| std::cmp::Reverse(*by));
    let behind: Vec<String> = behind.iter().take(2).map(|(by, plugin)| format!("{by} by {plugin}")).collect();
    format!("feasible, {} points behind ({})", best - total, behind.join(", "))
}

fn message(placed: &Placed) -> String {
    placed.decision.message().unwrap_or_else(|| "no reason given".to_owned())
}

fn pending(placed: &Placed, why: &PendingReason) -> Option<String> {
    let key = placed.pod.key();
    if let Outcome::Scheduled { node } = &placed.decision.outcome {
        return Some(format!("{key} goes to {node}; it was expected to stay pending"));
    }
    let message = message(placed);
    if let Some(expected) = why.message.as_ref().filter(|expected| !message.contains(*expected)) {
        return Some(format!("{key} stays pending for another reason than \"{expected}\": {message}"));
    }
    let plugins = refused_by(&placed.decision);
    let other = why.plugin.as_ref().filter(|plugin| !plugins.iter().any(|other| **other == ***plugin));
    other.map(|plugin| {
        let by = listed(plugins.iter().map(ToString::to_string));
        format!("{key} is not refused by {plugin} but by {by}: {message}")
    })
}

fn refused_by(decision: &Decision) -> Vec<Name> {
    let gate = decision.refused.iter().map(|rejection| rejection.plugin.clone());
    match decision.failure() {
        Some(AttemptFailure::Refused(refusal)) => refusal.plugins.iter().cloned().chain(gate).collect(),
        _ => gate.collect(),
    }
}

fn spread(pods: &[&Placed], how: &Spread, engine: &Engine) -> Option<String> {
    let of_node = |node: &Name| engine.cluster().node(node)?.node.labels.get(&how.topology_key).cloned();
    let mut counts: BTreeMap<Name, usize> =
        engine.cluster().nodes().filter_map(|info| of_node(info.name())).map(|domain| (domain, 0)).collect();
    let mut elsewhere = 0;
    for placed in pods {
        match placed.decision.node().and_then(of_node) {
            Some(domain) => *counts.entry(domain).or_default() += 1,
            None => elsewhere += 1,
        }
    }
    if counts.is_empty() {
        return Some(format!("no node has the label {}", how.topology_key));
    }
    let (fewest, most) = (counts.values().min()?, counts.values().max()?);
    if elsewhere == 0 && most - fewest <= how.max_skew {
        return None;
    }
    let told = listed(counts.iter().map(|(domain, count)| format!("{domain}: {count}")));
    let pending = if elsewhere > 0 { format!(", pending or elsewhere: {elsewhere}") } else { String::new() };
    Some(format!(
        "by {} there are {told}{pending}; a skew of at most {} was expected",
        how.topology_key, how.max_skew
    ))
}

fn preemption(pods: &[&Placed], expectation: &PlacementExpectation) -> Vec<String> {
    let victims: Vec<&Key> = pods.iter().flat_map(|placed| &placed.victims).collect();
    let mut failures = Vec::new();
    if expectation.preempts_nobody == Some(true) && !victims.is_empty() {
        let told = listed(victims.iter().map(ToString::to_string));
        failures.push(format!("they preempt {told}; nobody was expected to leave"));
    }
    if expectation.preempts_nobody == Some(false) && victims.is_empty() {
        failures.push("they preempt nobody; somebody was expected to leave".to_owned());
    }
    if let Some(expected) = &expectation.preempts {
        let is_meant = |pattern: &str, key: &Key| match pattern.contains('/') {
            true => matches(pattern, &key.to_string()),
            false => matches(pattern, &key.name),
        };
        let missing: Vec<&String> =
            expected.iter().filter(|pattern| !victims.iter().any(|key| is_meant(pattern, key))).collect();
        if !missing.is_empty() {
            let missing = listed(missing.into_iter().cloned());
            let told = listed(victims.iter().map(ToString::to_string));
            let told = if told.is_empty() { "nobody".to_owned() } else { told };
            failures.push(format!("they do not preempt {missing} but {told}"));
        }
        let others = victims.iter().filter(|key| !expected.iter().any(|pattern| is_meant(pattern, key)));
        let others = listed(others.map(ToString::to_string));
        if !others.is_empty() {
            failures.push(format!("they preempt {others}, too"));
        }
    }
    failures
}

fn would_fit(engine: &mut Engine, pod: &Pod, wanted: usize) -> Option<String> {
    let filled = capacity::fill(engine, pod, wanted, Engine::place, |_| ())?;
    let (capacity, copies) = match filled {
        Ok(filled) => filled,
        Err(message) => return Some(format!("a plugin failed: {message}")),
    };
    copies.undo(engine);
    (capacity.fits < wanted).then(|| {
        let stopped_by = capacity.stopped_by.iter().chain(&capacity.unusable);
        let why = listed(stopped_by.map(|limit| format!("{} on {} node(s)", limit.reason, limit.nodes)));
        format!("{} more like {} would fit, {wanted} were expected: {why}", capacity.fits, pod.key())
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("web", "web", true),
            ("web", "web-1", false),
            ("web*", "web-1", true),
            ("*", "", true),
            ("*-1", "web-1-1", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
