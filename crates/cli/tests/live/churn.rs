//! Much coming and going: an hour's worth in half a minute.

use std::time::{Duration, Instant};

use crate::{
    draft::{node, pod},
    process::{tell, wait_until},
    stage::Stage,
};

const NODES: usize = 40;
const PODS_AT_A_TIME: usize = 300;
const TICK: Duration = Duration::from_millis(50);
const PODS_A_TICK: usize = 15;
const WARM_UP: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(25);

/// Pods live for a while; nodes are replaced, one a few ticks.
struct Churn<'a> {
    stage: &'a Stage,
    pods: usize,
    nodes: usize,
}

impl Churn<'_> {
    fn node(&self, i: usize) -> String {
        format!("n{i}")
    }

    fn tick(&mut self) {
        let cluster = self.stage.cluster();
        for _ in 0..PODS_A_TICK {
            // Some can never be scheduled, some fit everywhere.
            let cpu = if self.pods.is_multiple_of(10) { "100" } else { "50m" };
            let draft =
                pod(&format!("p{}", self.pods)).cpu(cpu).label("name", &format!("app-{}", self.pods % 20));
            let (_, made) = self.stage.placed(draft);
            cluster.create(made).expect("a pod");
            if let Some(old) = self.pods.checked_sub(PODS_AT_A_TIME) {
                // It may be gone together with its node.
                let _ = cluster.delete_now("pods", &self.stage.name, &format!("p{old}"));
            }
            self.pods += 1;
        }
        if self.pods.is_multiple_of(PODS_A_TICK * 4) {
            self.replace_a_node();
        }
    }

    fn replace_a_node(&mut self) {
        let cluster = self.stage.cluster();
        let (_, made) =
            self.stage.placed(node(&self.node(self.nodes)).with("/status/allocatable/pods", "50".into()));
        cluster.create(made).expect("a node");
        if let Some(old) = self.nodes.checked_sub(NODES) {
            let name = self.stage.node_name(&self.node(old));
            cluster.delete_now("nodes", "", &name).expect("it is there");
            let field = format!("spec.nodeName={name}");
            for pod in cluster.list_selected("pods", &self.stage.name, "", &field).expect("pods") {
                let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
                let _ = cluster.delete_now("pods", &self.stage.name, pod);
            }
        }
        self.nodes += 1;
    }
}

#[test]
fn pods_and_nodes_come_and_go_then_memory_stays_flat() {
    let stage = Stage::in_memory();
    let mut churn = Churn { stage: &stage, pods: 0, nodes: 0 };
    (0..NODES).for_each(|_| churn.replace_a_node());
    let scheduler = stage.scheduler();
    let start = Instant::now();
    let mut warm_kib = None;
    while start.elapsed() < WHOLE {
        churn.tick();
        if warm_kib.is_none() && start.elapsed() > WARM_UP {
            warm_kib = Some(scheduler.resident_kib());
        }
        std::thread::sleep(TICK);
    }
    let (warm, end) = (warm_kib.expect("warm"), scheduler.resident_kib());
    tell(&format!("{} pods came; from {warm} KiB to {end} KiB", churn.pods));
    assert!(end < warm + warm / 4 + 4096, "from {warm} KiB to {end} KiB");
    assert_eq!(stage.cluster().violations(), []);
    stage.cluster().create(stage.placed(pod("last").cpu("50m")).1).expect("a pod");
    stage.wait_until_bound("last");
    let hopeless = scheduler.metric("scheduler_pending_pods", "queue=\"unschedulable\"");
    assert!(hopeless <= PODS_AT_A_TIME as f64, "{hopeless} pods wait");
    wait_until("nobody waits that could run", || {
        scheduler.metric("scheduler_pending_pods", "queue=\"active\"") == 0.0
    });
}
