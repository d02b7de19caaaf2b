//! The example guest in Rust, built for WebAssembly here and now, gives the scores that its own tests name.

use std::{path::Path, sync::OnceLock};

use supercargo_model::testing::{cluster, node, pod};
use supercargo_scheduler::setup::ALL_NODES;
use supercargo_wasm::testing::example_guest;

use crate::support::{EVERYWHERE, Stage, error, guest_scores};

fn example() -> &'static [u8] {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    BUILT.get_or_init(|| example_guest(Path::new(env!("CARGO_TARGET_TMPDIR"))))
}

#[test]
fn the_example_filters_and_scores() {
    let stage = Stage::with(example());
    let like = |name: &str, disk: &str| {
        node(name).label("disk", disk).allocatable("cpu", "4").allocatable("memory", "8Gi")
    };
    let objects = [
        like("a", "ssd"),
        like("b", "hdd"),
        pod("on-b").on("b").container(&[("cpu", "2"), ("memory", "4Gi")]),
        like("c", "ssd").set("/metadata/annotations", serde_json::json!({"maintenance": "tonight"})),
    ];
    let args = "{path: guest.wasm, args: {disk: ssd}}";
    let mut engine = stage.engine_of(cluster(objects), EVERYWHERE, args, ALL_NODES);
    let pod = pod("p").container(&[("cpu", "1"), ("memory", "1Gi")]).pod();
    let decision = engine.decide(&pod).unwrap();
    // a: 50 + 25 × (3000 ÷ 4000 + 7 ÷ 8) = 90.6; b: 25 × (1000 ÷ 4000 + 3 ÷ 8) = 15.6
    assert_eq!(guest_scores(&decision), [("a".to_owned(), 90, 90), ("b".to_owned(), 15, 15)]);
    assert_eq!(decision.rejected["c"].status.message(), "node(s) were in maintenance");
    assert_eq!(engine.place(&pod).unwrap().node().map(|node| &**node), Some("a"));
}

#[test]
fn what_the_example_says_of_its_arguments_is_told() {
    let stage = Stage::with(example());
    let told = stage.problems(EVERYWHERE, "{path: guest.wasm, args: {disc: ssd}}");
    let expected =
        "supercargo_init failed: its arguments cannot be read: unknown field `disc`, expected `disk`";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_panic_tells_what_it_was_about() {
    // The example has no way to panic: too little memory for its columns makes one.
    let stage = Stage::with(example());
    let args = "{path: guest.wasm, memory: 1216Ki, args: {disk: ssd}}";
    let nodes = (0..5000).map(|i| node(&format!("n{i}")));
    let mut engine = stage.engine_of(cluster(nodes), EVERYWHERE, args, ALL_NODES);
    let told = error(&mut engine, &pod("p").pod());
    assert!(told.contains("it wanted more than 1216Ki of memory"), "{told}");
}
