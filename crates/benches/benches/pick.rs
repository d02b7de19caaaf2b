//! Picking the best of 5,000 totals: from scratch, and after one of them has changed.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use supercargo_framework::vector::Tops;

const NODES: usize = 5_000;

/// Totals as they are: whole numbers, many of them equal.
fn totals() -> Vec<f64> {
    (0..NODES).map(|i| (i * 7_919 % 601) as f64).collect()
}

fn pick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pick");
    let mut totals = totals();
    let mut tops = Tops::default();
    group.bench_function("rebuild", |bencher| bencher.iter(|| tops.rebuild(black_box(&totals))));

    let mut node = 0;
    group.bench_function("update, best and nth", |bencher| {
        bencher.iter(|| {
            // As a placed pod does: one node gets worse, and is back before its turn comes again.
            node = (node + 1) % NODES;
            totals[node] = if totals[node] > 1.0 { totals[node] - 1.0 } else { 600.0 };
            tops.update(&totals, node);
            let (highest, ties) = tops.best(&totals).expect("open nodes");
            tops.nth(black_box(&totals), highest, ties / 2)
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = pick
}
criterion_main!(benches);
