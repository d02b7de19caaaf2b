//! Devices: claims from templates, a driver that pretends, and what a claim may not become.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_testcluster::{DeviceDriver, Rule, TestCluster, TestClusterOptions, User, Violation};

use crate::client::{Client, PATIENCE, cluster_with, node, pod};

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

fn with_claims() -> TestClusterOptions {
    TestClusterOptions { claims: true, ..TestClusterOptions::default() }
}

async fn until(cluster: &TestCluster, condition: impl FnMut(&TestCluster) -> bool) {
    cluster.wait_until(condition, PATIENCE).await.expect("it happens");
}

fn spec() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}})
}

fn template() -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one-gpu"},
        "spec": {"metadata": {"labels": {"team": "a"}}, "spec": spec()},
    })
}

fn claim(name: &str) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec()})
}

fn pod_with(name: &str, claim: Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]["resourceClaims"] = json!([claim]);
    pod
}

fn allocation(device: &str) -> Value {
    json!({"devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": device}]}})
}

/// What a scheduler writes: the finalizer, then allocation and user.
async fn allocate(client: &Client, claim: &str, device: &str, pod: &Value) {
    let protected = json!({"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}});
    assert_eq!(client.patch(&format!("{CLAIMS}/{claim}"), "merge", protected).await.code, 200);
    let consumer =
        json!({"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]});
    let status = json!({"status": {"allocation": allocation(device), "reservedFor": [consumer]}});
    assert_eq!(client.patch(&format!("{CLAIMS}/{claim}/status"), "merge", status).await.code, 200);
}

#[tokio::test]
async fn a_pod_gets_claims_from_templates_and_they_go_with_it() {
    let (cluster, client) = cluster_with(with_claims());
    cluster.create(node("n")).expect("it is created");
    let wants = json!({"name": "gpu", "resourceClaimTemplateName": "one-gpu"});
    cluster.create(pod_with("trainer", wants)).expect("it is created");
    cluster.create(template()).expect("a template may come late");
    let statuses = |cluster: &TestCluster| -> Value {
        let pod = cluster.get("pods", "default", "trainer");
        pod.map(|pod| pod["status"]["resourceClaimStatuses"].clone()).unwrap_or_default()
    };
    until(&cluster, |cluster| statuses(cluster).is_array()).await;
    let statuses = statuses(&cluster);
    let name = statuses[0]["resourceClaimName"].as_str().expect("it has a name").to_owned();
    assert!(statuses[0]["name"] == "gpu" && name.starts_with("trainer-gpu-"), "{statuses}");
    let made = cluster.get("resourceclaims", "default", &name).expect("it is there");
    assert_eq!(made["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(made["metadata"]["annotations"], json!({"resource.kubernetes.io/pod-claim-name": "gpu"}));
    assert_eq!(made["spec"]["devices"]["requests"][0]["exactly"]["count"], 1, "by default it wants one");

    let pod = cluster.get("pods", "default", "trainer").expect("it is there");
    allocate(&client, &name, "device-0", &pod).await;
    cluster.bind("default", "trainer", "n").expect("it is bound");
    assert_eq!(cluster.violations(), []);
    cluster.delete_now("pods", "default", "trainer").expect("it is deleted");
    until(&cluster, |cluster| cluster.get("resourceclaims", "default", &name).is_err()).await;
}

#[tokio::test]
async fn a_claim_of_its_own_gives_its_devices_back_when_its_last_pod_ends() {
    let (cluster, client) = cluster_with(with_claims());
    let wants = json!({"name": "gpu", "resourceClaimName": "shared"});
    cluster.create_many([claim("shared"), pod_with("trainer", wants)]).expect("they are created");
    let pod = cluster.get("pods", "default", "trainer").expect("it is there");
    allocate(&client, "shared", "device-0", &pod).await;
    let ended = json!({"status": {"phase": "Succeeded"}});
    client.patch("/api/v1/namespaces/default/pods/trainer/status", "merge", ended).await;
    until(&cluster, |cluster| {
        let claim = cluster.get("resourceclaims", "default", "shared").expect("it stays");
        claim["status"].get("allocation").is_none() && claim["metadata"].get("finalizers").is_none()
    })
    .await;
}

#[tokio::test]
async fn a_driver_publishes_devices_and_makes_them_ready() {
    let driver = DeviceDriver {
        delay: Duration::from_millis(1),
        binding_condition: Some("attached".to_owned()),
        ..DeviceDriver::default()
    };
    let (cluster, client) = cluster_with(TestClusterOptions { driver: Some(driver), ..with_claims() });
    let mut with_devices = node("n");
    with_devices["metadata"]["labels"] = json!({"testcluster/devices": "2"});
    cluster.create_many([with_devices, node("bare"), claim("c")]).expect("they are created");
    until(&cluster, |cluster| cluster.count("resourceslices") == Ok(1)).await;
    let slice = cluster.list("resourceslices", "").expect("it is known").remove(0);
    assert_eq!(slice["spec"]["nodeName"], "n");
    assert_eq!(slice["spec"]["devices"].as_array().map(Vec::len), Some(2));

    let mut status = json!({"status": {"allocation": allocation("device-0")}});
    status["status"]["allocation"]["devices"]["results"][0]["bindingConditions"] = json!(["attached"]);
    client.patch(&format!("{CLAIMS}/c/status"), "merge", status).await;
    let condition = |cluster: &TestCluster| -> Value {
        let claim = cluster.get("resourceclaims", "default", "c").expect("it is there");
        claim["status"]["devices"][0]["conditions"][0].clone()
    };
    until(&cluster, |cluster| condition(cluster)["status"] == "True").await;
    assert_eq!(condition(&cluster)["type"], "attached");
    cluster.delete("nodes", "", "n").expect("it is deleted");
    until(&cluster, |cluster| cluster.count("resourceslices") == Ok(0)).await;
}

#[tokio::test]
async fn what_a_claim_may_not_become() {
    let (cluster, client) = cluster_with(TestClusterOptions::default());
    cluster.create(claim("c")).expect("it is created");
    let status = format!("{CLAIMS}/c/status");
    let user = json!([{"resource": "pods", "name": "p", "uid": "u"}]);
    let reply = client.patch(&status, "merge", json!({"status": {"reservedFor": user}})).await;
    assert_eq!(reply.refusal(), (422, "Invalid"));
    assert!(reply.message().contains("status.reservedFor"), "{}", reply.message());
    let given = json!({"status": {"allocation": allocation("device-0"), "reservedFor": user}});
    assert_eq!(client.patch(&status, "merge", given).await.code, 200);
    let other = json!({"status": {"allocation": {"devices": {"results": []}}}});
    assert!(client.patch(&status, "merge", other).await.message().contains("status.allocation"));
    let spec = json!({"spec": {"devices": {"requests": []}}});
    assert!(client.patch(&format!("{CLAIMS}/c"), "merge", spec).await.message().contains("spec"));
    let taken_back = json!({"status": {"allocation": null, "reservedFor": null}});
    assert_eq!(client.patch(&status, "merge", taken_back).await.code, 200);
}

#[tokio::test]
async fn whoever_binds_claims_needs_the_permission_of_1_36() {
    let (cluster, client) = cluster_with(TestClusterOptions::default());
    cluster.create(claim("c")).expect("it is created");
    let rule = |resource: &str| Rule {
        verbs: vec!["patch".to_owned()],
        api_groups: vec!["resource.k8s.io".to_owned()],
        resources: vec![resource.to_owned()],
        ..Rule::default()
    };
    cluster.access().add_token("t", User::named("scheduler"));
    cluster.access().grant("scheduler", rule("resourceclaims/status"));
    cluster.access().enforce(true);
    let client = client.header("authorization", "Bearer t");
    let given = json!({"status": {"allocation": allocation("device-0")}});
    let reply = client.patch(&format!("{CLAIMS}/c/status"), "merge", given.clone()).await;
    assert_eq!(reply.refusal(), (422, "Invalid"));
    assert!(reply.message().contains("resourceclaims/binding"), "{}", reply.message());
    cluster.access().grant("scheduler", rule("resourceclaims/binding"));
    assert_eq!(client.patch(&format!("{CLAIMS}/c/status"), "merge", given).await.code, 200);
}

#[tokio::test]
async fn the_referee_sees_a_device_that_is_given_twice() {
    let (cluster, client) = cluster_with(TestClusterOptions::default());
    cluster
        .create_many([
            node("n"),
            claim("one"),
            claim("two"),
            pod("p"),
            pod_with("q", json!({"name": "gpu", "resourceClaimName": "two"})),
        ])
        .expect("they are created");
    let pod = cluster.get("pods", "default", "p").expect("it is there");
    allocate(&client, "one", "device-0", &pod).await;
    assert_eq!(cluster.violations(), []);
    allocate(&client, "two", "device-0", &pod).await;
    cluster.bind("default", "q", "n").expect("a server binds what it is told to");
    let violations = cluster.violations();
    assert!(
        matches!(&violations[..], [
            Violation::DeviceGivenTwice { device, claim, held_by },
            Violation::ClaimNotReady { pod, missing, .. },
        ] if device == "gpu.example.com/n/device-0" && claim == "default/two" && held_by == "default/one"
            && pod == "default/q" && *missing == "it is not reserved for the pod"),
        "{violations:?}"
    );
}
