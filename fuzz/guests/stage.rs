//! A configuration with a guest, and an engine made of it: what the targets about guests share.

use std::{fs, path::PathBuf};

use supercargo_config::load;
use supercargo_engine::{Decision, Engine, Outcome};
use supercargo_framework::{
    points::{MAX_SCORE, MIN_SCORE},
    registry::Registry,
};
use supercargo_manifest::{MAX_FOREIGN_TEXT_BYTES, Problems, Source};
use supercargo_model::Cluster;
use supercargo_plugins::registry;
use supercargo_scheduler::setup::{self, Overrides};
use supercargo_wasm::Host;
use tempfile::TempDir;

/// What every guest begins with.
pub const BEGINNING: &str = include_str!("beginning.wat");

const GUEST: &str = "Guest";
/// How long a message may be: what a guest says, cut, and what is said around it.
const MAX_MESSAGE_BYTES: usize = MAX_FOREIGN_TEXT_BYTES + 1024;

/// A folder with a guest.
pub struct Stage {
    folder: TempDir,
    registry: Registry,
}

impl Stage {
    pub fn new() -> Self {
        let registry = registry();
        registry.load_others_with(Host::default());
        Self { folder: TempDir::new().expect("a folder"), registry }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub fn write(&self, module: &[u8]) {
        fs::write(self.path("guest.wasm"), module).expect("a folder that can be written to");
    }

    /// A profile of hardly more than the guest, with these arguments beside its path.
    pub fn engine(&self, cluster: Cluster, args: &str) -> Result<Engine, Problems> {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
             - plugins: {{multiPoint: {{disabled: [{{name: '*'}}], enabled: [{{name: PrioritySort}}, {{name: {GUEST}}}, \
             {{name: DefaultBinder}}]}}}}\n  pluginConfig:\n  - name: {GUEST}\n    \
             args: {{path: guest.wasm, {args}}}\n"
        );
        let source = Source::new(self.path("config.yaml").display().to_string(), text);
        let configuration = load(&source, &self.registry)?.configuration;
        setup::engine(cluster, &configuration, &self.registry, Overrides::default())
    }
}

/// A pod's cycle ended well, with scores in range, or with an error that names the guest.
pub fn check(decision: &Decision) {
    match &decision.outcome {
        Outcome::Scheduled { node } => assert!(decision.feasible.contains(node), "{decision:?}"),
        Outcome::Error { message } => {
            assert!(message.contains(GUEST) && message.contains("guest.wasm"), "{message}");
            assert!(message.len() <= MAX_MESSAGE_BYTES, "{} bytes", message.len());
        }
        Outcome::Unschedulable | Outcome::Gated => {}
    }
    for column in decision.scores.columns.iter().filter(|column| &*column.plugin == GUEST) {
        assert!(column.normalized.iter().all(|score| (MIN_SCORE..=MAX_SCORE).contains(score)), "{column:?}");
    }
    for rejection in decision.rejected.values().filter(|rejection| &*rejection.plugin == GUEST) {
        let reasons = &rejection.status.reasons;
        assert!(reasons.iter().all(|reason| reason.len() <= MAX_MESSAGE_BYTES), "reasons are cut");
    }
}

/// Everything that is wrong with a guest is told.
pub fn check_problems(problems: &Problems) {
    assert!(!problems.is_empty(), "a guest that is refused is told why");
    for problem in problems.iter() {
        assert!(problem.message.contains("guest.wasm"), "{problems}");
    }
}
