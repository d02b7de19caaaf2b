//! How many instructions it takes to place pods of each workload, counted by valgrind: `.ci/check_instructions` compares
//! them with what is committed.

#![allow(missing_docs, reason = "gungraun's macros make public items")]

use std::hint::black_box;

use gungraun::{Callgrind, prelude::*};
use supercargo_benches::Ready;
use supercargo_sim::bench::{BenchWorkload, Size};

const SIZE: Size = Size { nodes: 1_000, bound: 2_000, pods: 510 };

/// Pods that are placed before counting starts: they make the shape.
const WARM_UP_PODS: usize = 10;

fn ready(workload: BenchWorkload) -> Ready {
    let mut ready = Ready::new(workload, SIZE);
    ready.place(WARM_UP_PODS);
    ready
}

// Hands back what it was given, so that taking it down is not counted.
#[library_benchmark(setup = ready)]
#[bench::basic(BenchWorkload::Basic)]
#[bench::nodeaffinity(BenchWorkload::NodeAffinity)]
#[bench::spread(BenchWorkload::Spread)]
#[bench::interpod(BenchWorkload::InterPod)]
#[bench::unique(BenchWorkload::Unique)]
fn place(mut ready: Ready) -> Ready {
    black_box(&mut ready).place(SIZE.pods - WARM_UP_PODS);
    ready
}

library_benchmark_group!(name = cycle, benchmarks = place);

main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = cycle
);
