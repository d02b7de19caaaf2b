//! kubectl as people use it, where there is one; with `CI` set there has to be one. What it relies on is tested without it
//! beside this file, and with what it sent in `schema/protobuf.rs`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use supercargo_testcluster::{Kubelets, TestCluster, TestClusterOptions};

use crate::client::node;

/// A cluster in which pods run, and a kubectl that talks to it.
struct Kubectl {
    cluster: TestCluster,
    home: std::path::PathBuf,
}

static HOMES: AtomicUsize = AtomicUsize::new(0);

impl Kubectl {
    /// Nothing if this machine has no kubectl.
    fn new() -> Option<Self> {
        if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "CI needs kubectl: Debian has it in kubernetes-client");
            return None;
        }
        let options = TestClusterOptions {
            kubelets: Some(Kubelets { start_delay: Duration::ZERO, ..Kubelets::default() }),
            workloads: true,
            budgets: true,
            ..TestClusterOptions::default()
        };
        let cluster = TestCluster::start(options).expect("it starts");
        cluster.create_many(["node-1", "node-2"].map(node)).expect("nodes are made");
        // Nothing of this machine's own configuration, and nothing cached from another test.
        let number = HOMES.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("testcluster-kubectl-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&home).expect("a folder is made");
        Some(Self { cluster, home })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.env("HOME", &self.home).env_remove("KUBECONFIG");
        command.args(["--server", &self.cluster.url(), "--request-timeout", "60s"]);
        command.args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> (bool, String) {
        let Output { status, stdout, stderr } = self.command(line).output().expect("kubectl runs");
        (
            status.success(),
            format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)),
        )
    }

    /// Runs it; it has to succeed and to say this.
    fn says(&self, line: &str, expected: &str) {
        let (well, said) = self.run(line);
        assert!(well && said.contains(expected), "kubectl {line}: {said}");
    }

    /// Runs it; it has to fail and to say this.
    fn refuses(&self, line: &str, expected: &str) {
        let (well, said) = self.run(line);
        assert!(!well && said.contains(expected), "kubectl {line}: {said}");
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.join(name);
        std::fs::write(&path, text).expect("a file is written");
        path.display().to_string()
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        // What is left in the temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

const LIST: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {a: "1"}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {nodeName: node-1, containers: [{name: c, image: "web:1"}]}
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 80}]}}
"#;

#[test]
fn a_list_is_applied_changed_and_deleted() {
    let Some(kubectl) = Kubectl::new() else { return };
    let list = kubectl.file("list.yaml", LIST);
    kubectl.says(&format!("apply -f {list}"), "deployment.apps/web created");
    kubectl.says(&format!("apply -f {list}"), "configmap/settings unchanged");
    kubectl.says(&format!("apply -f {list} --dry-run=server"), "(server dry run)");
    let changed = kubectl.file("changed.yaml", &LIST.replace("a: \"1\"", "a: \"2\""));
    kubectl.says(&format!("apply -f {changed}"), "configmap/settings configured");
    kubectl.says("get configmap settings -n shop -o jsonpath={.data.a}", "2");
    let typo = kubectl.file("typo.yaml", &LIST.replace("image: \"web:1\"", "imagee: \"web:1\""));
    kubectl.refuses(&format!("apply -f {typo}"), "imagee");
    // Its namespace goes first, and with it all that is in it, at once.
    kubectl.says(&format!("delete -f {list} --ignore-not-found"), "namespace \"shop\" deleted");
    kubectl.refuses("get namespace shop", "not found");
}

#[test]
fn objects_are_created_by_kind() {
    let Some(kubectl) = Kubectl::new() else { return };
    for (line, expected) in [
        ("create namespace team", "namespace/team created"),
        ("create deployment front --image=front:1 -n team", "deployment.apps/front created"),
        ("create configmap settings --from-literal=a=b -n team", "configmap/settings created"),
        ("create secret generic key --from-literal=a=b -n team", "secret/key created"),
        ("create serviceaccount robot -n team", "serviceaccount/robot created"),
        ("create quota most --hard=pods=10 -n team", "resourcequota/most created"),
        ("create priorityclass high --value=1000", "priorityclass.scheduling.k8s.io/high created"),
        ("run single --image=x -n team", "pod/single created"),
        ("create deployment dry --image=x --dry-run=server -o name", "deployment.apps/dry"),
        ("get secret key -n team -o jsonpath={.data.a}", "Yg=="),
        ("get deployment front -n team -o jsonpath={.spec.template.spec.containers[0].image}", "front:1"),
        ("auth can-i create pods", "yes"),
        ("explain pod.spec.nodeName", "nodeName"),
        ("api-resources", "horizontalpodautoscalers"),
    ] {
        kubectl.says(line, expected);
    }
    kubectl.refuses("get deployment dry", "not found");
}

#[test]
fn a_deployment_is_scaled_rolled_out_and_rolled_back() {
    let Some(kubectl) = Kubectl::new() else { return };
    let list = kubectl.file("list.yaml", LIST);
    kubectl.says(&format!("apply -f {list}"), "deployment.apps/web created");
    for (line, expected) in [
        ("rollout status deployment/web -n shop --timeout=60s", "successfully rolled out"),
        ("scale deployment web -n shop --replicas=4", "scaled"),
        ("rollout status deployment/web -n shop --timeout=60s", "successfully rolled out"),
        ("get deployment web -n shop", "4/4"),
        ("set image deployment/web c=web:2 -n shop", "image updated"),
        ("rollout status deployment/web -n shop --timeout=60s", "successfully rolled out"),
        ("rollout history deployment/web -n shop", "2"),
        ("rollout undo deployment/web -n shop", "rolled back"),
        ("rollout status deployment/web -n shop --timeout=60s", "successfully rolled out"),
        ("get deployment web -n shop -o jsonpath={.spec.template.spec.containers[0].image}", "web:1"),
        ("wait --for=condition=Available deployment/web -n shop --timeout=60s", "condition met"),
        ("describe deployment web -n shop", "NewReplicaSetAvailable"),
    ] {
        kubectl.says(line, expected);
    }
}

#[test]
fn nodes_are_tainted_cordoned_and_drained() {
    let Some(kubectl) = Kubectl::new() else { return };
    let list = kubectl.file("list.yaml", LIST);
    kubectl.says(&format!("apply -f {list}"), "deployment.apps/web created");
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", "successfully rolled out");
    for (line, expected) in [
        ("describe node node-1", "web-"),
        ("label node node-2 tier=one", "labeled"),
        ("taint node node-2 dedicated=x:NoSchedule", "tainted"),
        ("cordon node-1", "cordoned"),
        ("get nodes", "SchedulingDisabled"),
        ("drain node-2 --ignore-daemonsets --force", "drained"),
        ("uncordon node-1", "uncordoned"),
    ] {
        kubectl.says(line, expected);
    }
}

#[test]
fn nothing_runs_and_kubectl_says_so() {
    let Some(kubectl) = Kubectl::new() else { return };
    kubectl.says("run single --image=x", "pod/single created");
    kubectl.says("describe pod single", "Pending");
    kubectl.refuses("logs single", "nothing runs");
    kubectl.refuses("top nodes", "Metrics API not available");
}

#[test]
fn changes_are_watched() {
    let Some(kubectl) = Kubectl::new() else { return };
    let watching = kubectl.command("get pods -w -o name").stdout(Stdio::piped()).spawn();
    let mut watching = Ending(watching.expect("kubectl runs"));
    let lines = BufReader::new(watching.0.stdout.take().expect("it is piped")).lines();
    kubectl.says("run first --image=x", "created");
    kubectl.says("run second --image=x", "created");
    let names: Vec<String> = lines.map(|line| line.expect("a line")).take(2).collect();
    assert_eq!(names, ["pod/first", "pod/second"]);
}

/// A process that ends with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
