//! How a test cluster is set up.

use std::time::Duration;

/// How a test cluster is set up. The default is an empty cluster in which nothing happens by itself.
#[derive(Clone, Debug)]
pub struct TestClusterOptions {
    /// The port on loopback; 0 is any that is free.
    pub port: u16,
    /// Where uids and generated names begin.
    pub seed: u64,
    /// How many changes of each resource are remembered for watches.
    pub history_limit: usize,
    /// How often watches that want bookmarks get one.
    pub bookmark_interval: Duration,
    /// How many threads serve requests.
    pub threads: usize,
    /// Kubelets that pretend to run what is bound to their nodes.
    pub kubelets: Option<Kubelets>,
    /// A controller that binds claims and makes volumes after this delay.
    pub volumes: Option<Duration>,
    /// Controllers that make pods for deployments and replica sets, and collect garbage.
    pub workloads: bool,
    /// A controller that counts for disruption budgets.
    pub budgets: bool,
    /// A controller that makes resource claims from templates, and frees those that nobody uses any more.
    pub claims: bool,
    /// A driver that publishes devices for nodes with the label `testcluster/devices: "8"`, and makes ready what was
    /// allocated.
    pub driver: Option<DeviceDriver>,
}

impl Default for TestClusterOptions {
    fn default() -> Self {
        Self {
            port: 0,
            seed: 0,
            history_limit: 10_000,
            bookmark_interval: Duration::from_secs(60),
            threads: 1,
            kubelets: None,
            volumes: None,
            workloads: false,
            budgets: false,
            claims: false,
            driver: None,
        }
    }
}

/// How kubelets pretend.
#[derive(Clone, Debug)]
pub struct Kubelets {
    /// How long a bound pod takes to run.
    pub start_delay: Duration,
    /// How long a deleted pod takes to end, at most its grace period; `None` is the whole grace period.
    pub stop_delay: Option<Duration>,
    /// How often every node reports, in its status and its lease; `None` is never.
    pub heartbeat: Option<Duration>,
}

impl Default for Kubelets {
    fn default() -> Self {
        Self {
            start_delay: Duration::from_millis(20),
            stop_delay: Some(Duration::from_millis(50)),
            heartbeat: None,
        }
    }
}

/// How a device driver pretends.
#[derive(Clone, Debug)]
pub struct DeviceDriver {
    /// Its name.
    pub name: String,
    /// The attribute `model` of its devices.
    pub model: String,
    /// The capacity `memory` of each.
    pub memory: String,
    /// How long it takes to publish, and to answer.
    pub delay: Duration,
    /// What must become true before a pod with one of its devices is bound; nothing, if there is none.
    pub binding_condition: Option<String>,
    /// How it answers a claim that waits for that.
    pub answer: BindingAnswer,
}

impl Default for DeviceDriver {
    fn default() -> Self {
        Self {
            name: "gpu.example.com".to_owned(),
            model: "pretended".to_owned(),
            memory: "80Gi".to_owned(),
            delay: Duration::from_millis(10),
            binding_condition: None,
            answer: BindingAnswer::Ready,
        }
    }
}

/// How a driver answers a claim that waits for a device to become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingAnswer {
    /// It is ready.
    Ready,
    /// It failed.
    Failed,
    /// Not at all.
    Never,
}
