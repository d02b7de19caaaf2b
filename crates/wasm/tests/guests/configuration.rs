//! How a configuration names a guest, and what it is told when that is wrong.

use supercargo_framework::registry::Point;
use supercargo_model::testing::{cluster, node, pod};
use supercargo_scheduler::setup::ALL_NODES;

use crate::support::{EVERYWHERE, Stage, guest, guest_scores, module, scores};

fn five() -> Vec<u8> {
    scores("(call $fill (local.get $frame) (i64.const 5)) (i32.const 0)")
}

#[test]
fn a_guest_is_named_by_path_or_by_file_url() {
    let stage = Stage::with(five());
    stage.write("with space.wasm", five());
    let folder = stage.path("").display().to_string();
    let url = |rest: &str| format!("{{guestURL: 'file://{folder}{rest}'}}");
    let named = [
        "{path: guest.wasm}".to_owned(),
        "{path: ./guest.wasm}".to_owned(),
        format!("{{path: '{folder}guest.wasm'}}"),
        url("guest.wasm"),
        url("with%20space.wasm"),
        format!("{{guestURL: 'file://localhost{folder}guest.wasm'}}"),
    ];
    for args in named {
        let mut engine = stage.engine_of(cluster([node("a")]), EVERYWHERE, &args, ALL_NODES);
        let decision = engine.decide(&pod("p").pod()).unwrap();
        assert_eq!(guest_scores(&decision), [("a".to_owned(), 5, 5)], "{args}");
    }
}

#[test]
fn the_weight_counts_and_each_point_can_be_chosen() {
    let stage = Stage::with(five());
    let mut engine = stage.engine_of(
        cluster([node("a")]),
        "score: {enabled: [{name: Guest, weight: 7}]}",
        "{path: guest.wasm}",
        ALL_NODES,
    );
    let decision = engine.decide(&pod("p").pod()).unwrap();
    let column = decision.scores.columns.iter().find(|column| &*column.plugin == "Guest").unwrap();
    assert_eq!(column.weight, 7);
}

#[test]
fn the_points_follow_from_the_exports() {
    let step =
        |name: &str| format!(r#"(func (export "supercargo_{name}") (param i32) (result i32) (i32.const 0))"#);
    let check = |steps: &[&str], expected: &[Point]| {
        let own: String = steps.iter().map(|name| step(name)).collect();
        let stage = Stage::with(guest(&own));
        let loaded = stage.load(EVERYWHERE, "{path: guest.wasm}").unwrap();
        let profile = &loaded.configuration.profiles[0];
        let served = |point: &&Point| profile.at(**point).iter().any(|choice| &*choice.plugin == "Guest");
        let served: Vec<Point> = Point::ALL.iter().filter(served).copied().collect();
        assert_eq!(served, expected);
    };
    check(&["score"], &[Point::Score]);
    check(&["filter"], &[Point::Filter]);
    check(&["filter", "pre_score", "score", "normalize"], &[Point::Filter, Point::PreScore, Point::Score]);
    let stage = Stage::with(guest(&step("score")));
    let told = stage.problems("filter: {enabled: [{name: Guest}]}", "{path: guest.wasm}");
    assert!(told.contains("the plugin Guest does not serve filter"), "{told}");
    assert!(told.contains("hint: it serves score"), "{told}");
}

/// The line is that of the field, and plugin, file and hint are named.
#[test]
fn wrong_arguments_are_told_where_they_stand() {
    let stage = Stage::with(five());
    std::fs::create_dir(stage.path("folder")).unwrap();
    let check = |args: &str, expected: &[&str]| {
        let told = stage.problems(EVERYWHERE, args);
        assert!(told.contains("config.yaml:9:"), "{told}");
        for expected in expected {
            assert!(told.contains(expected), "{args}: {expected:?} is not in\n{told}");
        }
    };
    check(
        "{path: gest.wasm}",
        &["args.path: Guest: gest.wasm: there is no such file", "hint: a relative path"],
    );
    check("{path: folder}", &["Guest: folder: this is a folder"]);
    check("{path: ''}", &["args.path: must not be empty"]);
    check("{guestURL: ''}", &["args.guestURL: must not be empty"]);
    check("{path: 3}", &["args.path"]);
    check("{path: 'file:///x.wasm'}", &["is a URL, and not a path", "hint: write it as guestURL"]);
    check(
        "{guestURL: 'https://example.com/x.wasm'}",
        &["read from files only, and not by https", "hint: put the file"],
    );
    check("{guestURL: 'oci://registry/x'}", &["and not by oci"]);
    check("{guestURL: guest.wasm}", &["is not a URL", "hint: write file:///path/to/guest.wasm, or use path"]);
    check(
        "{guestURL: 'file://host/x.wasm'}",
        &["names no file of this machine", "hint: a file URL has three slashes"],
    );
    check("{guestURL: 'file:///%ff.wasm'}", &["is not UTF-8 after decoding", "hint: use path"]);
    check("{path: a, guestURL: 'file:///b'}", &["named twice", "hint: keep one"]);
    check("{path: guest.wasm, feul: 3}", &["feul", "fuel"]);
    check("{path: guest.wasm, fuel: 0}", &["args.fuel: a guest without fuel"]);
    check("{path: guest.wasm, timeout: 0s}", &["args.timeout: must be longer than nothing"]);
    check("{path: guest.wasm, timeout: soon}", &["args.timeout"]);
    check("{path: guest.wasm, memory: 1Ki}", &["args.memory: must be at least 64Ki"]);
    check("{path: guest.wasm, memory: 5Gi}", &["at most 4Gi"]);
    check("{path: guest.wasm, instances: 0}", &["args.instances: must be 1 to 1024"]);
}

#[test]
fn files_that_are_no_guests_are_told_with_a_hint() {
    let stage = Stage::new();
    let check = |bytes: &[u8], expected: &[&str]| {
        stage.write("guest.wasm", bytes);
        let told = stage.problems(EVERYWHERE, "{path: guest.wasm}");
        assert!(told.contains("Guest: guest.wasm: "), "{told}");
        for expected in expected {
            assert!(told.contains(expected), "{expected:?} is not in\n{told}");
        }
    };
    check(b"", &["this is not a WebAssembly module"]);
    check(
        b"#!/bin/sh",
        &["this is not a WebAssembly module", "hint: it must begin with the bytes 00 61 73 6d"],
    );
    for text in ["(module", ";; as text\n(module)", " (; as text ;) (module)"] {
        check(
            text.as_bytes(),
            &["this is WebAssembly as text, and not a module", "hint: compile it: wat2wasm NAME.wat"],
        );
    }
    check(
        b"\0asm\x0d\0\x01\0",
        &["component", "hint: build the guest for the target wasm32-unknown-unknown"],
    );
    check(b"\0asm\x01\0\0\0\x63", &["this is not a valid WebAssembly module"]);
    check(
        &module("(module)"),
        &[
            "it exports no memory",
            "it exports no function supercargo_abi",
            "hint: export a function supercargo_abi that returns 1",
            "it exports no function supercargo_alloc",
            "it exports no step of a cycle",
            "hint: export one or more of supercargo_filter, supercargo_pre_score, supercargo_score, supercargo_normalize",
        ],
    );
    check(
        &guest(r#"(func (export "supercargo_normalize") (param i32) (result i32) (i32.const 0))"#),
        &["it exports supercargo_normalize without supercargo_score"],
    );
    check(
        &guest(r#"(func (export "supercargo_score") (param i64) (result i32) (i32.const 0))"#),
        &["its export supercargo_score is not a function (param i32) (result i32)"],
    );
    check(
        &module(
            r#"(module (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32))))"#,
        ),
        &["it imports wasi_snapshot_preview1.clock_time_get, which is not offered", "(no WASI)"],
    );
    check(
        &module(r#"(module (import "supercargo" "now" (func (result i64))))"#),
        &[
            "it imports supercargo.now",
            "hint: a guest can import supercargo.node_column, supercargo.pod_fact",
        ],
    );
    check(
        &module(r#"(module (import "supercargo" "intern" (func (param i64) (result i32))))"#),
        &["it imports supercargo.intern as something else than a function (param i32 i32) (result i32)"],
    );
    check(
        &module(
            r#"(module (memory (export "memory") 1025)
                 (func (export "supercargo_abi") (result i32) (i32.const 1))
                 (func (export "supercargo_alloc") (param i32) (result i32) (i32.const 8))
                 (func (export "supercargo_score") (param i32) (result i32) (i32.const 0)))"#,
        ),
        &[
            "it wants 65600Ki of memory to begin with, and may have 64Mi",
            "hint: raise `memory` in its arguments",
        ],
    );
}

#[test]
fn what_goes_wrong_at_the_start_is_an_error_of_the_configuration() {
    let step = r#"(func (export "supercargo_score") (param i32) (result i32) (i32.const 0))"#;
    let stage = Stage::new();
    let check = |own: &str, limits: &str, expected: &str| {
        stage.write("guest.wasm", guest(&format!("{own} {step}")));
        let told = stage.problems(EVERYWHERE, &format!("{{path: guest.wasm{limits}}}"));
        assert!(told.contains(&format!("Guest: guest.wasm: {expected}")), "{expected:?} is not in\n{told}");
    };
    check(
        "(func $s (loop $l (br $l))) (start $s)",
        ", fuel: 5000",
        "it used up its fuel of 5000 at its start",
    );
    check("(func $s unreachable) (start $s)", "", "it trapped at its start: wasm `unreachable`");
    check(r#"(func (export "_initialize") unreachable)"#, "", "it trapped in _initialize");
    let init = |body: &str| {
        format!(
            r#"(data (i32.const 16) "label") (data (i32.const 32) "lable:x") (data (i32.const 48) "no such zone")
               (data (i32.const 64) "\ff\fe")
               (func (export "supercargo_init") (param i32 i32) (result i32) {body})"#
        )
    };
    check(&init("unreachable"), "", "it trapped in supercargo_init");
    check(&init("(i32.const 2)"), "", "supercargo_init failed, and did not say why");
    check(
        &init("(call $fail (i32.const 48) (i32.const 12)) (i32.const 2)"),
        "",
        "supercargo_init failed: no such zone",
    );
    check(
        &init("(call $fail (i32.const 48) (i32.const 12)) unreachable"),
        "",
        "it gave up in supercargo_init: no such zone",
    );
    check(
        &init("(call $node_column (i32.const 16) (i32.const 5) (i32.const 0))"),
        "",
        "the node attribute label needs a key: label:<key> (in supercargo_init)",
    );
    check(
        &init("(call $node_column (i32.const 32) (i32.const 7) (i32.const 0))"),
        "",
        "there is no node attribute \"lable\"; did you mean label? (in supercargo_init)",
    );
    check(
        &init("(call $pod_fact (i32.const 32) (i32.const 7) (i32.const 0))"),
        "",
        "there is no pod attribute \"lable\"; did you mean label? (in supercargo_init)",
    );
    check(
        &init("(call $node_column (i32.const 34) (i32.const 5) (i32.const 3))"),
        "",
        "there is no node attribute \"ble\"",
    );
    check(&init("(call $intern (i32.const 64) (i32.const 2))"), "", "a text at 64 of 2 bytes is not UTF-8");
    let other_version = module(
        r#"(module (memory (export "memory") 1)
             (func (export "supercargo_abi") (result i32) (i32.const 2))
             (func (export "supercargo_alloc") (param i32) (result i32) (i32.const 8))
             (func (export "supercargo_score") (param i32) (result i32) (i32.const 0)))"#,
    );
    stage.write("guest.wasm", other_version);
    let told = stage.problems(EVERYWHERE, "{path: guest.wasm}");
    assert!(told.contains("it is made for version 2 of the ABI, and this host offers version 1"), "{told}");
}

#[test]
fn a_name_that_nobody_knows_is_told_how_to_be_loaded() {
    let stage = Stage::new();
    let told = stage.problems("score: {enabled: [{name: SomethingElse}]}", "{}");
    assert!(told.contains("there is no plugin \"SomethingElse\""), "{told}");
    assert!(
        told.contains("hint: to load it from a WebAssembly file, give its path in pluginConfig"),
        "{told}"
    );
}

#[test]
fn two_profiles_can_have_guests_of_the_same_name() {
    let stage = Stage::with(five());
    stage.write("nine.wasm", scores("(call $fill (local.get $frame) (i64.const 9)) (i32.const 0)"));
    let profile = |name: &str, file: &str| {
        format!(
            "- schedulerName: {name}\n  plugins: {{{EVERYWHERE}}}\n  pluginConfig: [{{name: Guest, args: {{path: {file}}}}}]\n"
        )
    };
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n{}{}",
        profile("default-scheduler", "guest.wasm"),
        profile("other", "nine.wasm")
    );
    let source = supercargo_manifest::Source::new(stage.path("config.yaml").display().to_string(), text);
    let loaded =
        supercargo_config::load(&source, &stage.registry).unwrap_or_else(|problems| panic!("{problems}"));
    let mut engine = supercargo_scheduler::setup::engine(
        cluster([node("a")]),
        &loaded.configuration,
        &stage.registry,
        supercargo_scheduler::setup::Overrides::default(),
    )
    .unwrap();
    let mut raw = |pod: &supercargo_model::Pod| guest_scores(&engine.decide(pod).unwrap())[0].1;
    assert_eq!(raw(&pod("p").pod()), 5);
    assert_eq!(raw(&pod("q").set("/spec/schedulerName", "other").pod()), 9);
}
