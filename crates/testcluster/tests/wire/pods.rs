//! What an API server does with pods in particular: generations, resizes, and how they end.

use serde_json::{Value, json};

use crate::client::{Client, PODS, cluster, node, pod};

const POD: &str = "/api/v1/namespaces/default/pods/p";

fn asking_for(cpu: &str) -> Value {
    let mut pod = pod("p");
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

fn resize(resources: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": resources}]}})
}

async fn generation(client: &Client) -> Value {
    client.get(POD).await.value["metadata"]["generation"].clone()
}

#[tokio::test]
async fn a_resize_changes_what_containers_ask_for_and_raises_the_generation() {
    let (_cluster, client) = cluster();
    client.post(PODS, asking_for("4")).await;
    let resized = client
        .patch(&format!("{POD}/resize"), "strategic-merge", resize(json!({"requests": {"cpu": "3"}})))
        .await;
    assert_eq!(resized.code, 200, "{}", resized.value);
    assert_eq!(resized.value["spec"]["containers"][0]["resources"]["requests"]["cpu"], "3");
    assert_eq!(resized.value["spec"]["containers"][0]["image"], "i:1");
    assert_eq!(resized.value["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_resize_changes_nothing_else() {
    let (_cluster, client) = cluster();
    client.post(PODS, asking_for("4")).await;
    let path = format!("{POD}/resize");
    for (patch, hint) in [
        (resize(json!({"requests": {"example.com/gpu": "1"}})), "only cpu and memory resources are mutable"),
        (resize(json!({"requests": {"cpu": null}})), "Pod QOS Class may not change"),
        (json!({"spec": {"containers": [{"name": "other", "image": "i:1"}]}}), "only cpu and memory"),
        (json!({"spec": {"nodeName": "n"}}), "only cpu and memory"),
    ] {
        let refused = client.patch(&path, "strategic-merge", patch.clone()).await;
        assert_eq!(refused.refusal(), (422, "Invalid"), "{patch}");
        assert!(refused.message().contains(hint), "{}", refused.message());
    }
    let directly = client.patch(POD, "strategic-merge", resize(json!({"requests": {"cpu": "3"}}))).await;
    assert_eq!(directly.refusal(), (422, "Invalid"), "resources change only by a resize");
    assert_eq!(generation(&client).await, 1);
}

#[tokio::test]
async fn what_is_wanted_of_a_pod_is_counted() {
    let (cluster, client) = cluster();
    client.post("/api/v1/nodes", node("n")).await;
    client.post(PODS, pod("p")).await;
    client.patch(POD, "merge", json!({"metadata": {"labels": {"a": "b"}}})).await;
    let condition = json!({"type": "PodScheduled", "status": "False", "observedGeneration": 1});
    client.patch(&format!("{POD}/status"), "merge", json!({"status": {"conditions": [condition]}})).await;
    assert_eq!(generation(&client).await, 1, "labels and status are not what is wanted");
    let toleration = json!({"key": "k", "operator": "Exists"});
    client.patch(POD, "merge", json!({"spec": {"tolerations": [toleration]}})).await;
    assert_eq!(generation(&client).await, 2);

    cluster.bind("default", "p", "n").expect("it is bound");
    let bound = client.get(POD).await.value;
    assert_eq!(bound["metadata"]["generation"], 2, "a binding is no wish");
    let scheduled = &bound["status"]["conditions"][0];
    assert_eq!((&scheduled["status"], &scheduled["observedGeneration"]), (&json!("True"), &Value::Null));

    client.delete(POD, json!({})).await;
    assert_eq!(generation(&client).await, 3, "that it is to end is one");
    client.delete(POD, json!({"gracePeriodSeconds": 5})).await;
    assert_eq!(generation(&client).await, 3, "but only once");
}

#[tokio::test]
async fn a_condition_keeps_the_generation_that_it_is_about() {
    let (_cluster, client) = cluster();
    client.post(PODS, pod("p")).await;
    let status = |condition: Value| json!({"status": {"conditions": [condition]}});
    let path = format!("{POD}/status");
    client
        .patch(&path, "merge", status(json!({"type": "X", "status": "True", "observedGeneration": 7})))
        .await;
    let rewritten = client.patch(&path, "merge", status(json!({"type": "X", "status": "False"}))).await;
    assert_eq!(rewritten.value["status"]["conditions"][0]["observedGeneration"], 7);
}

#[tokio::test]
async fn a_pod_is_seen_to_end_before_it_is_gone() {
    let (_cluster, client) = cluster();
    client.post(PODS, pod("p")).await;
    let mut watch = client.watch(&format!("{PODS}?watch=true")).await;
    watch.expect(&["ADDED p"]).await;
    client.delete(POD, json!({})).await;
    let ends = watch.next().await.expect("a change");
    assert_eq!(
        (&ends["type"], &ends["object"]["metadata"]["deletionGracePeriodSeconds"]),
        (&json!("MODIFIED"), &json!(0))
    );
    watch.expect(&["DELETED p"]).await;
}
