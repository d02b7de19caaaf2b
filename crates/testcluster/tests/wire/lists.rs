//! Lists: selectors, pages, versions, tables.

use serde_json::json;

use crate::client::{CONFIG_MAPS, PODS, cluster, config_map, node, pod};

#[tokio::test]
async fn a_list_has_a_version_and_items_without_a_kind() {
    let (cluster, client) = cluster();
    client.post(PODS, pod("web")).await;
    let list = client.get("/api/v1/pods").await.value;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PodList"), &json!("v1")));
    assert_eq!(list["metadata"]["resourceVersion"], cluster.resource_version().to_string());
    assert_eq!(list["items"][0].get("kind"), None, "an API server leaves it to the list");
    assert_eq!(list["items"][0]["metadata"]["name"], "web");
}

#[tokio::test]
async fn lists_are_selected_by_label_field_and_namespace() {
    let (cluster, client) = cluster();
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    for (namespace, name, label) in [("default", "a", "x"), ("default", "b", "y"), ("other", "c", "x")] {
        let mut labelled = pod(name);
        labelled["metadata"]["labels"] = json!({"l": label});
        client.post(&format!("/api/v1/namespaces/{namespace}/pods"), labelled).await;
    }
    cluster.bind("default", "a", "n").expect("it is bound");
    for (query, expected) in [
        ("/api/v1/pods", vec!["a", "b", "c"]),
        ("/api/v1/namespaces/other/pods", vec!["c"]),
        ("/api/v1/pods?labelSelector=l%3Dx", vec!["a", "c"]),
        ("/api/v1/pods?labelSelector=l%20in%20(x,y),l!%3Dy", vec!["a", "c"]),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3D", vec!["b", "c"]),
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn,status.phase!%3DFailed", vec!["a"]),
        ("/api/v1/pods?fieldSelector=metadata.namespace%3Dother", vec!["c"]),
    ] {
        assert_eq!(client.get(query).await.names(), expected, "{query}");
    }
    assert_eq!(client.get("/api/v1/pods?fieldSelector=spec.boat%3Dx").await.refusal(), (400, "BadRequest"));
    assert_eq!(client.get("/api/v1/pods?labelSelector=a%20b").await.refusal(), (400, "BadRequest"));
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let (cluster, client) = cluster();
    for name in ["a", "b", "c", "d", "e"] {
        client.post(CONFIG_MAPS, config_map(name, json!({}))).await;
    }
    let first = client.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(first.names(), ["a", "b"]);
    let token = first.value["metadata"]["continue"].as_str().expect("there is more").replace('/', "%2F");
    client.post(CONFIG_MAPS, config_map("f", json!({}))).await;
    let second = client.get(&format!("{CONFIG_MAPS}?limit=4&continue={token}")).await;
    assert_eq!(second.names(), ["c", "d", "e", "f"]);
    assert_eq!(second.value["metadata"].get("continue"), None);
    assert_eq!(second.value["metadata"]["resourceVersion"], first.value["metadata"]["resourceVersion"]);

    cluster.faults().compact();
    let late = client.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(late.refusal(), (410, "Expired"));
    assert_eq!(client.get(&format!("{CONFIG_MAPS}?continue=boat")).await.code, 400);
}

#[tokio::test]
async fn a_version_of_the_future_is_refused() {
    let (_cluster, client) = cluster();
    let reply = client.get("/api/v1/pods?resourceVersion=999999").await;
    assert_eq!(reply.refusal(), (504, "Timeout"));
    assert_eq!(reply.value["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(client.get("/api/v1/pods?resourceVersion=0").await.code, 200);
    assert_eq!(client.get("/api/v1/pods?resourceVersion=boat").await.code, 400);
}

#[tokio::test]
async fn kubectl_gets_tables() {
    let (cluster, client) = cluster();
    let wide =
        client.clone().header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    client.post("/api/v1/nodes", node("n")).await;
    client.post(PODS, pod("web")).await;
    cluster.bind("default", "web", "n").expect("it is bound");
    let table = wide.get(PODS).await.value;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let names: Vec<_> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    let expected =
        ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"];
    assert_eq!(names, expected);
    let row = &table["rows"][0];
    let shown = [0, 1, 2, 6].map(|place| row["cells"][place].as_str().unwrap_or_default());
    assert_eq!(shown, ["web", "0/1", "ContainerCreating", "n"]);
    assert_eq!(row["object"]["metadata"]["name"], "web");
    assert_eq!(row["object"].get("spec"), None);
    let whole = wide.get(&format!("{PODS}/web?includeObject=Object")).await.value;
    assert_eq!((&whole["kind"], &whole["rows"][0]["object"]["kind"]), (&json!("Table"), &json!("Pod")));
    assert_eq!(whole["rows"][0]["object"]["spec"]["nodeName"], "n");
}
