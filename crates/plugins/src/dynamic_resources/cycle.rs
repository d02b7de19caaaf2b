//! What is known of a pod's claims in its cycle, and whether a node has what they ask for.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use supercargo_framework::{Status, Verdict};
use supercargo_model::{
    Cluster, Name, NodeInfo, Pod,
    devices::{ClaimAllocation, DeviceClass, DeviceRequest, Devices, ResourceClaim},
    selector::{NODE_NAME_FIELD, NodeSelector, Operator},
};

use super::{
    allocator::{AllocationError, NodeInQuestion, SelectorCache, allocate},
    claims::claims_of,
    conditions::{self, Readiness},
    extended::{self, ExtendedRequests},
};

const CANNOT_ALLOCATE: &str = "cannot allocate all claims";
pub(super) const NOT_AVAILABLE: &str = "resourceclaim not available on the node";

/// The claims of a pod.
#[derive(Clone, Debug)]
pub struct PodClaims {
    /// Those that it names, then the one for its extended resources.
    pub(super) claims: Vec<Arc<ResourceClaim>>,
    /// How many it names.
    pub(super) named: usize,
}

/// What a pod's claims get on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeAllocation {
    /// What the claim for extended resources asks for there, if it is needed.
    pub extended: Option<ExtendedRequests>,
    /// For each claim that has nothing yet, in order.
    pub allocations: Vec<ClaimAllocation>,
}

impl PodClaims {
    /// The claims of a pod, none if it needs no devices; or why it cannot be scheduled on any node.
    pub(super) fn of(cluster: &Cluster, pod: &Pod) -> Result<Self, Status> {
        let devices = cluster.devices();
        let mut claims = claims_of(devices, pod)?;
        let named = claims.len();
        claims.extend(extended::claim_of(devices, pod));
        let claims = Self { claims, named };
        claims.check(devices)?;
        Ok(claims)
    }

    fn check(&self, devices: &Devices) -> Verdict {
        for (place, claim) in self.claims.iter().enumerate() {
            if let Some(allocation) = &claim.allocation {
                let selector = allocation.node_selector.iter();
                let mut terms = selector.flat_map(|selector| &selector.node_selector_terms);
                if let Some(defect) = terms.find_map(|term| term.defect()) {
                    return Err(Status::error(format!("{}: {}", defect.field, defect.message)));
                }
                continue;
            }
            if devices.in_flight(&claim.uid).is_some() {
                let key = claim.key();
                return Err(Status::unresolvable(format!(
                    "resource claim {key} is in the process of being allocated"
                )));
            }
            if place < self.named {
                claim.requests.iter().try_for_each(|request| check_classes(devices, claim, request))?;
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claim for extended resources.
    pub(super) fn extended(&self) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(self.named)
    }

    /// The claims that have no devices yet.
    pub(super) fn open(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.claims.iter().filter(|claim| claim.allocation.is_none())
    }

    /// What the claim for extended resources has to ask for on a node.
    pub(super) fn extended_on(
        &self,
        devices: &Devices,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<Option<ExtendedRequests>, Status> {
        let Some(claim) = self.extended() else { return Ok(None) };
        extended::on_node(devices, pod, claim, node, self.named > 0)
    }

    /// What the claims get on a node; `None` if there is nothing to be allocated there.
    ///
    /// # Errors
    /// Why the node will not do, apart from claims that have devices elsewhere.
    pub(super) fn allocate(
        &self,
        devices: &Devices,
        pod: &Pod,
        node: &NodeInfo,
        selectors: &Mutex<SelectorCache>,
        new_share: &mut dyn FnMut() -> Name,
    ) -> Result<Option<NodeAllocation>, Status> {
        let extended = self.extended_on(devices, pod, node)?;
        if extended.is_none() && self.named == 0 || self.open().next().is_none() {
            return Ok(None);
        }
        let for_node = match (&extended, self.extended()) {
            (Some(extended), Some(claim)) => Some(extended.asked_by(claim)),
            _ => None,
        };
        let is_special =
            |claim: &Arc<ResourceClaim>| self.extended().is_some_and(|extended| Arc::ptr_eq(extended, claim));
        let claims: Vec<&ResourceClaim> = (self.open())
            .map(|claim| match &for_node {
                Some(for_node) if is_special(claim) => for_node,
                _ => &**claim,
            })
            .collect();
        let question = NodeInQuestion { name: node.name(), labels: &node.node.labels };
        let mut selectors = selectors.lock().unwrap_or_else(PoisonError::into_inner);
        match allocate(devices, question, &claims, &mut selectors, new_share) {
            Ok(Some(allocations)) => Ok(Some(NodeAllocation { extended, allocations })),
            Ok(None) => Err(Status::unresolvable(CANNOT_ALLOCATE)),
            Err(AllocationError::Node(why)) => Err(Status::unresolvable(why)),
            Err(AllocationError::Pod(why)) => Err(Status::error(why)),
        }
    }

    /// Whether the claims that have devices can use them on a node.
    pub(super) fn check_allocated(&self, cluster: &Cluster, node: &NodeInfo, timeout: Duration) -> Verdict {
        if self.claims.iter().any(|claim| is_unavailable(cluster, claim, node, timeout)) {
            return Err(Status::unresolvable(NOT_AVAILABLE));
        }
        Ok(())
    }

    /// Whether any claim has devices already.
    pub(super) fn has_allocated(&self) -> bool {
        self.claims.iter().any(|claim| claim.allocation.is_some())
    }

    /// The only nodes where the claims that have devices can be used, where one of them names its nodes.
    pub(super) fn named_nodes(&self) -> Option<Vec<&Name>> {
        let allocations = self.claims.iter().filter_map(|claim| claim.allocation.as_ref());
        allocations.filter_map(|allocation| names(allocation.node_selector.as_ref()?)).next()
    }

    /// Points for the alternatives that were taken: more for better ones.
    pub(super) fn points(&self, found: &NodeAllocation) -> i64 {
        let mut open = found.allocations.iter();
        let of_claim = |claim: &Arc<ResourceClaim>| {
            let allocation = claim.allocation.as_ref().or_else(|| open.next());
            allocation.map_or(0, |allocation| points(claim, allocation))
        };
        self.claims.iter().map(of_claim).sum()
    }

    /// Whether a node may get points at all.
    pub(super) fn has_alternatives(&self) -> bool {
        let requests = self.claims.iter().flat_map(|claim| &claim.requests);
        requests.into_iter().any(|request| !request.first_available.is_empty())
            && self.open().next().is_some()
    }
}

/// The nodes that a selector names, if it selects by nothing else.
fn names(selector: &NodeSelector) -> Option<Vec<&Name>> {
    let mut names = Vec::new();
    for term in &selector.node_selector_terms {
        let [named] = &term.match_fields[..] else { return None };
        let is_name = &*named.key == NODE_NAME_FIELD && named.operator == Operator::In;
        if !is_name || !term.match_expressions.is_empty() {
            return None;
        }
        names.extend(&named.values);
    }
    Some(names)
}

/// Whether a claim has devices that cannot be used on a node, or have not become ready.
pub(super) fn is_unavailable(
    cluster: &Cluster,
    claim: &ResourceClaim,
    node: &NodeInfo,
    timeout: Duration,
) -> bool {
    let Some(allocation) = &claim.allocation else { return false };
    let selector = allocation.node_selector.as_ref();
    if selector.is_some_and(|selector| !selector.matches(node.name(), &node.node.labels)) {
        return true;
    }
    match conditions::readiness(claim) {
        Readiness::Ready => false,
        Readiness::Failed(_) => true,
        Readiness::NotYet => conditions::due(claim, timeout).is_some_and(|due| due < cluster.now()),
    }
}

fn check_classes(devices: &Devices, claim: &ResourceClaim, request: &DeviceRequest) -> Verdict {
    if let Some(asked) = &request.exactly {
        return check_class(devices, &asked.device_class_name, &request.name);
    }
    if request.first_available.is_empty() {
        let (claim, request) = (claim.key(), &request.name);
        return Err(Status::unresolvable(format!(
            "resource claim {claim}, request {request}: unknown request type"
        )));
    }
    request.first_available.iter().try_for_each(|asked| {
        check_class(devices, &asked.device_class_name, &format!("{}/{}", request.name, asked.name))
    })
}

fn check_class(devices: &Devices, class: &str, request: &str) -> Verdict {
    if class.is_empty() {
        return Err(Status::error(format!("request {request}: unsupported request type")));
    }
    let known: Option<&DeviceClass> = devices.class(class);
    match known {
        Some(_) => Ok(()),
        None => Err(Status::unresolvable(format!("request {request}: device class {class} does not exist"))),
    }
}

/// The best of as many alternatives as a request can have.
const MOST_POINTS: i64 = 8;

fn points(claim: &ResourceClaim, allocation: &ClaimAllocation) -> i64 {
    let mut points = 0;
    for request in claim.requests.iter().filter(|request| request.exactly.is_none()) {
        for (place, alternative) in request.first_available.iter().enumerate() {
            let is_meant = |name: &str| {
                let parts = name.split_once('/');
                parts.is_some_and(|(of, name)| *of == *request.name && *name == *alternative.name)
            };
            if allocation.devices.results.iter().any(|result| is_meant(&result.request)) {
                points += MOST_POINTS - place as i64;
            }
        }
    }
    points
}
