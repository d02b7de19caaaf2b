//! Pods whose volumes are being bound by others: looked at when the watch tells something that concerns them.

use std::collections::BTreeSet;

use supercargo_model::{
    Key, Name,
    object::{Kind, Object},
};
use supercargo_plugins::volume_binding::{Unbound, WrittenPlan, check_bound};
use tokio::sync::oneshot;

use super::{HashMap, Scheduler};

/// How the binding of a pod's volumes ended: why it came to nothing, if it did.
pub(super) type VolumesBound = Result<(), String>;

/// Something that the binding of volumes depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Dependency {
    Claim(Key),
    Volume(Name),
    Node(Name),
}

struct Wait {
    written: WrittenPlan,
    bound: oneshot::Sender<VolumesBound>,
}

/// The pods that wait for their volumes, by uid.
#[derive(Default)]
pub(super) struct VolumeWaits {
    waits: HashMap<Name, Wait>,
    by_dependency: HashMap<Dependency, BTreeSet<Name>>,
}

fn dependencies(written: &WrittenPlan) -> impl Iterator<Item = Dependency> {
    let bound = written.bound.iter().flat_map(|(volume, claim, _)| {
        [Dependency::Volume(volume.clone()), Dependency::Claim(claim.key.clone())]
    });
    let provisioned = written.provisioned.iter().map(|(claim, _)| Dependency::Claim(claim.key.clone()));
    bound.chain(provisioned).chain([Dependency::Node(written.node.clone())])
}

impl VolumeWaits {
    fn insert(&mut self, uid: Name, wait: Wait) {
        for dependency in dependencies(&wait.written) {
            self.by_dependency.entry(dependency).or_default().insert(uid.clone());
        }
        self.waits.insert(uid, wait);
    }

    /// Nobody waits for the pod's volumes any more.
    pub(super) fn remove(&mut self, uid: &str) {
        self.take(uid);
    }

    fn take(&mut self, uid: &str) -> Option<Wait> {
        let wait = self.waits.remove(uid)?;
        for dependency in dependencies(&wait.written) {
            if let Some(pods) = self.by_dependency.get_mut(&dependency) {
                pods.remove(uid);
                if pods.is_empty() {
                    self.by_dependency.remove(&dependency);
                }
            }
        }
        Some(wait)
    }

    fn that_depend_on(&self, dependency: &Dependency) -> impl Iterator<Item = Name> + use<> {
        self.by_dependency.get(dependency).cloned().unwrap_or_default().into_iter()
    }
}

impl Scheduler {
    /// What was planned for a pod's volumes has been written: waits for the others.
    pub(super) fn volumes_written(
        &mut self,
        uid: Name,
        written: WrittenPlan,
        bound: oneshot::Sender<VolumesBound>,
    ) {
        self.volume_waits.insert(uid.clone(), Wait { written, bound });
        self.look_at_volumes_of(&uid);
    }

    /// Looks at how far a pod's volumes are, if it waits for any.
    pub(super) fn look_at_volumes_of(&mut self, uid: &str) {
        let Some(wait) = self.volume_waits.waits.get(uid) else { return };
        let pod_exists = self.queue.find(uid).is_some();
        let bound = match check_bound(self.engine.cluster(), &wait.written, pod_exists) {
            Err(Unbound::NotYet) => return,
            Err(Unbound::Never(why)) => Err(why),
            Ok(()) => Ok(()),
        };
        if let Some(wait) = self.volume_waits.take(uid) {
            // The binding may have been given up since.
            let _ = wait.bound.send(bound);
        }
    }

    /// Looks at the pods that wait for a volume that has come or changed, or for the claim that it is for.
    pub(super) fn look_after_change_of(&mut self, object: &Object) {
        if self.volume_waits.waits.is_empty() {
            return;
        }
        let claim = match object {
            Object::PersistentVolume(volume) => volume.claim.as_ref().and_then(|claim| {
                Some(Dependency::Claim(Key::new(claim.namespace.clone()?, claim.name.clone()?)))
            }),
            _ => None,
        };
        self.look_at_those_that_depend_on(object.kind(), &object.key(), claim);
    }

    /// Looks at the pods that wait for something that is gone.
    pub(super) fn look_after_end_of(&mut self, kind: Kind, key: &Key) {
        if !self.volume_waits.waits.is_empty() {
            self.look_at_those_that_depend_on(kind, key, None);
        }
    }

    fn look_at_those_that_depend_on(&mut self, kind: Kind, key: &Key, claim: Option<Dependency>) {
        let dependency = match kind {
            Kind::PersistentVolume => Dependency::Volume(key.name.clone()),
            Kind::PersistentVolumeClaim => Dependency::Claim(key.clone()),
            Kind::Node | Kind::CsiNode => Dependency::Node(key.name.clone()),
            _ => return,
        };
        let waits = &self.volume_waits;
        let mut pods: BTreeSet<Name> = waits.that_depend_on(&dependency).collect();
        pods.extend(claim.iter().flat_map(|claim| waits.that_depend_on(claim)));
        for uid in pods {
            self.look_at_volumes_of(&uid);
        }
    }
}
