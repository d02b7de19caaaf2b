//! Plugins in WebAssembly: the file is replaced while pods arrive, breaks, traps, and is mended.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    draft::{node, pod},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

/// A guest that gives 100 points to nodes of a colour, and does something before that.
pub(crate) fn prefers(colour: &str, first: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
          (import "supercargo" "node_column" (func $node_column (param i32 i32 i32) (result i32)))
          (import "supercargo" "intern" (func $intern (param i32 i32) (result i32)))
          (memory (export "memory") 16)
          (data (i32.const 16) "label:colour") (data (i32.const 32) "{colour}")
          (global $colour (mut i32) (i32.const 0)) (global $free (mut i32) (i32.const 1024))
          (func (export "supercargo_abi") (result i32) (i32.const 1))
          (func (export "supercargo_alloc") (param $bytes i32) (result i32)
            (global.get $free)
            (global.set $free (i32.and (i32.const -16)
              (i32.add (i32.const 15) (i32.add (global.get $free) (local.get $bytes))))))
          (func (export "supercargo_init") (param i32 i32) (result i32)
            (global.set $colour (call $intern (i32.const 32) (i32.const {})))
            (call $node_column (i32.const 16) (i32.const 12) (i32.const 2)))
          (func (export "supercargo_score") (param $frame i32) (result i32)
            (local $row i32)
            {first}
            (loop $next
              (if (i32.lt_u (local.get $row) (i32.load (local.get $frame)))
                (then
                  (i64.store
                    (i32.add (i32.load offset=28 (local.get $frame)) (i32.shl (local.get $row) (i32.const 3)))
                    (i64.mul (i64.const 100) (i64.extend_i32_u (i32.eq (global.get $colour)
                      (i32.load (i32.add (i32.load (i32.load offset=12 (local.get $frame)))
                        (i32.shl (local.get $row) (i32.const 2))))))))
                  (local.set $row (i32.add (local.get $row) (i32.const 1)))
                  (br $next))))
            (i32.const 0)))"#,
        colour.len()
    );
    wat::parse_str(text).expect("a module")
}

pub(crate) struct Guest {
    folder: TempDir,
}

impl Guest {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let guest = Self { folder: tempfile::tempdir().expect("a folder") };
        guest.replace(bytes);
        guest
    }

    pub(crate) fn path(&self) -> String {
        self.folder.path().join("guest.wasm").display().to_string()
    }

    /// At once, as a deployment should.
    fn replace(&self, bytes: &[u8]) {
        let beside = self.folder.path().join("new");
        fs::write(&beside, bytes).expect("a file");
        fs::rename(beside, Path::new(&self.path())).expect("a file in its place");
    }

    /// A scheduler for which the guest outweighs everything else, and two nodes.
    fn scheduler(&self, stage: &Stage) -> SchedulerProcess {
        stage.make_all([node("red").label("colour", "red"), node("blue").label("colour", "blue")]);
        let configuration = format!(
            "{{schedulerName: {}, plugins: {{score: {{enabled: [{{name: Colour, weight: 1000}}]}}}}, \
             pluginConfig: [{{name: Colour, args: {{guestURL: 'file://{}', fuel: 100000}}}}]}}",
            stage.name,
            self.path()
        );
        stage.scheduler_of(&format!("podMaxBackoffSeconds: 1\nprofiles: [{configuration}]"))
    }
}

/// A guest that refuses every node, or none.
fn refuses(all: bool) -> Vec<u8> {
    let text = format!(
        r#"(module
          (memory (export "memory") 16) (global $free (mut i32) (i32.const 1024))
          (func (export "supercargo_abi") (result i32) (i32.const 1))
          (func (export "supercargo_alloc") (param $bytes i32) (result i32)
            (global.get $free)
            (global.set $free (i32.and (i32.const -16)
              (i32.add (i32.const 15) (i32.add (global.get $free) (local.get $bytes))))))
          (func (export "supercargo_filter") (param $frame i32) (result i32)
            (local $row i32)
            (loop $next
              (if (i32.lt_u (local.get $row) (i32.load (local.get $frame)))
                (then
                  (i32.store
                    (i32.add (i32.load offset=32 (local.get $frame)) (i32.shl (local.get $row) (i32.const 2)))
                    (i32.const {}))
                  (local.set $row (i32.add (local.get $row) (i32.const 1)))
                  (br $next))))
            (i32.const 0)))"#,
        i32::from(all)
    );
    wat::parse_str(text).expect("a module")
}

fn wait_for(scheduler: &SchedulerProcess, words: &str, times: usize) {
    wait_until(words, || scheduler.log().matches(words).count() == times);
}

#[test]
fn a_new_file_takes_over_while_pods_arrive_and_a_broken_one_changes_nothing() {
    let stage = Stage::in_memory();
    let guest = Guest::new(&prefers("red", ""));
    let scheduler = guest.scheduler(&stage);
    let mut made = 0;
    let mut next = || {
        made += 1;
        let name = format!("pod-{made}");
        stage.make(pod(&name));
        stage.wait_until_bound(&name)
    };
    assert_eq!(next(), "red");

    guest.replace(&prefers("blue", ""));
    // Pods keep arriving: each goes where one of the two wants it, and from some pod on to where the new one wants it.
    let mut went = Vec::new();
    wait_until("the new guest takes over", || {
        went.push(next());
        went.last().is_some_and(|node| node == "blue")
    });
    let reds = went.iter().filter(|node| *node == "red").count();
    assert_eq!(reds, went.len() - 1, "never back again: {went:?}");
    wait_for(&scheduler, "the new one takes over", 1);
    assert_eq!(scheduler.metric("supercargo_wasm_reloads_total", r#"result="loaded""#), 1.0);

    guest.replace(b"\0asm and then nothing");
    wait_for(&scheduler, "the old one stays", 1);
    assert_eq!(scheduler.metric("supercargo_wasm_reloads_total", r#"result="refused""#), 1.0);
    assert_eq!((next(), next()), ("blue".to_owned(), "blue".to_owned()));
}

#[test]
fn a_guest_that_fails_costs_its_pods_and_not_the_scheduler() {
    let stage = Stage::in_memory();
    let guest = Guest::new(&prefers("red", "(loop $again (br $again))"));
    let scheduler = guest.scheduler(&stage);
    stage.make(pod("one"));
    let event = stage.wait_for_event("one", "FailedScheduling");
    let note = event["note"].as_str().unwrap_or_default();
    assert!(note.contains("plugin \"Colour\" failed with: "), "{note}");
    assert!(note.contains("it used up its fuel of 100000 in supercargo_score"), "{note}");
    assert!(scheduler.metric("supercargo_wasm_errors_total", r#"plugin="Colour""#) >= 1.0);

    guest.replace(&prefers("blue", ""));
    assert_eq!(stage.wait_until_bound("one"), "blue");
    assert!(scheduler.answers("/readyz", 200));
}

/// A step that keeps the compiler busy for many seconds where it is not optimised, within all limits of size.
fn slow_to_compile() -> String {
    let declared = format!("(local {})", "i32 ".repeat(2_000));
    let uses: String = (2..2_000).map(|i| format!("(local.set {i} (local.get {}))", i + 1)).collect();
    let branches: String = (0..3_000).map(|i| format!("(br_if 0 (local.get {}))", 2 + i % 2_000)).collect();
    format!("{declared} {uses} (block {branches}) {uses}")
}

#[test]
fn a_signal_is_heeded_while_the_first_guest_is_compiled() {
    let stage = Stage::in_memory();
    let guest = Guest::new(&prefers("red", &slow_to_compile()));
    let configuration = format!(
        "profiles: [{{plugins: {{score: {{enabled: [{{name: Colour}}]}}}}, \
         pluginConfig: [{{name: Colour, args: {{path: '{}'}}}}]}}]",
        guest.path()
    );
    let mut scheduler = stage.start_with(&configuration, &[]);
    wait_until("it compiles", || scheduler.has_thread("wasm-compiler"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(scheduler.has_thread("wasm-compiler"), "the guest is compiled too fast to tell");
    let asked = Instant::now();
    scheduler.signal("TERM");
    // In order, and not by the signal: the first process of a container would hear nothing of it.
    assert_eq!(scheduler.wait_for_end().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[test]
fn pods_that_the_old_guest_refused_are_tried_again_at_once() {
    let stage = Stage::in_memory();
    let guest = Guest::new(&refuses(true));
    stage.make(node("only"));
    let configuration = format!(
        "{{schedulerName: {}, plugins: {{filter: {{enabled: [{{name: Picky}}]}}}}, \
         pluginConfig: [{{name: Picky, args: {{path: '{}'}}}}]}}",
        stage.name,
        guest.path()
    );
    let scheduler = stage.scheduler_of(&format!("podMaxBackoffSeconds: 1\nprofiles: [{configuration}]"));
    stage.make(pod("one"));
    let event = stage.wait_for_event("one", "FailedScheduling");
    let note = event["note"].as_str().unwrap_or_default();
    assert!(note.contains("1 node(s) were refused by Picky"), "{note}");
    guest.replace(&refuses(false));
    wait_for(&scheduler, "the new one takes over", 1);
    assert_eq!(stage.wait_until_bound("one"), "only");
}
