//! A cycle in the steady state takes no memory: whatever it needs was there before.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use supercargo_engine::Placement;
use supercargo_scheduler::setup::{self, Overrides};
use supercargo_sim::bench::{BenchWorkload, Size, cluster, pending};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_cycle_in_the_steady_state_allocates_nothing() {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::default_configuration(&registry).expect("the default");
    for workload in
        [BenchWorkload::Basic, BenchWorkload::NodeAffinity, BenchWorkload::Spread, BenchWorkload::InterPod]
    {
        let size = Size { nodes: 500, bound: 1000, pods: 600 };
        let overrides = Overrides { percentage: Some(100), ..Overrides::default() };
        let mut engine = setup::engine(cluster(workload, size), &configuration, &registry, overrides)
            .expect("the default profile");
        let pods: Vec<_> = pending(workload, size).into_iter().map(|pod| engine.admit(pod)).collect();
        let mut allocations = 0;
        for (i, pod) in pods.iter().enumerate() {
            let region = Region::new(MEMORY);
            let placement = engine.place(pod).expect("a profile");
            let taken = region.change().allocations + region.change().reallocations;
            let Placement::On { node, .. } = placement else { panic!("{placement:?}") };
            // The first pods make room for those that follow.
            if i >= 100 {
                allocations += taken;
            }
            engine.assume(pod, node);
        }
        assert_eq!(allocations, 0, "{}", workload.name());
    }
}
