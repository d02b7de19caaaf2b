//! What a plugin in WebAssembly costs a cycle, beside the same plugin in native Rust: the example guest, which scores nodes
//! from a label and two resources.
//!
//!     cargo bench --package supercargo-wasm --bench guest

use std::{path::Path, sync::Arc, time::Instant};

use supercargo_config::load;
use supercargo_engine::Engine;
use supercargo_framework::{
    ScoreInput, Verdict,
    fast::{Compiled, FastScore, OpaqueScore, PluginFailed, RawScores, ScorePart},
    points::Score,
    registry::{Registry, define},
    vector::vectorized,
};
use supercargo_manifest::Source;
use supercargo_model::{Cluster, Pod};
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_sim::bench::{self, BenchWorkload, Size};
use supercargo_wasm::{Host, testing::example_guest};

/// As many nodes as the promise speaks of.
const SIZE: Size = Size { nodes: 5_000, bound: 10_000, pods: 4_000 };
/// Each in turn, so that whatever else the machine does hits all of them alike.
const ROUNDS: usize = 5;
/// Pods that are placed before the clock starts.
const WARM_UP_PODS: usize = 200;

/// From 0 to 1; 0 of nothing, which is not a number and so not above 0.
#[inline(always)]
fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    let share = if share > 1.0 { 1.0 } else { share };
    if share > 0.0 { share } else { 0.0 }
}

/// The example's score, as a plugin author writes it: node by node over the list.
struct Native;

impl Score for Native {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        let wanted = &input.pod.spec.requests.held;
        for (score, info) in column.iter_mut().zip(input.nodes) {
            let (all, held) = (&info.node.allocatable, &info.requested);
            let free = |all: i64, held: i64, wanted: i64| share((all - held - wanted) as f64, all as f64);
            let room = free(all.milli_cpu, held.milli_cpu, wanted.milli_cpu)
                + free(all.memory, held.memory, wanted.memory);
            let disk = info.node.labels.get("disk").is_some_and(|disk| &**disk == "ssd");
            *score = if disk { 50 } else { 0 } + i64::from((25.0 * room) as i32);
        }
        Ok(())
    }
}

/// The same over the cluster's columns, with vector instructions: as fast as it can be asked for every pod.
struct InColumns;

impl Score for InColumns {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        Native.score(input, column)
    }
}

impl FastScore for InColumns {
    fn compile_score(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<ScorePart> {
        Compiled::Part(RawScores::Opaque(Box::new(InColumnsForEach)).in_range())
    }
}

struct InColumnsForEach;

impl OpaqueScore for InColumnsForEach {
    fn fill(
        &mut self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        _: &[f64],
        column: &mut [f64],
    ) -> Result<(), PluginFailed> {
        let held = &pod.spec.requests.held;
        let (wanted_cpu, wanted_memory) = (held.milli_cpu as f64, held.memory as f64);
        let (cpu, memory) = (&cluster.columns().loads.cpu, &cluster.columns().loads.memory);
        let Some(disks) = cluster.label_columns().get("disk") else { return Ok(()) };
        let ssd = disks.number("ssd").unwrap_or(u32::MAX - 1);
        vectorized(
            #[inline(always)]
            || {
                let cpu = cpu.allocatable.iter().zip(&cpu.used);
                let memory = memory.allocatable.iter().zip(&memory.used);
                let rows = column.iter_mut().zip(disks.numbers()).zip(cpu).zip(memory);
                for (((points, disk), (cpu, used_cpu)), (memory, used_memory)) in rows {
                    let room = share(cpu - used_cpu - wanted_cpu, *cpu)
                        + share(memory - used_memory - wanted_memory, *memory);
                    let disk = if *disk == ssd { 50.0 } else { 0.0 };
                    *points = disk + f64::from((25.0 * room) as i32);
                }
            },
        );
        Ok(())
    }
}

fn engine(plugin: Option<&str>, registry: &Registry, folder: &Path) -> Engine {
    let enabled = plugin.map_or(String::new(), |plugin| {
        let args = if plugin == "Guest" {
            "pluginConfig: [{name: Guest, args: {path: guest.wasm, args: {disk: ssd}}}]"
        } else {
            ""
        };
        format!("profiles:\n- plugins: {{score: {{enabled: [{{name: {plugin}}}]}}}}\n  {args}\n")
    });
    let text =
        format!("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{enabled}");
    let source = Source::new(folder.join("config.yaml").display().to_string(), text);
    let loaded = load(&source, registry).unwrap_or_else(|problems| panic!("{problems}"));
    let overrides = Overrides { percentage: Some(ALL_NODES), ..Overrides::default() };
    let cluster = bench::cluster(BenchWorkload::Basic, SIZE);
    setup::engine(cluster, &loaded.configuration, registry, overrides)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// How long each cycle took, in microseconds, and where the pods went.
fn cycles(plugin: Option<&str>, registry: &Registry, folder: &Path) -> (Vec<f64>, Vec<String>) {
    let mut engine = engine(plugin, registry, folder);
    let (mut taken, mut nodes) = (Vec::new(), Vec::new());
    for pod in bench::pending(BenchWorkload::Basic, SIZE) {
        let pod = engine.admit(pod);
        let start = Instant::now();
        let placed = engine.place(&pod).expect("a profile");
        taken.push(start.elapsed().as_secs_f64() * 1e6);
        let node = placed.node().expect("a node").clone();
        nodes.push(node.to_string());
        engine.assume(&pod, node);
    }
    assert_eq!(engine.inspect().paths().full, 0, "every cycle takes the fast path");
    (taken.split_off(WARM_UP_PODS), nodes)
}

fn median(taken: &mut [f64]) -> f64 {
    taken.sort_by(f64::total_cmp);
    taken[taken.len() / 2]
}

#[allow(clippy::print_stdout, reason = "a measurement is data")]
fn main() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("guest.wasm"), example_guest(folder)).expect("a file");
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Native", |_| Ok(Native)).score());
    registry.add(define("InColumns", |_| Ok(InColumns)).score().fast_score());
    registry.load_others_with(Host::default());
    let plugins = [None, Some("Native"), Some("InColumns"), Some("Guest")];
    let mut taken: [Vec<f64>; 4] = Default::default();
    let mut went: [Vec<String>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (i, plugin) in plugins.into_iter().enumerate() {
            let (more, nodes) = cycles(plugin, &registry, folder);
            taken[i].extend(more);
            went[i] = nodes;
        }
    }
    assert!(went[1] == went[2] && went[2] == went[3], "native and guest give the same placements");
    let [without, native, in_columns, guest] = taken.each_mut().map(|taken| median(taken));
    println!("{} nodes; a cycle without the plugin: {without:.1} µs (medians)", SIZE.nodes);
    for (name, cycle) in [
        ("native, node by node (Score)", native),
        ("native, in columns (FastScore)", in_columns),
        ("guest in WebAssembly", guest),
    ] {
        println!("{name:32} {cycle:7.1} µs a cycle, {:6.1} µs of it added", cycle - without);
    }
    println!(
        "the guest adds {:.2} × what the same plugin adds in native Rust, {:.2} × what it adds in columns",
        (guest - without) / (native - without),
        (guest - without) / (in_columns - without),
    );
}
