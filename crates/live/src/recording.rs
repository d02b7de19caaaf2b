//! What a recording keeps of a cluster: the objects that a scheduler reads, without what is nobody's business.
//!
//! Of pods, controllers and nodes only the fields stay that decide about scheduling; of everything else, whatever may hold a
//! value of an environment, a command, a reference to a secret or an annotation goes.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use supercargo_extender::WantedOriginals;
use supercargo_model::{
    Declared,
    object::{Kind, Object},
};

use crate::informer::{Resource, resources};

/// Every resource that a scheduler reads, with its objects as the server sends them.
pub fn recorded_resources() -> Vec<Resource> {
    let wanted = Arc::new(WantedOriginals::everything());
    let all = resources(&Declared::default(), []);
    all.into_iter().map(|resource| resource.with_texts(&wanted)).collect()
}

const POD_SPEC: &[&str] = &[
    "nodeName",
    "schedulerName",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "schedulingGates",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "containers",
    "initContainers",
    "resources",
    "overhead",
    "volumes",
    "resourceClaims",
    "hostNetwork",
    "hostUsers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
];
const CONTAINER: &[&str] = &["name", "image", "resources", "ports", "restartPolicy"];
/// Volumes that decide about nodes. Of all others there is only the name.
const VOLUME: &[&str] = &[
    "name",
    "persistentVolumeClaim",
    "ephemeral",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "azureDisk",
    "iscsi",
    "rbd",
    "image",
];
const POD_STATUS: &[&str] = &[
    "phase",
    "startTime",
    "nominatedNodeName",
    "conditions",
    "resize",
    "resources",
    "allocatedResources",
    "containerStatuses",
    "initContainerStatuses",
];
const CONTAINER_STATUS: &[&str] = &["name", "resources", "allocatedResources"];
const CONDITION: &[&str] = &["type", "status", "reason", "lastTransitionTime"];
const NODE_CONDITION: &[&str] = &["type", "status"];
const NODE_SPEC: &[&str] = &["unschedulable", "taints"];
const NODE_STATUS: &[&str] =
    &["allocatable", "capacity", "conditions", "images", "nodeInfo", "declaredFeatures"];
const OWNER_SPEC: &[&str] = &["selector", "replicas"];
const META: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "labels",
    "ownerReferences",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];
/// Fields that go wherever they stand.
const NOBODYS_BUSINESS: &[&str] = &[
    "env",
    "envFrom",
    "command",
    "args",
    "annotations",
    "managedFields",
    "volumeAttributes",
    "parameters",
    "data",
    "stringData",
    "binaryData",
];

/// An object as a recording keeps it, from the text that the informer gives; with these of its annotations. `None` if it
/// cannot be read.
pub fn kept(object: &Object, text: &[u8], annotations: &[String]) -> Option<Value> {
    let text = text.strip_prefix(b",").unwrap_or(text);
    let mut value: Value = serde_json::from_slice(text).ok()?;
    let whole = value.as_object_mut()?;
    let metadata = whole.get("metadata").cloned().unwrap_or_default();
    scrub(&mut value);
    value["metadata"] = kept_metadata(metadata, annotations);
    match object.kind() {
        Kind::Pod => keep_of_pod(&mut value),
        Kind::Node => {
            retain(&mut value["spec"], NODE_SPEC);
            retain(&mut value["status"], NODE_STATUS);
            retain_each(&mut value["status"]["conditions"], NODE_CONDITION);
        }
        Kind::Service | Kind::ReplicationController | Kind::ReplicaSet | Kind::StatefulSet => {
            retain(&mut value["spec"], OWNER_SPEC);
            remove(&mut value, "status");
        }
        _ => {}
    }
    // What was only looked at is not there.
    drop_nulls(&mut value);
    let api = object.kind().api();
    let version =
        if api.group.is_empty() { api.version.to_owned() } else { format!("{}/{}", api.group, api.version) };
    let mut whole =
        Map::from_iter([("apiVersion".to_owned(), json!(version)), ("kind".to_owned(), json!(api.kind))]);
    whole.append(value.as_object_mut()?);
    Some(Value::Object(whole))
}

fn kept_metadata(mut metadata: Value, annotations: &[String]) -> Value {
    let asked = |key: &String, _: &mut Value| annotations.contains(key);
    let asked_for = metadata["annotations"].as_object_mut().map(|all| {
        all.retain(asked);
        std::mem::take(all)
    });
    retain(&mut metadata, META);
    if let Some(asked_for) = asked_for.filter(|all| !all.is_empty()) {
        metadata["annotations"] = Value::Object(asked_for);
    }
    metadata
}

fn keep_of_pod(pod: &mut Value) {
    let spec = &mut pod["spec"];
    retain(spec, POD_SPEC);
    for containers in ["containers", "initContainers"] {
        retain_each(&mut spec[containers], CONTAINER);
    }
    retain_each(&mut spec["volumes"], VOLUME);
    let status = &mut pod["status"];
    retain(status, POD_STATUS);
    retain_each(&mut status["conditions"], CONDITION);
    for statuses in ["containerStatuses", "initContainerStatuses"] {
        retain_each(&mut status[statuses], CONTAINER_STATUS);
    }
}

fn retain(value: &mut Value, fields: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| fields.contains(&key.as_str()));
    }
}

fn retain_each(list: &mut Value, fields: &[&str]) {
    list.as_array_mut().into_iter().flatten().for_each(|item| retain(item, fields));
}

fn remove(value: &mut Value, field: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(field);
    }
}

/// Looking at a field that is not there makes it null.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, inner| !inner.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn scrub(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let secret = |key: &str| key.to_lowercase().ends_with("secretref") || key == "imagePullSecrets";
            map.retain(|key, _| !NOBODYS_BUSINESS.contains(&key.as_str()) && !secret(key));
            map.values_mut().for_each(scrub);
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kind: Kind, value: &Value, annotations: &[&str]) -> Value {
        let text = value.to_string();
        let mut json = serde_json::Deserializer::from_str(&text);
        let object = Object::deserialize(kind, &[], &mut json).unwrap();
        let annotations: Vec<String> = annotations.iter().map(|key| (*key).to_owned()).collect();
        kept(&object, text.as_bytes(), &annotations).unwrap()
    }

    #[test]
    fn a_pod_keeps_what_decides_and_nothing_else() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": {"a": "b"}, "resourceVersion": "7",
                "annotations": {"asked": "1", "token": "hidden"}, "managedFields": [{"manager": "hidden"}]},
            "spec": {
                "nodeName": "n", "serviceAccountName": "hidden", "imagePullSecrets": [{"name": "hidden"}],
                "containers": [{"name": "c", "image": "i", "command": ["hidden"], "args": ["hidden"],
                    "env": [{"name": "K", "value": "hidden"}], "livenessProbe": {"exec": {"command": ["hidden"]}},
                    "resources": {"requests": {"cpu": "1"}}}],
                "volumes": [{"name": "v", "secret": {"secretName": "hidden"}},
                    {"name": "w", "persistentVolumeClaim": {"claimName": "claim"}}],
            },
            "status": {"phase": "Running", "podIP": "hidden", "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "hidden"}]},
        });
        let kept = keep(Kind::Pod, &pod, &["asked"]);
        assert!(!kept.to_string().contains("hidden"), "{kept}");
        assert_eq!(
            kept,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": {"a": "b"}, "annotations": {"asked": "1"}},
                "spec": {"nodeName": "n",
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                    "volumes": [{"name": "v"}, {"name": "w", "persistentVolumeClaim": {"claimName": "claim"}}]},
                "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "False"}]},
            })
        );
    }

    #[test]
    fn the_template_of_a_controller_is_not_kept() {
        let set = json!({
            "metadata": {"name": "s", "namespace": "d"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"env": [{"value": "hidden"}]}]}}},
        });
        let kept = keep(Kind::ReplicaSet, &set, &[]);
        assert_eq!(kept["apiVersion"], "apps/v1");
        assert_eq!(kept["spec"], json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}));
    }

    #[test]
    fn volumes_go_without_secrets() {
        let volume = json!({
            "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "1Gi"}, "csi": {"driver": "d", "volumeHandle": "h",
                "nodeStageSecretRef": {"name": "hidden"}, "volumeAttributes": {"password": "hidden"}}},
        });
        let kept = keep(Kind::PersistentVolume, &volume, &[]);
        assert_eq!(
            kept["spec"],
            json!({"capacity": {"storage": "1Gi"}, "csi": {"driver": "d", "volumeHandle": "h"}})
        );
    }

    #[test]
    fn a_heartbeat_changes_nothing_that_is_kept() {
        let node = |time: &str| {
            json!({
                "metadata": {"name": "n"},
                "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": time}]},
            })
        };
        assert_eq!(keep(Kind::Node, &node("1"), &[]), keep(Kind::Node, &node("2"), &[]));
    }
}
