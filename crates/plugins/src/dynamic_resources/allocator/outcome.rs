//! What was found, as it is written into claims.

use std::collections::BTreeMap;

use supercargo_model::{
    Name,
    devices::{AllocatedDevice, AllocationConfiguration, ClaimAllocation, DeviceAllocations},
    selector::{NODE_NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement},
};

use super::{
    AllocationError, NodeInQuestion,
    search::{Chosen, ClaimSearch, RequestSearch, Search},
};

pub(super) fn results(
    search: &Search<'_, '_>,
    new_share: &mut dyn FnMut() -> Name,
) -> Result<Vec<ClaimAllocation>, AllocationError> {
    let one = |claim: &ClaimSearch<'_>| {
        let results = claim.chosen.iter().map(|chosen| device(claim, chosen, new_share)).collect();
        let node_selector = node_selector(&claim.chosen, &search.node).map_err(|why| {
            AllocationError::Pod(format!("create NodeSelector for claim {}: {why}", claim.claim.name))
        })?;
        let devices = DeviceAllocations { results, config: configuration(claim) };
        Ok(ClaimAllocation { devices, node_selector, allocation_timestamp: None })
    };
    search.claims.iter().map(one).collect()
}

/// `request`, or `request/alternative`.
fn request_name(request: &RequestSearch<'_>, option: usize) -> Name {
    match request.has_alternatives {
        true => format!("{}/{}", request.name, request.options[option].asked.name).into(),
        false => request.name.clone(),
    }
}

fn device(
    claim: &ClaimSearch<'_>,
    chosen: &Chosen<'_>,
    new_share: &mut dyn FnMut() -> Name,
) -> AllocatedDevice {
    let request = &claim.requests[chosen.request];
    let asked = request.options[chosen.option].asked;
    let candidate = chosen.candidate;
    AllocatedDevice {
        request: request_name(request, chosen.option),
        driver: candidate.slice.driver.clone(),
        pool: candidate.slice.pool.name.clone(),
        device: candidate.device.name.clone(),
        admin_access: asked.admin_access.filter(|admin| *admin && !request.has_alternatives),
        tolerations: asked.tolerations.clone(),
        binding_conditions: candidate.device.binding_conditions.clone().unwrap_or_default(),
        binding_failure_conditions: candidate.device.binding_failure_conditions.clone().unwrap_or_default(),
        share_id: chosen.is_shared.then(new_share),
        consumed_capacity: chosen.consumed.clone(),
    }
}

/// What classes have for their requests, then what the claim has.
fn configuration(claim: &ClaimSearch<'_>) -> Vec<AllocationConfiguration> {
    let mut config: Vec<AllocationConfiguration> = Vec::new();
    let mut of_class: BTreeMap<&Name, std::ops::Range<usize>> = BTreeMap::new();
    for request in &claim.requests {
        let name = request_name(request, request.selected);
        let class = request.options[request.selected].class;
        if let Some(known) = of_class.get(&class.name) {
            config[known.clone()].iter_mut().for_each(|config| config.requests.push(name.clone()));
            continue;
        }
        let start = config.len();
        config.extend(class.config.iter().map(|written| AllocationConfiguration {
            source: "FromClass".into(),
            requests: vec![name.clone()],
            opaque: written.opaque.clone(),
        }));
        of_class.insert(&class.name, start..config.len());
    }
    for written in &claim.claim.config {
        let from_claim = || AllocationConfiguration {
            source: "FromClaim".into(),
            requests: written.requests.clone(),
            opaque: written.opaque.clone(),
        };
        if written.requests.is_empty() {
            config.push(from_claim());
            continue;
        }
        for request in &claim.requests {
            let selected = request_name(request, request.selected);
            if written.requests.contains(request.name) || written.requests.contains(&selected) {
                config.push(from_claim());
            }
        }
    }
    config
}

fn node_selector(chosen: &[Chosen<'_>], node: &NodeInQuestion<'_>) -> Result<Option<NodeSelector>, String> {
    let (mut expressions, mut fields) = (Vec::new(), Vec::new());
    for chosen in chosen {
        let (slice, device) = (chosen.candidate.slice, chosen.candidate.device);
        let (name, selector) = match slice.per_device_node_selection {
            true => (&device.node_name, &device.node_selector),
            false => (&slice.node_name, &slice.node_selector),
        };
        if name.is_some() || device.binds_to_node == Some(true) {
            let here = Requirement::is_in(NODE_NAME_FIELD, [node.name]);
            return Ok(Some(of_terms(Vec::new(), vec![here])));
        }
        match selector.as_ref().map(|selector| &selector.node_selector_terms[..]) {
            None | Some([]) => {}
            Some([term]) => {
                add_new(&term.match_fields, &mut fields);
                add_new(&term.match_expressions, &mut expressions);
            }
            Some(terms) => {
                return Err(format!("unsupported ResourceSlice.NodeSelector with {} terms", terms.len()));
            }
        }
    }
    let any = !expressions.is_empty() || !fields.is_empty();
    Ok(any.then(|| of_terms(expressions, fields)))
}

fn of_terms(expressions: Vec<Requirement>, fields: Vec<Requirement>) -> NodeSelector {
    NodeSelector { node_selector_terms: vec![NodeSelectorTerm::new(expressions, fields)] }
}

fn add_new(from: &[Requirement], to: &mut Vec<Requirement>) {
    for requirement in from {
        let same_values = |known: &Requirement| {
            let within = |left: &[Name], right: &[Name]| left.iter().all(|value| right.contains(value));
            within(&known.values, &requirement.values) && within(&requirement.values, &known.values)
        };
        let known = to.iter().any(|known| {
            known.key == requirement.key && known.operator == requirement.operator && same_values(known)
        });
        if !known {
            to.push(requirement.clone());
        }
    }
}
