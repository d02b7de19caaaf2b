//! No expression makes compiling or evaluating panic, or go on without end; what compiles costs no more than it may, and the same
//! each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use supercargo_cel::{
    COST_LIMIT, DeviceFact, DeviceFacts, DeviceSelector, EvaluationErrorKind, SelectableDevice,
};

fuzz_target!(|text: &str| {
    let selector = match DeviceSelector::compile(text) {
        Ok(selector) => selector,
        Err(defect) => return assert!(!defect.message.is_empty()),
    };
    let device = device(text);
    let evaluated = selector.evaluate(&device);
    assert_eq!(evaluated, selector.evaluate(&device));
    match &evaluated.result {
        Err(error) if error.kind == EvaluationErrorKind::TooExpensive => {}
        _ => assert!(evaluated.cost <= COST_LIMIT, "{}", evaluated.cost),
    }
});

fn device(text: &str) -> SelectableDevice {
    let mut facts = DeviceFacts::new("gpu.example.com", true);
    let known = [
        ("model", DeviceFact::Text(text)),
        ("index", DeviceFact::Int(text.len() as i64)),
        ("healthy", DeviceFact::Bool(true)),
        ("driverVersion", DeviceFact::Version("2.0.0-rc.1+build.7")),
        ("ext.example.org/rack", DeviceFact::Text("r1")),
    ];
    for (name, fact) in known {
        facts.attribute(name, fact).expect("these have values");
    }
    facts.capacity("memory", "40Gi");
    facts.capacity("cores", text);
    facts.build()
}
