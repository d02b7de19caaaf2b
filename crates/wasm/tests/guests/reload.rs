//! A changed file takes over between cycles; a broken one does not.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use supercargo_engine::Engine;
use supercargo_model::testing::{cluster, node, pod};
use supercargo_wasm::GuestEvent;

use crate::support::{Stage, guest, guest_scores, scores};

/// Far more than a look at the file takes, on any machine.
const AT_MOST: Duration = Duration::from_secs(60);

fn gives(points: u32) -> Vec<u8> {
    scores(&format!("(call $fill (local.get $frame) (i64.const {points})) (i32.const 0)"))
}

fn points(engine: &mut Engine) -> i64 {
    guest_scores(&engine.decide(&pod("p").pod()).unwrap())[0].1
}

/// What happened to the guest so far: what, and why.
type Told = Arc<Mutex<Vec<String>>>;

fn listen(stage: &Stage) -> Told {
    let told = Told::default();
    let notes = told.clone();
    stage.host.listen(move |event| {
        notes.lock().unwrap().push(match event {
            GuestEvent::Reloaded { plugin, .. } => format!("{plugin} reloaded"),
            GuestEvent::Refused { plugin, why, .. } => format!("{plugin} refused: {why}"),
            GuestEvent::Failed { plugin, why } => format!("{plugin} failed: {why}"),
            GuestEvent::Logged { .. } | GuestEvent::LeftOut { .. } => panic!("{event:?}"),
        });
    });
    told
}

fn wait_for(told: &Told, count: usize) -> String {
    let start = Instant::now();
    loop {
        if let Some(told) = told.lock().unwrap().get(count - 1) {
            return told.clone();
        }
        assert!(start.elapsed() < AT_MOST, "nothing was told");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_changed_file_takes_over_and_a_broken_one_does_not() {
    let stage = Stage::with(gives(5));
    let told = listen(&stage);
    let mut engine = stage.engine(cluster([node("a")]));
    let waiting = engine.admit(pod("waiting").pod());
    let _watch = stage.host.watch().unwrap();
    assert_eq!(points(&mut engine), 5);

    stage.write("guest.wasm", gives(9));
    assert_eq!(wait_for(&told, 1), "Guest reloaded");
    assert_eq!(points(&mut engine), 9);

    stage.write("guest.wasm", "half a fi");
    assert!(wait_for(&told, 2).starts_with("Guest refused: this is not a WebAssembly module"));
    assert_eq!(points(&mut engine), 9);

    let other_points = r#"(func (export "supercargo_filter") (param i32) (result i32) (i32.const 0))"#;
    stage.write("guest.wasm", guest(other_points));
    let expected =
        "it serves filter, and the one that runs serves score: restart the scheduler to change that";
    assert_eq!(wait_for(&told, 3), format!("Guest refused: {expected}"));
    assert_eq!(points(&mut engine), 9);

    // The same shape, from what was kept about it: nothing of the old guest is.
    let total = |engine: &mut Engine| engine.inspect().survey(&waiting).unwrap().best;
    engine.place(&waiting);
    let before = total(&mut engine);
    stage.write("guest.wasm", gives(20));
    assert_eq!(wait_for(&told, 4), "Guest reloaded");
    // The same cycle still sees the old one; a new one sees the new one.
    assert_eq!(total(&mut engine), before);
    engine.place(&waiting);
    assert_eq!(total(&mut engine), before + 11);

    std::fs::remove_file(stage.path("guest.wasm")).unwrap();
    assert!(wait_for(&told, 5).starts_with("Guest refused: there is no such file"));
    assert_eq!(points(&mut engine), 20);
    stage.write("guest.wasm", gives(1));
    assert_eq!(wait_for(&told, 6), "Guest reloaded");
    assert_eq!(points(&mut engine), 1);
}

#[test]
fn a_file_with_the_same_content_is_not_loaded_again() {
    let stage = Stage::with(gives(5));
    let told = listen(&stage);
    let mut engine = stage.engine(cluster([node("a")]));
    let _watch = stage.host.watch().unwrap();
    stage.write("guest.wasm", gives(5));
    // Long enough for the first to have been seen, if it counted.
    thread::sleep(Duration::from_secs(2));
    stage.write("guest.wasm", gives(6));
    wait_for(&told, 1);
    assert_eq!(*told.lock().unwrap(), ["Guest reloaded"]);
    assert_eq!(points(&mut engine), 6);
}
