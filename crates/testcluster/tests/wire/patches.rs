//! Patches over the wire; what each kind does to a value is tested where it is done.

use hyper::Method;
use serde_json::json;

use crate::client::{CONFIG_MAPS, PODS, cluster, config_map, pod};

#[tokio::test]
async fn each_kind_of_patch_has_its_content_type() {
    let (_cluster, client) = cluster();
    client.post(PODS, pod("web")).await;
    let path = format!("{PODS}/web/status");
    let condition =
        |status: &str| json!({"status": {"conditions": [{"type": "PodScheduled", "status": status}]}});
    let strategic = client.patch(&path, "strategic-merge", condition("False")).await;
    assert_eq!(strategic.value["status"]["conditions"][0]["status"], "False");
    assert_eq!(strategic.value["status"]["phase"], "Pending");
    let other = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let both = client.patch(&path, "strategic-merge", other.clone()).await;
    assert_eq!(both.value["status"]["conditions"].as_array().map(Vec::len), Some(2));
    let merged = client.patch(&path, "merge", other).await;
    assert_eq!(
        merged.value["status"]["conditions"].as_array().map(Vec::len),
        Some(1),
        "a merge knows no keys"
    );
    let operations = json!([{"op": "replace", "path": "/status/phase", "value": "Running"}]);
    assert_eq!(client.patch(&path, "json", operations).await.value["status"]["phase"], "Running");
    let unknown = client.send(Method::PATCH, &path, "application/json", "{}".to_owned()).await;
    assert_eq!(unknown.refusal(), (415, "UnsupportedMediaType"));
}

#[tokio::test]
async fn a_patch_with_a_version_is_conditional() {
    let (_cluster, client) = cluster();
    let created = client.post(CONFIG_MAPS, config_map("c", json!({}))).await.value;
    let path = format!("{CONFIG_MAPS}/c");
    let version = &created["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"resourceVersion": version}, "data": {"a": "1"}});
    assert_eq!(client.patch(&path, "merge", patch.clone()).await.code, 200);
    assert_eq!(client.patch(&path, "merge", patch).await.refusal(), (409, "Conflict"));
    assert_eq!(client.patch(&path, "merge", json!({"metadata": {"name": "d"}})).await.code, 422);
    assert_eq!(client.patch(&format!("{CONFIG_MAPS}/d"), "merge", json!({})).await.code, 404);
}

#[tokio::test]
async fn an_apply_creates_changes_and_gives_up() {
    let (_cluster, client) = cluster();
    let path = format!("{CONFIG_MAPS}/c?fieldManager=tester&force=true");
    let apply = |text: &'static str| {
        let (client, path) = (client.clone(), path.clone());
        async move { client.send(Method::PATCH, &path, "application/apply-patch+yaml", text.to_owned()).await }
    };
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n";
    let first =
        apply("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: \"1\"\n  b: \"2\"\n").await;
    assert_eq!((first.code, &first.value["data"]), (201, &json!({"a": "1", "b": "2"})));
    let second = apply("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: \"3\"\n").await;
    assert_eq!((second.code, &second.value["data"]), (200, &json!({"a": "3"})));
    assert_eq!(second.value["metadata"]["managedFields"][0]["manager"], "tester");
    let anonymous = client
        .send(Method::PATCH, &format!("{CONFIG_MAPS}/c"), "application/apply-patch+yaml", head.to_owned())
        .await;
    assert_eq!(anonymous.refusal(), (400, "BadRequest"));
}

#[tokio::test]
async fn a_workload_is_scaled() {
    let (_cluster, client) = cluster();
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    client
        .post(sets, json!({"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}))
        .await;
    let scale = client.get(&format!("{sets}/r/scale")).await.value;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    assert_eq!(scale["status"]["selector"], "a=b");
    let patched = client.patch(&format!("{sets}/r/scale"), "merge", json!({"spec": {"replicas": 3}})).await;
    assert_eq!(patched.value["spec"]["replicas"], 3);
    assert_eq!(client.get(&format!("{sets}/r")).await.value["spec"]["replicas"], 3);
    assert_eq!(client.put(&format!("{sets}/r/scale"), scale).await.code, 409, "it has been changed since");
    let negative = client.patch(&format!("{sets}/r/scale"), "merge", json!({"spec": {"replicas": -1}})).await;
    assert_eq!(negative.code, 422);
}
