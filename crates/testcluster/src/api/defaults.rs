//! What an API server fills in, as far as schedulers and kubectl rely on it.

use serde_json::{Map, Value, json};

use crate::object::{as_map, at, items, map_at, name, text};
use crate::resource::{DEPLOYMENTS, Resource};

pub(super) fn fill(resource: &Resource, value: &mut Value) {
    fill_own(resource, value);
    let template = value.get_mut("spec").and_then(|spec| spec.get_mut("template"));
    if let Some(template) = template.filter(|template| template.get("spec").is_some_and(Value::is_object)) {
        fill_pod(template);
    }
}

fn fill_own(resource: &Resource, value: &mut Value) {
    match resource.kind {
        "Pod" => fill_pod(value),
        "Node" => fill_node(value),
        "Namespace" => fill_namespace(value),
        "Service" => fill_service(value),
        "PersistentVolumeClaim" => {
            put(value, "spec", json!({"volumeMode": "Filesystem"}));
            put(value, "status", json!({"phase": "Pending"}));
        }
        "PersistentVolume" => {
            put(
                value,
                "spec",
                json!({"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}),
            );
            put(value, "status", json!({"phase": "Pending"}));
        }
        "StorageClass" => {
            put_all(value, json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}));
        }
        "PriorityClass" => put_all(value, json!({"preemptionPolicy": "PreemptLowerPriority"})),
        "Deployment" => {
            let strategy = json!({"type": "RollingUpdate"});
            put(value, "spec", json!({"replicas": 1, "revisionHistoryLimit": 10, "strategy": strategy}));
        }
        "ReplicaSet" | "StatefulSet" | "ReplicationController" => put(value, "spec", json!({"replicas": 1})),
        "Secret" => put_all(value, json!({"type": "Opaque"})),
        "ResourceClaim" => fill_claimed_devices(value.get_mut("spec")),
        "ResourceClaimTemplate" => {
            fill_claimed_devices(value.get_mut("spec").and_then(|spec| spec.get_mut("spec")));
        }
        _ => {}
    }
}

/// Who does not say how many devices wants one.
fn fill_claimed_devices(claim_spec: Option<&mut Value>) {
    let requests = claim_spec.and_then(|spec| spec.get_mut("devices")?.get_mut("requests")?.as_array_mut());
    for request in requests.into_iter().flatten().filter_map(Value::as_object_mut) {
        let (mut exact, mut alternatives) = (None, None);
        for (key, part) in request.iter_mut() {
            match key.as_str() {
                "exactly" => exact = Some(part),
                "firstAvailable" => alternatives = part.as_array_mut(),
                _ => {}
            }
        }
        let asked = exact.into_iter().chain(alternatives.into_iter().flatten());
        for asked in asked.filter(|asked| asked.is_object()) {
            put_all(asked, json!({"allocationMode": "ExactCount"}));
            if text(asked, &["allocationMode"]) == "ExactCount" {
                put_all(asked, json!({"count": 1}));
            }
        }
    }
}

/// A deployment that says nothing else is updated step by step. Tests that say nothing want it at once.
pub(super) fn spell_out_rolling_update(resource: &Resource, deployment: &mut Value) {
    if !resource.is(&DEPLOYMENTS) || text(deployment, &["spec", "strategy", "type"]) == "Recreate" {
        return;
    }
    let strategy = map_at(deployment, "spec").entry("strategy").or_insert(Value::Null);
    put_all(strategy, json!({"type": "RollingUpdate"}));
    put(strategy, "rollingUpdate", json!({"maxSurge": "25%", "maxUnavailable": "25%"}));
}

/// Fills gaps of a map under a key.
fn put(value: &mut Value, key: &str, defaults: Value) {
    fill_gaps(map_at(value, key), defaults);
}

fn put_all(value: &mut Value, defaults: Value) {
    fill_gaps(as_map(value), defaults);
}

fn fill_gaps(map: &mut Map<String, Value>, defaults: Value) {
    if let Value::Object(defaults) = defaults {
        for (key, default) in defaults {
            if map.get(&key).is_none_or(|known| known.is_null() || known == "") {
                map.insert(key, default);
            }
        }
    }
}

fn fill_pod(pod: &mut Value) {
    let defaults = json!({
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": true,
    });
    put(pod, "spec", defaults);
    let host_network = at(pod, &["spec", "hostNetwork"]).is_some_and(|given| given == true);
    for list in ["containers", "initContainers"] {
        let containers = map_at(pod, "spec").get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|container| container.is_object()) {
            fill_container(container, host_network);
        }
    }
}

fn fill_container(container: &mut Value, host_network: bool) {
    let image = text(container, &["image"]);
    let is_latest = image.ends_with(":latest") || !image.rsplit('/').next().unwrap_or_default().contains(':');
    let pull = if is_latest { "Always" } else { "IfNotPresent" };
    let defaults = json!({
        "imagePullPolicy": pull,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
    });
    put_all(container, defaults);
    // Who says only how much it may take at most, asks for that much.
    let limits = at(container, &["resources", "limits"]).cloned();
    if let Some(limits @ Value::Object(_)) = limits {
        fill_gaps(as_map(map_at(container, "resources").entry("requests").or_insert(Value::Null)), limits);
    }
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter(|port| port.is_object()) {
        put_all(port, json!({"protocol": "TCP"}));
        if let (true, Some(number)) = (host_network, port.get("containerPort").cloned()) {
            put_all(port, json!({"hostPort": number}));
        }
    }
}

pub(super) fn fill_pod_status(pod: &mut Value) {
    let class = quality_of_service(pod);
    put(pod, "status", json!({"phase": "Pending", "qosClass": class}));
}

/// Guaranteed, Burstable or BestEffort, from what the containers ask for.
pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let containers =
        items(pod, &["spec", "containers"]).iter().chain(items(pod, &["spec", "initContainers"]));
    let (mut any, mut all_limited) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let request = at(container, &["resources", "requests", resource]);
            let limit = at(container, &["resources", "limits", resource]);
            any |= request.is_some() || limit.is_some();
            all_limited &= limit.is_some() && request == limit;
        }
    }
    match (any, all_limited) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn fill_node(node: &mut Value) {
    let capacity = at(node, &["status", "capacity"]).cloned();
    if let Some(capacity) = capacity {
        put(node, "status", json!({"allocatable": capacity}));
    }
}

fn fill_namespace(namespace: &mut Value) {
    let label = json!({"kubernetes.io/metadata.name": name(namespace)});
    put_all(map_at(namespace, "metadata").entry("labels").or_insert(Value::Null), label);
    put(namespace, "spec", json!({"finalizers": ["kubernetes"]}));
    put(namespace, "status", json!({"phase": "Active"}));
}

fn fill_service(service: &mut Value) {
    put(service, "spec", json!({"type": "ClusterIP", "sessionAffinity": "None"}));
    if text(service, &["spec", "type"]) != "ExternalName" {
        let address = cluster_address(name(service));
        put(service, "spec", json!({"clusterIP": address}));
    }
    let ports = map_at(service, "spec").get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter(|port| port.is_object()) {
        let number = port.get("port").cloned().unwrap_or_default();
        put_all(port, json!({"protocol": "TCP", "targetPort": number}));
    }
    put(service, "status", json!({"loadBalancer": {}}));
}

/// An address out of 10.96.0.0/16 that follows from the name, so that it is the same in every run.
fn cluster_address(name: &str) -> String {
    let mixed = name.bytes().fold(5381_u32, |sum, byte| sum.wrapping_mul(33) ^ u32::from(byte));
    format!("10.96.{}.{}", (mixed >> 8) & 0xff, mixed & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::PODS;

    #[test]
    fn the_quality_of_service_follows_from_requests_and_limits() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        for (resources, expected) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (
                json!({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}),
                "Guaranteed",
            ),
            (json!({"requests": {"example.com/gpu": "1"}}), "BestEffort"),
        ] {
            assert_eq!(quality_of_service(&pod(resources.clone())), expected, "{resources}");
        }
    }

    #[test]
    fn limits_are_requests_where_there_are_none() {
        let mut pod = json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}});
        fill(&PODS, &mut pod);
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "2"}));
        assert_eq!(pod["spec"]["schedulerName"], "default-scheduler");
    }

    #[test]
    fn the_pods_of_a_workload_are_filled_in_too() {
        let ports = json!([{"containerPort": 80}]);
        let template = json!({"spec": {"containers": [{"image": "i:1", "ports": ports}]}});
        let mut deployment = json!({"spec": {"template": template}});
        fill(&crate::resource::DEPLOYMENTS, &mut deployment);
        assert_eq!(deployment["spec"]["replicas"], 1);
        let spec = &deployment["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(spec["restartPolicy"], "Always");
    }

    #[test]
    fn nothing_that_is_wrong_makes_it_panic() {
        for resource in crate::resource::ALL {
            for odd in [
                json!({"spec": 3, "metadata": {"labels": []}, "status": "x"}),
                json!({"spec": {"containers": [1, null], "ports": [2]}}),
            ] {
                fill(resource, &mut odd.clone());
            }
        }
    }
}
