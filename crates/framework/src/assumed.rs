//! Objects that are ahead of the API server: what a plugin has promised a pod, so that the next pod sees it as given.
//!
//! As in kube-scheduler's assume cache, what the server tells always wins over what was assumed, and what comes to
//! nothing is taken back to what the server told last.

use std::{collections::HashMap, sync::Arc};

use supercargo_model::{
    Cluster, Key, Name,
    devices::{ClaimAllocation, ResourceClaim},
    object::{Kind, Object},
};

/// The objects of a cluster that are ahead of the API server.
#[derive(Debug, Default)]
pub struct AssumedObjects {
    ahead: HashMap<(Kind, Key), Ahead>,
    /// What was assumed for each pod, by its uid, until it is bound or given up.
    of_pod: HashMap<Name, Vec<(Kind, Key)>>,
    /// The claims, by uid, for which devices were chosen for each pod, until it is bound or given up.
    in_flight: HashMap<Name, Vec<Name>>,
}

/// An object of which the cluster has another version than the server has told.
#[derive(Debug)]
struct Ahead {
    /// As the server told it last; `None` if it has told of no such object.
    told: Option<Object>,
    /// The pods that need ours: they can share an object.
    needed_by: Vec<Name>,
}

/// An object that was taken back: to the queue, an update of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// As it was assumed.
    pub before: Object,
    /// As the server told it; `None` if there was no such object.
    pub after: Option<Object>,
}

impl AssumedObjects {
    /// Puts an object into the cluster as it will be once what was promised a pod is written.
    pub fn assume(&mut self, cluster: &mut Cluster, pod_uid: &Name, ours: Object) {
        let id = (ours.kind(), ours.key());
        match self.ahead.get_mut(&id) {
            // The cluster's version is one that was assumed earlier, not one that the server has told.
            Some(ahead) => ahead.needed_by.push(pod_uid.clone()),
            None => {
                let told = cluster.object(id.0, &id.1);
                if told.as_ref() == Some(&ours) {
                    return;
                }
                self.ahead.insert(id.clone(), Ahead { told, needed_by: vec![pod_uid.clone()] });
            }
        }
        self.of_pod.entry(pod_uid.clone()).or_default().push(id);
        cluster.put(ours);
    }

    /// Takes back what was assumed for a pod, except for what the server has told about since, and what another pod needs
    /// as well.
    pub fn restore(&mut self, cluster: &mut Cluster, pod_uid: &str) -> Vec<Restored> {
        let mut restored = self.land(cluster, pod_uid);
        for (kind, key) in self.of_pod.remove(pod_uid).unwrap_or_default() {
            let id = (kind, key);
            let Some(ahead) = self.ahead.get_mut(&id) else {
                continue;
            };
            ahead.needed_by.retain(|uid| &**uid != pod_uid);
            if !ahead.needed_by.is_empty() {
                continue;
            }
            let Some(Ahead { told: after, .. }) = self.ahead.remove(&id) else { continue };
            let Some(before) = cluster.object(id.0, &id.1) else { continue };
            match &after {
                Some(after) => cluster.put(after.clone()),
                None => cluster.remove(id.0, &id.1),
            }
            restored.push(Restored { before, after });
        }
        restored
    }

    /// A pod is bound: the server will tell what was written for it, and that ends it. Claims that were given devices show
    /// them already.
    pub fn keep(&mut self, cluster: &mut Cluster, pod_uid: &str) {
        self.of_pod.remove(pod_uid);
        drop(self.land(cluster, pod_uid));
    }

    fn take_off(
        &mut self,
        cluster: &mut Cluster,
        pod_uid: &Name,
        claim_uid: Name,
        allocation: Arc<ClaimAllocation>,
    ) {
        self.in_flight.entry(pod_uid.clone()).or_default().push(claim_uid.clone());
        cluster.devices_mut().take_off(claim_uid, allocation);
    }

    /// Nobody's devices are in flight for a pod any more. The claims that have none now.
    fn land(&mut self, cluster: &mut Cluster, pod_uid: &str) -> Vec<Restored> {
        if self.in_flight.is_empty() {
            return Vec::new();
        }
        let mut restored = Vec::new();
        for uid in self.in_flight.remove(pod_uid).unwrap_or_default() {
            let Some(allocation) = cluster.devices().in_flight(&uid).cloned() else { continue };
            cluster.devices_mut().land(&uid);
            if let Some(claim) = cluster.devices().claims().find(|claim| claim.uid == uid) {
                let before = ResourceClaim { allocation: Some((*allocation).clone()), ..(**claim).clone() };
                let after = Object::ResourceClaim((**claim).clone());
                restored.push(Restored { before: Object::ResourceClaim(before), after: Some(after) });
            }
        }
        restored
    }

    /// To be called when the server tells a new version of an object, or that it is gone, before the cluster learns of
    /// it: what was assumed about the object is over.
    pub fn server_tells(&mut self, kind: Kind, key: &Key) {
        if !self.ahead.is_empty() {
            self.ahead.remove(&(kind, key.clone()));
        }
    }

    /// An object as the server told it last, if the cluster has another version; `None` in it if it has told of none.
    pub fn told(&self, kind: Kind, key: &Key) -> Option<Option<&Object>> {
        let ahead = if self.ahead.is_empty() { None } else { self.ahead.get(&(kind, key.clone())) };
        ahead.map(|ahead| ahead.told.as_ref())
    }

    /// Whether the server has still to tell of something that was written for a pod which is bound.
    pub fn are_awaited(&self) -> bool {
        let is_bound = |uid: &Name| !self.of_pod.contains_key(uid);
        self.ahead.values().any(|ahead| ahead.needed_by.iter().any(is_bound))
    }

    /// How many objects are ahead of the server.
    pub fn len(&self) -> usize {
        self.ahead.len()
    }

    /// Whether the server knows everything.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }
}

/// The scheduling cycle of a pod whose node is chosen: Reserve plugins see the cluster in it, and change what others see.
pub struct ReserveCycle<'a> {
    cluster: &'a mut Cluster,
    assumed: &'a mut AssumedObjects,
    pod_uid: Name,
}

impl<'a> ReserveCycle<'a> {
    /// The cycle of a pod.
    pub fn new(cluster: &'a mut Cluster, assumed: &'a mut AssumedObjects, pod_uid: Name) -> Self {
        Self { cluster, assumed, pod_uid }
    }

    /// The cluster, with the pod on its node.
    pub fn cluster(&self) -> &Cluster {
        self.cluster
    }

    /// Shows an object to everybody as it will be once what is promised the pod is written. It is taken back by itself if
    /// the pod is not bound after all.
    pub fn assume(&mut self, object: Object) {
        self.assumed.assume(self.cluster, &self.pod_uid, object);
    }

    /// Gives devices to a claim ahead of what the API server knows. Nobody else gets them until the pod is bound or given
    /// up, or the claim shows devices itself.
    pub fn take_off(&mut self, claim_uid: Name, allocation: Arc<ClaimAllocation>) {
        self.assumed.take_off(self.cluster, &self.pod_uid, claim_uid, allocation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use supercargo_model::testing::{Builder, object};

    #[test]
    fn an_object_that_the_server_has_not_told_of_is_gone_when_it_is_taken_back() {
        let class = class("fast");
        let (mut cluster, mut assumed) = (Cluster::default(), AssumedObjects::default());
        assumed.assume(&mut cluster, &"pod".into(), class.clone().object());
        assert!(cluster.storage_class("fast").is_some());
        let restored = assumed.restore(&mut cluster, "pod");
        assert!(matches!(&restored[..], [Restored { after: None, .. }]), "{restored:?}");
        assert!(cluster.storage_class("fast").is_none());
        // What the server tells stays.
        assumed.assume(&mut cluster, &"pod".into(), class.clone().object());
        assumed.server_tells(Kind::StorageClass, &Key::new("", "fast"));
        cluster.put(class.object());
        assert!(assumed.restore(&mut cluster, "pod").is_empty());
        assert!(cluster.storage_class("fast").is_some());
    }

    fn class(name: &str) -> Builder {
        object(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "example.com",
        }))
    }

    /// A claim with its uid for a name.
    fn claim(uid: &str) -> Object {
        let claim = object(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": {"devices": {}},
        }));
        claim.object()
    }

    #[test]
    fn devices_are_in_flight_until_their_pod_is_bound_or_given_up() {
        let results = json!([{"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]);
        let devices: Arc<ClaimAllocation> =
            Arc::new(serde_json::from_value(json!({"devices": {"results": results}})).unwrap());
        for is_bound in [true, false] {
            let (mut cluster, mut assumed) = (Cluster::default(), AssumedObjects::default());
            ["one", "two", "others"].into_iter().for_each(|uid| cluster.put(claim(uid)));
            for (pod, uid) in [("p", "one"), ("p", "two"), ("p", "gone"), ("q", "others")] {
                let mut cycle = ReserveCycle::new(&mut cluster, &mut assumed, pod.into());
                cycle.take_off(uid.into(), devices.clone());
            }
            let restored = match is_bound {
                true => {
                    assumed.keep(&mut cluster, "p");
                    Vec::new()
                }
                false => assumed.restore(&mut cluster, "p"),
            };
            let uids = ["one", "two", "gone", "others"];
            let in_flight = uids.map(|uid| cluster.devices().in_flight(uid).is_some());
            assert_eq!(in_flight, [false, false, false, true], "{is_bound}");
            // Each claim that is there gives its devices back; to the queue, that is an update.
            let given_back = restored.iter().map(|Restored { before, after }| match (before, after) {
                (Object::ResourceClaim(before), Some(Object::ResourceClaim(after))) => {
                    assert_eq!((before.allocation.as_ref(), &after.allocation), (Some(&*devices), &None));
                    assert_eq!(before.uid, after.uid);
                    &*before.uid
                }
                _ => panic!("{restored:?}"),
            });
            let expected: &[&str] = if is_bound { &[] } else { &["one", "two"] };
            assert!(given_back.eq(expected.iter().copied()), "{restored:?}");
            assert!(assumed.restore(&mut cluster, "p").is_empty(), "once");
            assert_eq!(assumed.restore(&mut cluster, "q").len(), 1);
            assert_eq!(cluster.devices().in_flight_count(), 0);
        }
    }

    #[test]
    fn what_was_written_for_a_bound_pod_is_awaited_until_the_server_tells() {
        let (mut cluster, mut assumed) = (Cluster::default(), AssumedObjects::default());
        assert!(!assumed.are_awaited() && assumed.is_empty());
        let [one, two]: [Name; 2] = ["one".into(), "two".into()];
        // The first needs both classes, the second one of them.
        assumed.assume(&mut cluster, &one, class("own").object());
        assumed.assume(&mut cluster, &one, class("shared").object());
        assumed.assume(&mut cluster, &two, class("shared").object());
        assert!(!assumed.are_awaited(), "nobody is bound: nothing may have been written");
        assert!(!assumed.is_empty());
        assumed.keep(&mut cluster, &one);
        assert!(assumed.are_awaited());
        assert!(assumed.restore(&mut cluster, &one).is_empty(), "it is bound");
        assert!(cluster.storage_class("own").is_some());
        // Given up, the second needs nothing; the first needs what they shared.
        assert!(assumed.restore(&mut cluster, &two).is_empty());
        assumed.server_tells(Kind::StorageClass, &Key::new("", "own"));
        assert!(assumed.are_awaited() && cluster.storage_class("shared").is_some());
        assumed.server_tells(Kind::StorageClass, &Key::new("", "shared"));
        assert!(!assumed.are_awaited() && assumed.is_empty());
        // What is only promised is not awaited.
        assumed.assume(&mut cluster, &two, class("promised").object());
        assert!(!assumed.are_awaited());
    }
}
