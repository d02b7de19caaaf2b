//! What others do in a cluster, as far as it follows from what plugins write. The kubelet ends a pod that was deleted, when
//! its grace period is over. The volume controller binds a claim to the volume that was given to it, and provisioners make
//! one for a claim that was sent to a node, at once. So do the drivers of devices that must get ready, and the claim controller
//! takes the devices of a pod that is gone.

use std::{sync::Arc, time::Duration};

use supercargo_model::{
    Key, Kind, Labels, Name, Pod, ResourceVersion,
    devices::{AllocatedDevice, AllocatedDeviceStatus, DeviceCondition, ResourceClaim},
    object::Object,
    selector::{NodeSelector, NodeSelectorTerm, Requirement},
    storage::{
        ClaimRef, CsiVolume, PersistentVolume, PersistentVolumeClaim,
        annotations::{BIND_COMPLETED, SELECTED_NODE},
    },
};

use super::OfflineScheduler;

/// How long a pod takes to leave that does not say it: what Kubernetes gives it.
const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// The provisioner of classes whose volumes are made by people.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Kubelets.
impl OfflineScheduler {
    /// Pods whose deletion was asked for before the start leave after their grace periods, from the start on.
    pub(super) fn expect_departures(&mut self) {
        let pods = self.engine.cluster().pods().filter(|pod| pod.terminating);
        let mut leaving: Vec<(Key, Duration)> =
            pods.map(|pod| (pod.key(), grace_period(pod, None))).collect();
        leaving.sort();
        leaving.into_iter().for_each(|(pod, span)| self.departs(pod, span));
    }

    /// Deletes a pod: at once if it has no node yet, else it gets its grace period.
    pub(super) fn delete_pod(&mut self, pod: &Pod, seconds: Option<i64>) {
        let span = grace_period(pod, seconds);
        if pod.node.is_none() || span.is_zero() {
            self.pod_is_gone(&pod.key(), &pod.uid);
        } else if !pod.terminating {
            self.pod_is(Arc::new(Pod { terminating: true, ..pod.clone() }));
            self.departs(pod.key(), span);
        }
    }

    fn departs(&mut self, pod: Key, span: Duration) {
        self.departed += 1;
        self.departures.insert((self.now().saturating_add(span), self.departed), pod);
    }

    /// When the next pod is gone.
    pub(super) fn next_departure(&self) -> Option<Duration> {
        self.departures.keys().next().map(|(at, _)| *at)
    }

    /// The pods whose time is over are gone.
    pub(super) fn depart(&mut self, now: Duration) {
        while let Some(entry) = self.departures.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            let leaving = self.engine.cluster().pod(&key).filter(|pod| pod.terminating);
            if let Some(uid) = leaving.map(|pod| pod.uid.clone()) {
                self.pod_is_gone(&key, &uid);
            }
        }
    }
}

fn grace_period(pod: &Pod, asked: Option<i64>) -> Duration {
    let seconds = asked.or(pod.grace_period_seconds);
    // Kubernetes takes a negative one for a second.
    seconds.map_or(GRACE_PERIOD, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(1)))
}

/// The volume controller, and provisioners.
impl OfflineScheduler {
    /// A plugin has written an object: if it is a volume or a claim, the controllers do their part.
    pub(super) fn volumes_follow(&mut self, written: &Object) {
        match written {
            Object::PersistentVolume(volume) => {
                let Some(claim) = self.unbound_claim_of(volume) else { return };
                self.bind_volume(volume.clone(), claim);
            }
            Object::PersistentVolumeClaim(claim) if claim.volume.is_empty() => {
                if let Some(volume) = self.provision(claim) {
                    self.bind_volume(volume, claim.clone());
                }
            }
            _ => {}
        }
    }

    /// The claim that a volume was given to, if it is not bound yet.
    fn unbound_claim_of(&self, volume: &PersistentVolume) -> Option<PersistentVolumeClaim> {
        let given_to = volume.claim.as_ref()?;
        let key = Key::new(given_to.namespace.clone()?, given_to.name.clone()?);
        let claim = self.engine.cluster().claim(&key)?;
        let is_meant = given_to.uid.as_ref() == Some(&claim.uid) && claim.volume.is_empty();
        is_meant.then(|| claim.clone())
    }

    /// A new volume for a claim that was sent to a node. It can be reached from where the driver's topology says.
    fn provision(&self, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
        let cluster = self.engine.cluster();
        let node = &cluster.node(claim.annotations.get(SELECTED_NODE)?)?.node;
        let class = cluster.storage_class(claim.class_name())?;
        if matches!(&*class.provisioner, "" | NO_PROVISIONER) {
            return None;
        }
        let drivers = cluster.csi_node(&node.name).map(|csi_node| &csi_node.drivers[..]).unwrap_or_default();
        let keys = drivers.iter().filter(|driver| driver.name == class.provisioner);
        let keys = keys.flat_map(|driver| &driver.topology_keys);
        let topology: Vec<Requirement> = keys
            .filter_map(|key| Some(Requirement::is_in(key.clone(), [node.labels.get(key)?.clone()])))
            .collect();
        let affinity = (!topology.is_empty()).then(|| {
            let node_selector_terms = vec![NodeSelectorTerm::new(topology, Vec::new())];
            Arc::new(NodeSelector { node_selector_terms })
        });
        let name: Name = format!("pvc-{}", claim.uid).into();
        Some(PersistentVolume {
            version: ResourceVersion::default(),
            labels: Labels::default(),
            annotations: Labels::default(),
            terminating: false,
            capacity: claim.size.unwrap_or_default(),
            access_modes: claim.access_modes.clone(),
            storage_class: class.name.clone(),
            volume_mode: claim.volume_mode,
            attributes_class: claim.attributes_class.clone(),
            claim: None,
            node_affinity: affinity,
            phase: Name::default(),
            csi: Some(CsiVolume { driver: class.provisioner.clone(), volume_handle: Some(name.clone()) }),
            disk: None,
            name,
        })
    }

    /// Writes both halves of a binding: the claim's name into the volume, and the volume's into the claim.
    fn bind_volume(&mut self, volume: PersistentVolume, claim: PersistentVolumeClaim) {
        let annotations = claim.annotations.iter().map(|(key, value)| (key.clone(), value.clone()));
        let annotations = annotations.chain([(BIND_COMPLETED.into(), "yes".into())]).collect();
        let given_to = ClaimRef {
            namespace: Some(claim.namespace.clone()),
            name: Some(claim.name.clone()),
            uid: Some(claim.uid.clone()),
        };
        let claim = PersistentVolumeClaim {
            version: self.new_version(),
            annotations,
            volume: volume.name.clone(),
            phase: "Bound".into(),
            ..claim
        };
        let volume = PersistentVolume {
            version: self.new_version(),
            claim: Some(given_to),
            phase: "Bound".into(),
            ..volume
        };
        self.object_is(Object::PersistentVolume(volume));
        self.object_is(Object::PersistentVolumeClaim(claim));
    }

    fn new_version(&mut self) -> ResourceVersion {
        ResourceVersion(self.objects.new_version().into())
    }
}

/// Drivers of devices, and the claim controller.
impl OfflineScheduler {
    /// A plugin has written an object: if it is a claim whose devices must get ready, they do.
    pub(super) fn devices_follow(&mut self, written: &Object) {
        let Object::ResourceClaim(claim) = written else { return };
        let results = claim.allocation.iter().flat_map(|allocation| &allocation.devices.results);
        let is_told = |device: &AllocatedDevice| {
            let same = |status: &AllocatedDeviceStatus| {
                status.driver == device.driver && status.pool == device.pool && status.device == device.device
            };
            claim.devices.iter().any(same)
        };
        let waiting = results.filter(|device| !device.binding_conditions.is_empty() && !is_told(device));
        let told: Vec<AllocatedDeviceStatus> = waiting.map(ready).collect();
        if !told.is_empty() {
            let devices = claim.devices.iter().cloned().chain(told).collect();
            let version = self.new_version();
            self.object_is(Object::ResourceClaim(ResourceClaim { version, devices, ..claim.clone() }));
        }
    }

    /// A pod is gone: its own claims go with it, and others that nobody else uses give their devices back.
    pub(super) fn claims_follow(&mut self, pod_uid: &str) {
        let claims = self.engine.cluster().devices().claims();
        let used = claims.filter(|claim| claim.is_reserved_for(pod_uid) || claim.is_controlled_by(pod_uid));
        let used: Vec<ResourceClaim> = used.map(|claim| (**claim).clone()).collect();
        for mut claim in used {
            if claim.is_controlled_by(pod_uid) {
                self.object_is_gone(Kind::ResourceClaim, &claim.key());
                continue;
            }
            claim.reserved_for.retain(|consumer| *consumer.uid != *pod_uid);
            if claim.reserved_for.is_empty() {
                claim.allocation = None;
                claim.devices.clear();
            }
            let version = self.new_version();
            self.object_is(Object::ResourceClaim(ResourceClaim { version, ..claim }));
        }
    }
}

fn ready(device: &AllocatedDevice) -> AllocatedDeviceStatus {
    let condition = |kind: &Name| DeviceCondition {
        kind: kind.clone(),
        status: "True".into(),
        reason: "Ready".into(),
        message: Name::default(),
    };
    AllocatedDeviceStatus {
        driver: device.driver.clone(),
        pool: device.pool.clone(),
        device: device.device.clone(),
        share_id: device.share_id.clone(),
        conditions: device.binding_conditions.iter().map(condition).collect(),
    }
}
