//! A pod's whole way from the queue to assumed, for each workload, in the steady state.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use supercargo_benches::Ready;
use supercargo_sim::bench::{BenchWorkload, Size};

/// The cluster is made anew before it is full.
const SIZE: Size = Size { nodes: 1_000, bound: 2_000, pods: 10_000 };

/// Pods that are placed before the clock starts: they make the shape.
const WARM_UP_PODS: usize = 10;

fn cycle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cycle");
    group.throughput(Throughput::Elements(1));
    for workload in BenchWorkload::ALL {
        let mut ready = warm(workload);
        group.bench_function(workload.name(), |bencher| {
            bencher.iter_custom(|pods| place(workload, &mut ready, pods as usize));
        });
    }
    group.finish();
}

fn warm(workload: BenchWorkload) -> Ready {
    let mut ready = Ready::new(workload, SIZE);
    ready.place(WARM_UP_PODS);
    ready
}

/// How long it takes to place so many pods, without the making of clusters.
fn place(workload: BenchWorkload, ready: &mut Ready, pods: usize) -> Duration {
    let (mut left, mut total) = (pods, Duration::ZERO);
    while left > 0 {
        if ready.left() == 0 {
            *ready = warm(workload);
        }
        let next = left.min(ready.left());
        let start = Instant::now();
        black_box(&mut *ready).place(next);
        total += start.elapsed();
        left -= next;
    }
    total
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500)).sample_size(20);
    targets = cycle
}
criterion_main!(benches);
