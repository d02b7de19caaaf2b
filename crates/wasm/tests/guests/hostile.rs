//! Guests that do what they must not: this pod's cycle fails and says why, the scheduler goes on.

use std::sync::{Arc, Mutex};

use supercargo_engine::Engine;
use supercargo_model::{
    Cluster,
    testing::{cluster, node, pod},
};
use supercargo_scheduler::setup::ALL_NODES;
use supercargo_wasm::GuestEvent;

use crate::support::{EVERYWHERE, Stage, error, guest, guest_scores, module, scores};

fn two_nodes() -> Cluster {
    cluster([node("a"), node("b")])
}

/// What a pod's cycle ends in, with these limits besides the path.
fn ends_in(guest: &[u8], limits: &str) -> String {
    let stage = Stage::with(guest);
    let args = format!("{{path: guest.wasm{limits}}}");
    let mut engine = stage.engine_of(two_nodes(), EVERYWHERE, &args, ALL_NODES);
    let told = error(&mut engine, &pod("p").pod());
    told.replace(&stage.path("").display().to_string(), "")
}

#[test]
fn every_kind_of_misconduct_is_told_with_plugin_and_limit() {
    let endless = "(loop $again (br $again)) (i32.const 0)";
    let check = |body: &str, limits: &str, expected: &str| {
        let told = ends_in(&scores(body), limits);
        let prefix = "running Score plugins: plugin \"Guest\" failed with: guest.wasm: ";
        assert_eq!(told.strip_prefix(prefix), Some(expected), "{told}");
    };
    check(endless, ", fuel: 10000", "it used up its fuel of 10000 in supercargo_score");
    check(endless, ", fuel: 1000000000000, timeout: 50ms", "it ran longer than 50ms in supercargo_score");
    check("unreachable", "", "it trapped in supercargo_score: wasm `unreachable` instruction executed");
    check(
        "(i32.load (i32.const 0x7fffffff))",
        "",
        "it trapped in supercargo_score: out of bounds memory access",
    );
    check(
        "(i32.div_u (i32.const 1) (i32.const 0))",
        "",
        "it trapped in supercargo_score: integer divide by zero",
    );
    // 2 pages are 128 KiB; a third does not fit, and this guest cannot live without.
    check(
        "(if (i32.eq (memory.grow (i32.const 2)) (i32.const -1)) (then unreachable)) (i32.const 0)",
        ", memory: 128Ki",
        "it trapped in supercargo_score: it wanted more than 128Ki of memory",
    );
    check(
        "(call $fill (local.get $frame) (i64.const 101)) (i32.const 0)",
        "",
        "the score 101 of node a is outside 0..=100",
    );
    check(
        "(call $fill (local.get $frame) (i64.const -1)) (i32.const 0)",
        "",
        "the score -1 of node a is outside 0..=100",
    );
    check("(i32.const 2)", "", "supercargo_score failed, and did not say why");
    check("(call $fail (i32.const 4096) (i32.const 0)) (i32.const 2)", "", "supercargo_score failed: ");
    check(
        "(i32.const 7)",
        "",
        "supercargo_score returned 7, which means nothing: 0 is done, 1 (of supercargo_pre_score) is skip, 2 is failed",
    );
    // Only preparing can skip.
    check(
        "(i32.const 1)",
        "",
        "supercargo_score returned 1, which means nothing: 0 is done, 1 (of supercargo_pre_score) is skip, 2 is failed",
    );
    check(
        "(call $fail (i32.const 0x7fffffff) (i32.const 9)) (i32.const 2)",
        "",
        "a text at 2147483647 of 9 bytes is not in its memory (in supercargo_score)",
    );
    check(
        "(call $fail (i32.const 0) (i32.const -1)) (i32.const 2)",
        "",
        "a text of 4294967295 bytes is too long: at most 1048576 are read (in supercargo_score)",
    );
    check(
        "(drop (call $node_column (i32.const 4096) (i32.const 0) (i32.const 0))) (i32.const 0)",
        "",
        "there is no node attribute \"\"; there are name, taints, unschedulable, created, json, pods, label, annotation, \
         condition, info, image, allocatable, requested, free (in supercargo_score)",
    );
}

#[test]
fn endless_recursion_ends_with_the_stack() {
    let told = ends_in(
        &guest(
            r#"(func $again (param i32) (result i32) (i32.add (i32.const 1) (call $again (local.get 0))))
               (func (export "supercargo_score") (param i32) (result i32) (call $again (local.get 0)))"#,
        ),
        "",
    );
    assert!(told.ends_with("it used up its stack in supercargo_score"), "{told}");
}

#[test]
fn a_filter_that_fails_ends_the_cycle_and_names_the_plugin() {
    let filter = |body: &str| {
        guest(&format!(r#"(func (export "supercargo_filter") (param $frame i32) (result i32) {body})"#))
    };
    let store = |field: u32, value: i32| {
        format!("(i32.store (i32.load offset={field} (local.get $frame)) (i32.const {value}))")
    };
    let told = ends_in(&filter("unreachable"), "");
    let expected = "guest.wasm: it trapped in supercargo_filter: wasm `unreachable` instruction executed";
    assert_eq!(told, format!("running \"Guest\" filter plugin: {expected}"));
    let told = ends_in(&filter(&format!("{} (i32.const 0)", store(32, 3))), "");
    let expected = "the verdict 3 of node a means nothing: 0 is fit, 1 is unschedulable, 2 is unresolvable";
    assert!(told.ends_with(expected), "{told}");
    let told = ends_in(&filter(&format!("{} {} (i32.const 0)", store(32, 1), store(36, 99))), "");
    assert!(told.ends_with("the reason 99 for node a is not the id of a text"), "{told}");
}

#[test]
fn a_prepare_that_fails_ends_the_cycle_and_a_skip_leaves_the_plugin_out() {
    let prepares = |code: u32| {
        guest(&format!(
            r#"(func (export "supercargo_pre_score") (param i32) (result i32) (i32.const {code}))
               (func (export "supercargo_score") (param i32) (result i32) unreachable)"#
        ))
    };
    let told = ends_in(&prepares(2), "");
    let expected = "guest.wasm: supercargo_pre_score failed, and did not say why";
    assert_eq!(told, format!("running PreScore plugin \"Guest\": {expected}"));
    let stage = Stage::with(prepares(1));
    let mut engine = stage.engine(two_nodes());
    let pod = pod("p").pod();
    assert!(engine.place(&pod).unwrap().node().is_some());
    let decision = engine.decide(&pod).unwrap();
    assert!(decision.scores.columns.iter().all(|column| &*column.plugin != "Guest"));
}

/// Fails for pods of the priority 1, and gives 10 points to all others.
fn fails_for_some() -> Vec<u8> {
    guest(
        r#"(data (i32.const 16) "priority")
           (func (export "supercargo_init") (param i32 i32) (result i32)
             (drop (call $pod_fact (i32.const 16) (i32.const 8) (i32.const 0))) (i32.const 0))
           (func (export "supercargo_score") (param $frame i32) (result i32)
             (if (i64.eq (i64.load (i32.load offset=16 (local.get $frame))) (i64.const 1)) (then unreachable))
             (call $fill (local.get $frame) (i64.const 10))
             (i32.const 0))"#,
    )
}

#[test]
fn a_trap_costs_one_pod_and_is_told_to_whoever_listens() {
    let stage = Stage::with(fails_for_some());
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = told.clone();
    stage.host.listen(move |event| {
        let GuestEvent::Failed { plugin, why } = event else { panic!("{event:?}") };
        notes.lock().unwrap().push(format!("{plugin}: {}", why.rsplit('/').next().unwrap()));
    });
    let mut engine = stage.engine(two_nodes());
    let place = |engine: &mut Engine, name: &str, priority: i32| {
        let pod = engine.admit(pod(name).priority(priority).pod());
        engine.place(&pod).unwrap().node().is_some()
    };
    assert!(place(&mut engine, "before", 0));
    assert!(!place(&mut engine, "bad", 1));
    assert!(place(&mut engine, "after", 0));
    assert!(!place(&mut engine, "bad-too", 1));
    assert!(place(&mut engine, "in-the-end", 0));
    let expected =
        "Guest: guest.wasm: it trapped in supercargo_score: wasm `unreachable` instruction executed";
    let told = told.lock().unwrap();
    assert!(!told.is_empty() && told.iter().all(|event| event == expected), "{told:?}");
}

#[test]
fn a_guest_that_is_refused_memory_and_copes_is_fine() {
    let copes = scores(
        "(drop (memory.grow (i32.const 1000))) (call $fill (local.get $frame) (i64.const 5)) (i32.const 0)",
    );
    let stage = Stage::with(copes);
    let mut engine = stage.engine_of(two_nodes(), EVERYWHERE, "{path: guest.wasm, memory: 1Mi}", ALL_NODES);
    let decision = engine.decide(&pod("p").pod()).unwrap();
    assert_eq!(guest_scores(&decision), [("a".to_owned(), 5, 5), ("b".to_owned(), 5, 5)]);
}

#[test]
fn addresses_that_an_allocator_invents_are_not_believed() {
    let allocates = |body: &str| {
        module(&format!(
            r#"(module (memory (export "memory") 1)
                 (global $calls (mut i32) (i32.const 0))
                 (func (export "supercargo_abi") (result i32) (i32.const 1))
                 (func (export "supercargo_alloc") (param $bytes i32) (result i32) {body})
                 (func (export "supercargo_score") (param i32) (result i32) (i32.const 0)))"#
        ))
    };
    let told = |body: &str| Stage::with(allocates(body)).problems(EVERYWHERE, "{path: guest.wasm}");
    let check = |body: &str, expected: &str| {
        let told = told(body);
        assert!(told.contains(expected), "{told}");
    };
    check("(i32.const 0)", "supercargo_alloc has no room for 40 bytes");
    check("(i32.const 12)", "supercargo_alloc returned 12, which is not aligned to 8 bytes");
    check(
        "(i32.const 65504)",
        "supercargo_alloc returned 65504 for 40 bytes, which is not within its memory of 65536 bytes",
    );
    check("(i32.const -8)", "supercargo_alloc returned 4294967288 for 40 bytes");
    // Everything at the same place is the guest's own loss: it sees nonsense, and nobody else does.
    let stage = Stage::with(allocates("(i32.const 1024)"));
    let mut engine = stage.engine(two_nodes());
    engine.decide(&pod("p").pod()).unwrap();
}

#[test]
fn what_is_interned_while_room_is_asked_for_goes_nowhere_near_the_end_of_the_memory() {
    // Every block ends where the memory does, and with every block there is another text.
    let interns = module(
        r#"(module (import "supercargo" "intern" (func $intern (param i32 i32) (result i32)))
             (import "supercargo" "pod_fact" (func $pod_fact (param i32 i32 i32) (result i32)))
             (memory (export "memory") 1)
             (data (i32.const 16) "name")
             (global $count (mut i32) (i32.const 0))
             (func (export "supercargo_abi") (result i32) (i32.const 1))
             (func (export "supercargo_alloc") (param $bytes i32) (result i32)
               (global.set $count (i32.add (global.get $count) (i32.const 1)))
               (i32.store8 (i32.const 200) (i32.add (i32.const 32) (i32.and (global.get $count) (i32.const 63))))
               (drop (call $intern (i32.const 200) (i32.const 1)))
               (i32.and (i32.sub (i32.const 65536) (local.get $bytes)) (i32.const -8)))
             (func (export "supercargo_init") (param i32 i32) (result i32)
               (drop (call $pod_fact (i32.const 16) (i32.const 4) (i32.const 2))) (i32.const 0))
             (func (export "supercargo_score") (param i32) (result i32) (i32.const 0)))"#,
    );
    let stage = Stage::with(interns);
    let mut engine = stage.engine(two_nodes());
    for i in 0..32 {
        let decision = engine.decide(&pod(&"p".repeat(i + 1)).pod()).unwrap();
        assert!(decision.node().is_some(), "{i}: {:?}", decision.outcome);
    }
}

#[test]
fn texts_that_only_one_pod_knows_do_not_pile_up() {
    // Every pod has another name, and the guest may have no more than two pages.
    let reads_names = guest(
        r#"(data (i32.const 16) "name")
           (func (export "supercargo_init") (param i32 i32) (result i32)
             (drop (call $pod_fact (i32.const 16) (i32.const 4) (i32.const 2))) (i32.const 0))
           (func (export "supercargo_score") (param i32) (result i32) (i32.const 0))"#,
    );
    let stage = Stage::with(reads_names);
    let mut engine = stage.engine_of(two_nodes(), EVERYWHERE, "{path: guest.wasm, memory: 128Ki}", ALL_NODES);
    for i in 0..2000 {
        let pod =
            pod(&format!("a-pod-with-a-rather-long-name-so-that-its-texts-would-fill-the-memory-{i}")).pod();
        assert!(engine.place(&pod).unwrap().node().is_some(), "{i}");
    }
}

#[test]
fn an_instance_that_keeps_too_many_texts_is_replaced() {
    // Refuses every node, each time for another reason: four letters that count. The memory would not hold all of them.
    let letter = |place: u32| {
        format!(
            "(i32.store8 (i32.const {}) (i32.add (i32.const 48) (i32.and (i32.const 63) \
             (i32.shr_u (global.get $count) (i32.const {})))))",
            200 + place,
            6 * place
        )
    };
    let letters: String = (0..4).map(letter).collect();
    let counts = guest(&format!(
        r#"(global $count (mut i32) (i32.const 0))
           (func (export "supercargo_filter") (param $frame i32) (result i32)
             (global.set $count (i32.add (global.get $count) (i32.const 1)))
             {letters}
             (i32.store (i32.load offset=32 (local.get $frame)) (i32.const 1))
             (i32.store (i32.load offset=36 (local.get $frame)) (call $intern (i32.const 200) (i32.const 4)))
             (i32.const 0))"#
    ));
    let stage = Stage::with(counts);
    let args = "{path: guest.wasm, memory: 768Ki}";
    let mut engine = stage.engine_of(cluster([node("a")]), EVERYWHERE, args, ALL_NODES);
    for i in 0..30_000 {
        let decision = engine.decide(&pod("p").pod()).unwrap();
        assert!(decision.rejected.contains_key("a"), "{i}: {:?}", decision.outcome);
        // So that it is asked again.
        engine.cluster_mut().put_pod(pod(&format!("x{}", i % 2)).on("elsewhere").pod());
        engine.cluster_mut().put_node(node("a").label("i", &i.to_string()).node());
    }
}
