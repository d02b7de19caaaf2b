//! Faults: what goes wrong on purpose does, and nothing else.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use supercargo_testcluster::{Fault, FaultPlan, FaultRule};

use crate::client::{CONFIG_MAPS, PATIENCE, PODS, cluster, config_map, pod};

fn answer(code: u16) -> Fault {
    Fault::Answer { code, retry_after_seconds: 1 }
}

#[tokio::test]
async fn every_nth_binding_is_refused() {
    let (cluster, client) = cluster();
    cluster
        .faults()
        .add(FaultRule::new(answer(409)).verb("create").resource("pods/binding").every(2).times(2));
    let mut codes = Vec::new();
    for number in 0..6 {
        let name = format!("p{number}");
        assert_eq!(client.post(PODS, pod(&name)).await.code, 201, "only bindings fail");
        let binding = json!({"target": {"name": "n"}});
        codes.push(client.post(&format!("{PODS}/{name}/binding"), binding).await.code);
    }
    assert_eq!(codes, [201, 409, 201, 409, 201, 201]);
    assert_eq!(cluster.bindings().len(), 4);
    assert_eq!(cluster.requests_for("create", "pods/binding"), 6);
}

#[tokio::test]
async fn who_is_too_fast_is_told_when_to_come_back() {
    let (cluster, client) = cluster();
    cluster.faults().add(FaultRule::new(answer(429)).verb("list"));
    let reply = client.get("/api/v1/pods").await;
    assert_eq!(reply.refusal(), (429, "TooManyRequests"));
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(reply.value["details"]["retryAfterSeconds"], 1);
    cluster.faults().clear();
    assert_eq!(client.get("/api/v1/pods").await.code, 200);
}

#[tokio::test]
async fn something_may_be_done_and_not_told() {
    let (cluster, client) = cluster();
    cluster.faults().add(FaultRule::new(Fault::CommitThenAnswer { code: 500 }).verb("create").times(1));
    let reply = client.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(reply.refusal(), (500, "InternalError"));
    assert!(cluster.get("configmaps", "default", "a").is_ok());

    cluster.faults().set(FaultPlan {
        rules: vec![FaultRule::new(Fault::CommitThenHangUp).verb("create").times(1)],
        ..FaultPlan::default()
    });
    let body = config_map("b", json!({})).to_string();
    let broken = client.try_send(Method::POST, CONFIG_MAPS, "application/json", body).await;
    assert!(broken.is_err(), "{broken:?}");
    assert!(cluster.get("configmaps", "default", "b").is_ok());

    cluster.faults().set(FaultPlan {
        rules: vec![FaultRule::new(Fault::CommitThenDelay { millis: 1_000 }).verb("create").times(1)],
        ..FaultPlan::default()
    });
    let start = Instant::now();
    let late = tokio::spawn({
        let client = client.clone();
        async move { client.post(CONFIG_MAPS, config_map("c", json!({}))).await }
    });
    cluster
        .wait_until(|cluster| cluster.get("cm", "default", "c").is_ok(), PATIENCE)
        .await
        .expect("it is done");
    assert!(start.elapsed() < Duration::from_millis(900));
    assert_eq!(late.await.expect("an answer").code, 201);
    assert!(start.elapsed() >= Duration::from_millis(1_000));
}

#[tokio::test]
async fn answers_are_delayed_or_never_come() {
    let (cluster, client) = cluster();
    cluster.faults().add(FaultRule::new(Fault::Delay { millis: 100 }).resource("nodes"));
    let start = Instant::now();
    client.get("/api/v1/pods").await;
    let undelayed = start.elapsed();
    client.get("/api/v1/nodes").await;
    assert!(start.elapsed() - undelayed >= Duration::from_millis(100));
    cluster.faults().add(FaultRule::new(Fault::HangUp).verb("list").resource("pods"));
    assert!(client.try_send(Method::GET, "/api/v1/pods", "", String::new()).await.is_err());
}

#[tokio::test]
async fn watches_are_cut_at_once_or_by_chance() {
    let (cluster, client) = cluster();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    client.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    watch.expect(&["ADDED a"]).await;
    cluster.faults().cut_watches();
    assert_eq!(watch.told().await, "end");

    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true")).await;
    watch.expect(&["ADDED a"]).await;
    cluster.faults().set(FaultPlan { watches_cut_per_second: 1.0, ..FaultPlan::default() });
    assert_eq!(watch.told().await, "end");
}

#[tokio::test]
async fn a_restart_keeps_objects_and_port() {
    let (cluster, client) = cluster();
    client.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    let version = cluster.resource_version();
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    cluster.faults().restart(Duration::from_millis(700), true);
    assert_eq!(watch.told().await, "end");
    let get = || client.try_send(Method::GET, CONFIG_MAPS, "", String::new());
    assert!(get().await.is_err(), "it is away");
    let start = Instant::now();
    let list = loop {
        match get().await {
            Ok(list) => break list,
            Err(_) if start.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(error) => panic!("it did not come back: {error}"),
        }
    };
    assert_eq!(list.names(), ["a"]);
    client.post(CONFIG_MAPS, config_map("b", json!({}))).await;
    let before = version - 1;
    let mut late = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={before}")).await;
    late.expect(&["ERROR"]).await;
    let mut current = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    current.expect(&["ADDED b"]).await;
}

#[tokio::test]
async fn faults_are_set_over_http_too() {
    let (cluster, client) = cluster();
    let plan = json!({
        "seed": 7,
        "rules": [{"verbs": ["get"], "resource": "pods", "fault": {"do": "answer", "code": 500}}],
    });
    assert_eq!(client.put("/testcluster/faults", plan).await.code, 200);
    assert_eq!(client.get(&format!("{PODS}/x")).await.code, 500);
    assert_eq!(client.get("/testcluster/faults").await.value["rules"][0]["fault"]["code"], 500);
    assert_eq!(cluster.faults().plan().seed, 7);
    client.delete("/testcluster/faults", json!({})).await;
    assert_eq!(client.get(&format!("{PODS}/x")).await.code, 404);
    let wrong = client.put("/testcluster/faults", json!({"rules": [{"fault": {"do": "sink"}}]})).await;
    assert_eq!(wrong.refusal(), (400, "BadRequest"));

    let mut watch = client.watch("/api/v1/pods?watch=true").await;
    assert_eq!(client.post("/testcluster/actions", json!({"do": "cutWatches"})).await.code, 200);
    assert_eq!(watch.told().await, "end");
    client.post("/testcluster/actions", json!({"do": "restart", "downMillis": 1})).await;
}
