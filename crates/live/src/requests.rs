//! The requests that a scheduler writes with, as kube-scheduler writes them.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use supercargo_model::{Key, Pod};

use crate::world::{ContentType, Method, Request};

/// Binds a pod to a node. The identity makes sure that it is still the same pod.
pub fn bind(pod: &Key, uid: &str, node: &str) -> Request {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": &*pod.namespace, "name": &*pod.name, "uid": uid},
        "target": {"kind": "Node", "name": node},
    });
    with_body(Method::Post, pod_path(pod, "/binding"), ContentType::Json, &body)
}

/// Reads a pod.
pub fn get_pod(pod: &Key) -> Request {
    Request::get(pod_path(pod, ""))
}

/// Deletes a pod, if it still is the one with this identity.
pub fn delete_pod(pod: &Key, uid: &str) -> Request {
    let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
    with_body(Method::Delete, pod_path(pod, ""), ContentType::Json, &body)
}

/// Changes a pod's status by a strategic merge patch.
pub fn patch_pod_status(pod: &Key, patch: &Value) -> Request {
    with_body(Method::Patch, pod_path(pod, "/status"), ContentType::StrategicMergePatch, patch)
}

/// Marks a pod that is about to be deleted to make room, in kube-scheduler's words. The identity makes sure that it is
/// still the same pod.
pub fn mark_preempted(pod: &Pod, scheduler_name: &str, now: Timestamp) -> Request {
    let message = format!("{scheduler_name}: preempting to accommodate a higher priority pod");
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": message,
        "lastProbeTime": null,
        "lastTransitionTime": whole_seconds(now),
    });
    observe(&mut condition, pod.generation);
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": {"conditions": [condition]}});
    patch_pod_status(&pod.key(), &patch)
}

/// Says in a condition which version of the pod's spec it is about, as kube-scheduler does; unless that is not known.
pub(crate) fn observe(condition: &mut Value, generation: i64) {
    if generation != 0 {
        condition["observedGeneration"] = generation.into();
    }
}

/// Reads a claim.
pub fn get_claim(claim: &Key) -> Request {
    Request::get(claim_path(claim))
}

/// Replaces a claim. The object names the version that it was made from.
pub fn update_claim(claim: &Key, object: &Value) -> Request {
    with_body(Method::Put, claim_path(claim), ContentType::Json, object)
}

/// Changes a claim in part; with a `resourceVersion` in the patch, only if it still has that version.
pub fn patch_claim(claim: &Key, patch: &Value) -> Request {
    with_body(Method::Patch, claim_path(claim), ContentType::MergePatch, patch)
}

/// Reads a volume.
pub fn get_volume(name: &str) -> Request {
    Request::get(volume_path(name))
}

/// Replaces a volume. The object names the version that it was made from.
pub fn update_volume(name: &str, object: &Value) -> Request {
    with_body(Method::Put, volume_path(name), ContentType::Json, object)
}

/// Changes a volume in part; with a `resourceVersion` in the patch, only if it still has that version.
pub fn patch_volume(name: &str, patch: &Value) -> Request {
    with_body(Method::Patch, volume_path(name), ContentType::MergePatch, patch)
}

/// Reads a node.
pub fn get_node(name: &str) -> Request {
    Request::get(format!("/api/v1/nodes/{name}"))
}

/// Reads what a node's CSI drivers said about themselves.
pub fn get_csi_node(node: &str) -> Request {
    Request::get(format!("/apis/storage.k8s.io/v1/csinodes/{node}"))
}

/// A moment as Kubernetes writes a Time: whole seconds.
pub fn whole_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A moment as Kubernetes writes a MicroTime: six digits after the point, always.
pub fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

pub(crate) fn with_body(method: Method, path: String, content_type: ContentType, body: &Value) -> Request {
    Request::new(method, path, content_type, Bytes::from(body.to_string()))
}

fn pod_path(pod: &Key, subresource: &str) -> String {
    format!("/api/v1/namespaces/{}/pods/{}{subresource}", pod.namespace, pod.name)
}

fn claim_path(claim: &Key) -> String {
    format!("/api/v1/namespaces/{}/persistentvolumeclaims/{}", claim.namespace, claim.name)
}

fn volume_path(name: &str) -> String {
    format!("/api/v1/persistentvolumes/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(request: &Request) -> Value {
        serde_json::from_slice(&request.body).unwrap()
    }

    #[test]
    fn a_binding_names_the_pods_identity() {
        let request = bind(&Key::new("ns", "p"), "u1", "n1");
        assert_eq!(request.to_string(), "POST /api/v1/namespaces/ns/pods/p/binding");
        assert_eq!(body(&request)["metadata"]["uid"], "u1");
        assert_eq!(body(&request)["target"], json!({"kind": "Node", "name": "n1"}));
    }

    #[test]
    fn a_victim_is_deleted_only_if_it_still_is_the_same() {
        let request = delete_pod(&Key::new("ns", "p"), "u1");
        assert_eq!(request.to_string(), "DELETE /api/v1/namespaces/ns/pods/p");
        assert_eq!(body(&request)["preconditions"], json!({"uid": "u1"}));
    }

    #[test]
    fn a_victim_is_told_why() {
        let now: Timestamp = "2026-01-02T03:04:05.6789Z".parse().unwrap();
        let pod = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u1", "generation": 2}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let request = mark_preempted(&pod, "default-scheduler", now);
        assert_eq!(request.to_string(), "PATCH /api/v1/namespaces/ns/pods/p/status");
        let condition = &body(&request)["status"]["conditions"][0];
        assert_eq!(condition["reason"], "PreemptionByScheduler");
        assert_eq!(
            condition["message"],
            "default-scheduler: preempting to accommodate a higher priority pod"
        );
        assert_eq!(condition["lastTransitionTime"], "2026-01-02T03:04:05Z");
        assert_eq!(condition["observedGeneration"], 2);
    }

    #[test]
    fn micro_times_have_six_digits() {
        for (text, written) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456Z"),
        ] {
            assert_eq!(micro_time(text.parse().unwrap()), written);
        }
    }
}
