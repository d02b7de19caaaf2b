//! Extended resources that a class of devices stands for: where a node's device plugins do not offer them, the pod gets a
//! claim for them, which the scheduler makes.

use std::{collections::BTreeMap, sync::Arc};

use supercargo_framework::Status;
use supercargo_model::{
    Name, NodeInfo, Pod,
    devices::{
        AllocationMode, ClaimedDevices, DEVICE_CLASS_RESOURCE, DeviceRequest, Devices, ResourceClaim,
        UNWRITTEN_CLAIM, extended_claim_uid,
    },
    meta::Owner,
    pod::{ExtendedDemand, ExtendedRequest},
    resources,
};

use super::claims::asks_for_devices;

/// The claim for a pod's extended resources: one from an earlier attempt, or one that is to be made; `None` if it needs none.
pub(super) fn claim_of(devices: &Devices, pod: &Pod) -> Option<Arc<ResourceClaim>> {
    if !asks_for_devices(devices, pod) {
        return None;
    }
    let earlier = devices.extended_claim(&pod.name, &pod.uid).cloned();
    Some(earlier.unwrap_or_else(|| Arc::new(in_memory(pod))))
}

fn in_memory(pod: &Pod) -> ResourceClaim {
    let owner = Owner {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        controller: Some(true),
    };
    ResourceClaim {
        namespace: pod.namespace.clone(),
        name: UNWRITTEN_CLAIM.into(),
        uid: extended_claim_uid(&pod.uid),
        version: Default::default(),
        owners: vec![owner],
        terminating: false,
        is_for_extended_resources: true,
        requests: Vec::new(),
        constraints: Vec::new(),
        config: Vec::new(),
        allocation: None,
        reserved_for: Vec::new(),
        devices: Vec::new(),
    }
}

/// Whether the claim is yet to be made.
pub(super) fn is_in_memory(claim: &ResourceClaim) -> bool {
    &*claim.name == UNWRITTEN_CLAIM
}

/// What a node has to offer by way of devices for a pod's extended resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtendedRequests {
    /// What the claim asks for.
    pub requests: Vec<DeviceRequest>,
    /// Which request stands for which resource of which container.
    pub mappings: Vec<ExtendedRequest>,
}

impl ExtendedRequests {
    /// The claim, as it asks for these.
    pub(super) fn asked_by(&self, claim: &ResourceClaim) -> ResourceClaim {
        ResourceClaim { requests: self.requests.clone(), ..claim.clone() }
    }
}

/// What the claim has to ask for on a node; `None` if the node's device plugins offer everything, and the pod has no other
/// claims.
pub(super) fn on_node(
    devices: &Devices,
    pod: &Pod,
    claim: &ResourceClaim,
    node: &NodeInfo,
    has_others: bool,
) -> Result<Option<ExtendedRequests>, Status> {
    if !claim.requests.is_empty() {
        return Err(Status::unresolvable("cannot schedule extended resource claim"));
    }
    let allocatable = &node.node.allocatable;
    let mut wanted = Vec::new();
    for (name, amount) in &pod.spec.requests.fit.scalars {
        let can_be_devices = resources::is_extended(name) || name.starts_with(DEVICE_CLASS_RESOURCE);
        if *amount == 0 || !can_be_devices {
            continue;
        }
        if devices.class_of_resource(name).is_some() && allocatable.get(name) == 0 {
            wanted.push(name);
        } else if !allocatable.scalars.iter().any(|(offered, _)| offered == name) {
            return Err(Status::unresolvable("cannot fit resource"));
        }
    }
    if wanted.is_empty() && !has_others || claim.allocation.is_some() {
        return Ok(None);
    }
    Ok(Some(requests(devices, pod, &wanted)))
}

/// Long-lived containers have devices of their own; init containers that end before them use those of later containers, and
/// what is missing is asked for once for all of them.
fn requests(devices: &Devices, pod: &Pod, wanted: &[&Name]) -> ExtendedRequests {
    let mut all = ExtendedRequests::default();
    for resource in wanted {
        let Some(class) = devices.class_of_resource(resource) else { continue };
        let demand = || pod.spec.extended_demand.iter().filter(|demand| demand.resource == **resource);
        let mut own: BTreeMap<usize, DeviceRequest> = BTreeMap::new();
        for demand in demand().filter(|demand| !demand.is_short_lived) {
            all.mappings.push(mapping(demand, &request_name(demand)));
            own.insert(demand.container_place, request(demand, &class.name, demand.count));
        }
        let mut most: Option<DeviceRequest> = None;
        let mut names = Vec::new();
        let first_mapping = all.mappings.len();
        for demand in demand().filter(|demand| demand.is_short_lived) {
            let mut lent = 0;
            for (_, later) in own.range(demand.container_place..) {
                all.mappings.push(mapping(demand, &later.name));
                lent += count(later);
                if lent >= demand.count {
                    break;
                }
            }
            if lent >= demand.count && lent > 0 {
                continue;
            }
            let missing = request(demand, &class.name, demand.count - lent);
            all.mappings.push(mapping(demand, &missing.name));
            names.push(missing.name.clone());
            if most.as_ref().is_none_or(|most| count(most) < count(&missing)) {
                most = Some(missing);
            }
        }
        if let Some(most) = most {
            for mapping in &mut all.mappings[first_mapping..] {
                if names.contains(&mapping.request_name) {
                    mapping.request_name = most.name.clone();
                }
            }
            all.requests.push(most);
        }
        all.requests.extend(own.into_values());
    }
    all.requests.sort_by(|left, right| left.name.cmp(&right.name));
    all
}

fn request_name(demand: &ExtendedDemand) -> Name {
    format!("container-{}-request-{}", demand.container_place, demand.resource_place).into()
}

fn request(demand: &ExtendedDemand, class: &Name, count: i64) -> DeviceRequest {
    let mut asked = ClaimedDevices::default();
    asked.device_class_name = class.clone();
    asked.allocation_mode = AllocationMode::ExactCount;
    asked.count = count;
    DeviceRequest { name: request_name(demand), exactly: Some(asked), first_available: Vec::new() }
}

fn count(request: &DeviceRequest) -> i64 {
    request.exactly.as_ref().map_or(0, |asked| asked.count)
}

fn mapping(demand: &ExtendedDemand, request: &Name) -> ExtendedRequest {
    ExtendedRequest {
        container_name: demand.container.clone(),
        resource_name: demand.resource.clone(),
        request_name: request.clone(),
    }
}
