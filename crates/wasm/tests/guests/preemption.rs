//! Where room is made for a pod, the guest is asked about nodes as they would be.

use supercargo_model::testing::{cluster, node, pod};

use crate::support::{Stage, guest};

/// Refuses nodes with a pod on them, for a reason of its own.
fn only_empty_nodes(verdict: u32) -> Vec<u8> {
    guest(&format!(
        r#"(data (i32.const 16) "pods") (data (i32.const 32) "node(s) were not empty")
           (global $why (mut i32) (i32.const 0))
           (func (export "supercargo_init") (param i32 i32) (result i32)
             (drop (call $node_column (i32.const 16) (i32.const 4) (i32.const 0)))
             (global.set $why (call $intern (i32.const 32) (i32.const 22)))
             (i32.const 0))
           (func (export "supercargo_filter") (param $frame i32) (result i32)
             (local $row i32) (local $at i32)
             (loop $next
               (if (i32.lt_u (local.get $row) (i32.load (local.get $frame)))
                 (then
                   (local.set $at (i32.shl (local.get $row) (i32.const 2)))
                   (if (i64.ne (i64.const 0) (i64.load (i32.add
                         (i32.load (i32.load offset=12 (local.get $frame))) (i32.shl (local.get $row) (i32.const 3)))))
                     (then
                       (i32.store (i32.add (i32.load offset=32 (local.get $frame)) (local.get $at)) (i32.const {verdict}))
                       (i32.store (i32.add (i32.load offset=36 (local.get $frame)) (local.get $at)) (global.get $why))))
                   (local.set $row (i32.add (local.get $row) (i32.const 1)))
                   (br $next))))
             (i32.const 0))"#
    ))
}

fn decide(verdict: u32) -> (String, Option<String>, Vec<String>) {
    let stage = Stage::with(only_empty_nodes(verdict));
    let mut engine = stage.engine(cluster([
        node("a").allocatable("cpu", "4"),
        node("b").allocatable("cpu", "4"),
        pod("low").on("a").priority(1),
        pod("high").on("b").priority(100),
    ]));
    let decision = engine.decide(&pod("p").priority(10).pod()).unwrap();
    let reason = decision.rejected["a"].status.message();
    let nomination = decision.preemption.and_then(Result::ok);
    let victims = nomination.iter().flat_map(|n| &n.victims).map(|victim| victim.name.to_string()).collect();
    (reason, nomination.as_ref().map(|n| n.node.to_string()), victims)
}

#[test]
fn a_refusal_that_evicting_helps_leads_to_a_nomination() {
    // On a the pod would fit without `low`; on b the pod is more important.
    let (reason, node, victims) = decide(1);
    assert_eq!(reason, "node(s) were not empty");
    assert_eq!((node.as_deref(), &*victims), (Some("a"), &["low".to_owned()][..]));
}

#[test]
fn a_refusal_that_evicting_does_not_help_leads_to_none() {
    assert_eq!(decide(2), ("node(s) were not empty".to_owned(), None, Vec::new()));
}
