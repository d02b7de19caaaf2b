//! Why the devices of a node will not do, one by one, for whoever asks. The search only needs to know that they do not.

use std::fmt;

use supercargo_model::{
    Key, Name, Quantity,
    devices::{AllocationMode, ClaimedDevices, Device, DeviceTaint, Devices, ResourceClaim},
};

use super::{
    NodeInQuestion, capacity,
    pools::{self, Candidate, Counters, Pool, PoolState, node_matches},
    selectors::{ReadyDevices, Selected, SelectorCache},
};

/// What keeps a device from a request, all other requests aside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// A claim has it.
    InUse,
    /// A selector does not select it.
    Selector {
        /// `class gpu` or `request`.
        of: String,
        /// The expression.
        expression: Name,
    },
    /// A selector cannot be evaluated for it.
    Failed(String),
    /// It is not for this node.
    Unreachable,
    /// It has too little left of a capacity, or none of that name, or not in that size.
    Capacity {
        /// Such as `memory`.
        name: Name,
        /// How much is asked for.
        wanted: String,
        /// How much is left.
        left: String,
    },
    /// The counters that it shares with others do not suffice.
    Counter {
        /// As `set/counter`.
        name: String,
        /// What it takes.
        takes: String,
        /// What is left.
        left: String,
    },
    /// It has a taint that is not tolerated.
    Taint(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use"),
            Self::Selector { of, expression } => write!(f, "not selected by the {of}: {expression}"),
            Self::Failed(why) => write!(f, "not to be told: {why}"),
            Self::Unreachable => f.write_str("for other nodes"),
            Self::Capacity { name, wanted, left } => {
                write!(f, "too little {name}: {wanted} wanted, {left} left")
            }
            Self::Counter { name, takes, left } => {
                write!(f, "too little of the counter {name}: takes {takes}, {left} left")
            }
            Self::Taint(taint) => write!(f, "tainted {taint}"),
        }
    }
}

/// A device that the node can reach, by name, and what keeps it from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExaminedDevice {
    /// As `driver/pool/device`.
    pub name: String,
    /// `None` if it would do.
    pub obstacle: Option<Obstacle>,
    /// The values of the attributes that the claim's constraints compare, in their order.
    pub compared: Vec<Option<String>>,
}

/// A request, or an alternative of one, and the devices that the node can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExaminedRequest {
    /// Its claim.
    pub claim: Key,
    /// As `request`, or `request/alternative`.
    pub name: String,
    /// The class.
    pub class: Name,
    /// How many are asked for; `None` for all.
    pub count: Option<usize>,
    /// The devices.
    pub devices: Vec<ExaminedDevice>,
}

impl ExaminedRequest {
    /// The devices that would do.
    pub fn fitting(&self) -> impl Iterator<Item = &ExaminedDevice> {
        self.devices.iter().filter(|device| device.obstacle.is_none())
    }

    /// Whether enough of them would do, all other requests aside.
    pub fn is_met(&self) -> bool {
        match self.count {
            Some(count) => self.fitting().count() >= count,
            None => !self.devices.is_empty() && self.fitting().count() == self.devices.len(),
        }
    }
}

/// The devices that a node can reach, as the requests of claims see them; and the pools that cannot be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceExamination {
    /// Every request, and every alternative.
    pub requests: Vec<ExaminedRequest>,
    /// As `driver/pool`, and why.
    pub unusable: Vec<(String, &'static str)>,
    /// How many devices the node can reach, and how many of them no claim has.
    pub all: usize,
    /// How many of them no claim has.
    pub free: usize,
}

/// Looks at all devices that a node can reach.
///
/// # Errors
/// What is wrong with a slice.
pub fn examine(
    devices: &Devices,
    node: NodeInQuestion<'_>,
    claims: &[&ResourceClaim],
) -> Result<DeviceExamination, String> {
    let pools = pools::gather(devices, &node)?;
    let mut examiner = Examiner { node, selectors: SelectorCache::default(), ready: ReadyDevices::default() };
    let mut examination = DeviceExamination::default();
    for pool in &pools {
        let name = format!("{}/{}", pool.driver, pool.name);
        match &pool.state {
            PoolState::Incomplete => examination.unusable.push((name, "some of its slices are missing")),
            PoolState::Invalid => examination.unusable.push((name, "its slices contradict each other")),
            PoolState::Usable { devices, .. } => {
                examination.all += devices.len();
                examination.free += devices.iter().filter(|candidate| !candidate.in_use).count();
            }
        }
    }
    for claim in claims {
        for request in &claim.requests {
            let alternatives = request.first_available.iter();
            let alternatives = alternatives.map(|asked| (format!("{}/{}", request.name, asked.name), asked));
            let exact = request.exactly.iter().map(|asked| (request.name.to_string(), asked));
            for (name, asked) in exact.chain(alternatives) {
                examination.requests.push(examiner.request(devices, &pools, claim, name, asked));
            }
        }
    }
    Ok(examination)
}

struct Examiner<'n> {
    node: NodeInQuestion<'n>,
    selectors: SelectorCache,
    ready: ReadyDevices,
}

impl Examiner<'_> {
    fn request(
        &mut self,
        supply: &Devices,
        pools: &[Pool<'_>],
        claim: &ResourceClaim,
        name: String,
        asked: &ClaimedDevices,
    ) -> ExaminedRequest {
        let mut devices = Vec::new();
        for pool in pools {
            let PoolState::Usable { devices: candidates, available, .. } = &pool.state else { continue };
            for candidate in candidates {
                let compared = claim.constraints.iter().map(|constraint| {
                    let attribute =
                        constraint.match_attribute.as_ref().or(constraint.distinct_attribute.as_ref())?;
                    value_of(candidate.device, &pool.driver, attribute)
                });
                devices.push(ExaminedDevice {
                    name: format!("{}/{}/{}", pool.driver, pool.name, candidate.device.name),
                    compared: compared.collect(),
                    obstacle: self.obstacle(supply, asked, candidate, available),
                });
            }
        }
        let takes_all = asked.allocation_mode == AllocationMode::All;
        if takes_all {
            // Those that are not meant are none of its business.
            let is_meant = |device: &ExaminedDevice| {
                !matches!(device.obstacle, Some(Obstacle::Selector { .. } | Obstacle::Unreachable))
            };
            devices.retain(is_meant);
        }
        let count = (!takes_all).then(|| usize::try_from(asked.count).unwrap_or(0));
        ExaminedRequest { claim: claim.key(), name, class: asked.device_class_name.clone(), count, devices }
    }

    fn obstacle(
        &mut self,
        supply: &Devices,
        asked: &ClaimedDevices,
        candidate: &Candidate<'_>,
        available: &Counters,
    ) -> Option<Obstacle> {
        let device = candidate.device;
        if let Some(obstacle) = self.selection(supply, asked, candidate) {
            return Some(obstacle);
        }
        if candidate.in_use && asked.admin_access != Some(true) {
            return Some(Obstacle::InUse);
        }
        if !capacity::suffices(asked, device, candidate.shared, None) {
            return Some(lacking_capacity(asked, candidate));
        }
        if !(device.is_shared() && candidate.shared.is_some())
            && let Some(obstacle) = lacking_counter(device, available)
        {
            return Some(obstacle);
        }
        let is_tolerated = |taint: &DeviceTaint| asked.tolerations.iter().any(|one| one.tolerates(taint));
        let mut taints = device.taints.iter().filter(|taint| taint.repels());
        let taint = taints.find(|taint| !is_tolerated(taint))?;
        Some(Obstacle::Taint(format!("{}={}:{}", taint.key, taint.value, taint.effect)))
    }

    /// The first selector that does not select the device.
    fn selection(
        &mut self,
        supply: &Devices,
        asked: &ClaimedDevices,
        candidate: &Candidate<'_>,
    ) -> Option<Obstacle> {
        let class = supply.class(&asked.device_class_name);
        let of_class = class.into_iter().flat_map(|class| &class.selectors);
        let of_class = of_class.map(|selector| (format!("class {}", asked.device_class_name), selector));
        let own = asked.selectors.iter().map(|selector| ("request".to_owned(), selector));
        for (of, selector) in of_class.chain(own) {
            let Some(expression) = selector.expression() else {
                return Some(Obstacle::Failed(format!(
                    "the {of} has a selector of a kind that is not known"
                )));
            };
            let id = self.selectors.id(expression);
            match self.selectors.selects(id, candidate.slice, candidate.place, &mut self.ready) {
                Selected::Yes => {}
                Selected::No => return Some(Obstacle::Selector { of, expression: expression.clone() }),
                Selected::Failed(why) => {
                    return Some(Obstacle::Failed(format!("selector of the {of}: {why}")));
                }
            }
        }
        let device = candidate.device;
        let all = device.all_nodes == Some(true);
        let reaches =
            || node_matches(&self.node, device.node_name.as_ref(), all, device.node_selector.as_ref());
        match candidate.slice.per_device_node_selection.then(reaches) {
            None | Some(Ok(true)) => None,
            Some(Ok(false)) => Some(Obstacle::Unreachable),
            Some(Err(why)) => Some(Obstacle::Failed(why)),
        }
    }
}

/// Which capacity is wanted in vain.
fn lacking_capacity(asked: &ClaimedDevices, candidate: &Candidate<'_>) -> Obstacle {
    let device = candidate.device;
    let absent = asked.capacity().find(|(name, _)| !device.capacity.contains_key(*name));
    if let Some((name, wanted)) = absent {
        return Obstacle::Capacity {
            name: name.clone(),
            wanted: wanted.to_string(),
            left: "none".to_owned(),
        };
    }
    let taken = capacity::taken(asked, device);
    let left = |name: &Name| {
        let all = device.capacity.get(name).map(|capacity| capacity.value.amount()).unwrap_or_default();
        let others = candidate.shared.and_then(|shared| shared.get(name)).copied().unwrap_or_default();
        all.saturating_sub(others)
    };
    let lacks =
        taken.iter().find(|(name, wanted)| wanted.amount() > left(name)).or_else(|| taken.iter().next());
    match lacks {
        Some((name, wanted)) => {
            Obstacle::Capacity { name: name.clone(), wanted: wanted.to_string(), left: amount(left(name)) }
        }
        None => Obstacle::Failed("its capacity does not suffice".to_owned()),
    }
}

fn lacking_counter(device: &Device, available: &Counters) -> Option<Obstacle> {
    for taken in &device.consumes_counters {
        for (name, takes) in &taken.counters {
            let left = available.get(&taken.counter_set).and_then(|set| set.get(name)).copied();
            let left = left.unwrap_or_default();
            if takes.value.amount() > left {
                return Some(Obstacle::Counter {
                    name: format!("{}/{name}", taken.counter_set),
                    takes: takes.value.to_string(),
                    left: amount(left),
                });
            }
        }
    }
    None
}

/// With the largest binary suffix that leaves no fraction.
fn amount(quantity: Quantity) -> String {
    supercargo_model::devices::DeviceQuantity::from_binary(quantity.value()).to_string()
}

fn value_of(device: &Device, driver: &str, name: &str) -> Option<String> {
    let attribute = super::constraints::attribute_of(device, driver, name)?;
    if let Some(text) = attribute.string.as_ref().or(attribute.version.as_ref()) {
        return Some(text.to_string());
    }
    attribute.int.map(|number| number.to_string()).or_else(|| attribute.bool.map(|yes| yes.to_string()))
}
