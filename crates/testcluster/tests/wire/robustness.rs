//! No request ends the server, or stays without an answer.

use hyper::Method;
use serde_json::{Value, json};

use crate::client::{CONFIG_MAPS, PODS, cluster, config_map, pod};

const PATHS: [&str; 12] = [
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
];

fn odd_values() -> Vec<Value> {
    let named = |rest: Value| {
        let mut value = rest;
        value["metadata"] =
            json!({"name": "odd", "labels": [], "annotations": 1, "finalizers": {}, "ownerReferences": [1]});
        value
    };
    vec![
        Value::Null,
        json!(1),
        json!("text"),
        json!([[], {}]),
        json!({"metadata": []}),
        json!({"metadata": {"name": 1, "namespace": {}}}),
        named(json!({})),
        named(json!({"spec": [], "status": "x"})),
        named(
            json!({"spec": {"containers": [1, null, {"resources": {"limits": [], "requests": {"cpu": {}}}, "ports": [{}, 2]}]}}),
        ),
        named(
            json!({"spec": {"containers": {}, "nodeName": {}, "schedulingGates": 3}, "status": {"conditions": [7, {}]}}),
        ),
        named(json!({"$patch": "replace"})),
        named(
            json!({"spec": {"$setElementOrder/containers": [1], "$retainKeys": 2, "containers": [{"name": []}]}}),
        ),
        json!([{"op": "add", "path": "/metadata/labels/x/y", "value": 1}, {"op": 3}]),
    ]
}

#[tokio::test]
async fn odd_bodies_are_answered() {
    let (_cluster, client) = cluster();
    let tables = client.clone().header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    for path in PATHS {
        for value in odd_values() {
            client.post(path, value.clone()).await;
            client.put(&format!("{path}/odd"), value.clone()).await;
            client.put(&format!("{path}/odd/status"), value.clone()).await;
            for kind in ["merge", "strategic-merge", "json"] {
                client.patch(&format!("{path}/odd"), kind, value.clone()).await;
                client.patch(&format!("{path}/odd/status"), kind, value.clone()).await;
            }
            let apply = format!("{path}/odd?fieldManager=tester");
            client.send(Method::PATCH, &apply, "application/apply-patch+yaml", value.to_string()).await;
            tables.get(path).await;
            client.delete(&format!("{path}/odd"), value).await;
        }
    }
    for value in odd_values() {
        client.post(PODS, pod("odd")).await;
        for subresource in ["binding", "eviction"] {
            client.post(&format!("{PODS}/odd/{subresource}"), value.clone()).await;
        }
        client.put("/testcluster/faults", value).await;
    }
    client.delete("/testcluster/faults", Value::Null).await;
    assert_eq!(client.get("/api/v1/pods").await.code, 200, "it is still there");
}

#[tokio::test]
async fn odd_texts_are_answered() {
    let (_cluster, client) = cluster();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_map = format!("{}1{}", "{\"a\":".repeat(120), "}".repeat(120));
    for text in
        ["", "{", "\u{0}", "a: b: c", "&a [*a]", "{\"metadata\":{\"name\":\"\\ud800\"}}", &deep, &deep_map]
    {
        for kind in ["application/json", "application/yaml", "application/cbor", ""] {
            let reply = client.send(Method::POST, CONFIG_MAPS, kind, text.to_owned()).await;
            assert!((400..500).contains(&reply.code), "{kind}: {} {}", reply.code, reply.value);
        }
    }
    for path in [
        "/api/v1/pods?limit=-1",
        "/api/v1/pods?watch=true&timeoutSeconds=x",
        "/%ff",
        "//",
        "/api//v1/pods/",
        "/api/v1/namespaces/%2e%2e/pods",
    ] {
        client.get(path).await;
    }
    let other = client.send(Method::OPTIONS, PODS, "", String::new()).await;
    assert_eq!(other.refusal(), (405, "MethodNotAllowed"));
}

#[tokio::test]
async fn http_2_is_spoken_too() {
    let (_cluster, client) = cluster();
    let client = client.over_http2();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    assert_eq!(client.post(CONFIG_MAPS, config_map("a", json!({}))).await.code, 201);
    watch.expect(&["ADDED a"]).await;
}
