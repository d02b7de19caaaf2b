//! A test cluster to play with: `cargo run -p supercargo-testcluster --example serve -- 8001`, and then
//! `kubectl --server http://127.0.0.1:8001 get nodes`.

use std::env;
use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::thread;
use std::time::Duration;

use serde_json::json;
use supercargo_testcluster::{Kubelets, NOTICE, TestCluster, TestClusterOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let port = env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    writeln!(stderr(), "{NOTICE}")?;
    let kubelets = Kubelets { heartbeat: Some(Duration::from_secs(10)), ..Kubelets::default() };
    let volumes = Some(Duration::from_millis(50));
    let cluster = TestCluster::start(TestClusterOptions {
        port,
        kubelets: Some(kubelets),
        volumes,
        workloads: true,
        budgets: true,
        ..TestClusterOptions::default()
    })?;
    for number in 1..=3 {
        let name = format!("node-{number}");
        cluster.create(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {
                "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "nodeInfo": {"kubeletVersion": "v1.36.0"},
            },
        }))?;
    }
    writeln!(stdout(), "{}", cluster.url())?;
    loop {
        thread::park();
    }
}
