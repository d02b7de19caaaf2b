//! The guest that the page on the ABI shows does what the page says.

use supercargo_model::testing::{cluster, node, pod};
use supercargo_scheduler::setup::ALL_NODES;

use crate::support::{EVERYWHERE, Stage, guest_scores, module};

const PAGE: &str = include_str!("../../ABI.md");

pub(crate) fn block(language: &str) -> &'static str {
    let start = format!("```{language}\n");
    let (_, rest) = PAGE.split_once(&start).expect("a block of it");
    rest.split_once("\n```").expect("its end").0
}

#[test]
fn the_guest_of_the_page_filters_scores_and_normalizes() {
    let stage = Stage::with(module(block("wat")));
    let nodes = [
        node("a").label("points", "30").label("gpu", "yes"),
        node("b").label("points", "40"),
        node("c").label("gpu", "no"),
        node("d").label("points", "many").label("gpu", "yes"),
    ];
    let mut engine = stage.engine(cluster(nodes));
    let decision = engine.decide(&pod("p").pod()).unwrap();
    // The most is 40: 30 × 100 / 40 = 75; a label that is absent or no number gives nothing.
    let all = [("a", 30, 75), ("b", 40, 100), ("c", 0, 0), ("d", 0, 0)];
    assert_eq!(guest_scores(&decision), all.map(|(node, raw, score)| (node.to_owned(), raw, score)));

    let decision = engine.decide(&pod("q").label("needs-gpu", "yes").pod()).unwrap();
    // The most of the feasible ones is 30.
    let some = [("a", 30, 100), ("c", 0, 0), ("d", 0, 0)];
    assert_eq!(guest_scores(&decision), some.map(|(node, raw, score)| (node.to_owned(), raw, score)));
    let refused = &decision.rejected["b"];
    assert_eq!((&*refused.plugin, &*refused.status.message()), ("Guest", "node(s) had no GPU"));
}

#[test]
fn the_configuration_of_the_page_is_valid() {
    let stage = Stage::new();
    stage.write("points.wasm", module(block("wat")));
    let name = stage.path("config.yaml").display().to_string();
    let source = supercargo_manifest::Source::new(name, block("yaml"));
    let loaded =
        supercargo_config::load(&source, &stage.registry).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    // And so are the defaults that it shows.
    let engine = stage.engine_of(cluster([node("a")]), EVERYWHERE, "{path: points.wasm}", ALL_NODES);
    assert!(engine.profile("default-scheduler").is_some());
}
