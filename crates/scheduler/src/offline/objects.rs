//! The API offline: what plugins read and write are the objects of the cluster in memory.
//!
//! Of pods, volumes and claims the cluster keeps only what scheduling depends on: a plugin is shown their metadata, what
//! others may write into them, and little else, and what it writes besides is forgotten. Custom objects, and whatever plugins
//! make, are kept as they are. Other kinds are not shown: the cluster itself has them, for whoever looks at it.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value, json};
use supercargo_engine::{At, Removal};
use supercargo_framework::{
    event::Change,
    handle::{ApiError, ApiFailure, ApiRequest, Dependency, Verb},
    offline::object_path,
    points::Observed,
};
use supercargo_model::{
    Key, Labels, Name, Pod,
    devices::ResourceClaim,
    object::{Kind, Object},
    pod::PodSpec,
    storage::{PersistentVolume, PersistentVolumeClaim},
};

use super::OfflineScheduler;

impl OfflineScheduler {
    /// Does what a plugin's request asks for.
    pub(super) fn answer(&mut self, request: &ApiRequest) -> Result<Value, ApiError> {
        let request = &*self.with_name(request);
        let Some(kind) = self.kind_of(request) else { return self.objects.answer(request) };
        let (path, before) = (object_path(request), self.stored(kind, &request.key));
        let written = before.as_ref().map(as_json);
        let keeps = match &written {
            Some(Some(json)) => {
                self.objects.put(path.clone(), json.clone());
                false
            }
            Some(None) if self.objects.get(&path).is_none() => return Err(not_shown(kind)),
            Some(None) => true,
            None => {
                self.objects.take(&path);
                request.verb == Verb::Create && !is_shown(kind)
            }
        };
        let answered = self.objects.answer(&with_identity(request));
        if !keeps {
            self.objects.take(&path);
        }
        let answered = answered?;
        match (request.verb, before) {
            (Verb::Get, _) => {}
            (Verb::Delete, before) => self.delete(kind, before, request),
            (_, before) => {
                let object = match before {
                    Some(before) if is_shown(kind) => edited(before, &answered)?,
                    _ => read(kind, &answered)?,
                };
                self.object_is(object.clone());
                self.volumes_follow(&object);
                self.devices_follow(&object);
            }
        }
        Ok(answered)
    }

    /// What is made without a name gets one.
    fn with_name<'r>(&mut self, request: &'r ApiRequest) -> Cow<'r, ApiRequest> {
        let beginning = request.body["metadata"]["generateName"].as_str();
        match beginning.filter(|_| request.verb == Verb::Create && request.key.name.is_empty()) {
            Some(beginning) => {
                let name = format!("{beginning}{:05}", self.objects.new_version());
                let key = Key::new(request.key.namespace.clone(), name);
                Cow::Owned(ApiRequest { key, ..request.clone() })
            }
            None => Cow::Borrowed(request),
        }
    }

    /// The kind that a request is about, if the cluster keeps its objects.
    fn kind_of(&self, request: &ApiRequest) -> Option<Kind> {
        let resource = &request.resource;
        let custom = || {
            let mut kinds = self.engine.profiles().iter().flat_map(|profile| profile.kinds());
            kinds.find(|kind| **kind == resource).map(|kind| Kind::Custom(kind))
        };
        Kind::of_group(resource.group, resource.kind).or_else(custom)
    }

    /// An object as an API server would have it: without what was only assumed.
    fn stored(&self, kind: Kind, key: &Key) -> Option<Object> {
        if kind == Kind::Pod {
            let pending = self.queue.named(key).map(|pending| pending.pod);
            let pod = pending.or_else(|| self.engine.cluster().pod(key))?;
            return Some(Object::Pod((**pod).clone()));
        }
        match self.assumed_objects.told(kind, key) {
            Some(told) => told.cloned(),
            None => self.engine.cluster().object(kind, key),
        }
    }

    fn delete(&mut self, kind: Kind, before: Option<Object>, request: &ApiRequest) {
        match before {
            Some(Object::Pod(pod)) => self.delete_pod(&pod, request.body["gracePeriodSeconds"].as_i64()),
            _ => self.object_is_gone(kind, &request.key),
        }
    }

    /// An object is there, or has changed. Plugins hear of it before anybody is woken by it.
    pub(super) fn object_is(&mut self, object: Object) {
        let (kind, key) = (object.kind(), object.key());
        match object {
            Object::Pod(pod) => self.pod_is(Arc::new(pod)),
            Object::Node(node) => {
                let before = self.engine.cluster().node(&node.name).map(|info| info.node.clone());
                self.observe(&Observed::Is { object: &Object::Node(node.clone()), uid: &Name::default() });
                self.engine.cluster_mut().put_node(node.clone());
                self.check_after_change_of(kind, &key);
                self.happened(Change::Node(before.as_deref(), Some(&node)));
            }
            object => {
                self.observe(&Observed::Is { object: &object, uid: &uid_of(&object) });
                self.assumed_objects.server_tells(kind, &key);
                let before = self.engine.cluster().object(kind, &key);
                self.engine.cluster_mut().put(object.clone());
                self.check_after_change_of(kind, &key);
                self.happened(Change::Other(before.as_ref(), Some(&object)));
            }
        }
    }

    pub(super) fn object_is_gone(&mut self, kind: Kind, key: &Key) {
        self.observe(&Observed::Gone { kind, key });
        self.assumed_objects.server_tells(kind, key);
        let node = self.engine.cluster().node(&key.name).filter(|_| kind == Kind::Node);
        let node = node.map(|info| info.node.clone());
        let before = self.engine.cluster().object(kind, key);
        self.engine.cluster_mut().remove(kind, key);
        self.check_after_change_of(kind, key);
        match node {
            Some(node) => self.happened(Change::Node(Some(&node), None)),
            None => self.happened(Change::Other(before.as_ref(), None)),
        }
    }

    /// A pod is there, or has changed.
    pub(super) fn pod_is(&mut self, pod: Arc<Pod>) {
        self.observe_pod(&pod);
        if pod.node.is_some() {
            let before = self.engine.cluster().pod(&pod.key()).cloned();
            self.engine.cluster_mut().put_pod(pod.clone());
            self.pod_has_changed(before.as_deref(), Some(&pod));
        } else if self.assumed.contains_key(&pod.uid) {
            // Its binding is on its way: only if that fails does this version count.
            self.queue.renew(pod);
        } else if self.queue.find(&pod.uid).is_some() {
            let now = self.now();
            let (cluster, nominations) = self.engine.cluster_and_nominations();
            self.queue.update(pod, nominations, At { now, cluster });
        } else {
            self.enqueue(pod);
        }
    }

    /// A pod is gone, wherever it was.
    pub(super) fn pod_is_gone(&mut self, key: &Key, uid: &Name) {
        self.observe(&Observed::Gone { kind: Kind::Pod, key });
        let now = self.now();
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.remove(uid, Removal::Deleted, nominations, At { now, cluster });
        self.queue.done(uid);
        self.assumed_pod_goes(uid);
        self.with_checks(|checks, view| checks.run_after(&Dependency::PendingPod(uid.clone()), view));
        let is_there = self.engine.cluster().pod(key).is_some_and(|known| known.uid == *uid);
        if let Some(gone) = self.engine.cluster_mut().remove_pod(key).filter(|_| is_there) {
            self.pod_has_changed(Some(&gone), None);
        }
        self.claims_follow(uid);
    }

    /// A pod has come to a node, has changed there, or has left it.
    pub(super) fn pod_has_changed(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        if let Some(pod) = after.or(before).filter(|_| !self.checks.is_empty()) {
            self.check_after_change_of(Kind::Pod, &pod.key());
        }
        self.happened(Change::Pod(before, after));
    }

    pub(super) fn observe_pod(&self, pod: &Arc<Pod>) {
        self.observe(&Observed::Is { object: &Object::Pod((**pod).clone()), uid: &pod.uid });
    }

    fn observe(&self, observed: &Observed<'_>) {
        self.engine.profiles().iter().for_each(|profile| profile.observe(observed));
    }

    fn check_after_change_of(&mut self, kind: Kind, key: &Key) {
        if !self.checks.is_empty() {
            let dependency = Dependency::Object(kind, key.clone());
            self.with_checks(|checks, view| checks.run_after(&dependency, view));
        }
    }

    pub(super) fn happened(&mut self, change: Change<'_>) {
        let happened = change.happened();
        if !happened.events.is_empty() {
            let at = At { now: self.now(), cluster: self.engine.cluster() };
            self.queue.happened(&happened, at);
        }
    }
}

/// Whether plugins are shown objects of a kind that they have not made.
fn is_shown(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Pod
            | Kind::PersistentVolume
            | Kind::PersistentVolumeClaim
            | Kind::ResourceClaim
            | Kind::Custom(_)
    )
}

fn not_shown(kind: Kind) -> ApiError {
    let what = format!("offline, objects of kind {} can be read in the cluster only", kind.name());
    ApiError::new(ApiFailure::Refused, what)
}

/// What is made gets an identity, and its namespace, as by an API server.
fn with_identity(request: &ApiRequest) -> Cow<'_, ApiRequest> {
    if request.verb != Verb::Create || !request.body.is_object() {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    let metadata = &mut request.body["metadata"];
    metadata["name"] = (*request.key.name).into();
    if request.resource.namespaced {
        metadata["namespace"] = (*request.key.namespace).into();
    }
    if metadata["uid"].is_null() {
        metadata["uid"] = format!("{}/{}", request.resource.plural, request.key).into();
    }
    Cow::Owned(request)
}

fn read(kind: Kind, json: &Value) -> Result<Object, ApiError> {
    Object::from_value(kind, json)
        .map_err(|error| ApiError::new(ApiFailure::Refused, format!("no {}: {error}", kind.name())))
}

fn uid_of(object: &Object) -> Name {
    match object {
        Object::PersistentVolumeClaim(claim) => claim.uid.clone(),
        Object::ResourceClaim(claim) => claim.uid.clone(),
        Object::Custom(object) => object.uid.clone(),
        _ => Name::default(),
    }
}

/// What a plugin is shown of an object; `None` if it is not shown at all.
fn as_json(object: &Object) -> Option<Value> {
    match object {
        Object::Pod(pod) => Some(pod_as_json(pod)),
        Object::PersistentVolume(volume) => Some(volume_as_json(volume)),
        Object::PersistentVolumeClaim(claim) => Some(claim_as_json(claim)),
        Object::ResourceClaim(claim) => Some(resource_claim_as_json(claim)),
        Object::Custom(object) => {
            let mut json = (*object.content).clone();
            json["metadata"]["resourceVersion"] = (*object.version.0).into();
            Some(json)
        }
        _ => None,
    }
}

fn map(labels: &Labels) -> Value {
    Value::Object(
        labels.iter().map(|(key, value)| (key.to_string(), (**value).into())).collect::<Map<_, _>>(),
    )
}

fn pod_as_json(pod: &Pod) -> Value {
    let mut conditions = Vec::new();
    if pod.preempted {
        conditions
            .push(json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}));
    }
    if let Some(why) = &pod.not_scheduled {
        let (reason, message) = (&*why.reason, &*why.message);
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": why.since});
        conditions.push(condition);
    }
    let mut json = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": &*pod.name, "namespace": &*pod.namespace, "uid": &*pod.uid,
            "resourceVersion": &*pod.version.0, "generation": pod.generation, "creationTimestamp": pod.created,
            "labels": map(&pod.spec.labels), "annotations": map(&pod.spec.annotations),
        },
        "spec": {
            "schedulerName": &*pod.spec.scheduler_name, "priority": pod.spec.priority,
            "terminationGracePeriodSeconds": pod.grace_period_seconds,
        },
        "status": {"conditions": conditions, "startTime": pod.started},
    });
    if let Some(node) = &pod.node {
        json["spec"]["nodeName"] = (**node).into();
    }
    if let Some(node) = &pod.nominated_node {
        json["status"]["nominatedNodeName"] = (**node).into();
    }
    if let Some(claims) = &pod.claims {
        json["status"]["resourceClaimStatuses"] = json!(claims.generated);
        json["status"]["extendedResourceClaimStatus"] = json!(claims.extended);
    }
    json
}

fn volume_as_json(volume: &PersistentVolume) -> Value {
    let mut json = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": &*volume.name, "resourceVersion": &*volume.version.0,
            "labels": map(&volume.labels), "annotations": map(&volume.annotations),
        },
        "spec": {"storageClassName": &*volume.storage_class},
        "status": {"phase": &*volume.phase},
    });
    if let Some(claim) = &volume.claim {
        json["spec"]["claimRef"] = json!({
            "namespace": claim.namespace.as_deref(), "name": claim.name.as_deref(), "uid": claim.uid.as_deref(),
        });
    }
    with_deletion(json, volume.terminating)
}

fn claim_as_json(claim: &PersistentVolumeClaim) -> Value {
    let json = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": &*claim.name, "namespace": &*claim.namespace, "uid": &*claim.uid,
            "resourceVersion": &*claim.version.0, "annotations": map(&claim.annotations),
        },
        "spec": {"storageClassName": claim.storage_class.as_deref(), "volumeName": &*claim.volume},
        "status": {"phase": &*claim.phase},
    });
    with_deletion(json, claim.terminating)
}

fn resource_claim_as_json(claim: &ResourceClaim) -> Value {
    let mut status = json!({"devices": claim.devices, "reservedFor": claim.reserved_for});
    if let Some(allocation) = &claim.allocation {
        status["allocation"] = json!(allocation);
    }
    let json = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {
            "name": &*claim.name, "namespace": &*claim.namespace, "uid": &*claim.uid,
            "resourceVersion": &*claim.version.0,
        },
        "spec": {},
        "status": status,
    });
    with_deletion(json, claim.terminating)
}

fn with_deletion(mut json: Value, terminating: bool) -> Value {
    if terminating {
        json["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    }
    json
}

/// An object with what a plugin has written into it, as far as it is kept.
fn edited(before: Object, json: &Value) -> Result<Object, ApiError> {
    let now = read(before.kind(), json)?;
    Ok(match (before, now) {
        (Object::Pod(before), Object::Pod(now)) => Object::Pod(edited_pod(before, now)),
        (Object::PersistentVolume(before), Object::PersistentVolume(now)) => {
            let PersistentVolume { version, labels, annotations, claim, phase, .. } = now;
            Object::PersistentVolume(PersistentVolume {
                version,
                labels,
                annotations,
                claim,
                phase,
                ..before
            })
        }
        (Object::PersistentVolumeClaim(before), Object::PersistentVolumeClaim(now)) => {
            let PersistentVolumeClaim { version, annotations, volume, phase, .. } = now;
            Object::PersistentVolumeClaim(PersistentVolumeClaim {
                version,
                annotations,
                volume,
                phase,
                ..before
            })
        }
        (Object::ResourceClaim(before), Object::ResourceClaim(now)) => {
            let ResourceClaim { version, allocation, reserved_for, devices, .. } = now;
            Object::ResourceClaim(ResourceClaim { version, allocation, reserved_for, devices, ..before })
        }
        (_, now) => now,
    })
}

fn edited_pod(before: Pod, now: Pod) -> Pod {
    let (labels, annotations) = (&now.spec.labels, &now.spec.annotations);
    let spec = if *labels == before.spec.labels && *annotations == before.spec.annotations {
        before.spec.clone()
    } else {
        let (labels, annotations) = (labels.clone(), annotations.clone());
        Arc::new(PodSpec { labels, annotations, ..(*before.spec).clone() })
    };
    Pod {
        version: now.version,
        preempted: now.preempted,
        nominated_node: now.nominated_node,
        not_scheduled: now.not_scheduled,
        claims: now.claims,
        finished: now.finished,
        spec,
        ..before
    }
}
