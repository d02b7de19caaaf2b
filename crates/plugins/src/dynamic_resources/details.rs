//! Which devices a pod gets on a node, or why those that are there will not do.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use supercargo_framework::details::{Detail, listed};
use supercargo_model::{
    Cluster, NodeInfo, Pod,
    devices::{AllocatedDevice, ClaimAllocation, ClaimConstraint, Devices, ResourceClaim},
};

use super::{
    allocator::{DeviceExamination, ExaminedDevice, ExaminedRequest, NodeInQuestion, Obstacle, examine},
    cycle::{NodeAllocation, PodClaims, is_unavailable},
};

fn question(node: &NodeInfo) -> NodeInQuestion<'_> {
    NodeInQuestion { name: node.name(), labels: &node.node.labels }
}

/// What is in the way of a pod's claims on a node.
pub(super) fn of_refusal(
    claims: &PodClaims,
    cluster: &Cluster,
    pod: &Pod,
    node: &NodeInfo,
    timeout: Duration,
) -> Vec<Detail> {
    let devices = cluster.devices();
    let mut details = Vec::new();
    for claim in claims.claims.iter().filter(|claim| is_unavailable(cluster, claim, node, timeout)) {
        details.extend(claim.allocation.as_ref().map(|allocation| elsewhere(claim, allocation, node)));
    }
    if !details.is_empty() {
        return details;
    }
    let extended = claims.extended_on(devices, pod, node).ok().flatten();
    let extended = extended.zip(claims.extended()).map(|(asked, claim)| asked.asked_by(claim));
    let named = claims.claims[..claims.named].iter().filter(|claim| claim.allocation.is_none());
    let open: Vec<&ResourceClaim> = named.map(|claim| &**claim).chain(extended.as_ref()).collect();
    if open.is_empty() { details } else { refusals(devices, &open, node) }
}

/// What each claim gets on a node, or has already, and what is left there.
pub(super) fn of_allotment(
    claims: &PodClaims,
    cluster: &Cluster,
    found: NodeAllocation,
    node: &NodeInfo,
) -> Vec<Detail> {
    let mut chosen = found.allocations.iter();
    let allotted = claims.claims.iter().filter_map(|claim| {
        let allocation = claim.allocation.as_ref().or_else(|| chosen.next())?;
        Some((&**claim, allocation))
    });
    allotments(cluster.devices(), allotted, node)
}

/// What keeps the claims of a pod from devices of a node; `open` are those that have none yet.
fn refusals(devices: &Devices, open: &[&ResourceClaim], node: &NodeInfo) -> Vec<Detail> {
    let examination = match examine(devices, question(node), open) {
        Ok(examination) => examination,
        Err(why) => return vec![Detail::new(why)],
    };
    let unusable = examination.unusable.iter().map(|(pool, why)| {
        Detail::new(format!("pool {pool} is not used: {why}")).fact("pool", &**pool).fact("why", *why)
    });
    let mut details: Vec<Detail> = unusable.collect();
    for claim in open {
        let of_claim: Vec<&ExaminedRequest> =
            examination.requests.iter().filter(|request| request.claim == claim.key()).collect();
        let missed: Vec<&ExaminedRequest> = (claim.requests.iter())
            .map(|request| options_of(&of_claim, &request.name))
            .filter(|options| options.iter().all(|option| !option.is_met()))
            .flatten()
            .collect();
        if missed.is_empty() {
            details
                .extend(claim.constraints.iter().enumerate().map(|(i, one)| torn(claim, one, i, &of_claim)));
        }
        details.extend(missed.into_iter().map(unmet));
    }
    if details.is_empty() {
        details.push(contended(&examination));
    }
    details
}

/// What a request may be met by: itself, or one of its alternatives.
fn options_of<'e>(of_claim: &[&'e ExaminedRequest], request: &str) -> Vec<&'e ExaminedRequest> {
    let is_meant = |option: &&&ExaminedRequest| option.name.split('/').next() == Some(request);
    of_claim.iter().filter(is_meant).copied().collect()
}

/// A request that too few devices will do for.
fn unmet(request: &ExaminedRequest) -> Detail {
    let ExaminedRequest { claim, name, class, count, devices } = request;
    let wanted = match count {
        Some(1) => "a device".to_owned(),
        Some(count) => format!("{count} devices"),
        None => "all devices".to_owned(),
    };
    let (fit, all) = (request.fitting().count(), devices.len());
    let mut text = format!("claim {claim}, request {name} wants {wanted} of class {class}, and ");
    text += &match (fit, all) {
        (_, 0) => "the node can reach none".to_owned(),
        (0, 1) => "the one that the node can reach will not do".to_owned(),
        (0, all) => format!("none of the {all} that the node can reach will do"),
        (fit, all) => format!("only {fit} of the {all} that the node can reach will do"),
    };
    let mut by_obstacle: BTreeMap<&Obstacle, usize> = BTreeMap::new();
    for obstacle in devices.iter().filter_map(|device| device.obstacle.as_ref()) {
        *by_obstacle.entry(obstacle).or_default() += 1;
    }
    let obstacles: Vec<String> =
        by_obstacle.iter().map(|(obstacle, count)| format!("{count} {obstacle}")).collect();
    if !obstacles.is_empty() {
        text += &format!(": {}", listed(&obstacles));
    }
    Detail::new(text)
        .fact("claim", claim.to_string())
        .fact("request", &**name)
        .fact("class", &**class)
        .fact("wanted", count.map_or(Value::from("all"), Value::from))
        .fact("fitting", fit)
        .fact("devices", devices.iter().map(examined).collect::<Vec<Value>>())
}

fn examined(device: &ExaminedDevice) -> Value {
    match &device.obstacle {
        Some(obstacle) => json!({"device": device.name, "obstacle": obstacle.to_string()}),
        None => json!({"device": device.name}),
    }
}

/// Each request has enough devices, but a constraint may leave no combination of them.
fn torn(
    claim: &ResourceClaim,
    constraint: &ClaimConstraint,
    place: usize,
    requests: &[&ExaminedRequest],
) -> Detail {
    let concerns = |request: &&&ExaminedRequest| {
        let of = request.name.split('/').next().unwrap_or_default();
        constraint.requests.is_empty()
            || constraint.requests.iter().any(|name| **name == *request.name || **name == *of)
    };
    let mut by_value: BTreeMap<String, usize> = BTreeMap::new();
    let mut wanted = 0;
    let mut seen: Vec<&str> = Vec::new();
    for request in requests.iter().filter(concerns) {
        wanted += request.count.unwrap_or(request.devices.len());
        for device in request.fitting().filter(|device| !seen.contains(&&*device.name)).collect::<Vec<_>>() {
            seen.push(&device.name);
            let value = device.compared.get(place).cloned().flatten();
            *by_value.entry(value.unwrap_or_else(|| "no value".to_owned())).or_default() += 1;
        }
    }
    let (attribute, must) = match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(attribute), _) => (&**attribute, "the same value of"),
        (None, Some(attribute)) => (&**attribute, "different values of"),
        (None, None) => ("", "something unknown of"),
    };
    let have = |count: usize| if count == 1 { "has" } else { "have" };
    let values: Vec<String> =
        by_value.iter().map(|(value, count)| format!("{count} {} {value}", have(*count))).collect();
    let text = format!(
        "claim {}: {wanted} devices with {must} {attribute} are wanted; of those that will do, {}",
        claim.key(),
        listed(&values)
    );
    let values: Value = by_value.iter().map(|(value, count)| (value.clone(), json!(count))).collect();
    Detail::new(text)
        .fact("claim", claim.key().to_string())
        .fact("constraint", attribute)
        .fact("wanted", wanted)
        .fact("values", values)
}

/// Nothing is in the way of any request alone.
fn contended(examination: &DeviceExamination) -> Detail {
    let DeviceExamination { all, free, .. } = examination;
    let text = format!(
        "each request has enough devices, but not all of them together: {free} of the {all} devices that the node can reach are free"
    );
    Detail::new(text).fact("free", *free).fact("devices", *all)
}

/// A claim has its devices, and they cannot be used on this node.
fn elsewhere(claim: &ResourceClaim, allocation: &ClaimAllocation, node: &NodeInfo) -> Detail {
    let names = names(allocation);
    let selector = allocation.node_selector.as_ref();
    let place = match selector.filter(|selector| !selector.matches(node.name(), &node.node.labels)) {
        Some(selector) => format!("for nodes with {selector}"),
        None => "and they have not become ready".to_owned(),
    };
    Detail::new(format!("claim {} has {} already, {place}", claim.key(), listed(&names)))
        .fact("claim", claim.key().to_string())
        .fact("devices", names)
}

fn names(allocation: &ClaimAllocation) -> Vec<String> {
    let results = allocation.devices.results.iter();
    results.map(|result| format!("{}/{}/{}", result.driver, result.pool, result.device)).collect()
}

/// What each claim gets on a node, and what is left there.
fn allotments<'c>(
    devices: &Devices,
    allotted: impl Iterator<Item = (&'c ResourceClaim, &'c ClaimAllocation)>,
    node: &NodeInfo,
) -> Vec<Detail> {
    let mut details = Vec::new();
    let mut taken = 0;
    for (claim, allocation) in allotted {
        taken += if claim.allocation.is_none() { whole(allocation) } else { 0 };
        details.extend(allocation.devices.results.iter().map(|result| {
            let device = format!("{}/{}/{}", result.driver, result.pool, result.device);
            let part =
                result.consumed_capacity.iter().map(|(name, amount)| format!("{amount} of its {name}"));
            let part = part.collect::<Vec<_>>().join(", ");
            let had = if claim.allocation.is_some() { "has" } else { "gets" };
            let of = if part.is_empty() { String::new() } else { format!(", {part}") };
            Detail::new(format!("claim {}, request {} {had} {device}{of}", claim.key(), result.request))
                .fact("claim", claim.key().to_string())
                .fact("request", &*result.request)
                .fact("device", device)
        }));
    }
    if let (false, Ok(examination)) = (details.is_empty(), examine(devices, question(node), &[])) {
        let (left, all) = (examination.free.saturating_sub(taken), examination.all);
        let text = format!("{left} of the {all} devices that the node can reach are free after that");
        details.push(Detail::new(text).fact("free", left).fact("devices", all));
    }
    details
}

/// How many devices are nobody else's any more.
fn whole(allocation: &ClaimAllocation) -> usize {
    let is_whole = |result: &&AllocatedDevice| result.share_id.is_none() && result.admin_access != Some(true);
    allocation.devices.results.iter().filter(is_whole).count()
}
