//! What happens by itself, when it is asked for.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_testcluster::{Kubelets, TestCluster, TestClusterOptions};

use crate::client::{PATIENCE, cluster_with, node, pod};

fn with_kubelets() -> TestClusterOptions {
    TestClusterOptions { kubelets: Some(Kubelets::default()), ..TestClusterOptions::default() }
}

async fn until(cluster: &TestCluster, condition: impl FnMut(&TestCluster) -> bool) {
    cluster.wait_until(condition, PATIENCE).await.expect("it happens");
}

fn phase(cluster: &TestCluster, resource: &str, name: &str) -> Value {
    cluster.get(resource, "default", name).map(|found| found["status"]["phase"].clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_kubelet_runs_what_is_bound_to_its_node() {
    let (cluster, _client) = cluster_with(with_kubelets());
    cluster.create_many([node("n"), pod("bound"), pod("lost"), pod("free")]).expect("they are created");
    cluster.bind("default", "lost", "nowhere").expect("it is bound");
    cluster.bind("default", "bound", "n").expect("it is bound");
    until(&cluster, |cluster| phase(cluster, "pods", "bound") == "Running").await;
    let running = cluster.get("pods", "default", "bound").expect("it is there");
    assert!(running["status"]["podIP"].is_string() && running["status"]["startTime"].is_string());
    assert_eq!(running["status"]["containerStatuses"][0]["ready"], true);
    let conditions = running["status"]["conditions"].as_array().expect("conditions");
    assert!(conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
    for name in ["lost", "free"] {
        assert_eq!(phase(&cluster, "pods", name), "Pending", "{name}");
    }

    cluster.delete("pods", "default", "bound").expect("it is deleted");
    assert!(cluster.get("pods", "default", "bound").is_ok(), "it is given time");
    until(&cluster, |cluster| cluster.get("pods", "default", "bound").is_err()).await;
}

#[tokio::test]
async fn nodes_report_in_status_and_lease() {
    let kubelets = Kubelets { heartbeat: Some(Duration::from_millis(20)), ..Kubelets::default() };
    let (cluster, _client) =
        cluster_with(TestClusterOptions { kubelets: Some(kubelets), ..TestClusterOptions::default() });
    cluster.create(node("n")).expect("it is created");
    until(&cluster, |cluster| cluster.get("leases", "kube-node-lease", "n").is_ok()).await;
    let lease = cluster.get("leases", "kube-node-lease", "n").expect("it is there");
    let reported = cluster.get("nodes", "", "n").expect("it is there");
    assert_eq!(reported["status"]["conditions"][0]["type"], "Ready");
    let renewed = |cluster: &TestCluster| {
        cluster
            .get("leases", "kube-node-lease", "n")
            .is_ok_and(|now| now["spec"]["renewTime"] != lease["spec"]["renewTime"])
    };
    until(&cluster, renewed).await;
}

fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode,
    })
}

fn volume(name: &str, class: &str, size: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}},
    })
}

#[tokio::test]
async fn volumes_are_made_and_bound() {
    let options =
        TestClusterOptions { volumes: Some(Duration::from_millis(5)), ..TestClusterOptions::default() };
    let (cluster, client) = cluster_with(options);
    cluster
        .create_many([
            class("made", "example.com/disks", "WaitForFirstConsumer"),
            class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            class("now", "kubernetes.io/no-provisioner", "Immediate"),
            volume("disk", "local", "2Gi"),
            volume("small", "now", "512Mi"),
            volume("fitting", "now", "1Gi"),
            volume("large", "now", "8Gi"),
            claim("waits", "made"),
            claim("chosen", "local"),
            claim("matched", "now"),
        ])
        .expect("they are created");
    until(&cluster, |cluster| phase(cluster, "pvc", "matched") == "Bound").await;
    let matched = cluster.get("pvc", "default", "matched").expect("it is there");
    assert_eq!(matched["spec"]["volumeName"], "fitting", "the smallest that is large enough");
    assert_eq!(phase(&cluster, "pvc", "waits"), "Pending");

    let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}});
    client.patch("/api/v1/namespaces/default/persistentvolumeclaims/waits", "merge", selected).await;
    let reference = json!({"spec": {"claimRef": {"namespace": "default", "name": "chosen"}}});
    client.patch("/api/v1/persistentvolumes/disk", "merge", reference).await;
    for name in ["waits", "chosen"] {
        until(&cluster, |cluster| phase(cluster, "pvc", name) == "Bound").await;
    }
    let made = cluster.get("pvc", "default", "waits").expect("it is there");
    let made = made["spec"]["volumeName"].as_str().expect("it has a volume").to_owned();
    assert_eq!(cluster.get("pv", "", &made).expect("it is there")["spec"]["claimRef"]["name"], "waits");
    assert_eq!(phase(&cluster, "pv", "disk"), "Bound");
    assert_eq!(phase(&cluster, "pv", "large"), "Available");
}

#[tokio::test]
async fn without_a_controller_a_volume_is_offered_to_nobody() {
    let (cluster, _client) = cluster_with(TestClusterOptions::default());
    cluster.create(volume("disk", "local", "2Gi")).expect("it is created");
    assert_eq!(phase(&cluster, "pv", "disk"), "Pending");
}

#[tokio::test]
async fn a_deployment_gets_its_pods() {
    let (cluster, client) =
        cluster_with(TestClusterOptions { workloads: true, budgets: true, ..with_kubelets() });
    cluster.create(node("n")).expect("it is created");
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"app": "web"});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
        },
    });
    assert_eq!(client.post(deployments, deployment).await.code, 201);
    let pods = |cluster: &TestCluster| cluster.count("pods").expect("pods are known");
    until(&cluster, |cluster| pods(cluster) == 2).await;
    for pod in cluster.list("pods", "default").expect("pods are known") {
        let name = pod["metadata"]["name"].as_str().expect("it has a name");
        cluster.bind("default", name, "n").expect("it is bound");
    }
    let ready = |cluster: &TestCluster, wanted: u64| {
        cluster
            .get("deployments", "default", "web")
            .is_ok_and(|found| found["status"]["readyReplicas"] == wanted)
    };
    until(&cluster, |cluster| ready(cluster, 2)).await;

    client.patch(&format!("{deployments}/web/scale"), "merge", json!({"spec": {"replicas": 1}})).await;
    until(&cluster, |cluster| pods(cluster) == 1).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    });
    cluster.create(budget).expect("it is created");
    let allowed = |cluster: &TestCluster| {
        cluster.get("pdb", "default", "b").is_ok_and(|found| found["status"]["disruptionsAllowed"] == 1)
    };
    until(&cluster, allowed).await;
    client.delete(&format!("{deployments}/web"), json!({})).await;
    until(&cluster, |cluster| pods(cluster) == 0).await;
}
