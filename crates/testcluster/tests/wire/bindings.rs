//! Bindings, evictions, and the referee.

use serde_json::{Value, json};
use supercargo_testcluster::Violation;

use crate::client::{Client, PODS, Reply, cluster, node, pod};

async fn bind(client: &Client, pod: &str, node: &str) -> Reply {
    bind_with(client, pod, json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}})).await
}

async fn bind_with(client: &Client, pod: &str, binding: Value) -> Reply {
    client.post(&format!("{PODS}/{pod}/binding"), binding).await
}

#[tokio::test]
async fn a_binding_gives_a_pod_its_node() {
    let (cluster, client) = cluster();
    client.post("/api/v1/nodes", node("n")).await;
    let mut nominated = pod("web");
    nominated["status"] = json!({"nominatedNodeName": "n"});
    cluster.create(nominated).expect("it is created");
    let reply = client.clone().header("authorization", "Bearer admin");
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "web", "annotations": {"a": "b"}},
        "target": {"kind": "Node", "name": "n"},
    });
    let reply = bind_with(&reply, "web", binding).await;
    assert_eq!(
        (reply.code, &reply.value["status"], &reply.value["code"]),
        (201, &json!("Success"), &json!(201))
    );
    let bound = client.get(&format!("{PODS}/web")).await.value;
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["metadata"]["annotations"]["a"]),
        (&json!("n"), &json!("b"))
    );
    let condition = &bound["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("PodScheduled"), &json!("True")));
    assert_eq!(bound["status"].get("nominatedNodeName"), None);

    let written = &cluster.bindings()[0];
    assert_eq!((written.order, written.node.as_str(), written.by.as_str()), (0, "n", "admin/wire-test/1"));
    assert_eq!(written.uid, bound["metadata"]["uid"]);
    assert_eq!((cluster.pods_bound(), cluster.violations()), (1, vec![]));
}

#[tokio::test]
async fn bindings_that_cannot_be_are_refused_in_an_api_servers_words() {
    let (cluster, client) = cluster();
    for name in ["bound", "going", "recreated"] {
        client.post(PODS, pod(name)).await;
    }
    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
    client.post(PODS, gated).await;
    cluster.bind("default", "bound", "n").expect("it is bound");
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    client.patch(&format!("{PODS}/going"), "merge", hold).await;
    client.delete(&format!("{PODS}/going"), json!({})).await;

    let conflict = "Operation cannot be fulfilled on pods/binding";
    for (name, code, message) in [
        ("nobody", 404, "pods \"nobody\" not found".to_owned()),
        ("bound", 409, format!("{conflict} \"bound\": pod bound is already assigned to node \"n\"")),
        (
            "going",
            409,
            format!("{conflict} \"going\": pod going is being deleted, cannot be assigned to a host"),
        ),
        ("gated", 409, format!("{conflict} \"gated\": pod gated has non-empty .spec.schedulingGates")),
    ] {
        let reply = bind(&client, name, "m").await;
        assert_eq!((reply.code, reply.message()), (code, message.as_str()));
    }
    let binding = json!({"metadata": {"name": "recreated", "uid": "of-before"}, "target": {"name": "n"}});
    let reply = bind_with(&client, "recreated", binding).await;
    assert_eq!(reply.refusal(), (409, "Conflict"));
    assert!(
        reply.message().contains("Precondition failed: UID in precondition: of-before"),
        "{}",
        reply.message()
    );
    for odd in [json!({}), json!({"target": {"name": "n", "kind": "Boat"}}), json!({"target": 3})] {
        assert_eq!(bind_with(&client, "recreated", odd).await.code, 422);
    }
    let other = json!({"metadata": {"name": "other"}, "target": {"name": "n"}});
    assert_eq!(bind_with(&client, "recreated", other).await.code, 400);
    assert_eq!(cluster.bindings().len(), 1);
}

#[tokio::test]
async fn of_two_bindings_at_once_one_wins() {
    let (cluster, client) = cluster();
    for number in 0..20 {
        let name = format!("p{number}");
        client.post(PODS, pod(&name)).await;
        let (one, other) = tokio::join!(bind(&client, &name, "a"), bind(&client, &name, "b"));
        let mut codes = [one.code, other.code];
        codes.sort_unstable();
        assert_eq!(codes, [201, 409]);
    }
    assert_eq!(cluster.bindings().len(), 20);
}

#[tokio::test]
async fn the_referee_sees_a_node_that_is_given_more_than_it_has() {
    let (cluster, client) = cluster();
    client.post("/api/v1/nodes", node("n")).await;
    for name in ["a", "b"] {
        let mut large = pod(name);
        large["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "3"}});
        client.post(PODS, large).await;
        assert_eq!(bind(&client, name, "n").await.code, 201, "an API server does not look");
    }
    let violations = cluster.violations();
    assert!(
        matches!(&violations[..], [Violation::OverAllocatable { pod, resource, asked, .. }]
            if pod == "default/b" && resource == "cpu" && asked == "6"),
        "{violations:?}"
    );
    let told = client.get("/testcluster/violations").await.value;
    assert!(told[0].as_str().is_some_and(|text| text.contains("OverAllocatable")), "{told}");
}

#[tokio::test]
async fn evictions_ask_the_budget() {
    let (cluster, client) = cluster();
    for name in ["a", "b", "free"] {
        let mut running = pod(name);
        running["metadata"]["labels"] = json!({"app": if name == "free" { "other" } else { "web" }});
        running["spec"]["nodeName"] = "n".into();
        running["status"] = json!({"phase": "Running"});
        cluster.create(running).expect("it is created");
    }
    cluster
        .create(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1, "desiredHealthy": 1, "currentHealthy": 2},
        }))
        .expect("it is created");
    let evict = |name: &'static str| {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let client = client.clone();
        async move { client.post(&format!("{PODS}/{name}/eviction"), body).await }
    };
    assert_eq!(evict("free").await.code, 201);
    assert_eq!(evict("a").await.code, 201);
    let gone = client.get(&format!("{PODS}/a")).await.value;
    assert!(gone["metadata"]["deletionTimestamp"].is_string());
    let budget = client.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web").await.value;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);

    let refused = evict("b").await;
    assert_eq!(refused.refusal(), (429, "TooManyRequests"));
    assert_eq!(refused.message(), "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(refused.value["details"]["causes"][0]["reason"], "DisruptionBudget");
    assert_eq!(evict("nobody").await.code, 404);
}
