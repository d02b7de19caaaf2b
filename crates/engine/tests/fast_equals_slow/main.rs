//! After any sequence of events, the fast path knows what the full path finds: the same feasible nodes and the same scores,
//! for every signature, at every step; and a trial that was undone has left no trace.
//!
//! A failing run prints the seed that replays it: `SUPERCARGO_SEED=7 cargo test -p supercargo-engine --test fast_equals_slow`.

mod crowded;
mod devices;
mod events;
mod extenders;
mod objects;
mod profiles;

use std::{collections::BTreeMap, panic::resume_unwind, sync::Arc, thread};

use supercargo_engine::{Decision, Engine, PathCounts, Placement, Settings, extender_calls::ExtenderRole};
use supercargo_model::{AlreadyBound, Cluster, Key, Name, NodeId, Pod, changes::Moment, testing::Random};

use devices::put_devices;
use events::event;
use objects::{node, pod, sibling, storage, too_large};
use profiles::profile;

const RUNS: u64 = 700;
const STEPS: usize = 200;
const SHAPES: usize = 5;
/// How many claims, volumes and classes there are from the beginning, some of them twice.
const STORAGE_OBJECTS: usize = 24;

type ByNode = BTreeMap<Name, BTreeMap<Name, i64>>;

/// Scores by node and plugin, without the plugins that give every node 0; `total` for the sum.
fn by_node(decision: &Decision) -> ByNode {
    let mut all = ByNode::new();
    for (i, node) in decision.feasible.iter().enumerate() {
        let scores = all.entry(node.clone()).or_default();
        for column in &decision.scores.columns {
            if column.normalized[i] != 0 {
                scores.insert(column.plugin.clone(), column.normalized[i]);
            }
        }
        scores.insert("total".into(), decision.scores.totals[i]);
    }
    all
}

/// What a run is like.
struct Scene {
    nodes: usize,
    /// Little but pods changes.
    calm: bool,
    /// Every node has the labels of all topologies, its own name among them: then nodes are scored by cell.
    labelled: bool,
    /// No node keeps pods away as such: taints only ask, and there is room for many.
    welcoming: bool,
    /// Not all nodes are looked at.
    sampled: bool,
    /// Room is kept for some pods.
    nominations: bool,
    /// A plugin has no fast form.
    odd: bool,
    /// Room is made for pods that fit nowhere.
    preempts: bool,
    /// Everybody wants so much that many fit nowhere.
    tight: bool,
    /// Plugins have other arguments than none.
    arguments: bool,
    /// Many pods have volumes, and claims, volumes and classes change.
    volumes: bool,
    /// Now and then more changes between two looks than what is remembered.
    crowds: bool,
}

impl Scene {
    fn of(seed: u64) -> Self {
        let small = !seed.is_multiple_of(5);
        Self {
            nodes: if small { 14 } else { 70 },
            calm: !small,
            labelled: seed / 5 % 2 == 1,
            welcoming: seed % 11 < 4 && seed % 7 >= 3,
            sampled: seed % 3 == 1,
            nominations: seed % 4 == 2,
            odd: seed.is_multiple_of(4),
            preempts: seed % 7 < 3,
            tight: seed % 3 == 2,
            arguments: seed % 2 == 1,
            volumes: seed % 6 == 4,
            crowds: seed % 25 == 10,
        }
    }

    /// Of so many pods, one has volumes.
    fn one_in_has_volumes(&self) -> usize {
        if self.volumes { 2 } else { 8 }
    }
}

/// One decides on the fast path, the other on the full one; both see the same. Only the first tries pods and undoes it.
struct Twins {
    fast: Engine,
    slow: Engine,
}

impl Twins {
    fn compare(&mut self, scene: &Scene, pod: &Arc<Pod>, at: &str) -> bool {
        if !pod.spec.resource_claims.is_empty() || !pod.spec.extended_demand.is_empty() {
            // A copy has a history of its own: what was kept about its devices is of no use.
            let copy = self.slow.cluster().clone();
            *self.slow.cluster_mut() = copy;
        }
        let slow = self.slow.decide(pod).unwrap();
        if !scene.sampled
            && !scene.nominations
            && let Some(recalled) = self.fast.inspect().recall(pod)
        {
            assert_eq!(by_node(&recalled), by_node(&slow), "fast and full path, {at}, pod {pod:?}");
        }
        self.compare_with(slow, pod, at)
    }

    /// The same without a look at all scores, after which a signature would be known.
    fn compare_placements(&mut self, pod: &Arc<Pod>, at: &str) {
        let slow = self.slow.decide(pod).unwrap();
        self.compare_with(slow, pod, at);
    }

    /// Whether a node was found.
    fn compare_with(&mut self, slow: Decision, pod: &Arc<Pod>, at: &str) -> bool {
        let placement = self.fast.place(pod).unwrap();
        assert_eq!(placement.node(), slow.node(), "{at}");
        assert_eq!(self.fast.inspect().next_start(), self.slow.inspect().next_start(), "{at}");
        let (total, ties, feasible) = match placement {
            Placement::On { total, ties, feasible, .. } => (total, ties, feasible),
            Placement::Decided(decided) => {
                self.compare_refusals(&decided, slow, pod, at);
                return false;
            }
        };
        assert_eq!(Some(total), slow.best_total(), "{at}");
        assert_eq!((ties, feasible), (slow.best.len(), slow.feasible.len()), "{at}");
        true
    }
}

impl Twins {
    /// A pod that was refused from memory is told the same, and its record can be filled in.
    fn compare_refusals(&mut self, fast: &Decision, slow: Decision, pod: &Arc<Pod>, at: &str) {
        assert_eq!(fast.message(), slow.message(), "{at}");
        assert_eq!(fast.failure(), slow.failure(), "{at}");
        assert_eq!(fast.preemption, slow.preemption, "{at}");
        assert_eq!(fast.clears_nomination, slow.clears_nomination, "{at}");
        assert_eq!((fast.seed, fast.evaluated()), (slow.seed, slow.evaluated()), "{at}");
        if fast.brief.is_some() {
            assert_eq!(self.fast.inspect().verdicts(pod), Some(slow.verdicts), "{at}");
        }
    }
}

impl Twins {
    /// Pods that differ in the names of their claims from one to the next.
    fn compare_siblings(&mut self, scene: &Scene, random: &mut Random, waiting: &[Arc<Pod>], at: &str) {
        for (i, of) in waiting.iter().enumerate() {
            let name = format!("sibling-{}", random.0);
            let Some((pod, claims)) = sibling(random, of, &name).filter(|_| random.chance(2)) else {
                continue;
            };
            for claim in claims {
                self.fast.cluster_mut().put(claim.clone());
                self.slow.cluster_mut().put(claim);
            }
            let pod = self.fast.admit(Arc::new(pod));
            self.compare(scene, &pod, &format!("{at}, sibling of {i}"));
        }
    }
}

/// Everything that a trial must leave as it was.
fn state(engine: &mut Engine) -> String {
    let next_start = engine.inspect().next_start();
    let (cluster, nominations) = (engine.cluster(), engine.nominations());
    let columns = cluster.columns();
    let nodes: Vec<_> = (cluster.nodes())
        .map(|node| {
            let pods: Vec<&Name> = node.pods.iter().map(|pod| &pod.name).collect();
            let or_default = (node.requested_or_default_milli_cpu, node.requested_or_default_memory);
            (node.name(), pods, &node.requested, or_default, node.used_ports.len())
        })
        .collect();
    let resources = (&columns.loads, &columns.ephemeral_storage);
    let scalar = columns.scalar("example.com/gpu");
    let inexact = &columns.inexact;
    let classes: Vec<_> = (0..cluster.groups().places())
        .map(|place| {
            let class = cluster.groups().get(place)?;
            let nodes: BTreeMap<_, _> = class.nodes().collect();
            Some((&class.sample.name, &class.spec.labels, class.sample.terminating, nodes))
        })
        .collect();
    let nominated: Vec<_> = (0..3).map(|i| nominations.node_of(&format!("nominated-{i}"))).collect();
    let claimed = cluster.is_claim_used(&Key::new("default", "data"));
    format!(
        "{nodes:?}\n{resources:?}\n{scalar:?}\n{inexact:?}\n{classes:?}\n{nominated:?} {} {claimed} {next_start}",
        nominations.revision(),
    )
}

/// The changes since a moment of each twin, if they are still known.
fn log(engine: &Engine, since: Moment) -> Option<Vec<(NodeId, Name, bool)>> {
    let changes = engine.cluster().changes().since(since)?;
    Some(changes.map(|change| (change.node, change.pod.name.clone(), change.added)).collect())
}

impl Twins {
    /// Tries some pods, each seeing those before it. What is undone leaves the first twin like the second, which never tried;
    /// what stays is done by both.
    fn try_some(&mut self, random: &mut Random, waiting: &[Arc<Pod>], serial: &mut usize, at: &str) {
        let pods: Vec<Arc<Pod>> = (0..1 + random.below(6))
            .map(|_| {
                *serial += 1;
                let name: Name = format!("tried-{serial}").into();
                let template = &waiting[random.below(waiting.len())];
                Arc::new(Pod { name: name.clone(), uid: name, ..(**template).clone() })
            })
            .collect();
        let (before, moment) = (state(&mut self.fast), self.fast.cluster().changes().now());
        let mut trial = self.fast.trial();
        for pod in &pods {
            if let Some(node) = trial.place(pod).and_then(|placement| placement.node().cloned()) {
                assert_eq!(trial.assume(pod, node.clone()), Ok(()), "{at}");
                assert_eq!(trial.assume(pod, node), Err(AlreadyBound), "{at}");
            }
        }
        trial.undo();
        assert_eq!(state(&mut self.fast), before, "{at}");
        assert_eq!(self.fast.cluster().changes().now(), moment, "{at}");
        if random.chance(4) {
            let (mut fast, mut slow) = (self.fast.trial(), self.slow.trial());
            for pod in &pods {
                let placed = fast.place(pod).and_then(|placement| placement.node().cloned());
                assert_eq!(placed.as_ref(), slow.decide(pod).unwrap().node(), "{at}");
                if let Some(node) = placed {
                    assert_eq!(fast.assume(pod, node.clone()), Ok(()), "{at}");
                    assert_eq!(slow.assume(pod, node), Ok(()), "{at}");
                }
            }
            fast.commit();
            slow.commit();
        }
        assert_eq!(state(&mut self.fast), state(&mut self.slow), "{at}");
    }
}

/// An engine over the cluster that a run begins with.
fn engine(seed: u64, scene: &Scene, extenders: Vec<ExtenderRole>) -> Engine {
    let mut random = Random(seed);
    let mut cluster = Cluster::default();
    for i in 0..scene.nodes * 2 / 3 {
        cluster.put_node(node(&mut random, scene, i));
    }
    put_devices(&mut random, &mut cluster, scene.nodes * 2 / 3);
    for _ in 0..STORAGE_OBJECTS {
        cluster.put(storage(&mut random, scene.nodes, SHAPES));
    }
    // Few and many are weighed in different ways.
    let some = if seed.is_multiple_of(2) { 5 } else { 40 };
    let percentage = if scene.sampled { some } else { 100 };
    let settings = Settings {
        percentage_of_nodes_to_score: percentage,
        min_feasible_nodes_to_find: 3,
        seed,
        extenders,
        ..Settings::default()
    };
    Engine::new(cluster, [profile(&mut random, scene)], settings)
}

/// Steps, comparisons that had a fast form, those of them that were about claims to devices, and the paths that were taken.
fn run(seed: u64) -> (usize, usize, usize, PathCounts) {
    let scene = Scene::of(seed);
    let engine = || engine(seed, &scene, Vec::new());
    let mut twins = Twins { fast: engine(), slow: engine() };
    let mut random = Random(!seed);
    let mut templates: Vec<Pod> =
        (0..SHAPES).map(|i| pod(&mut random, &format!("t{i}"), scene.one_in_has_volumes())).collect();
    if scene.tight {
        templates[0] = too_large(&mut random, templates[0].clone());
    }
    let waiting: Vec<Arc<Pod>> = templates.iter().map(|pod| Arc::new(pod.clone())).collect();
    let waiting: Vec<Arc<Pod>> = waiting.into_iter().map(|pod| twins.fast.admit(pod)).collect();
    let (mut compared, mut with_claims, mut serial, mut tried) = (0, 0, 0, 0);
    let began = [&twins.fast, &twins.slow].map(|engine| engine.cluster().changes().now());
    for step in 0..STEPS {
        let (mut same, mut twin_serial) = (Random(random.0), serial);
        event(&mut random, &mut twins.fast, &templates, &mut serial, &scene);
        event(&mut same, &mut twins.slow, &templates, &mut twin_serial, &scene);
        if twins.fast.cluster().node_count() == 0 {
            continue;
        }
        if random.chance(5) {
            twins.try_some(&mut random, &waiting, &mut tried, &format!("seed {seed}, step {step}"));
            assert_eq!(log(&twins.fast, began[0]), log(&twins.slow, began[1]), "seed {seed}, step {step}");
        }
        if scene.volumes {
            twins.compare_siblings(&scene, &mut random, &waiting, &format!("seed {seed}, step {step}"));
        }
        if random.chance(2) {
            let one_in = scene.one_in_has_volumes();
            let one_off = Arc::new(pod(&mut random, &format!("one-off-{step}"), one_in));
            let one_off = twins.fast.admit(one_off);
            twins.compare_placements(&one_off, &format!("seed {seed}, step {step}, one-off"));
        }
        // Not always all of them, so that some fall behind and have more to catch up with.
        for (i, pod) in waiting.iter().enumerate() {
            if !random.chance(4) {
                let at = format!("seed {seed}, step {step}, signature {i}");
                let is_fast = twins.compare(&scene, pod, &at);
                compared += usize::from(is_fast);
                with_claims += usize::from(is_fast && !pod.spec.resource_claims.is_empty());
            }
        }
    }
    (STEPS, compared, with_claims, twins.fast.inspect().paths())
}

/// What comes of every seed below a number, on as many threads as there are cores.
fn side_by_side<T: Send>(seeds: u64, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let part = |first: usize| (first as u64..seeds).step_by(threads).map(&run).collect::<Vec<T>>();
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[test]
fn fast_equals_slow_at_every_step() {
    if let Ok(seed) = std::env::var("SUPERCARGO_SEED") {
        run(seed.parse().expect("a number"));
        return;
    }
    let (mut steps, mut compared, mut with_claims, mut paths) = (0, 0, 0, PathCounts::default());
    for (s, c, d, w) in side_by_side(RUNS, run) {
        steps += s;
        compared += c;
        with_claims += d;
        paths.columns += w.columns;
        paths.node_classes += w.node_classes;
        paths.load_buckets += w.load_buckets;
        paths.sampled += w.sampled;
        paths.search_classes += w.search_classes;
        paths.refused += w.refused;
        paths.nominated += w.nominated;
    }
    assert_eq!(steps, 140_000);
    assert!(compared > 200_000, "only {compared} comparisons had a fast form");
    assert!(with_claims > 10_000, "only {with_claims} of them were about claims");
    // Each path was taken often enough to mean something.
    assert!(
        paths.columns > 50_000
            && paths.node_classes > 1_000
            && paths.load_buckets > 4_000
            && paths.sampled > 50_000
            && paths.search_classes > 1_000
            && paths.refused > 5_000
            && paths.nominated > 1_000,
        "{paths:?}"
    );
}
