//! Where a scenario plays: an API server of its own in memory, or a corner of a real cluster.

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use supercargo_testcluster::{TestCluster, TestClusterOptions};
use tempfile::TempDir;

use crate::{
    client::Client,
    draft::Draft,
    process::{SchedulerProcess, wait_until},
};

const KUBECONFIG: &str = "SUPERCARGO_E2E_KUBECONFIG";

/// A scenario's corner of a cluster. All names in it are the scenario's own, and so is the scheduler's.
pub(crate) struct Stage {
    pub(crate) client: Client,
    cluster: Option<TestCluster>,
    /// The namespace, the scheduler's name, and what every other name begins with.
    pub(crate) name: String,
    folder: TempDir,
    /// What lies outside the namespace and has to be cleared away.
    made: RefCell<Vec<String>>,
    logs: AtomicUsize,
}

impl Stage {
    /// On the real cluster if there is one, otherwise in memory.
    pub(crate) fn new() -> Self {
        match std::env::var_os(KUBECONFIG) {
            Some(file) => Self::set_up(Client::of_kubeconfig(PathBuf::from(file)), None),
            None => Self::in_memory(),
        }
    }

    /// In memory in any case: something is to go wrong.
    pub(crate) fn in_memory() -> Self {
        Self::with(TestClusterOptions::default())
    }

    pub(crate) fn with(options: TestClusterOptions) -> Self {
        let cluster = TestCluster::start(options).expect("a free port");
        Self::set_up(Client::of_server(cluster.url()), Some(cluster))
    }

    fn set_up(client: Client, cluster: Option<TestCluster>) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("e2e-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        client.create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        Self {
            client,
            cluster,
            name,
            folder: tempfile::tempdir().expect("a folder"),
            made: RefCell::default(),
            logs: AtomicUsize::new(0),
        }
    }

    /// The cluster in memory, for what goes wrong on purpose.
    pub(crate) fn cluster(&self) -> &TestCluster {
        self.cluster.as_ref().expect("a cluster in memory")
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.cluster.is_some()
    }

    /// A scheduler for the scenario's pods that has read everything.
    pub(crate) fn scheduler(&self) -> SchedulerProcess {
        self.scheduler_with("", &[])
    }

    /// The same, with more in its configuration and on its command line.
    pub(crate) fn scheduler_with(&self, configuration: &str, flags: &[&str]) -> SchedulerProcess {
        let process = self.start(configuration, flags);
        process.wait_until_ready();
        process
    }

    /// A scheduler that has just been started.
    pub(crate) fn start(&self, configuration: &str, flags: &[&str]) -> SchedulerProcess {
        let name = &self.name;
        let profiles = format!("profiles: [{{schedulerName: {name}}}, {{schedulerName: {name}-other}}]");
        self.start_with(&format!("{profiles}\n{configuration}"), flags)
    }

    /// A scheduler with profiles of its own that has read everything.
    pub(crate) fn scheduler_of(&self, configuration: &str) -> SchedulerProcess {
        let process = self.start_with(configuration, &[]);
        process.wait_until_ready();
        process
    }

    /// A scheduler with profiles of its own that has just been started.
    pub(crate) fn start_with(&self, configuration: &str, flags: &[&str]) -> SchedulerProcess {
        let (arguments, log) = self.command_line(configuration, flags);
        SchedulerProcess::start(&arguments, &log)
    }

    /// The same, and it serves as the flags say.
    pub(crate) fn start_secure(&self, configuration: &str, flags: &[&str]) -> SchedulerProcess {
        let (arguments, log) = self.command_line(configuration, flags);
        SchedulerProcess::start_plain(&arguments, &log)
    }

    /// A scheduler that has read everything, and takes a file that may not grow for a full disk.
    pub(crate) fn scheduler_for_full_disk(&self, flags: &[&str]) -> SchedulerProcess {
        let profiles = format!("profiles: [{{schedulerName: {}}}]", self.name);
        let (arguments, log) = self.command_line(&profiles, flags);
        let process = SchedulerProcess::start_for_full_disk(&arguments, &log);
        process.wait_until_ready();
        process
    }

    /// A file with a configuration for the scenario's pods, for commands other than `run`.
    pub(crate) fn config_file(&self, configuration: &str) -> String {
        let number = self.logs.fetch_add(1, Ordering::Relaxed);
        let profiles = format!("profiles: [{{schedulerName: {}}}]", self.name);
        self.write_config(number, &format!("{profiles}\n{configuration}"))
    }

    /// How the cluster is named on a command line.
    pub(crate) fn access(&self) -> [String; 2] {
        match &self.cluster {
            Some(cluster) => ["--master".to_owned(), cluster.url()],
            None => {
                let file = std::env::var(KUBECONFIG).expect("the name of a file");
                ["--kubeconfig".to_owned(), file]
            }
        }
    }

    fn write_config(&self, number: usize, configuration: &str) -> String {
        let file = self.folder.path().join(format!("config-{number}.yaml"));
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             leaderElection: {{leaderElect: false}}\n{configuration}\n"
        );
        std::fs::write(&file, text).expect("a file");
        file.display().to_string()
    }

    fn command_line(&self, configuration: &str, flags: &[&str]) -> (Vec<String>, PathBuf) {
        let number = self.logs.fetch_add(1, Ordering::Relaxed);
        let mut arguments = vec!["--config".to_owned(), self.write_config(number, configuration)];
        if !(self.is_in_memory() && flags.contains(&"--kubeconfig")) {
            arguments.extend(self.access());
        }
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        (arguments, self.folder.path().join(format!("scheduler-{number}.log")))
    }

    /// Where a file of the scenario is.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes a file of the scenario; its path.
    pub(crate) fn file(&self, name: &str, content: &Value) -> String {
        let path = self.path(name);
        std::fs::write(&path, content.to_string()).expect("a file");
        path
    }

    /// A node's whole name.
    pub(crate) fn node_name(&self, node: &str) -> String {
        format!("{}-{node}", self.name)
    }

    /// Makes an object, with the scenario's own names.
    pub(crate) fn make(&self, draft: Draft) -> Value {
        let (collection, object) = self.placed(draft);
        let made = self.client.create(&collection, &object);
        if !collection.contains("/namespaces/") {
            let name = made["metadata"]["name"].as_str().unwrap_or_default();
            self.made.borrow_mut().push(format!("{collection}/{name}"));
        }
        made
    }

    /// Where an object goes, and what it says in full.
    pub(crate) fn placed(&self, draft: Draft) -> (String, Value) {
        let own_name = self.node_name(draft.name());
        let inside = |group: &str, plural: &str| format!("{group}/namespaces/{}/{plural}", self.name);
        match draft.kind() {
            "Node" => {
                let draft = draft.with("/metadata/name", own_name.as_str().into());
                let object = draft.label("e2e", &self.name).0;
                ("/api/v1/nodes".to_owned(), with_host_name(object, &own_name))
            }
            "Pod" => (inside("/api/v1", "pods"), self.placed_pod(draft)),
            "PersistentVolumeClaim" => (inside("/api/v1", "persistentvolumeclaims"), draft.0),
            "PodDisruptionBudget" => (inside("/apis/policy/v1", "poddisruptionbudgets"), draft.0),
            "PersistentVolume" => {
                ("/api/v1/persistentvolumes".to_owned(), draft.with("/metadata/name", own_name.into()).0)
            }
            "PriorityClass" => (
                "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(),
                draft.with("/metadata/name", own_name.into()).0,
            ),
            kind => panic!("nobody has said where a {kind} goes"),
        }
    }

    fn placed_pod(&self, draft: Draft) -> Value {
        let mut pod = draft.0;
        pod["metadata"]["namespace"] = self.name.as_str().into();
        let spec = &mut pod["spec"];
        spec["schedulerName"] = match spec["schedulerName"].as_str() {
            Some(other) => format!("{}-{other}", self.name).into(),
            None => self.name.as_str().into(),
        };
        if let Some(class) = spec["priorityClassName"].as_str() {
            spec["priorityClassName"] = self.node_name(class).into();
        }
        spec["nodeSelector"]["e2e"] = self.name.as_str().into();
        if !self.is_in_memory() {
            // Nodes without a kubelet are found out sooner or later.
            let found_out = ["not-ready", "unreachable"];
            spec["tolerations"] = found_out
                .map(|key| json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists"}))
                .to_vec()
                .into();
        }
        pod
    }

    pub(crate) fn make_all(&self, drafts: impl IntoIterator<Item = Draft>) {
        for draft in drafts {
            self.make(draft);
        }
    }

    /// Priority classes `low`, `middle`, `high`, and `polite`, which is high and evicts nobody.
    pub(crate) fn make_priority_classes(&self) {
        for (name, value, policy) in [
            ("low", 10, "PreemptLowerPriority"),
            ("middle", 100, "PreemptLowerPriority"),
            ("high", 1000, "PreemptLowerPriority"),
            ("polite", 1000, "Never"),
        ] {
            self.make(Draft(json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                "value": value, "preemptionPolicy": policy,
            })));
        }
    }

    pub(crate) fn pod_path(&self, pod: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{pod}", self.name)
    }

    pub(crate) fn node_path(&self, node: &str) -> String {
        format!("/api/v1/nodes/{}", self.node_name(node))
    }

    pub(crate) fn patch_node(&self, node: &str, patch: Value) {
        self.client.patch(&self.node_path(node), &patch);
    }

    pub(crate) fn pod(&self, pod: &str) -> Option<Value> {
        self.client.get(&self.pod_path(pod))
    }

    /// The node that a pod is bound to, by its short name.
    pub(crate) fn node_of(&self, pod: &str) -> Option<String> {
        let pod = self.pod(pod)?;
        let node = pod["spec"]["nodeName"].as_str()?;
        Some(node.trim_start_matches(&self.node_name("")).to_owned())
    }

    #[track_caller]
    pub(crate) fn wait_until_bound(&self, pod: &str) -> String {
        let mut node = None;
        wait_until(&format!("{pod} is bound"), || {
            node = self.node_of(pod);
            node.is_some()
        });
        node.expect("it is bound")
    }

    /// The words of the condition that says that a pod was tried in vain.
    #[track_caller]
    pub(crate) fn wait_until_rejected(&self, pod: &str) -> String {
        let mut message = None;
        wait_until(&format!("{pod} is rejected"), || {
            message = self.pod(pod).and_then(|pod| rejection(&pod));
            message.is_some()
        });
        message.expect("it is rejected")
    }

    /// The events about a pod with this reason.
    pub(crate) fn events(&self, pod: &str, reason: &str) -> Vec<Value> {
        let all = self.client.list(&format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.name));
        let about = |event: &Value| event["regarding"]["name"] == pod && event["reason"] == reason;
        all.into_iter().filter(about).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for_event(&self, pod: &str, reason: &str) -> Value {
        let mut events = Vec::new();
        wait_until(&format!("{reason} is told of {pod}"), || {
            events = self.events(pod, reason);
            !events.is_empty()
        });
        events.remove(0)
    }
}

fn with_host_name(mut node: Value, name: &str) -> Value {
    node["metadata"]["labels"]["kubernetes.io/hostname"] = name.into();
    node
}

fn rejection(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "PodScheduled")?;
    let refused = condition["status"] == "False" && condition["reason"] == "Unschedulable";
    refused.then(|| condition["message"].as_str().unwrap_or_default().to_owned())
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.is_in_memory() {
            return;
        }
        self.client.delete(&format!("/api/v1/namespaces/{}/pods", self.name));
        for path in self.made.borrow().iter() {
            self.client.delete(path);
        }
        self.client.delete(&format!("/api/v1/namespaces/{}", self.name));
    }
}
