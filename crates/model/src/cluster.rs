//! The cluster: nodes with the pods on them, and every other object that plugins read.
//!
//! It is kept up to date one object at a time. Nothing here decides anything.

mod trial;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

pub use trial::{AlreadyBound, ClusterTrial};

use crate::{
    ApiResource, HashMap, Key, Labels, Name, Timestamp,
    changes::{Changes, Invalidation, PodChange},
    columns::Columns,
    config_map::ConfigMap,
    custom::CustomObject,
    devices::{DeviceClass, Devices, ResourceClaim, ResourceSlice},
    kind::{Invalidates, Kind, for_each_kind},
    label_columns::LabelColumns,
    node::Node,
    object::Object,
    pod::Pod,
    pod_classes::PodClasses,
    pod_owner::{Namespace, PodDisruptionBudget, PodOwner, PodOwnerKind},
    ports::{TakenPorts, UsedPorts},
    resources::Resources,
    storage::{
        CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
        VolumeAttachment, VolumeSource,
    },
};

/// A node's place in the cluster's tables. It is given to another node only after this one is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The node at an index of a table.
    ///
    /// # Panics
    /// If there were more than 2³² nodes.
    #[inline]
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2³² nodes"))
    }

    /// For indexing a table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node, the pods on it, and what they hold.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Its place in the cluster's tables.
    pub id: NodeId,
    /// The node.
    pub node: Arc<Node>,
    /// The pods on it, in the order of their arrival.
    pub pods: Vec<Arc<Pod>>,
    /// What the pods hold.
    pub requested: Resources,
    /// What the pods hold, with a default for containers that ask for no cpu.
    pub requested_or_default_milli_cpu: i64,
    /// What the pods hold, with a default for containers that ask for no memory.
    pub requested_or_default_memory: i64,
    /// The host ports that the pods hold.
    pub used_ports: UsedPorts,
}

impl NodeInfo {
    fn new(id: NodeId, node: Arc<Node>) -> Self {
        Self {
            id,
            node,
            pods: Vec::new(),
            requested: Resources::default(),
            requested_or_default_milli_cpu: 0,
            requested_or_default_memory: 0,
            used_ports: UsedPorts::default(),
        }
    }

    /// The node's name.
    pub fn name(&self) -> &Name {
        &self.node.name
    }

    /// The pods that say something about other pods.
    pub fn pods_with_affinity(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.iter().filter(|pod| pod.spec.has_pod_affinity())
    }

    /// Puts a pod on the node.
    pub fn add_pod(&mut self, pod: Arc<Pod>) {
        self.count_in(&pod);
        self.used_ports.add(&pod.spec.host_ports);
        self.pods.push(pod);
    }

    fn count_in(&mut self, pod: &Pod) {
        let requests = &pod.spec.requests;
        self.requested.add(&requests.held);
        self.requested_or_default_milli_cpu =
            self.requested_or_default_milli_cpu.saturating_add(requests.held_or_default_milli_cpu);
        self.requested_or_default_memory =
            self.requested_or_default_memory.saturating_add(requests.held_or_default_memory);
    }

    /// Sums that were cut at the largest number do not say what was added to them.
    fn count_anew(&mut self) {
        self.requested = Resources::default();
        (self.requested_or_default_milli_cpu, self.requested_or_default_memory) = (0, 0);
        let pods = std::mem::take(&mut self.pods);
        pods.iter().for_each(|pod| self.count_in(pod));
        self.pods = pods;
    }

    fn is_cut(&self) -> bool {
        let sums = [self.requested_or_default_milli_cpu, self.requested_or_default_memory];
        self.requested.has_most() || sums.contains(&i64::MAX)
    }

    /// Takes a pod off the node; nothing happens if it is not there.
    pub fn remove_pod(&mut self, pod: &Pod) -> Option<Arc<Pod>> {
        let same = |other: &Arc<Pod>| {
            other.uid == pod.uid && other.name == pod.name && other.namespace == pod.namespace
        };
        let index = self.pods.iter().position(same)?;
        let pod = self.pods.remove(index);
        self.used_ports.remove(&pod.spec.host_ports);
        if self.is_cut() {
            self.count_anew();
            return Some(pod);
        }
        let requests = &pod.spec.requests;
        self.requested.subtract(&requests.held);
        self.requested_or_default_milli_cpu =
            self.requested_or_default_milli_cpu.saturating_sub(requests.held_or_default_milli_cpu);
        self.requested_or_default_memory =
            self.requested_or_default_memory.saturating_sub(requests.held_or_default_memory);
        Some(pod)
    }
}

/// What is known of an image across the cluster.
#[derive(Clone, Debug)]
pub struct ImageState {
    /// Its size, as the first node that has it told.
    pub size_bytes: i64,
    /// The nodes that have it.
    pub nodes: Vec<NodeId>,
}

/// The cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    slots: Vec<Option<NodeInfo>>,
    free: Vec<NodeId>,
    by_name: HashMap<Name, NodeId>,
    zones: Vec<(Name, Vec<NodeId>)>,
    order: OnceLock<Vec<NodeId>>,
    /// Where each bound pod is, by the node's name: the node may not be known yet.
    bound: HashMap<Key, Arc<Pod>>,
    /// Pods whose node is not known (yet, or any more).
    orphaned: HashMap<Name, Vec<Arc<Pod>>>,
    columns: Columns,
    label_columns: LabelColumns,
    groups: PodClasses,
    changes: Changes,
    images: HashMap<Name, ImageState>,
    taken_ports: TakenPorts,
    claim_users: HashMap<Key, usize>,
    namespaces: BTreeMap<Name, Namespace>,
    services: BTreeMap<Key, PodOwner>,
    replication_controllers: HashMap<Key, PodOwner>,
    replica_sets: HashMap<Key, PodOwner>,
    stateful_sets: HashMap<Key, PodOwner>,
    volumes: BTreeMap<Name, PersistentVolume>,
    /// The volumes that are for a claim; under `None`, those that are for any.
    volumes_by_claim: HashMap<Option<Key>, BTreeSet<Name>>,
    /// How often claims, volumes, and what else is about storage have changed.
    storage_changes: u64,
    claims: HashMap<Key, PersistentVolumeClaim>,
    storage_classes: HashMap<Name, StorageClass>,
    csi_nodes: HashMap<Name, CsiNode>,
    csi_drivers: HashMap<Name, CsiDriver>,
    csi_capacities: BTreeMap<Key, CsiStorageCapacity>,
    attachments: BTreeMap<Name, VolumeAttachment>,
    budgets: BTreeMap<Key, PodDisruptionBudget>,
    /// How often disruption budgets have changed.
    budget_changes: u64,
    devices: Devices,
    config_maps: BTreeMap<Key, ConfigMap>,
    custom: BTreeMap<&'static ApiResource, BTreeMap<Key, CustomObject>>,
    now: Timestamp,
}

/// What plugins read.
impl Cluster {
    /// How many nodes there are.
    #[inline]
    pub fn node_count(&self) -> usize {
        self.by_name.len()
    }

    /// The nodes in the order in which they are tried: one of each zone, then the next of each.
    #[inline]
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &NodeInfo> {
        self.order().iter().map(|id| self.node_at(*id))
    }

    /// The order in which nodes are tried.
    #[inline]
    pub fn order(&self) -> &[NodeId] {
        self.order.get_or_init(|| interleave(&self.zones))
    }

    /// A node by name.
    pub fn node(&self, name: &str) -> Option<&NodeInfo> {
        self.by_name.get(name).map(|id| self.node_at(*id))
    }

    /// A node by its place.
    ///
    /// # Panics
    /// If the place is of another cluster, or the node has been removed since.
    #[inline]
    pub fn node_at(&self, id: NodeId) -> &NodeInfo {
        self.slots[id.index()].as_ref().expect("a node at its place")
    }

    /// An image that at least one node has.
    pub fn image(&self, name: &str) -> Option<&ImageState> {
        self.images.get(name)
    }

    /// The numbers of all nodes side by side.
    #[inline]
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The labels of all nodes side by side.
    #[inline]
    pub fn label_columns(&self) -> &LabelColumns {
        &self.label_columns
    }

    /// Bound pods that are alike, counted by node.
    #[inline]
    pub fn groups(&self) -> &PodClasses {
        &self.groups
    }

    /// Which nodes have which host ports taken.
    #[inline]
    pub fn taken_ports(&self) -> &TakenPorts {
        &self.taken_ports
    }

    /// What has changed lately.
    #[inline]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// How much is kept of all that nodes and pods name, by what it is. All of it goes with the objects.
    pub fn kept(&self) -> BTreeMap<&'static str, usize> {
        let (label_keys, label_values) = self.label_columns.kept();
        BTreeMap::from([
            ("taint classes", self.columns.taint_class_count()),
            ("scalar resources", self.columns.scalar_count()),
            ("label keys", label_keys),
            ("label values", label_values),
            ("images", self.images.len()),
            ("zones", self.zones.len()),
            ("pod classes", self.groups.iter().count()),
            ("pods without their node", self.orphaned.len()),
            ("taken ports", self.taken_ports.len()),
            ("used claims", self.claim_users.len()),
        ])
    }

    /// Whether a pod on a known node uses a claim.
    pub fn is_claim_used(&self, claim: &Key) -> bool {
        self.claim_users.contains_key(claim)
    }

    /// A bound pod.
    pub fn pod(&self, key: &Key) -> Option<&Arc<Pod>> {
        self.bound.get(key)
    }

    /// All bound pods, in no particular order.
    pub fn pods(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> {
        self.bound.values()
    }

    /// A namespace's labels; none, if it is not known.
    pub fn namespace_labels(&self, namespace: &str) -> Labels {
        self.namespaces.get(namespace).map(|ns| ns.labels.clone()).unwrap_or_default()
    }

    /// The namespaces, by name.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.namespaces.values()
    }

    /// The services of a namespace, by name.
    pub fn services<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a PodOwner> {
        let first = Key::new(namespace, "");
        let services = self.services.range(first..).map(|(_, service)| service);
        services.take_while(move |service| &*service.namespace == namespace)
    }

    /// A service or controller by name.
    pub fn pod_owner(&self, kind: PodOwnerKind, key: &Key) -> Option<&PodOwner> {
        match kind {
            PodOwnerKind::Service => self.services.get(key),
            PodOwnerKind::ReplicationController => self.replication_controllers.get(key),
            PodOwnerKind::ReplicaSet => self.replica_sets.get(key),
            PodOwnerKind::StatefulSet => self.stateful_sets.get(key),
        }
    }

    /// A persistent volume.
    pub fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.volumes.get(name)
    }

    /// The persistent volumes, by name.
    pub fn volumes(&self) -> impl Iterator<Item = &PersistentVolume> {
        self.volumes.values()
    }

    /// A claim.
    pub fn claim(&self, key: &Key) -> Option<&PersistentVolumeClaim> {
        self.claims.get(key)
    }

    /// The volumes that a claim may be bound to, as far as volumes say whom they are for: first those that are for any, then
    /// those that are for it; both by name.
    pub fn volumes_for<'a>(&'a self, claim: &Key) -> impl Iterator<Item = &'a PersistentVolume> + use<'a> {
        let names = [None, Some(claim.clone())].map(|whom| self.volumes_by_claim.get(&whom));
        names.into_iter().flatten().flatten().filter_map(|name| self.volumes.get(name))
    }

    /// A number that grows whenever claims, volumes, their classes, or what nodes say about storage change.
    pub fn storage_revision(&self) -> u64 {
        self.storage_changes
    }

    /// Whether any node says which volumes it can attach.
    pub fn has_csi_nodes(&self) -> bool {
        !self.csi_nodes.is_empty()
    }

    /// A storage class.
    pub fn storage_class(&self, name: &str) -> Option<&StorageClass> {
        self.storage_classes.get(name)
    }

    /// Claims to devices, what drivers offer, and what claims have.
    #[inline]
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The same, to tell what is chosen for claims before they show it.
    pub fn devices_mut(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// What a node's CSI drivers said.
    pub fn csi_node(&self, node: &str) -> Option<&CsiNode> {
        self.csi_nodes.get(node)
    }

    /// A CSI driver.
    pub fn csi_driver(&self, name: &str) -> Option<&CsiDriver> {
        self.csi_drivers.get(name)
    }

    /// Where CSI drivers have room.
    pub fn csi_capacities(&self) -> impl Iterator<Item = &CsiStorageCapacity> {
        self.csi_capacities.values()
    }

    /// What is attached where.
    pub fn attachments(&self) -> impl Iterator<Item = &VolumeAttachment> {
        self.attachments.values()
    }

    /// A number that grows whenever disruption budgets change.
    pub fn budget_revision(&self) -> u64 {
        self.budget_changes
    }

    /// The disruption budgets, by namespace and name.
    pub fn budgets(&self) -> impl Iterator<Item = &PodDisruptionBudget> {
        self.budgets.values()
    }

    /// A ConfigMap. There are only those that a plugin was told to read, or that stood among the given objects.
    pub fn config_map(&self, key: &Key) -> Option<&ConfigMap> {
        self.config_maps.get(key)
    }

    /// An object of a custom kind. There are only those of kinds that a plugin has declared.
    pub fn custom(&self, api: &ApiResource, key: &Key) -> Option<&CustomObject> {
        self.custom.get(api)?.get(key)
    }

    /// The objects of a custom kind, by namespace and name.
    pub fn custom_objects(&self, api: &ApiResource) -> impl Iterator<Item = &CustomObject> {
        self.custom.get(api).into_iter().flat_map(BTreeMap::values)
    }

    /// The time, as it was last told: 1970 until then. A plugin that reads it must be asked anew for every pod, because
    /// the passing of time is no change of the cluster.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.now
    }
}

/// A map of objects by their names; those that live in no namespace are found by their names alone.
trait Store<T> {
    fn find(&self, key: &Key) -> Option<&T>;
    fn keep(&mut self, key: Key, object: T);
    fn take(&mut self, key: &Key) -> Option<T>;
}

macro_rules! impl_store {
    ($($map:ident<$key:ident> by $part:expr;)*) => {
        $(impl<T> Store<T> for $map<$key, T> {
            fn find(&self, key: &Key) -> Option<&T> {
                self.get($part(key))
            }

            fn keep(&mut self, key: Key, object: T) {
                self.insert($part(&key).clone(), object);
            }

            fn take(&mut self, key: &Key) -> Option<T> {
                self.remove($part(key))
            }
        })*
    };
}
impl_store! {
    BTreeMap<Key> by std::convert::identity;
    HashMap<Key> by std::convert::identity;
    BTreeMap<Name> by name_of;
    HashMap<Name> by name_of;
}

fn name_of(key: &Key) -> &Name {
    &key.name
}

/// Adds an object to a map of the cluster, or in the cluster's own way.
macro_rules! put {
    ($cluster:ident, $variant:ident($object:ident) in $store:ident) => {{
        let key = $object.key();
        if $cluster.$store.find(&key) != Some(&$object) {
            $cluster.changed(Kind::$variant);
        }
        // Objects that say the same may be of different versions, and the newest counts.
        $cluster.$store.keep(key, $object);
    }};
    ($cluster:ident, $variant:ident($object:ident) by $put:ident $remove:ident $find:ident) => {
        $cluster.$put($object)
    };
}

macro_rules! remove {
    ($cluster:ident, $variant:ident($key:ident) in $store:ident) => {
        if $cluster.$store.take($key).is_some() {
            $cluster.changed(Kind::$variant);
        }
    };
    ($cluster:ident, $variant:ident($key:ident) by $put:ident $remove:ident $find:ident) => {
        $cluster.$remove($key)
    };
}

macro_rules! find {
    ($cluster:ident, $key:ident in $store:ident) => {
        $cluster.$store.find($key).cloned()
    };
    ($cluster:ident, $key:ident by $put:ident $remove:ident $find:ident) => {
        $cluster.$find($key)
    };
}

macro_rules! define_stores {
    ($($variant:ident($type:ident) from ($written:ident):
       $group:literal $version:literal $plural:literal $kind:literal,
       $namespaced:expr, $required:expr, $watched:expr, $invalidates:ident, $how:tt $($store:ident)+;)*) => {
        impl Cluster {
            /// A copy of an object as it is known; only bound pods are.
            pub fn object(&self, kind: Kind, key: &Key) -> Option<Object> {
                match kind {
                    $(Kind::$variant => find!(self, key $how $($store)+).map(Object::$variant),)*
                    Kind::Custom(api) => self.custom(api, key).cloned().map(Object::Custom),
                }
            }

            /// Adds an object, or replaces the one of that kind and name. A pod that is not bound, or has ended, is none
            /// of the cluster's: an earlier version of it is removed.
            pub fn put(&mut self, object: Object) {
                match object {
                    $(Object::$variant(object) => put!(self, $variant(object) $how $($store)+),)*
                    Object::Custom(object) => self.put_custom(object),
                }
            }

            /// Removes an object; nothing happens if it is not there.
            pub fn remove(&mut self, kind: Kind, key: &Key) {
                match kind {
                    $(Kind::$variant => remove!(self, $variant(key) $how $($store)+),)*
                    Kind::Custom(api) => self.remove_custom(api, key),
                }
            }
        }
    };
}
for_each_kind!(define_stores);

/// The cluster's own way with nodes, pods and custom kinds.
impl Cluster {
    fn find_node(&self, key: &Key) -> Option<Node> {
        self.node(&key.name).map(|info| (*info.node).clone())
    }

    fn remove_node_at(&mut self, key: &Key) {
        self.remove_node(&key.name);
    }

    fn find_pod(&self, key: &Key) -> Option<Pod> {
        self.pod(key).map(|pod| (**pod).clone())
    }

    fn put_unshared_pod(&mut self, pod: Pod) {
        self.put_pod(Arc::new(pod));
    }

    fn drop_pod(&mut self, key: &Key) {
        self.remove_pod(key);
    }

    fn put_resource_claim(&mut self, claim: ResourceClaim) {
        self.devices.put_claim(claim);
    }

    fn remove_resource_claim(&mut self, key: &Key) {
        if let Some(uid) = self.devices.claim(key).map(|claim| claim.uid.clone()) {
            self.devices.land(&uid);
        }
        self.devices.remove_claim(key);
    }

    fn find_resource_claim(&self, key: &Key) -> Option<ResourceClaim> {
        self.devices.claim(key).map(|claim| (**claim).clone())
    }

    fn put_resource_slice(&mut self, slice: ResourceSlice) {
        self.devices.put_slice(slice);
    }

    fn remove_resource_slice(&mut self, key: &Key) {
        self.devices.remove_slice(&key.name);
    }

    fn find_resource_slice(&self, key: &Key) -> Option<ResourceSlice> {
        let slice = self.devices.slices().find(|slice| slice.name == key.name);
        slice.map(|slice| (**slice).clone())
    }

    fn put_device_class(&mut self, class: DeviceClass) {
        if self.devices.class(&class.name) != Some(&class) {
            self.changed(Kind::DeviceClass);
        }
        self.devices.put_class(class);
    }

    fn remove_device_class(&mut self, key: &Key) {
        if self.devices.class(&key.name).is_some() {
            self.changed(Kind::DeviceClass);
        }
        self.devices.remove_class(&key.name);
    }

    fn find_device_class(&self, key: &Key) -> Option<DeviceClass> {
        self.devices.class(&key.name).cloned()
    }

    fn find_volume(&self, key: &Key) -> Option<PersistentVolume> {
        self.volume(&key.name).cloned()
    }

    fn put_volume(&mut self, volume: PersistentVolume) {
        if self.volume(&volume.name) == Some(&volume) {
            // Objects that say the same may be of different versions, and the newest counts.
            self.volumes.insert(volume.name.clone(), volume);
            return;
        }
        self.take_volume(&volume.name);
        let whom = claim_of(&volume);
        self.volumes_by_claim.entry(whom).or_default().insert(volume.name.clone());
        self.volumes.insert(volume.name.clone(), volume);
        self.changed(Kind::PersistentVolume);
    }

    fn remove_volume(&mut self, key: &Key) {
        if self.take_volume(&key.name).is_some() {
            self.changed(Kind::PersistentVolume);
        }
    }

    fn take_volume(&mut self, name: &str) -> Option<PersistentVolume> {
        let volume = self.volumes.remove(name)?;
        let whom = claim_of(&volume);
        if let Some(names) = self.volumes_by_claim.get_mut(&whom) {
            names.remove(&volume.name);
            if names.is_empty() {
                self.volumes_by_claim.remove(&whom);
            }
        }
        Some(volume)
    }

    fn put_custom(&mut self, object: CustomObject) {
        let key = object.key();
        if self.custom(object.api, &key) != Some(&object) {
            self.changed(Kind::Custom(object.api));
        }
        self.custom.entry(object.api).or_default().insert(key, object);
    }

    fn remove_custom(&mut self, api: &'static ApiResource, key: &Key) {
        if self.custom.get_mut(api).and_then(|objects| objects.remove(key)).is_some() {
            self.changed(Kind::Custom(api));
        }
    }

    /// An object of a kind that is kept in a map has changed.
    fn changed(&mut self, kind: Kind) {
        self.budget_changes += u64::from(kind == Kind::PodDisruptionBudget);
        match kind.invalidates() {
            Invalidates::Everything => self.changes.note(Invalidation::Everything),
            Invalidates::Storage => self.storage_changes += 1,
            Invalidates::Touched | Invalidates::Nothing => {}
        }
    }
}

/// What keeps it up to date.
impl Cluster {
    /// Tells the time: there is no clock in here.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Adds or replaces a node; the pods on it stay.
    pub fn put_node(&mut self, node: Node) {
        let node = Arc::new(node);
        match self.by_name.get(&node.name).copied() {
            Some(id) => self.replace_node(id, node),
            None => self.add_node(node),
        }
    }

    fn replace_node(&mut self, id: NodeId, node: Arc<Node>) {
        let info = self.slots[id.index()].as_mut().expect("a node at its place");
        if *info.node == *node {
            return;
        }
        let old = std::mem::replace(&mut info.node, node.clone());
        self.count_images_but(id, &node, &old);
        self.uncount_images_but(id, &old, &node);
        self.label_columns.replace(id, &old.labels, &node.labels);
        if old.zone() != node.zone() {
            self.leave_zone(&old.zone(), id);
            self.enter_zone(node.zone(), id);
        }
        self.set_columns(id);
    }

    fn add_node(&mut self, node: Arc<Node>) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.columns.grow(self.slots.len());
            NodeId::from_index(self.slots.len() - 1)
        });
        self.by_name.insert(node.name.clone(), id);
        self.count_images_but(id, &node, &Node::default());
        self.enter_zone(node.zone(), id);
        let waiting = self.orphaned.remove(&node.name).unwrap_or_default();
        self.label_columns.replace(id, &Labels::default(), &node.labels);
        self.slots[id.index()] = Some(NodeInfo::new(id, node));
        self.set_columns(id);
        for pod in waiting {
            self.place(pod);
        }
    }

    fn set_columns(&mut self, id: NodeId) {
        let info = self.slots[id.index()].as_ref().expect("a node at its place");
        for resource in self.columns.set_node(id, &info.node) {
            // Pods may hold what no node has offered so far.
            self.columns.set_used(&resource, self.slots.iter().flatten());
        }
        self.columns.set_load(info);
        self.changes.note(Invalidation::Everything);
    }

    fn remove_node(&mut self, name: &str) {
        let Some(id) = self.by_name.remove(name) else {
            return;
        };
        let Some(info) = self.slots[id.index()].take() else {
            return;
        };
        self.free.push(id);
        self.uncount_images_but(id, &info.node, &Node::default());
        self.leave_zone(&info.node.zone(), id);
        self.columns.remove(id);
        self.label_columns.replace(id, &info.node.labels, &Labels::default());
        self.changes.note(Invalidation::Everything);
        for pod in &info.pods {
            self.count_claims(pod, false);
            self.groups.remove(pod, id);
            self.taken_ports.remove(&pod.spec.host_ports, id);
        }
        if !info.pods.is_empty() {
            self.orphaned.insert(info.node.name.clone(), info.pods);
        }
    }

    /// The same pod, with a spec that it shares with all pods that have an equal one.
    #[must_use]
    pub fn share(&mut self, pod: Arc<Pod>) -> Arc<Pod> {
        let spec = self.groups.share(&pod.spec);
        if Arc::ptr_eq(&spec, &pod.spec) {
            return pod;
        }
        Arc::new(Pod { spec, ..(*pod).clone() })
    }

    /// Adds a bound pod, or replaces the one of its name.
    pub fn put_pod(&mut self, pod: Arc<Pod>) {
        let key = pod.key();
        match self.bound.get(&key) {
            Some(known) if **known == *pod => return,
            Some(_) => drop(self.remove_pod(&key)),
            None => {}
        }
        if pod.node.is_some() && !pod.finished {
            let pod = self.share(pod);
            self.bound.insert(key, pod.clone());
            self.place(pod);
        }
    }

    /// Removes a bound pod.
    pub fn remove_pod(&mut self, key: &Key) -> Option<Arc<Pod>> {
        let pod = self.bound.remove(key)?;
        let node = pod.node.as_ref()?;
        if let Some(&id) = self.by_name.get(node) {
            let info = self.slots[id.index()].as_mut().expect("a node at its place");
            info.remove_pod(&pod);
            self.columns.set_load(info);
            self.groups.remove(&pod, id);
            self.taken_ports.remove(&pod.spec.host_ports, id);
            self.changes.note(Invalidation::Pod(PodChange { node: id, pod: pod.clone(), added: false }));
            self.count_claims(&pod, false);
        } else if let Some(waiting) = self.orphaned.get_mut(node) {
            waiting.retain(|other| other.uid != pod.uid);
            if waiting.is_empty() {
                self.orphaned.remove(node);
            }
        }
        Some(pod)
    }

    fn place(&mut self, pod: Arc<Pod>) {
        let Some(node) = &pod.node else {
            return;
        };
        match self.by_name.get(node).copied() {
            Some(id) => {
                self.count_claims(&pod, true);
                let info = self.slots[id.index()].as_mut().expect("a node at its place");
                info.add_pod(pod.clone());
                self.columns.set_load(info);
                self.groups.add(&pod, id);
                self.taken_ports.add(&pod.spec.host_ports, id);
                self.changes.note(Invalidation::Pod(PodChange { node: id, pod, added: true }));
            }
            None => self.orphaned.entry(node.clone()).or_default().push(pod),
        }
    }

    fn count_claims(&mut self, pod: &Pod, used: bool) {
        for volume in &pod.spec.volumes {
            let VolumeSource::Claim { name } = &volume.source else {
                continue;
            };
            let key = Key::new(pod.namespace.clone(), name.clone());
            if used {
                *self.claim_users.entry(key).or_default() += 1;
            } else if let Some(users) = self.claim_users.get_mut(&key) {
                *users -= 1;
                if *users == 0 {
                    self.claim_users.remove(&key);
                }
            }
        }
    }

    /// Counts the images that a node has and did not have before.
    fn count_images_but(&mut self, id: NodeId, new: &Node, old: &Node) {
        let had = image_names(old);
        for (name, size_bytes) in image_names(new) {
            if !had.contains_key(name) {
                let state = self
                    .images
                    .entry(name.clone())
                    .or_insert_with(|| ImageState { size_bytes, nodes: Vec::new() });
                state.nodes.push(id);
            }
        }
    }

    /// Forgets the images that a node had and no longer has.
    fn uncount_images_but(&mut self, id: NodeId, old: &Node, new: &Node) {
        let kept = image_names(new);
        for (name, _) in image_names(old) {
            if kept.contains_key(name) {
                continue;
            }
            if let Some(state) = self.images.get_mut(name) {
                state.nodes.retain(|other| *other != id);
                if state.nodes.is_empty() {
                    self.images.remove(name);
                }
            }
        }
    }

    fn enter_zone(&mut self, zone: Name, id: NodeId) {
        self.order = OnceLock::new();
        match self.zones.iter_mut().find(|(name, _)| *name == zone) {
            Some((_, nodes)) => nodes.push(id),
            None => self.zones.push((zone, vec![id])),
        }
    }

    fn leave_zone(&mut self, zone: &str, id: NodeId) {
        self.order = OnceLock::new();
        if let Some((_, nodes)) = self.zones.iter_mut().find(|(name, _)| &**name == zone) {
            nodes.retain(|other| *other != id);
        }
        self.zones.retain(|(_, nodes)| !nodes.is_empty());
    }
}

/// The claim that a volume is for.
fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.claim.as_ref()?;
    Some(Key::new(claim.namespace.clone().unwrap_or_default(), claim.name.clone().unwrap_or_default()))
}

/// The names of a node's images, each once.
fn image_names(node: &Node) -> BTreeMap<&Name, i64> {
    let mut names = BTreeMap::new();
    for image in &node.images {
        for name in &image.names {
            names.entry(name).or_insert(image.size_bytes);
        }
    }
    names
}

/// One node of each zone, then the next of each, until all are in.
fn interleave(zones: &[(Name, Vec<NodeId>)]) -> Vec<NodeId> {
    let longest = zones.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| zones.iter().filter_map(move |(_, nodes)| nodes.get(turn)))
        .copied()
        .collect()
}
