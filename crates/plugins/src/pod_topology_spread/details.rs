//! Which domain has too many pods already, and how many the others have.

use std::{cmp::Reverse, collections::HashMap};

use serde_json::json;
use supercargo_framework::details::{Detail, listed};
use supercargo_model::{Name, NodeInfo};

use super::{
    Constraint,
    filtering::{Counts, Obstacle},
};

pub(super) fn details(counts: &Counts, node: &NodeInfo) -> Vec<Detail> {
    let constraints = counts.constraints.iter().enumerate();
    let obstacle = |(i, constraint): (usize, &Constraint)| match counts.check(i, constraint, node) {
        Ok(()) => None,
        Err(Obstacle::NoLabel) => {
            let key = &constraint.topology_key;
            let text = format!("pods are spread over {key}, and the node has no such label");
            Some(Detail::new(text).fact("topologyKey", &**key))
        }
        Err(Obstacle::TooSkewed) => Some(too_skewed(counts, i, constraint, node)),
    };
    constraints.filter_map(obstacle).collect()
}

fn too_skewed(counts: &Counts, i: usize, constraint: &Constraint, node: &NodeInfo) -> Detail {
    let Constraint { topology_key: key, max_skew, selector, .. } = constraint;
    let by_domain = &counts.by_domain[i];
    let domain = node.node.labels.get(key).cloned().unwrap_or_default();
    let here = by_domain.get(&domain).copied().unwrap_or(0);
    let (with_it, fewest) = (here + counts.itself[i], counts.fewest[i]);
    let skew = with_it - fewest;
    let text = format!(
        "{key}={domain} would have {with_it} pods of {selector}, and the emptiest domain has {fewest}: a skew of {skew} \
         where maxSkew is {max_skew} ({})",
        listed(&in_order(by_domain))
    );
    let detail = Detail::new(text)
        .fact("topologyKey", &**key)
        .fact("domain", &*domain)
        .fact("selector", selector.to_string())
        .fact("pods", here)
        .fact("fewest", fewest)
        .fact("skew", skew)
        .fact("maxSkew", *max_skew);
    let minimum = i64::from(constraint.min_domains);
    if minimum > by_domain.len() as i64 {
        let text = format!("{}; {} domains of minDomains {minimum}", detail.text, by_domain.len());
        return Detail { text, ..detail }.fact("minDomains", minimum).fact("domains", json!(by_domain.len()));
    }
    detail
}

/// How many pods each domain has, the fullest first.
fn in_order(by_domain: &HashMap<Name, i64>) -> Vec<String> {
    let mut domains: Vec<(&Name, i64)> = by_domain.iter().map(|(name, count)| (name, *count)).collect();
    domains.sort_by_key(|(name, count)| (Reverse(*count), *name));
    domains.into_iter().map(|(name, count)| format!("{name}: {count}")).collect()
}
