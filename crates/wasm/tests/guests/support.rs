//! A folder with guests and a configuration, and an engine made of them.

use std::{fs, path::PathBuf, sync::Arc};

use supercargo_config::{Loaded, load};
use supercargo_engine::{Decision, Engine, Outcome};
use supercargo_framework::registry::Registry;
use supercargo_manifest::{Problems, Source};
use supercargo_model::{Cluster, Pod};
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_wasm::Host;
use tempfile::TempDir;

/// What every guest in these tests begins with: imports, a memory, an allocator.
const BEGINNING: &str = r#"
  (import "supercargo" "node_column" (func $node_column (param i32 i32 i32) (result i32)))
  (import "supercargo" "pod_fact" (func $pod_fact (param i32 i32 i32) (result i32)))
  (import "supercargo" "intern" (func $intern (param i32 i32) (result i32)))
  (import "supercargo" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 4096))
  (func (export "supercargo_abi") (result i32) (i32.const 1))
  (func (export "supercargo_alloc") (param $bytes i32) (result i32)
    (local $at i32) (local $missing i32)
    (local.set $at (global.get $free))
    (global.set $free
      (i32.and (i32.add (i32.add (local.get $at) (local.get $bytes)) (i32.const 15)) (i32.const -16)))
    (local.set $missing
      (i32.sub (i32.shr_u (i32.add (global.get $free) (i32.const 65535)) (i32.const 16)) (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1))
        (then (return (i32.const 0))))))
    (local.get $at))
  ;; Fills the scores of all rows.
  (func $fill (param $frame i32) (param $value i64)
    (local $row i32)
    (loop $next
      (if (i32.lt_u (local.get $row) (i32.load (local.get $frame)))
        (then
          (i64.store
            (i32.add (i32.load offset=28 (local.get $frame)) (i32.shl (local.get $row) (i32.const 3)))
            (local.get $value))
          (local.set $row (i32.add (local.get $row) (i32.const 1)))
          (br $next)))))
"#;

/// A guest of its own functions.
pub(crate) fn guest(own: &str) -> Vec<u8> {
    guest_importing("", own)
}

/// The same, with more imports.
pub(crate) fn guest_importing(imports: &str, own: &str) -> Vec<u8> {
    module(&format!("(module {imports} {BEGINNING} {own})"))
}

/// A guest whose score step is this.
pub(crate) fn scores(body: &str) -> Vec<u8> {
    guest(&format!(r#"(func (export "supercargo_score") (param $frame i32) (result i32) {body})"#))
}

/// A module as it is written.
pub(crate) fn module(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) registry: Registry,
    pub(crate) host: Host,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let (registry, host) = (supercargo_plugins::registry(), Host::default());
        registry.load_others_with(host.clone());
        Self { folder: TempDir::new().unwrap(), registry, host }
    }

    /// With a guest in `guest.wasm`.
    pub(crate) fn with(guest: impl AsRef<[u8]>) -> Self {
        let stage = Self::new();
        stage.write("guest.wasm", guest);
        stage
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Replaces a file at once, as a deployment should.
    pub(crate) fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        let beside = self.path(&format!("{file}.new"));
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, self.path(file)).unwrap();
    }

    /// The default profile and the plugin `Guest` at these points, with these arguments.
    pub(crate) fn load(&self, points: &str, args: &str) -> Result<Loaded, Problems> {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nminFeasibleNodesToFind: 3\nprofiles:\n\
             - plugins:\n    {points}\n  pluginConfig:\n  - name: Guest\n    args: {args}\n"
        );
        let name = self.path("config.yaml").display().to_string();
        load(&Source::new(name, text), &self.registry)
    }

    pub(crate) fn engine_of(&self, cluster: Cluster, points: &str, args: &str, percentage: i32) -> Engine {
        let loaded = self.load(points, args).unwrap_or_else(|problems| panic!("{problems}"));
        let overrides = Overrides { percentage: Some(percentage), seed: 7 };
        setup::engine(cluster, &loaded.configuration, &self.registry, overrides)
            .unwrap_or_else(|problems| panic!("{problems}"))
    }

    pub(crate) fn engine(&self, cluster: Cluster) -> Engine {
        self.engine_of(cluster, EVERYWHERE, "{path: guest.wasm}", ALL_NODES)
    }

    /// What is wrong with a configuration, without the folder's name.
    pub(crate) fn problems(&self, points: &str, args: &str) -> String {
        let problems = self.load(points, args).expect_err("a problem");
        problems.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// At all points that it serves.
pub(crate) const EVERYWHERE: &str = "multiPoint: {enabled: [{name: Guest}]}";

/// The guest's scores, raw and normalized, by node.
pub(crate) fn guest_scores(decision: &Decision) -> Vec<(String, i64, i64)> {
    let column = decision.scores.columns.iter().find(|column| &*column.plugin == "Guest");
    let column = column.unwrap_or_else(|| panic!("Guest scores: {:?}", decision.outcome));
    let mut scores: Vec<_> = (decision.feasible.iter().zip(&column.raw).zip(&column.normalized))
        .map(|((node, raw), normalized)| (node.to_string(), *raw, *normalized))
        .collect();
    scores.sort();
    scores
}

/// The error that a pod's cycle ended in, both paths.
pub(crate) fn error(engine: &mut Engine, pod: &Arc<Pod>) -> String {
    let placed = engine.place(pod).unwrap();
    assert_eq!(placed.node(), None);
    match engine.decide(pod).unwrap().outcome {
        Outcome::Error { message } => message,
        other => panic!("an error rather than {other:?}"),
    }
}
