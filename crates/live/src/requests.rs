//! The requests that a scheduler writes with, as kube-scheduler writes them.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use supercargo_model::Key;

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

/// Changes a pod's status by a strategic merge patch.
pub fn patch_pod_status(pod: &Key, patch: &Value) -> Request {
    with_body(Method::Patch, pod_path(pod, "/status"), ContentType::StrategicMergePatch, patch)
}

/// Says in a condition which version of the pod's spec it is about, as kube-scheduler does; unless that is not known.
pub(crate) fn observe(condition: &mut Value, generation: i64) {
    if generation != 0 {
        condition["observedGeneration"] = generation.into();
    }
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
    fn micro_times_have_six_digits() {
        for (text, written) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456Z"),
        ] {
            assert_eq!(micro_time(text.parse().unwrap()), written);
        }
    }
}
