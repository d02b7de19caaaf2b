//! An operator's preferences: what can be read scores a small cluster within bounds, the same on both paths; what cannot is
//! told by line, to the pod and to the operator, and what held before still holds.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use supercargo_config::Configuration;
use supercargo_engine::{Engine, Outcome};
use supercargo_framework::{
    points::{MAX_SCORE, MIN_SCORE},
    registry::Registry,
};
use supercargo_manifest::{MAX_FOREIGN_TEXT_BYTES, Source};
use supercargo_model::testing::{Builder, cluster, node, object, pod};
use supercargo_plugins::{
    dynamic_scoring::{self, NAME, Preferences},
    registry,
};
use supercargo_scheduler::setup::{self, Overrides};

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);
static CONFIGURATION: LazyLock<Configuration> = LazyLock::new(|| {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
                - plugins: {multiPoint: {enabled: [{name: DynamicScoring, weight: 2}]}}\n  pluginConfig:\n  \
                - {name: DynamicScoring, args: {configMap: {namespace: kube-system, name: scores}, key: now.yaml}}\n";
    let loaded = supercargo_config::load(&Source::new("config.yaml", text), &REGISTRY);
    loaded.unwrap_or_else(|problems| panic!("{problems}")).configuration
});
/// How long a message may be: what is wrong, cut, and where.
const MAX_MESSAGE_BYTES: usize = MAX_FOREIGN_TEXT_BYTES + 512;
/// Some months after the nodes were made.
const NOW: &str = "2026-06-01T12:00:00Z";

fuzz_target!(|text: &str| {
    let read = dynamic_scoring::read(&Source::new("now.yaml", text));
    let mut engine = engine(text);
    match read {
        Ok(preferences) => scores(&preferences, &mut engine),
        Err(problems) => {
            assert!(!problems.is_empty(), "a text that is refused is told why");
            let line = problems.iter().map(dynamic_scoring::in_a_line).next().unwrap_or_default();
            let decision = engine.decide(&pod("p").pod()).expect("there is a profile for it");
            let Outcome::Error { message } = &decision.outcome else { panic!("{:?}", decision.outcome) };
            assert!(message.contains("configmap/kube-system/scores/now.yaml"), "{message}");
            assert!(message.contains(&line), "{message} tells {line}");
            assert!(message.len() <= MAX_MESSAGE_BYTES, "{} bytes", message.len());
        }
    }
});

fn engine(text: &str) -> Engine {
    let map = object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "scores"}, "data": {"now.yaml": text}}));
    let mut cluster = cluster(nodes().into_iter().chain([map]));
    cluster.set_now(NOW.parse().expect("a moment"));
    setup::engine(cluster, &CONFIGURATION, &REGISTRY, Overrides::default()).expect("what loads can be built")
}

fn nodes() -> [Builder; 4] {
    let made = |name: &str, at: &str| node(name).set("/metadata/creationTimestamp", at);
    let conditions =
        json!([{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "Unknown"}]);
    [
        made("a", "2026-01-01T00:00:00Z").label("pool", "blue").label("rank", "7"),
        made("b", "2026-05-31T12:00:00Z").label("pool", "green").annotation("note", "warm up"),
        made("c", "2026-06-01T12:00:00Z").set("/status/conditions", conditions),
        node("d").set("/status/nodeInfo", json!({"kubeletVersion": "v1.36.0", "architecture": "arm64"})),
    ]
}

fn scores(preferences: &Preferences, engine: &mut Engine) {
    let pod = engine.admit(pod("p").pod());
    let decision = engine.decide(&pod).expect("there is a profile for it");
    assert_eq!(decision.feasible.len(), 4, "{:?}", decision.outcome);
    let column = decision.scores.columns.iter().find(|column| &*column.plugin == NAME);
    let column = column.unwrap_or_else(|| panic!("{NAME} scores"));
    let most = i64::from(i32::MAX) * preferences.entries().len() as i64;
    for ((node, raw), normalized) in decision.feasible.iter().zip(&column.raw).zip(&column.normalized) {
        let info = engine.cluster().node(node).expect("a node of the cluster");
        assert_eq!(*raw, preferences.raw_score(&info.node, engine.cluster().now()), "{node}");
        assert!(raw.saturating_abs() <= most + 1, "{raw}");
        assert!((MIN_SCORE..=MAX_SCORE).contains(normalized), "{normalized} for {node}");
    }
    same_on_the_fast_path(engine, &pod, &decision.best);
}

/// Which of the best nodes is taken is drawn; that it is one of the best is not.
fn same_on_the_fast_path(
    engine: &mut Engine,
    pod: &Arc<supercargo_model::Pod>,
    best: &[supercargo_model::Name],
) {
    let placed = engine.place(pod).expect("there is a profile for it");
    let node = placed.node().expect("all nodes are feasible");
    assert!(best.contains(node), "{node} on the fast path, {best:?} on the full one");
}
