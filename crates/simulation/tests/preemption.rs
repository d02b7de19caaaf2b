//! Many important pods at once on a full cluster: each gets its room, and nobody is forgotten.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use supercargo_framework::virtual_time::Executor;
use supercargo_manifest::Source;
use supercargo_simulation::{clock::api_server, scheduler::SchedulerProcess};
use supercargo_testcluster::{ApiServer, Fault, FaultPlan, FaultRule, TestClusterOptions};

const NODES: usize = 20;
const PODS_ON_A_NODE: usize = 4;
const IMPORTANT: usize = 40;
const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1\n\
    kind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n";

fn full_cluster(executor: &Executor) -> ApiServer {
    let server = api_server(executor, &TestClusterOptions::default());
    for (name, value) in [("low", 1), ("high", 1000)] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                           "metadata": {"name": name}, "value": value});
        server.create(class).expect("a class");
    }
    for node in 0..NODES {
        let capacity = json!({"cpu": PODS_ON_A_NODE.to_string(), "memory": "64Gi", "pods": "110"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{node}")},
                          "status": {"capacity": capacity}});
        server.create(node).expect("a node");
    }
    server.create_many((0..NODES * PODS_ON_A_NODE).map(|i| pod("low", i))).expect("pods");
    server
}

fn pod(class: &str, number: usize) -> Value {
    let container = json!({"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{class}-{number}")},
           "spec": {"priorityClassName": class, "terminationGracePeriodSeconds": 0, "containers": [container]}})
}

/// The names of those of a class that are bound, and of those that are not.
fn bound(server: &ApiServer, class: &str) -> (usize, Vec<String>) {
    let pods = server.list("pods", "default").expect("pods");
    let of_class = pods.iter().filter(|pod| pod["spec"]["priorityClassName"] == class);
    let (bound, waiting): (Vec<&Value>, Vec<&Value>) =
        of_class.partition(|pod| !pod["spec"]["nodeName"].is_null());
    (bound.len(), waiting.iter().map(|pod| pod["metadata"]["name"].to_string()).collect())
}

#[test]
fn many_important_pods_at_once_then_each_gets_its_room() {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::load(&Source::new("configuration", CONFIGURATION), &registry);
    let configuration = configuration.expect("a configuration").configuration;
    for fault in [
        None,
        Some(Fault::Answer { code: 500, retry_after_seconds: 0 }),
        Some(Fault::HangUp),
        Some(Fault::CommitThenHangUp),
    ] {
        let executor = Arc::new(Executor::default());
        let server = full_cluster(&executor);
        let _scheduler =
            SchedulerProcess::start(&executor, &server, &configuration, &registry, 1).expect("it starts");
        executor.run_for(Duration::from_secs(2));
        assert_eq!(server.pods_bound(), NODES * PODS_ON_A_NODE);
        if let Some(fault) = fault.clone() {
            server.faults().add(FaultRule::new(fault).verb("delete").resource("pods").every(5));
        }
        server.create_many((0..IMPORTANT).map(|i| pod("high", i))).expect("pods");
        executor.run_for(Duration::from_secs(30));
        assert_eq!(bound(&server, "high"), (IMPORTANT, vec![]), "{fault:?}");
        let (low, _) = bound(&server, "low");
        assert_eq!(low, NODES * PODS_ON_A_NODE - IMPORTANT, "as many have to go as come, with {fault:?}");
        assert_eq!(server.violations(), []);
    }
}

/// A pod waits for the victims that another evicts from its nominated node. The evictions fail, and the other goes away:
/// nothing happens that could wake it, and it has to make room for itself.
#[test]
fn a_pod_that_waits_for_an_eviction_which_fails_is_tried_again() {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::load(&Source::new("configuration", CONFIGURATION), &registry);
    let configuration = configuration.expect("a configuration").configuration;
    let executor = Arc::new(Executor::default());
    let server = api_server(&executor, &TestClusterOptions::default());
    for (name, value) in [("low", 1), ("high", 1000), ("higher", 2000)] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                           "metadata": {"name": name}, "value": value});
        server.create(class).expect("a class");
    }
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                      "status": {"capacity": {"cpu": "1", "memory": "64Gi", "pods": "110"}}});
    server.create(node).expect("a node");
    server.create(pod("low", 0)).expect("a pod");
    let _scheduler =
        SchedulerProcess::start(&executor, &server, &configuration, &registry, 1).expect("it starts");
    executor.run_for(Duration::from_secs(2));
    let unavailable = Fault::Answer { code: 500, retry_after_seconds: 0 };
    server.faults().add(FaultRule::new(unavailable).verb("delete").resource("pods"));
    server.create(pod("higher", 0)).expect("a pod");
    executor.run_for(Duration::from_secs(1));
    let mut nominated = pod("high", 0);
    nominated["status"] = json!({"nominatedNodeName": "n"});
    server.create(nominated).expect("a pod");
    executor.run_for(Duration::from_secs(1));
    server.delete("pods", "default", "higher-0").expect("users may delete");
    // Eight tries with pauses of 250 ms, 500 ms, … are over after 9 seconds.
    executor.run_for(Duration::from_secs(12));
    assert_eq!(bound(&server, "high").0, 0);
    server.faults().set(FaultPlan::default());
    executor.run_for(Duration::from_secs(15));
    assert_eq!(bound(&server, "high"), (1, vec![]));
    assert_eq!(bound(&server, "low"), (0, vec![]), "evicted");
}
