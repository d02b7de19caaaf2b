//! Depth first over claims, requests, alternatives and devices.

use std::collections::BTreeMap;

use supercargo_model::{
    Name,
    devices::{
        AllocationMode, CelSelector, ClaimedDevices, DeviceClass, DeviceQuantity, Devices, ResourceClaim,
        TakenCapacity,
    },
    work,
};

use super::{
    AllocationError, HashMap, MOST_DEPTH, MOST_DEVICES, MOST_STEPS, NodeInQuestion, capacity,
    constraints::{Constraint, RequestNames},
    counters,
    pools::{Candidate, Counters, Pool, PoolState, node_matches},
    selectors::{ReadyDevices, Selected, SelectorCache, SelectorId},
};

/// A device by its pool and its place there.
pub(super) type DevicePlace = (usize, usize);

pub(super) struct ClaimSearch<'c> {
    pub(super) claim: &'c ResourceClaim,
    pub(super) requests: Vec<RequestSearch<'c>>,
    constraints: Vec<Constraint<'c>>,
    pub(super) chosen: Vec<Chosen<'c>>,
}

pub(super) struct RequestSearch<'c> {
    pub(super) name: &'c Name,
    pub(super) has_alternatives: bool,
    pub(super) options: Vec<RequestOption<'c>>,
    /// The alternative that was taken.
    pub(super) selected: usize,
}

/// What a request asks for, or one of several.
pub(super) struct RequestOption<'c> {
    pub(super) asked: &'c ClaimedDevices,
    pub(super) class: &'c DeviceClass,
    count: usize,
    /// If all are asked for.
    all: Vec<DevicePlace>,
    /// What devices must meet: the class's selectors, then its own; `None` for one of a kind that is not known.
    selectors: Vec<Option<SelectorId>>,
}

pub(super) struct Chosen<'c> {
    pub(super) request: usize,
    pub(super) option: usize,
    pub(super) place: DevicePlace,
    pub(super) consumed: BTreeMap<Name, DeviceQuantity>,
    pub(super) is_shared: bool,
    pub(super) candidate: &'c Candidate<'c>,
}

pub(super) struct Search<'c, 's> {
    pub(super) node: NodeInQuestion<'c>,
    pub(super) claims: Vec<ClaimSearch<'c>>,
    pub(super) pools: &'c [Pool<'c>],
    selection: Selection<'c, 's>,
    /// Which claims have the device so far.
    allocating: HashMap<DevicePlace, Vec<usize>>,
    allocating_capacity: HashMap<DevicePlace, TakenCapacity>,
    /// By pool.
    consumed: HashMap<usize, Counters>,
    steps: u64,
}

/// What came of a branch.
enum Branch {
    Found,
    Nothing,
    /// More devices than a claim can have.
    TooMany,
}

type Outcome = Result<Branch, AllocationError>;

/// Where the search is: a claim, a request, an alternative and how many devices it has.
#[derive(Clone, Copy)]
struct At {
    claim: usize,
    request: usize,
    option: usize,
    device: usize,
}

fn named(claim: &ResourceClaim) -> String {
    format!("{}/{}", claim.namespace, claim.name)
}

fn failed<T>(message: String) -> Result<T, AllocationError> {
    Err(AllocationError::Pod(message))
}

/// What selectors need, and what they leave behind.
struct Selection<'c, 's> {
    node: NodeInQuestion<'c>,
    selectors: &'s mut SelectorCache,
    ready: ReadyDevices,
}

impl Selection<'_, '_> {
    fn selects(
        &mut self,
        option: &RequestOption<'_>,
        claim: &ResourceClaim,
        candidate: &Candidate<'_>,
    ) -> Result<bool, AllocationError> {
        for (number, selector) in option.selectors.iter().enumerate() {
            let selected = match selector {
                Some(id) => self.selectors.selects(*id, candidate.slice, candidate.place, &mut self.ready),
                None => {
                    let why = "CEL expression empty (unsupported selector type?)";
                    return failed(selector_failed(option, claim, number, why));
                }
            };
            match selected {
                Selected::Yes => {}
                Selected::No => return Ok(false),
                Selected::Failed(why) => return failed(selector_failed(option, claim, number, why)),
            }
        }
        if !candidate.slice.per_device_node_selection {
            return Ok(true);
        }
        let device = candidate.device;
        let all = device.all_nodes == Some(true);
        node_matches(&self.node, device.node_name.as_ref(), all, device.node_selector.as_ref())
            .map_err(AllocationError::Pod)
    }
}

/// Selectors are numbered by where they are written.
fn selector_failed(option: &RequestOption<'_>, claim: &ResourceClaim, number: usize, why: &str) -> String {
    match number.checked_sub(option.class.selectors.len()) {
        None => format!("class {}: selector #{number}: {why}", option.class.name),
        Some(number) => format!("claim {}: selector #{number}: {why}", named(claim)),
    }
}

impl<'c, 's> Search<'c, 's> {
    pub(super) fn new(
        supply: &'c Devices,
        node: &NodeInQuestion<'c>,
        claims: &[&'c ResourceClaim],
        pools: &'c [Pool<'c>],
        selectors: &'s mut SelectorCache,
    ) -> Result<Self, AllocationError> {
        selectors.tidy();
        let mut search = Self {
            node: *node,
            claims: Vec::new(),
            pools,
            selection: Selection { node: *node, selectors, ready: ReadyDevices::default() },
            allocating: HashMap::default(),
            allocating_capacity: HashMap::default(),
            consumed: HashMap::default(),
            steps: MOST_STEPS,
        };
        for claim in claims {
            let prepared = search.prepare(supply, claim)?;
            search.claims.push(prepared);
        }
        search.check_depth()?;
        Ok(search)
    }

    /// Each claim, request and device is a step down. Nobody who means well gets that deep.
    fn check_depth(&self) -> Result<(), AllocationError> {
        let of_request = |request: &RequestSearch<'_>| {
            let most = request.options.iter().map(|option| option.count.min(MOST_DEVICES)).max();
            1 + most.unwrap_or(0)
        };
        let of_claim = |claim: &ClaimSearch<'_>| 1 + claim.requests.iter().map(of_request).sum::<usize>();
        let depth: usize = self.claims.iter().map(of_claim).sum();
        match (self.claims.last(), depth > MOST_DEPTH) {
            (Some(last), true) => failed(format!(
                "claim {}: the pod's claims, their requests and devices are more than {MOST_DEPTH} together",
                named(last.claim)
            )),
            _ => Ok(()),
        }
    }

    fn prepare(
        &mut self,
        supply: &'c Devices,
        claim: &'c ResourceClaim,
    ) -> Result<ClaimSearch<'c>, AllocationError> {
        let mut requests = Vec::new();
        let mut least = 0_usize;
        for request in &claim.requests {
            let has_alternatives = !request.first_available.is_empty();
            let written: Vec<&'c ClaimedDevices> = match has_alternatives {
                true => request.first_available.iter().collect(),
                false => request.exactly.iter().collect(),
            };
            let mut options = Vec::new();
            for asked in written {
                let name = if has_alternatives { &asked.name } else { &request.name };
                options.push(self.option(supply, claim, name, asked)?);
            }
            let Some(fewest) = options.iter().map(|option| option.count).min() else {
                return failed(format!(
                    "claim {}, request {}: missing device class name (unsupported request type?)",
                    named(claim),
                    request.name
                ));
            };
            least = least.saturating_add(fewest);
            requests.push(RequestSearch { name: &request.name, has_alternatives, options, selected: 0 });
        }
        if least > MOST_DEVICES {
            return failed(format!(
                "claim {}: number of requested devices {least} exceeds the claim limit of {MOST_DEVICES}",
                named(claim)
            ));
        }
        let mut constraints = Vec::new();
        for (place, written) in claim.constraints.iter().enumerate() {
            let Some(constraint) = Constraint::new(written) else {
                return failed(format!(
                    "claim {}, constraint #{place}: empty constraint (unsupported constraint type?)",
                    named(claim)
                ));
            };
            constraints.push(constraint);
        }
        Ok(ClaimSearch { claim, requests, constraints, chosen: Vec::new() })
    }

    fn option(
        &mut self,
        supply: &'c Devices,
        claim: &'c ResourceClaim,
        name: &str,
        asked: &'c ClaimedDevices,
    ) -> Result<RequestOption<'c>, AllocationError> {
        let at = format!("claim {}, request {name}", named(claim));
        if let Some(place) = asked.selectors.iter().position(|selector| selector.expression().is_none()) {
            return failed(format!(
                "{at}, selector #{place}: CEL expression empty (unsupported selector type?)"
            ));
        }
        if asked.device_class_name.is_empty() {
            return failed(format!("{at}: missing device class name (unsupported request type?)"));
        }
        let Some(class) = supply.class(&asked.device_class_name) else {
            let class = &asked.device_class_name;
            return failed(format!(
                "{at}: could not retrieve device class {class}: deviceclass.resource.k8s.io \"{class}\" not found"
            ));
        };
        let mut id = |selector: &CelSelector| {
            selector.expression().map(|written| self.selection.selectors.id(written))
        };
        let selectors = class.selectors.iter().chain(&asked.selectors).map(&mut id).collect();
        let mut option = RequestOption { asked, class, count: 0, all: Vec::new(), selectors };
        match &asked.allocation_mode {
            AllocationMode::ExactCount => {
                let Ok(count) = usize::try_from(asked.count) else {
                    return failed(format!("{at}: count is negative: {}", asked.count));
                };
                option.count = count;
            }
            AllocationMode::All => self.all_devices(&mut option, claim, &at)?,
            AllocationMode::Unknown(mode) => return failed(format!("{at}: unsupported count mode {mode}")),
        }
        Ok(option)
    }

    fn all_devices(
        &mut self,
        option: &mut RequestOption<'c>,
        claim: &'c ResourceClaim,
        at: &str,
    ) -> Result<(), AllocationError> {
        let pools = self.pools;
        for (pool_place, pool) in pools.iter().enumerate() {
            let refused = |why: &str| {
                failed(format!(
                    "{at}: asks for all devices, but resource pool {}/{} is currently {why}",
                    pool.driver, pool.name
                ))
            };
            let devices = match &pool.state {
                PoolState::Incomplete => return refused("being updated"),
                PoolState::Invalid => return refused("invalid"),
                PoolState::Usable { devices, .. } => devices,
            };
            for (place, candidate) in devices.iter().enumerate() {
                let place = (pool_place, place);
                let selected = self.selection.selects(option, claim, candidate)?;
                if selected && self.has_capacity(option.asked, place, candidate) {
                    option.all.push(place);
                }
            }
        }
        option.count = option.all.len();
        Ok(())
    }

    fn candidate(&self, place: DevicePlace) -> &'c Candidate<'c> {
        match &self.pools[place.0].state {
            PoolState::Usable { devices, .. } => &devices[place.1],
            _ => unreachable!("places are those of usable pools"),
        }
    }

    fn has_capacity(&self, asked: &ClaimedDevices, place: DevicePlace, candidate: &Candidate<'_>) -> bool {
        let allocating = self.allocating_capacity.get(&place);
        capacity::suffices(asked, candidate.device, candidate.shared, allocating)
    }

    /// Whether all claims can have what they ask for.
    pub(super) fn run(&mut self) -> Result<bool, AllocationError> {
        let at = At { claim: 0, request: 0, option: 0, device: 0 };
        Ok(matches!(self.next_request(at)?, Branch::Found))
    }

    fn step(&mut self) -> Result<(), AllocationError> {
        work::done(1);
        self.steps = match self.steps.checked_sub(1) {
            Some(left) => left,
            None => return failed(self.given_up()),
        };
        Ok(())
    }

    fn given_up(&self) -> String {
        let claims: Vec<String> = self.claims.iter().map(|claim| named(claim.claim)).collect();
        let (claims, node) = (claims.join(", "), self.node.name);
        format!(
            "claim {claims}: the search for devices on node {node} was given up after {MOST_STEPS} steps: \
             too many devices match spec.devices.requests for all combinations to be tried"
        )
    }

    /// Goes on with a request that has no devices yet, or with the next claim.
    fn next_request(&mut self, at: At) -> Outcome {
        self.step()?;
        let Some(claim) = self.claims.get(at.claim) else { return Ok(Branch::Found) };
        let Some(request) = claim.requests.get(at.request) else {
            let next = At { claim: at.claim + 1, request: 0, option: 0, device: 0 };
            return Ok(match self.next_request(next)? {
                Branch::TooMany => Branch::Nothing,
                other => other,
            });
        };
        if !request.has_alternatives {
            return self.next_device(At { option: 0, device: 0, ..at }, (0, 0));
        }
        let alternatives = request.options.len();
        let mut all_too_many = true;
        for option in 0..alternatives {
            match self.next_device(At { option, device: 0, ..at }, (0, 0))? {
                Branch::TooMany => {}
                Branch::Nothing => all_too_many = false,
                Branch::Found => {
                    self.claims[at.claim].requests[at.request].selected = option;
                    return Ok(Branch::Found);
                }
            }
        }
        Ok(if all_too_many { Branch::TooMany } else { Branch::Nothing })
    }

    /// Goes on with the next device of a request.
    fn next_device(&mut self, at: At, start: DevicePlace) -> Outcome {
        self.step()?;
        let claim = &self.claims[at.claim];
        let option = &claim.requests[at.request].options[at.option];
        let takes_all = option.asked.allocation_mode == AllocationMode::All;
        if takes_all && option.all.is_empty() {
            return Ok(Branch::Nothing);
        }
        if at.device >= option.count {
            return self.next_request(At { request: at.request + 1, option: 0, device: 0, ..at });
        }
        if claim.chosen.len() + option.count - at.device > MOST_DEVICES {
            return Ok(Branch::TooMany);
        }
        if takes_all {
            let place = option.all[at.device];
            return self.try_device(at, place, true, (0, 0));
        }
        let pools = self.pools;
        for (pool_place, pool) in pools.iter().enumerate().skip(start.0) {
            let PoolState::Usable { devices, .. } = &pool.state else { continue };
            let first = if pool_place == start.0 { start.1 } else { 0 };
            for (device_place, candidate) in devices.iter().enumerate().skip(first) {
                let place = (pool_place, device_place);
                if !self.is_candidate(at, place, candidate)? {
                    continue;
                }
                match self.try_device(at, place, false, (pool_place, device_place + 1))? {
                    Branch::Nothing => {}
                    decided => return Ok(decided),
                }
            }
        }
        Ok(Branch::Nothing)
    }

    fn is_candidate(
        &mut self,
        at: At,
        place: DevicePlace,
        candidate: &'c Candidate<'c>,
    ) -> Result<bool, AllocationError> {
        self.step()?;
        if self.is_taken(at, place, candidate) {
            return Ok(false);
        }
        let ClaimSearch { claim, requests, .. } = &self.claims[at.claim];
        let option = &requests[at.request].options[at.option];
        let asked = option.asked;
        Ok(self.selection.selects(option, claim, candidate)? && self.has_capacity(asked, place, candidate))
    }

    fn is_taken(&self, at: At, place: DevicePlace, candidate: &Candidate<'_>) -> bool {
        let asked = self.claims[at.claim].requests[at.request].options[at.option].asked;
        let allocating = self.allocating.get(&place);
        if asked.admin_access == Some(true) {
            return allocating.is_some_and(|claims| claims.contains(&at.claim));
        }
        candidate.in_use || allocating.is_some_and(|claims| !claims.is_empty())
    }

    /// Adds the device if it can be, and goes on from there; takes it back if that leads to nothing.
    fn try_device(&mut self, at: At, place: DevicePlace, must: bool, next: DevicePlace) -> Outcome {
        let candidate = self.candidate(place);
        let claim = &self.claims[at.claim];
        let request = &claim.requests[at.request];
        let asked = request.options[at.option].asked;
        let names = RequestNames {
            request: request.name,
            alternative: request.has_alternatives.then_some(&asked.name),
        };
        if self.is_taken(at, place, candidate) {
            return Ok(Branch::Nothing);
        }
        let Some(counted) = self.take_counters(place, candidate) else { return Ok(Branch::Nothing) };
        let repelled = candidate
            .device
            .taints
            .iter()
            .filter(|taint| taint.repels())
            .any(|taint| !asked.tolerations.iter().any(|toleration| toleration.tolerates(taint)));
        let added = if repelled { Some(0) } else { self.add_to_constraints(at, names, candidate) };
        let is_whole = added.is_none() && self.has_capacity(asked, place, candidate);
        if !is_whole {
            let count = added.unwrap_or(self.claims[at.claim].constraints.len());
            self.take_back(at, names, candidate, place, count, counted);
            if must && !repelled && added.is_some() {
                let claim = &self.claims[at.claim];
                let id = format!(
                    "{}/{}/{}",
                    candidate.slice.driver, candidate.slice.pool.name, candidate.device.name
                );
                return failed(format!(
                    "claim {}, request {}: cannot add device {id} because a claim constraint would not be satisfied",
                    named(claim.claim),
                    names.alternative.unwrap_or(names.request)
                ));
            }
            return Ok(Branch::Nothing);
        }
        let is_shared = candidate.device.is_shared();
        let consumed = if is_shared { capacity::taken(asked, candidate.device) } else { BTreeMap::new() };
        self.mark(at, place, is_shared, &consumed);
        let chosen = Chosen { request: at.request, option: at.option, place, consumed, is_shared, candidate };
        self.claims[at.claim].chosen.push(chosen);
        let branch = self.next_device(At { device: at.device + 1, ..at }, next)?;
        if matches!(branch, Branch::Found) {
            return Ok(branch);
        }
        if let Some(chosen) = self.claims[at.claim].chosen.pop() {
            self.unmark(at, &chosen);
        }
        let count = self.claims[at.claim].constraints.len();
        self.take_back(at, names, candidate, place, count, counted);
        Ok(branch)
    }

    /// Whether counters were taken; `None` if they do not suffice.
    fn take_counters(&mut self, place: DevicePlace, candidate: &Candidate<'_>) -> Option<bool> {
        let is_shared_already = candidate.device.is_shared()
            && (candidate.shared.is_some() || self.allocating_capacity.contains_key(&place));
        if is_shared_already || candidate.device.consumes_counters.is_empty() {
            return Some(false);
        }
        let PoolState::Usable { available, .. } = &self.pools[place.0].state else { return None };
        let consumed = self.consumed.entry(place.0).or_default();
        counters::take(consumed, candidate.device);
        if counters::suffice(available, consumed) {
            return Some(true);
        }
        counters::give_back(consumed, candidate.device);
        None
    }

    /// How many constraints took the device before one refused it; `None` if none did.
    fn add_to_constraints(
        &mut self,
        at: At,
        names: RequestNames<'c>,
        candidate: &'c Candidate<'c>,
    ) -> Option<usize> {
        let constraints = &mut self.claims[at.claim].constraints;
        constraints
            .iter_mut()
            .position(|constraint| !constraint.add(names, &candidate.slice.driver, candidate.device))
    }

    fn take_back(
        &mut self,
        at: At,
        names: RequestNames<'c>,
        candidate: &Candidate<'_>,
        place: DevicePlace,
        constraints: usize,
        counted: bool,
    ) {
        for constraint in self.claims[at.claim].constraints[..constraints].iter_mut().rev() {
            constraint.remove(names);
        }
        if counted {
            counters::give_back(self.consumed.entry(place.0).or_default(), candidate.device);
        }
    }

    fn mark(
        &mut self,
        at: At,
        place: DevicePlace,
        is_shared: bool,
        consumed: &BTreeMap<Name, DeviceQuantity>,
    ) {
        if !is_shared {
            self.allocating.entry(place).or_default().push(at.claim);
            return;
        }
        let taken = self.allocating_capacity.entry(place).or_default();
        for (name, quantity) in consumed {
            let sum = taken.entry(name.clone()).or_default();
            *sum = sum.saturating_add(quantity.amount());
        }
    }

    fn unmark(&mut self, at: At, chosen: &Chosen<'_>) {
        if !chosen.is_shared {
            let claims = self.allocating.entry(chosen.place).or_default();
            if let Some(last) = claims.iter().rposition(|claim| *claim == at.claim) {
                claims.remove(last);
            }
            return;
        }
        let shares = |chosen: &&Chosen<'_>, place| chosen.is_shared && chosen.place == place;
        let is_shared_still =
            self.claims.iter().flat_map(|claim| &claim.chosen).any(|other| shares(&other, chosen.place));
        if !is_shared_still {
            self.allocating_capacity.remove(&chosen.place);
            return;
        }
        if let Some(taken) = self.allocating_capacity.get_mut(&chosen.place) {
            for (name, quantity) in &chosen.consumed {
                if let Some(sum) = taken.get_mut(name) {
                    *sum = sum.saturating_sub(quantity.amount());
                }
            }
        }
    }
}
