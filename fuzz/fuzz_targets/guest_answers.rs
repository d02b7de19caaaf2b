//! What a guest returns, writes and asks for, at any call and in any order: a pod's cycle ends with scores in range, or with an
//! error that names the guest.
//!
//! The bytes are a program for a guest that does as its arguments say (`guests/interpreter.wat`).
#![no_main]

#[path = "../guests/stage.rs"]
mod stage;

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use stage::{BEGINNING, Stage, check, check_problems};
use supercargo_model::{
    Key, Kind,
    testing::{cluster, node, pod},
};

const INTERPRETER: &str = include_str!("../guests/interpreter.wat");

thread_local! {
    static STAGE: Stage = {
        let stage = Stage::new();
        let module = wat::parse_str(format!("(module {BEGINNING} {INTERPRETER})"));
        stage.write(&module.unwrap_or_else(|error| panic!("{error}")));
        stage
    };
}

fuzz_target!(|program: &[u8]| {
    let mut digits = String::new();
    program.iter().for_each(|byte| write!(digits, "{byte:02x}").expect("a string takes everything"));
    let limits = "fuel: 100000, timeout: 1s, memory: 512Ki, instances: 1";
    let labelled = |name: &str| node(name).label("x", name);
    let cluster = cluster([labelled("a"), labelled("b"), labelled("c")]);
    let engine = STAGE.with(|stage| stage.engine(cluster, &format!("{limits}, args: \"{digits}\"")));
    let mut engine = match engine {
        Ok(engine) => engine,
        Err(problems) => return check_problems(&problems),
    };
    for name in ["p", "q", "r"] {
        let pod = engine.admit(pod(name).label("x", name).pod());
        check(&engine.decide(&pod).expect("there is a profile for it"));
        let placed = engine.place(&pod).expect("there is a profile for it");
        let chosen = placed.node().cloned();
        if let Some(chosen) = chosen {
            assert!(engine.cluster().node(&chosen).is_some(), "{chosen} is a node");
            engine.assume(&pod, chosen);
        }
        engine.cluster_mut().remove(Kind::Node, &Key::new("", "a"));
        engine.cluster_mut().put(labelled(&format!("another-{name}")).object());
    }
});
