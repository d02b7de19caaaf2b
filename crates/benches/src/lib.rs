//! What the benchmarks share: an engine that is ready to place the pods of a workload.
//!
//! `cargo bench -p supercargo-benches --bench plugins` (or `pick`, `queue` or `cycle`) measures times.
//! `.ci/check_instructions` counts instructions, and compares them with `instructions.json` beside this crate's manifest.

use std::sync::Arc;

use supercargo_engine::Engine;
use supercargo_model::Pod;
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_sim::bench::{self, BenchWorkload, Size};

/// An engine, and the pods that it is to place.
pub struct Ready {
    engine: Engine,
    /// In the opposite order, so that the next one is the last.
    pods: Vec<Arc<Pod>>,
}

impl Ready {
    /// For a workload, with kube-scheduler's default profile and every node looked at.
    ///
    /// # Panics
    /// If the default configuration cannot be made.
    pub fn new(workload: BenchWorkload, size: Size) -> Self {
        let registry = supercargo_plugins::registry();
        let configuration = supercargo_config::default_configuration(&registry).expect("the default");
        let overrides = Overrides { percentage: Some(ALL_NODES), ..Overrides::default() };
        let cluster = bench::cluster(workload, size);
        let mut engine =
            setup::engine(cluster, &configuration, &registry, overrides).expect("the default profile");
        let pods = bench::pending(workload, size).into_iter().rev();
        let pods = pods.map(|pod| engine.admit(pod)).collect();
        Self { engine, pods }
    }

    /// How many pods are left.
    pub fn left(&self) -> usize {
        self.pods.len()
    }

    /// Places the next pods, each seeing the ones before it.
    ///
    /// # Panics
    /// If a pod finds no node: that is other work than what is to be measured.
    pub fn place(&mut self, pods: usize) {
        for _ in 0..pods {
            let pod = self.pods.pop().expect("a pod is left");
            let placement = self.engine.place(&pod).expect("the default profile");
            let node = placement.node().expect("a node with room").clone();
            self.engine.assume(&pod, node);
        }
    }
}
