//! The plugins that read and write custom kinds, in the real binary: offline, in the roles, and against an API server.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo::manifest::{Source, read};
use supercargo_testcluster::{PatchKind, TestCluster, TestClusterOptions};

const PATIENCE: Duration = Duration::from_secs(60);

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-scheduler"));
    command.args(arguments).current_dir(folder()).env("COLUMNS", "120");
    command
}

fn printed(arguments: &[&str]) -> String {
    let ran = command(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// The objects in a file of the folder.
fn objects(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let documents = read(&Source::new(file, text)).unwrap();
    documents.iter().map(|document| serde_json::from_str(&document.to_json()).unwrap()).collect()
}

#[test]
fn its_objects_are_read_from_files() {
    let explain = |cluster: &[&str]| {
        let pods = ["--pods", "pod.yaml", "--config", "config.yaml"];
        printed(&[&["explain", "web", "--cluster", "cluster.yaml"], cluster, &pods].concat())
    };
    assert!(explain(&[]).starts_with("default/web goes to birch\n"));
    let with = explain(&["maintenance.yaml"]);
    assert!(with.starts_with("default/web goes to amber\n"), "{with}");
    assert!(with.contains("node(s) were under maintenance"), "{with}");
}

#[test]
fn it_stands_in_the_roles_of_those_who_switch_the_plugin_on() {
    let roles = printed(&["rbac", "--config", "config.yaml"]);
    let rule = "- apiGroups: [example.com]\n  resources: [maintenances]\n  verbs: [get, list, watch]\n";
    assert_eq!(roles.matches(rule).count(), 2, "the scheduler's, and the readers': {roles}");
    assert!(!printed(&["rbac"]).contains("example.com"), "it is not on");
}

/// The scheduler as a process; it is killed when it is dropped.
struct Running(Child);

impl Running {
    fn start(cluster: &TestCluster, config: &str, log: &Path) -> Self {
        let log = std::fs::File::create(log).unwrap();
        let arguments = ["run", "--master", &cluster.url(), "--config", config, "--leader-elect=false"];
        let mut command = command(&arguments);
        let command = command.args(["--insecure-address", "127.0.0.1:0"]).stdin(Stdio::null());
        Self(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn log_of(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("custom-kind-{test}-{}.log", std::process::id()))
}

/// A cluster of one node.
fn cluster_with_birch() -> TestCluster {
    let cluster = TestCluster::start(TestClusterOptions::default()).unwrap();
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "birch"}, "status": {"allocatable": amounts}});
    cluster.create(node).unwrap();
    cluster
}

fn pod(name: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    })
}

/// What has become of a pod: its node, or why it has none; empty as long as neither is known.
fn outcome(cluster: &TestCluster, name: &str) -> String {
    let pod = cluster.get("pods", "default", name).unwrap();
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let waits = conditions.iter().find(|condition| condition["status"] == "False");
    let why = waits.and_then(|condition| condition["message"].as_str());
    pod["spec"]["nodeName"].as_str().or(why).unwrap_or_default().to_owned()
}

fn decided(cluster: &TestCluster, pod: Value) -> String {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.create(pod).unwrap();
    let is_decided = |cluster: &TestCluster| !outcome(cluster, &name).is_empty();
    cluster.wait_until_blocking(is_decided, PATIENCE).unwrap();
    outcome(cluster, &name)
}

#[test]
fn its_events_wake_the_pods_that_the_plugin_refused() {
    let (cluster, log) = (cluster_with_birch(), log_of("reads"));
    let _running = Running::start(&cluster, "config.yaml", &log);
    let read_log = || std::fs::read_to_string(&log).unwrap_or_default();

    // Nobody has defined the kind: there is no maintenance, and it is said.
    assert_eq!(decided(&cluster, pod("first", json!({}))), "birch", "{}", read_log());
    assert!(read_log().contains("install its CustomResourceDefinition"), "{}", read_log());

    cluster.create_many(objects("maintenance.yaml")).unwrap();
    // The kind is looked for again within seconds; until then pods are let in.
    let refused = (0..).map(|i| format!("web-{i}")).find(|name| {
        std::thread::sleep(Duration::from_millis(200));
        decided(&cluster, pod(name, json!({}))) != "birch"
    });
    let refused = refused.unwrap();
    assert!(outcome(&cluster, &refused).contains("node(s) were under maintenance"), "{}", read_log());
    let tolerant = pod("tolerant", json!({"example.com/tolerates-maintenance": "true", "other": "x"}));
    assert_eq!(decided(&cluster, tolerant), "birch", "{}", read_log());

    cluster.delete("maintenances", "", "new-disk").unwrap();
    let is_bound = |cluster: &TestCluster| outcome(cluster, &refused) == "birch";
    cluster.wait_until_blocking(is_bound, PATIENCE).unwrap_or_else(|_| panic!("{}", read_log()));
    let _ = std::fs::remove_file(&log);
}

#[test]
fn a_pre_bind_writes_an_object_and_waits_for_its_status() {
    let (cluster, log) = (cluster_with_birch(), log_of("writes"));
    cluster.create_many(objects("licences.yaml")).unwrap();
    let _running = Running::start(&cluster, "licences-config.yaml", &log);
    let read_log = || std::fs::read_to_string(&log).unwrap_or_default();
    let wait_until = |what: &str, is_so: &dyn Fn(&TestCluster) -> bool| {
        let waited = cluster.wait_until_blocking(|cluster: &TestCluster| is_so(cluster), PATIENCE);
        waited.unwrap_or_else(|_| panic!("{what}: {}", read_log()));
    };
    let licensed = |name: &str| {
        let mut pod = pod(name, json!({}));
        pod["metadata"]["labels"] = json!({"example.com/licence": "cad"});
        pod
    };
    for name in ["lucky", "unlucky"] {
        cluster.create(licensed(name)).unwrap();
        wait_until("the claim is made", &|cluster| cluster.get("licenceclaims", "default", name).is_ok());
        let claim = cluster.get("licenceclaims", "default", name).unwrap();
        assert_eq!(claim["spec"], json!({"product": "cad", "node": "birch"}));
        // Its status says where it will go; it is not there yet, and others pass by.
        let waiting = cluster.get("pods", "default", name).unwrap();
        assert_eq!(waiting["status"]["nominatedNodeName"], "birch", "{waiting}");
    }
    assert_eq!(decided(&cluster, pod("other", json!({}))), "birch", "{}", read_log());
    assert_eq!([outcome(&cluster, "lucky"), outcome(&cluster, "unlucky")], ["", ""]);

    let says = |name: &str, phase: &str| {
        let status = json!({"status": {"phase": phase}});
        cluster.patch("licenceclaims/status", "default", name, PatchKind::Merge, status).unwrap();
    };
    says("lucky", "Granted");
    wait_until("it is bound", &|cluster| outcome(cluster, "lucky") == "birch");
    says("unlucky", "Denied");
    wait_until("it is refused", &|cluster| outcome(cluster, "unlucky").contains("no licence was granted"));
    let _ = std::fs::remove_file(&log);
}

#[test]
fn what_it_writes_stands_in_the_roles() {
    let roles = printed(&["rbac", "--config", "licences-config.yaml"]);
    assert!(roles.contains("licenceclaims"), "{roles}");
    let written =
        roles.split("- apiGroups: ").find(|rule| rule.contains("licenceclaims") && rule.contains("create"));
    assert!(written.is_some(), "{roles}");
}
