//! Guests that would take too long, or too much memory, before they are even run.

use std::time::{Duration, Instant};

use crate::support::{EVERYWHERE, Stage, guest, module, scores};

/// What is said about a guest, within seconds.
fn refused(bytes: impl AsRef<[u8]>, limits: &str) -> String {
    let stage = Stage::with(bytes);
    let started = Instant::now();
    let told = stage.problems(EVERYWHERE, &format!("{{path: guest.wasm{limits}}}"));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    told
}

fn check(bytes: impl AsRef<[u8]>, limits: &str, expected: &[&str]) {
    let told = refused(bytes, limits);
    for expected in expected {
        assert!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
}

#[test]
fn only_regular_files_are_read() {
    let stage = Stage::new();
    let told = stage.problems(EVERYWHERE, "{path: /dev/zero}");
    assert!(told.contains("/dev/zero: this is not a regular file"), "{told}");
    assert!(told.contains("hint: devices and pipes are not read"), "{told}");
}

#[test]
fn a_file_that_is_too_large_is_not_compiled() {
    let padded = |bytes: usize| guest(&format!(r#"(data (i32.const 0) "{}")"#, "x".repeat(bytes)));
    check(padded(5 << 20), "", &["and may have 4Mi", "hint: raise `moduleSize`"]);
    check(padded(70_000), ", moduleSize: 64Ki", &["and may have 64Ki"]);
    check(b"", ", moduleSize: 0", &["args.moduleSize: must be more than nothing and at most 64Mi"]);
    check(b"", ", functionSize: 1Gi", &["args.functionSize: must be more than nothing and at most 64Mi"]);
}

/// A score step with so many locals, all in use, and so many branches.
fn of_locals_and_branches(locals: usize, branches: usize) -> Vec<u8> {
    let declared = format!("(local {})", "i32 ".repeat(locals));
    let uses: String =
        (1..=locals).map(|i| format!("(local.set {i} (i32.add (local.get {i}) (local.get 0)))")).collect();
    let branch = |i: usize| format!("(br_if 0 (local.get {}))", 1 + i % locals);
    let branches: String = (0..branches).map(branch).collect();
    scores(&format!("{declared} {uses} (block {branches}) {uses} (local.get 1)"))
}

#[test]
fn a_function_that_would_take_minutes_to_compile_is_refused_at_once() {
    // Some 90 KB: locals times blocks is what the compiler keeps.
    let told =
        ["its function 7 is too much work to compile: it has 4001 locals", "hint: raise `functionSize`"];
    check(of_locals_and_branches(4000, 4000), "", &told);
}

/// Within all limits but that of time, the compiler has work for seconds.
#[test]
fn one_that_takes_longer_to_compile_than_it_may_is_given_up() {
    let started = Instant::now();
    let told = ["is not compiled after 10ms", "hint: raise `compileTimeout`"];
    check(of_locals_and_branches(1000, 2000), ", compileTimeout: 10ms", &told);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    check(b"", ", compileTimeout: 0s", &["args.compileTimeout: must be longer than nothing"]);
}

#[test]
fn a_function_that_is_too_long_is_refused() {
    let long = scores(&format!("{} (i32.const 0)", "(drop (i32.const 1))".repeat(50_000)));
    check(&long, "", &["its function 7 has 150", "and may have 128Ki", "hint: raise `functionSize`"]);
}

#[test]
fn there_is_a_bound_to_functions_and_to_what_they_move() {
    check(guest(&"(func)".repeat(20_001)), "", &["functions, and may have 20000"]);
    let many = "i32 ".repeat(200);
    check(module(&format!("(module (type (func (param {many}))))")), "", &["takes 200 values"]);
    let values = |count: usize| "(i32.const 0)".repeat(count);
    let block = format!(
        "(func (param i32) {} (block (param {}) {} ) )",
        values(20),
        "i32 ".repeat(20),
        "drop ".repeat(20)
    );
    check(guest(&block), "", &["a block of it moves 20 values, and may move 16"]);
}

#[test]
fn what_looks_small_and_is_not_is_refused() {
    // Operands that all want a register, calls through a table, loops in loops, elements, and a long constant.
    let operands = format!("{} {}", "(i32.load (local.get 0))".repeat(10_000), "i32.add ".repeat(9_999));
    check(scores(&operands), "", &["its function 7 is too much work to compile", "10000 operands"]);
    let calls = "(call_indirect (param i32) (result i32) (i32.const 0))".repeat(20_000);
    let own = format!(
        r#"(table 1 funcref) (func (export "supercargo_score") (param i32) (result i32) (local.get 0) {calls})"#
    );
    check(guest(&own), "", &["its function 7 is too much work to compile"]);
    let loops = format!("{}{} (i32.const 0)", "(loop ".repeat(65), ")".repeat(65));
    check(scores(&loops), "", &["its function 7 has more than 64 loops in each other"]);
    let elements = format!("(func $f) (table 1 funcref) (elem (i32.const 0) {})", "$f ".repeat(30_000));
    check(guest(&elements), "", &["it has 30001 elements of tables, and may have 20000"]);
    let sum = format!("(global i32 (i32.const 0) {})", "(i32.const 1) i32.add ".repeat(100));
    check(guest(&sum), "", &["a constant of it takes", "at most 64 are compiled"]);
}

#[test]
fn all_functions_together_have_a_bound() {
    // 96 functions of 900 × 900, some 0.8 million each, are more than 64 million.
    let declared = format!("(local {})", "i32 ".repeat(900));
    let one = format!("(func (param i32) {declared} (block {}))", "(br_if 0 (local.get 0))".repeat(900));
    check(guest(&one.repeat(96)), "", &["it is too much work to compile", "hint: raise `moduleSize`"]);
}

#[test]
fn all_tables_together_have_a_bound() {
    let step = r#"(func (export "supercargo_score") (param i32) (result i32) (i32.const 0))"#;
    let tables = format!("{} {step}", "(table 60000 funcref)".repeat(2));
    check(guest(&tables), "", &["table minimum size of 60000 elements exceeds table limits (at its start)"]);
    let grows = format!(
        r#"(table $t 60000 funcref) (table $u 0 funcref) {step}
        (func (export "supercargo_init") (param i32 i32) (result i32)
          (table.grow $u (ref.null func) (i32.const 60000)))"#
    );
    check(guest(&grows), "", &["supercargo_init returned -1"]);
}

#[test]
fn what_a_guest_interns_counts_as_its_memory() {
    // The same megabyte but for its first bytes, again and again.
    let body = "(loop $next
          (i32.store (i32.const 65536) (i32.and (local.get $i) (i32.const 0x7f7f7f7f)))
          (drop (call $intern (i32.const 65536) (i32.const 1000000)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $i) (i32.const 100))))
        (i32.const 0)";
    let own = format!(
        r#"(func (export "supercargo_init") (param i32 i32) (result i32) (local $i i32) (drop (memory.grow (i32.const 20))) {body})
        (func (export "supercargo_score") (param i32) (result i32) (i32.const 0))"#
    );
    check(guest(&own), ", memory: 4Mi", &["it interns more texts than it may have memory"]);
}
