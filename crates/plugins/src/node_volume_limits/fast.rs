//! The fast form: how many volumes each node's drivers attach is counted once, and kept as pods come and leave.

use std::sync::{Arc, Mutex, PoisonError};

use supercargo_framework::{
    fast::{CLOSED, Compiled, FastFilter, FilterPart, OpaqueFilter, PluginFailed},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, Name, NodeId, Pod,
    changes::{ChangeLogId, Moment, PodChange},
};

use super::{
    NodeVolumeLimits,
    attachable::{Attachable, HashMap, HashSet, MissingClaim, attachable_volumes, attached_by_node},
    limits, may_be_attached,
};

/// The volumes of one driver, by place.
struct Driver {
    /// How many are attached, or will be for the node's pods.
    attached: Vec<f64>,
    /// How many can be; no end where the node says nothing about it.
    limit: Vec<f64>,
}

/// What is known of all nodes, and of when.
#[derive(Default)]
pub(super) struct Attached {
    known_at: Option<(ChangeLogId, Moment, u64)>,
    drivers: HashMap<Name, Driver>,
    /// What the pods of each node use, by place, and how many of them; and on which nodes pods use a volume.
    used: Vec<HashMap<Attachable, u32>>,
    users: HashMap<Attachable, Vec<NodeId>>,
    /// By node: what VolumeAttachments say.
    attachments: HashMap<Name, HashSet<Attachable>>,
    /// What a node's pods use cannot be told.
    is_unknown: bool,
}

impl Attached {
    /// Brings everything up to date.
    fn catch_up(&mut self, cluster: &Cluster) {
        let (history, now) = (cluster.changes().history(), cluster.changes().now());
        let storage = cluster.storage_revision();
        let known = self.known_at.as_ref().filter(|(of, _, revision)| of.is(history) && *revision == storage);
        let changes = known.and_then(|(_, moment, _)| cluster.changes().since(*moment));
        match changes {
            Some(changes) if changes.len() < cluster.node_count() => {
                changes.for_each(|change| self.note(cluster, change));
            }
            _ => self.count_all(cluster),
        }
        self.known_at = Some((history.mark(), now, storage));
    }

    fn count_all(&mut self, cluster: &Cluster) {
        let places = cluster.columns().len();
        *self = Self { attachments: attached_by_node(cluster), ..Self::default() };
        self.used.resize_with(places, HashMap::default);
        for node in cluster.columns().live.iter() {
            let csi_node = cluster.csi_node(cluster.node_at(node).name());
            for (driver, limit) in csi_node.map(limits).unwrap_or_default() {
                let driver = self.drivers.entry(driver.clone()).or_insert_with(|| Driver {
                    attached: vec![0.0; places],
                    limit: vec![f64::INFINITY; places],
                });
                driver.limit[node.index()] = limit as f64;
            }
        }
        for (name, volumes) in &self.attachments {
            let Some(node) = cluster.node(name) else {
                continue;
            };
            for volume in volumes {
                if let Some(driver) = self.drivers.get_mut(&volume.driver) {
                    driver.attached[node.id.index()] += 1.0;
                }
            }
        }
        for node in cluster.columns().live.iter() {
            let node = cluster.node_at(node);
            node.pods.iter().for_each(|pod| self.count(cluster, node.id, pod, true));
        }
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange) {
        self.count(cluster, change.node, &change.pod, change.added);
    }

    /// Counts what is attached to a node for a pod that came, or is no longer for one that left. Where the node has no limits,
    /// nothing need be known.
    fn count(&mut self, cluster: &Cluster, id: NodeId, pod: &Pod, came: bool) {
        let is_limited = |driver: &Driver| driver.limit[id.index()].is_finite();
        if pod.spec.volumes.is_empty() || !self.drivers.values().any(is_limited) {
            return;
        }
        let Ok(volumes) = attachable_volumes(cluster, pod, true, MissingClaim::IsIgnored) else {
            self.is_unknown = true;
            return;
        };
        for volume in volumes {
            if came {
                self.attach(cluster, id, volume);
            } else {
                self.detach(cluster, id, &volume);
            }
        }
    }

    /// Counts one pod more that uses a volume on a node.
    fn attach(&mut self, cluster: &Cluster, id: NodeId, volume: Attachable) {
        let pods = self.used[id.index()].entry(volume.clone()).or_default();
        *pods += 1;
        if *pods == 1 {
            self.add_attached(cluster, id, &volume, 1.0);
            self.users.entry(volume).or_default().push(id);
        }
    }

    /// Counts one pod less.
    fn detach(&mut self, cluster: &Cluster, id: NodeId, volume: &Attachable) {
        let used = &mut self.used[id.index()];
        let Some(pods) = used.get_mut(volume) else {
            return;
        };
        *pods -= 1;
        if *pods > 0 {
            return;
        }
        used.remove(volume);
        self.add_attached(cluster, id, volume, -1.0);
        if let Some(users) = self.users.get_mut(volume) {
            users.retain(|user| *user != id);
            if users.is_empty() {
                self.users.remove(volume);
            }
        }
    }

    /// What a VolumeAttachment tells of is counted already.
    fn add_attached(&mut self, cluster: &Cluster, id: NodeId, volume: &Attachable, by: f64) {
        let attachments = self.attachments.get(cluster.node_at(id).name());
        if attachments.is_some_and(|attachments| attachments.contains(volume)) {
            return;
        }
        if let Some(driver) = self.drivers.get_mut(&volume.driver) {
            driver.attached[id.index()] += by;
        }
    }
}

/// The volumes that a pod wants attached.
struct Wanted {
    volumes: HashSet<Attachable>,
    by_driver: HashMap<Name, f64>,
}

impl Wanted {
    /// `None` if that cannot be told.
    fn of(cluster: &Cluster, pod: &Pod) -> Option<Self> {
        // What can be told of a node that hands disks to CSI drivers can be told of any.
        let volumes = attachable_volumes(cluster, pod, true, MissingClaim::Refuses).ok()?;
        let mut by_driver: HashMap<Name, f64> = HashMap::default();
        for volume in &volumes {
            *by_driver.entry(volume.driver.clone()).or_default() += 1.0;
        }
        Some(Self { volumes, by_driver })
    }

    /// Whether a node can attach those that are not attached to it already.
    fn fit(&self, attached: &Attached, node: NodeId) -> bool {
        let used = &attached.used[node.index()];
        self.by_driver.iter().all(|(name, wanted)| {
            let Some(driver) = attached.drivers.get(name) else {
                return true;
            };
            let is_shared = |volume: &&Attachable| volume.driver == *name && used.contains_key(*volume);
            let new = wanted - self.volumes.iter().filter(is_shared).count() as f64;
            new <= 0.0 || driver.attached[node.index()] + new <= driver.limit[node.index()]
        })
    }

    fn close(&self, attached: &Attached, open: &mut [f64]) {
        // Where a volume is attached already, it takes no more room.
        let sharing = self.volumes.iter().filter_map(|volume| attached.users.get(volume)).flatten();
        let shared: Vec<(NodeId, f64)> = sharing.map(|node| (*node, open[node.index()])).collect();
        for (name, wanted) in &self.by_driver {
            let Some(Driver { attached, limit }) = attached.drivers.get(name) else {
                continue;
            };
            vectorized(
                #[inline(always)]
                || {
                    for ((open, attached), limit) in open.iter_mut().zip(attached).zip(limit) {
                        *open = if attached + wanted <= *limit { *open } else { CLOSED };
                    }
                },
            );
        }
        for (node, before) in shared {
            open[node.index()] = if self.fit(attached, node) { before } else { CLOSED };
        }
    }
}

/// Asked for every pod: what is attached changes with each.
struct LimitsFilter(Arc<NodeVolumeLimits>);

impl OpaqueFilter for LimitsFilter {
    fn close(&mut self, cluster: &Cluster, pod: &Arc<Pod>, open: &mut [f64]) -> Result<(), PluginFailed> {
        let wanted = Wanted::of(cluster, pod).ok_or(PluginFailed)?;
        let mut attached = self.0.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.catch_up(cluster);
        if attached.is_unknown {
            return Err(PluginFailed);
        }
        wanted.close(&attached, open);
        Ok(())
    }
}

impl FastFilter for NodeVolumeLimits {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let can_be_told = || attachable_volumes(cluster, pod, false, MissingClaim::Refuses).is_ok();
        if !pod.spec.volumes.iter().any(may_be_attached) || !cluster.has_csi_nodes() && can_be_told() {
            Compiled::Idle
        } else {
            Compiled::Part(FilterPart::Opaque(Box::new(LimitsFilter(self))))
        }
    }

    fn reads_claims(&self) -> bool {
        true
    }
}

/// What is kept between pods.
pub(super) type KeptAttached = Mutex<Attached>;
