//! With a guest among the plugins the fast path still gives the full path's answer, at every step of random histories.

use std::sync::Arc;

use supercargo_engine::{Decision, Engine};
use supercargo_model::{
    Cluster, Key, Pod,
    object::Kind,
    testing::{node, pod},
};
use supercargo_scheduler::setup::ALL_NODES;

use crate::support::{EVERYWHERE, Stage, guest};

const RUNS: u64 = 12;
const STEPS: usize = 150;
const NODES: usize = 12;

/// Reads the load, the nodes, the pod and its name; refuses full nodes; prepares, scores and normalizes.
///
/// Raw: free cpu − asked-for cpu, twice for a disk `ssd`, plus 1000 for each letter of the pod's name; normalized from the
/// lowest, 0, to the highest, 100. A pod with the label `skip: yes` is not scored.
fn reads_everything() -> Vec<u8> {
    guest(
        r#"(data (i32.const 16) "pods") (data (i32.const 32) "free:cpu") (data (i32.const 48) "label:disk")
           (data (i32.const 64) "request:cpu") (data (i32.const 80) "name") (data (i32.const 96) "label:skip")
           (data (i32.const 112) "ssd") (data (i32.const 128) "yes") (data (i32.const 144) "node(s) were full")
           (global $ssd (mut i32) (i32.const 0)) (global $yes (mut i32) (i32.const 0))
           (global $full (mut i32) (i32.const 0)) (global $prepared (mut i64) (i64.const 0))
           (func (export "supercargo_init") (param i32 i32) (result i32)
             (drop (call $node_column (i32.const 16) (i32.const 4) (i32.const 0)))
             (drop (call $node_column (i32.const 32) (i32.const 8) (i32.const 0)))
             (drop (call $node_column (i32.const 48) (i32.const 10) (i32.const 2)))
             (drop (call $pod_fact (i32.const 64) (i32.const 11) (i32.const 0)))
             (drop (call $pod_fact (i32.const 80) (i32.const 4) (i32.const 2)))
             (drop (call $pod_fact (i32.const 96) (i32.const 10) (i32.const 2)))
             (global.set $ssd (call $intern (i32.const 112) (i32.const 3)))
             (global.set $yes (call $intern (i32.const 128) (i32.const 3)))
             (global.set $full (call $intern (i32.const 144) (i32.const 17)))
             (i32.const 0))
           (func $column (param $frame i32) (param $index i32) (result i32)
             (i32.load (i32.add (i32.load offset=12 (local.get $frame)) (i32.shl (local.get $index) (i32.const 2)))))
           (func $pod (param $frame i32) (param $index i32) (result i64)
             (i64.load (i32.add (i32.load offset=16 (local.get $frame)) (i32.shl (local.get $index) (i32.const 3)))))
           (func $row (param $frame i32) (param $n i32) (result i32)
             (i32.load (i32.add (i32.load offset=8 (local.get $frame)) (i32.shl (local.get $n) (i32.const 2)))))
           (func (export "supercargo_filter") (param $frame i32) (result i32)
             (local $n i32) (local $row i32) (local $at i32)
             (loop $next
               (if (i32.lt_u (local.get $n) (i32.load offset=4 (local.get $frame)))
                 (then
                   (local.set $row (call $row (local.get $frame) (local.get $n)))
                   (local.set $at (i32.shl (local.get $row) (i32.const 2)))
                   (if (i64.gt_s (i64.load (i32.add (call $column (local.get $frame) (i32.const 0))
                         (i32.shl (local.get $row) (i32.const 3)))) (i64.const 3))
                     (then
                       (i32.store (i32.add (i32.load offset=32 (local.get $frame)) (local.get $at)) (i32.const 1))
                       (i32.store (i32.add (i32.load offset=36 (local.get $frame)) (local.get $at)) (global.get $full))))
                   (local.set $n (i32.add (local.get $n) (i32.const 1)))
                   (br $next))))
             (i32.const 0))
           (func (export "supercargo_pre_score") (param $frame i32) (result i32)
             (local $name i32)
             (if (i32.eq (i32.wrap_i64 (call $pod (local.get $frame) (i32.const 2))) (global.get $yes))
               (then (return (i32.const 1))))
             (local.set $name (i32.wrap_i64 (call $pod (local.get $frame) (i32.const 1))))
             (global.set $prepared (i64.sub
               (i64.mul (i64.const 1000) (i64.extend_i32_u (i32.load offset=4 (i32.add
                 (i32.load offset=20 (local.get $frame)) (i32.shl (local.get $name) (i32.const 3))))))
               (call $pod (local.get $frame) (i32.const 0))))
             (i32.const 0))
           (func (export "supercargo_score") (param $frame i32) (result i32)
             (local $n i32) (local $row i32) (local $value i64)
             (loop $next
               (if (i32.lt_u (local.get $n) (i32.load offset=4 (local.get $frame)))
                 (then
                   (local.set $row (call $row (local.get $frame) (local.get $n)))
                   (local.set $value (i64.load (i32.add (call $column (local.get $frame) (i32.const 1))
                     (i32.shl (local.get $row) (i32.const 3)))))
                   (if (i32.eq (global.get $ssd) (i32.load (i32.add (call $column (local.get $frame) (i32.const 2))
                         (i32.shl (local.get $row) (i32.const 2)))))
                     (then (local.set $value (i64.mul (local.get $value) (i64.const 2)))))
                   (i64.store
                     (i32.add (i32.load offset=28 (local.get $frame)) (i32.shl (local.get $row) (i32.const 3)))
                     (i64.add (local.get $value) (global.get $prepared)))
                   (local.set $n (i32.add (local.get $n) (i32.const 1)))
                   (br $next))))
             (i32.const 0))
           (func $at (param $frame i32) (param $n i32) (result i32)
             (i32.add (i32.load offset=28 (local.get $frame))
               (i32.shl (call $row (local.get $frame) (local.get $n)) (i32.const 3))))
           (func (export "supercargo_normalize") (param $frame i32) (result i32)
             (local $n i32) (local $least i64) (local $most i64) (local $value i64)
             (local.set $least (i64.const 0x7fffffffffffffff))
             (local.set $most (i64.const 0x8000000000000000))
             (loop $next
               (if (i32.lt_u (local.get $n) (i32.load offset=4 (local.get $frame)))
                 (then
                   (local.set $value (i64.load (call $at (local.get $frame) (local.get $n))))
                   (if (i64.lt_s (local.get $value) (local.get $least)) (then (local.set $least (local.get $value))))
                   (if (i64.gt_s (local.get $value) (local.get $most)) (then (local.set $most (local.get $value))))
                   (local.set $n (i32.add (local.get $n) (i32.const 1)))
                   (br $next))))
             (local.set $n (i32.const 0))
             (local.set $most (i64.sub (local.get $most) (local.get $least)))
             (if (i64.eqz (local.get $most)) (then (local.set $most (i64.const 1))))
             (loop $next
               (if (i32.lt_u (local.get $n) (i32.load offset=4 (local.get $frame)))
                 (then
                   (i64.store (call $at (local.get $frame) (local.get $n)) (i64.div_s (i64.mul (i64.const 100)
                     (i64.sub (i64.load (call $at (local.get $frame) (local.get $n))) (local.get $least)))
                     (local.get $most)))
                   (local.set $n (i32.add (local.get $n) (i32.const 1)))
                   (br $next))))
             (i32.const 0))"#,
    )
}

/// A generator that a seed replays.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

fn event(random: &mut Random, cluster: &mut Cluster) {
    let name = format!("n{}", random.below(NODES));
    match random.below(10) {
        0 => cluster.remove(Kind::Node, &Key::new("", &*name)),
        1 | 2 => {
            let disk = ["ssd", "hdd"][random.below(2)];
            let cpu = (1 + random.below(8)).to_string();
            cluster.put_node(node(&name).label("disk", disk).allocatable("cpu", &cpu).node());
        }
        3..5 => drop(cluster.remove_pod(&Key::new("default", format!("x{}", random.below(40))))),
        _ => {
            let cpu = format!("{}m", 100 * random.below(9));
            let pod = pod(&format!("x{}", random.below(40))).on(&name).container(&[("cpu", &cpu)]);
            cluster.put_pod(pod.pod());
        }
    }
}

fn shapes() -> Vec<Vec<Arc<Pod>>> {
    let like = |cpu: &str, skip: &str| {
        // Of one shape, with names of different lengths.
        ["a", "bb", "ccc"].map(|name| {
            let name = format!("{name}-{cpu}-{skip}");
            pod(&name).label("skip", skip).container(&[("cpu", cpu)]).pod()
        })
    };
    vec![like("100m", "no").to_vec(), like("2", "no").to_vec(), like("100m", "yes").to_vec()]
}

/// Feasible nodes by name, with the guest's score and the total.
fn answers(decision: &Decision) -> Vec<(String, Option<i64>, i64)> {
    let column = decision.scores.columns.iter().find(|column| &*column.plugin == "Guest");
    let mut answers: Vec<_> = (decision.feasible.iter().zip(&decision.scores.totals).enumerate())
        .map(|(i, (node, total))| (node.to_string(), column.map(|column| column.normalized[i]), *total))
        .collect();
    answers.sort();
    answers
}

fn compare(fast: &mut Engine, slow: &mut Engine, pod: &Arc<Pod>, percentage: i32, at: &str) -> bool {
    let placed = fast.place(pod).unwrap();
    let decided = slow.decide(pod).unwrap();
    assert_eq!(placed.node(), decided.node(), "{at}");
    let whole = percentage == ALL_NODES && !decided.feasible.is_empty();
    if let Some(recalled) = whole.then(|| fast.inspect().recall(pod)).flatten() {
        let skips = pod.spec.labels.get("skip").is_some_and(|skip| &**skip == "yes");
        let recalled = answers(&recalled).into_iter();
        // What is skipped adds nothing: the fast path knows it as zeros.
        let recalled: Vec<_> =
            recalled.map(|(n, score, total)| (n, score.filter(|_| !skips), total)).collect();
        assert_eq!(recalled, answers(&decided), "{at}");
        return true;
    }
    false
}

#[test]
fn at_every_step() {
    let stage = Stage::with(reads_everything());
    let (mut compared, mut among_some) = (0, 0);
    for seed in 0..RUNS {
        let percentage = if seed % 3 == 2 { 40 } else { ALL_NODES };
        let engine = || {
            stage.engine_of(Cluster::default(), EVERYWHERE, "{path: guest.wasm, instances: 2}", percentage)
        };
        let (mut fast, mut slow) = (engine(), engine());
        let mut random = Random(seed);
        let shapes: Vec<Vec<Arc<Pod>>> =
            shapes().into_iter().map(|pods| pods.into_iter().map(|pod| fast.admit(pod)).collect()).collect();
        for step in 0..STEPS {
            let mut same = Random(random.0);
            event(&mut random, fast.cluster_mut());
            event(&mut same, slow.cluster_mut());
            if fast.cluster().node_count() == 0 {
                continue;
            }
            for (i, pods) in shapes.iter().enumerate() {
                let pod = &pods[random.below(pods.len())];
                let at = format!("seed {seed}, step {step}, shape {i}");
                compared += usize::from(compare(&mut fast, &mut slow, pod, percentage, &at));
            }
        }
        let paths = fast.inspect().paths();
        among_some += paths.sampled;
        assert!(
            paths.full * 5 < paths.columns + paths.sampled + paths.full,
            "mostly the fast path: {paths:?}"
        );
    }
    assert!(compared > 2000 && among_some > 1000, "{compared} comparisons, {among_some} among some");
}
