//! What guests write to the scheduler's log: as they say it, and no more than they may.

use std::sync::{Arc, Mutex};

use supercargo_framework::handle::LogLevel;
use supercargo_model::testing::{cluster, node, pod};
use supercargo_wasm::GuestEvent;

use crate::support::{Stage, error, guest_importing};

/// Logs so many times in its score step: at a level, so many bytes of a page full of `x`.
fn logs(times: usize, level: u32, bytes: u32) -> Vec<u8> {
    let call = format!("(call $log (i32.const {level}) (i32.const 0) (i32.const {bytes}))");
    guest_importing(
        r#"(import "supercargo" "log" (func $log (param i32 i32 i32)))"#,
        &format!(
            r#"(data (i32.const 0) "{}")
               (func (export "supercargo_score") (param $frame i32) (result i32) {} (i32.const 0))"#,
            "x".repeat(2000),
            call.repeat(times)
        ),
    )
}

/// Lines by level and length, and how many were left out.
type Told = (Vec<(LogLevel, usize)>, u64);

/// What is told while one pod is decided.
fn told(guest: Vec<u8>) -> Told {
    let stage = Stage::with(guest);
    let told: Arc<Mutex<Told>> = Arc::default();
    let notes = told.clone();
    stage.host.listen(move |event| {
        let mut notes = notes.lock().unwrap();
        match *event {
            GuestEvent::Logged { plugin: "Guest", level, line } => notes.0.push((level, line.len())),
            GuestEvent::LeftOut { plugin: "Guest", lines } => notes.1 += lines,
            ref other => panic!("{other:?}"),
        }
    });
    let mut engine = stage.engine(cluster([node("a"), node("b")]));
    let pod = engine.admit(pod("p").pod());
    assert!(engine.decide(&pod).unwrap().node().is_some());
    let told = told.lock().unwrap();
    (told.0.clone(), told.1)
}

#[test]
fn lines_are_told_with_their_level() {
    for (code, level) in [(0, LogLevel::Info), (1, LogLevel::Warn), (2, LogLevel::Error)] {
        let (lines, left_out) = told(logs(1, code, 5));
        assert!(!lines.is_empty() && lines.iter().all(|line| *line == (level, 5)), "{lines:?}");
        assert_eq!(left_out, 0);
    }
}

#[test]
fn what_is_too_much_is_cut_or_counted() {
    // 1024 bytes, and three of an ellipsis.
    let (lines, _) = told(logs(1, 0, 2000));
    assert!(!lines.is_empty() && lines.iter().all(|line| *line == (LogLevel::Info, 1027)), "{lines:?}");
    // Of 20 lines in a call 16 are told, however often the guest is called.
    let (lines, left_out) = told(logs(20, 0, 3));
    let calls = lines.len() / 16;
    assert!(calls > 0, "{lines:?}");
    assert_eq!((lines.len(), left_out), (16 * calls, 4 * calls as u64));
}

#[test]
fn a_level_that_there_is_not_fails_the_call() {
    let stage = Stage::with(logs(1, 3, 1));
    let mut engine = stage.engine(cluster([node("a"), node("b")]));
    let pod = engine.admit(pod("p").pod());
    let message = error(&mut engine, &pod);
    assert!(message.contains("the log level 3 means nothing: 0 is info, 1 warn, 2 error"), "{message}");
}
