//! Watches: what they tell, where they begin, and how they end.

use std::time::Duration;

use serde_json::json;
use supercargo_testcluster::{FaultPlan, TestClusterOptions};

use crate::client::{CONFIG_MAPS, PODS, cluster, cluster_with, config_map, pod};

#[tokio::test]
async fn a_watch_tells_what_happens_after_a_version() {
    let (cluster, client) = cluster();
    client.post(CONFIG_MAPS, config_map("before", json!({}))).await;
    let version = cluster.resource_version();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    client.post(CONFIG_MAPS, config_map("c", json!({}))).await;
    client.patch(&format!("{CONFIG_MAPS}/c"), "merge", json!({"data": {"a": "1"}})).await;
    client.delete(&format!("{CONFIG_MAPS}/c"), json!({})).await;
    watch.expect(&["ADDED c", "MODIFIED c"]).await;
    let last = watch.next().await.expect("a deletion");
    assert_eq!(last["type"], "DELETED");
    assert_eq!(last["object"]["kind"], "ConfigMap");
    assert_eq!(last["object"]["metadata"]["resourceVersion"], cluster.resource_version().to_string());

    let mut again = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}")).await;
    again.expect(&["ADDED c", "MODIFIED c", "DELETED c"]).await;
}

#[tokio::test]
async fn without_a_version_a_watch_begins_with_what_there_is() {
    let (_cluster, client) = cluster();
    client.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    for version in ["", "&resourceVersion=0"] {
        let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true{version}")).await;
        watch.expect(&["ADDED a"]).await;
    }
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let (_cluster, client) = cluster();
    let mut by_label = client.watch(&format!("{CONFIG_MAPS}?watch=true&labelSelector=l%3Dx")).await;
    client.post(CONFIG_MAPS, config_map("c", json!({}))).await;
    let label = |value: &str| json!({"metadata": {"labels": {"l": value}}});
    let path = format!("{CONFIG_MAPS}/c");
    for value in ["x", "x", "y"] {
        client.patch(&path, "merge", label(value)).await;
        client.patch(&path, "merge", json!({"data": {"k": value}})).await;
    }
    by_label.expect(&["ADDED c", "MODIFIED c"]).await;
    let left = by_label.next().await.expect("it leaves");
    assert_eq!((&left["type"], &left["object"]["metadata"]["labels"]["l"]), (&json!("DELETED"), &json!("x")));
    client.patch(&path, "merge", label("x")).await;
    by_label.expect(&["ADDED c"]).await;
    client.delete(&path, json!({})).await;
    by_label.expect(&["DELETED c"]).await;
}

#[tokio::test]
async fn a_bound_pod_leaves_the_watch_of_the_unbound() {
    let (cluster, client) = cluster();
    let mut unbound = client.watch("/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3D").await;
    let mut bound = client.watch("/api/v1/pods?watch=true&fieldSelector=spec.nodeName!%3D").await;
    client.post(PODS, pod("web")).await;
    cluster.bind("default", "web", "n").expect("it is bound");
    unbound.expect(&["ADDED web", "DELETED web"]).await;
    bound.expect(&["ADDED web"]).await;
}

#[tokio::test]
async fn bookmarks_come_to_those_who_want_them() {
    let options =
        TestClusterOptions { bookmark_interval: Duration::from_millis(30), ..TestClusterOptions::default() };
    let (cluster, client) = cluster_with(options);
    let version = cluster.resource_version();
    let query = format!("/api/v1/pods?watch=true&resourceVersion={version}");
    let mut watch = client.watch(&format!("{query}&allowWatchBookmarks=true")).await;
    client.post(CONFIG_MAPS, config_map("elsewhere", json!({}))).await;
    let newest = cluster.resource_version().to_string();
    let mut bookmark = watch.next().await.expect("a bookmark");
    while bookmark["object"]["metadata"]["resourceVersion"] != newest {
        bookmark = watch.next().await.expect("another bookmark");
    }
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Pod")));

    let mut without = client.watch(&format!("{query}&timeoutSeconds=1")).await;
    assert_eq!(without.told().await, "end", "no bookmark within a second");
}

#[tokio::test]
async fn a_list_can_be_streamed() {
    let (cluster, client) = cluster();
    for name in ["a", "b"] {
        client.post(CONFIG_MAPS, config_map(name, json!({}))).await;
    }
    let stream = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true";
    let query = format!("{CONFIG_MAPS}?{stream}&resourceVersionMatch=NotOlderThan");
    let mut watch = client.watch(&query).await;
    watch.expect(&["ADDED a", "ADDED b"]).await;
    let end = watch.next().await.expect("a bookmark");
    assert_eq!(end["type"], "BOOKMARK");
    let metadata = &end["object"]["metadata"];
    assert_eq!(metadata["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(metadata["resourceVersion"], cluster.resource_version().to_string());
    client.post(CONFIG_MAPS, config_map("c", json!({}))).await;
    watch.expect(&["ADDED c"]).await;

    let refused = client.get(&format!("{CONFIG_MAPS}?{stream}")).await;
    assert_eq!(refused.refusal(), (422, "Invalid"));
}

#[tokio::test]
async fn a_forgotten_version_is_gone() {
    let (cluster, client) =
        cluster_with(TestClusterOptions { history_limit: 2, ..TestClusterOptions::default() });
    let version = cluster.resource_version();
    let mut open = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, config_map(name, json!({}))).await;
        open.expect(&[&format!("ADDED {name}")]).await;
    }
    let query = format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}");
    let mut late = client.watch(&query).await;
    let error = late.next().await.expect("an error");
    assert_eq!(error["type"], "ERROR");
    assert_eq!((&error["object"]["code"], &error["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!(late.told().await, "end");

    cluster.faults().set(FaultPlan { gone_as_status: true, ..FaultPlan::default() });
    assert_eq!(client.get(&query).await.refusal(), (410, "Expired"));
}

#[tokio::test]
async fn a_slow_reader_is_cut_off_not_waited_for() {
    let (cluster, client) =
        cluster_with(TestClusterOptions { history_limit: 50, ..TestClusterOptions::default() });
    let version = cluster.resource_version();
    let mut slow = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    // More than sockets and channels between the two can hold.
    let data = json!({"text": "x".repeat(100_000)});
    for number in 0..400 {
        cluster.create(config_map(&format!("c{number}"), data.clone())).expect("it is created");
        tokio::task::yield_now().await;
    }
    let mut told = 0;
    loop {
        let event = slow.next().await.expect("it is told why it ends");
        if event["type"] == "ERROR" {
            assert_eq!(event["object"]["code"], 410);
            break;
        }
        told += 1;
    }
    assert!(told < 400, "{told} of 400");
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let (_cluster, client) = cluster();
    let mut watch = client.watch("/api/v1/pods?watch=true&timeoutSeconds=1").await;
    assert_eq!(watch.told().await, "end");
}

#[tokio::test]
async fn events_are_watched_in_either_shape() {
    let (_cluster, client) = cluster();
    let mut watch =
        client.watch("/apis/events.k8s.io/v1/events?watch=true&fieldSelector=regarding.name%3Dp").await;
    let event = json!({"metadata": {"name": "e"}, "message": "hello", "involvedObject": {"name": "p"}});
    client.post("/api/v1/namespaces/default/events", event).await;
    let told = watch.next().await.expect("an event");
    assert_eq!(
        (&told["object"]["note"], &told["object"]["apiVersion"]),
        (&json!("hello"), &json!("events.k8s.io/v1"))
    );
}
