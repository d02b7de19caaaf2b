//! `supercargo load-test`: what it prints and writes, not how fast it is.

use serde_json::Value;

use crate::invocation::supercargo;

const SMALL: &str =
    "load-test --nodes 20 --bound 20 --pods 60 --room 20 --overload 3 --churn 20 --hold 600ms";

#[test]
fn all_parts_are_measured_and_plotted() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("load.svg");
    let ran = supercargo(&format!("{SMALL} --json --plot {}", plot.display()));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"));
    let parts = report["parts"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().filter_map(|part| part["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "start",
            "load",
            "churn",
            "overload",
            "relief",
            "overload again",
            "relief again",
            "restart",
            "restart, overloaded"
        ]
    );
    let bound: u64 = parts.iter().filter_map(|part| part["bound"].as_u64()).sum();
    // 60 at first, the room of 20 twice and at last once more.
    assert!(bound >= 120, "{ran}");
    let promises = report["promises"].as_array().unwrap();
    let referee = promises.last().unwrap();
    assert_eq!((&referee["measured"], &referee["kept"]), (&"0".into(), &true.into()), "{ran}");
    assert!(std::fs::read_to_string(plot).unwrap().starts_with("<svg "));
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for arguments in ["--nodes 0", "--pods 0", "--room 0", "--overload 1000", "--hold soon"] {
        let ran = supercargo(&format!("load-test {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran}");
        assert!(ran.stdout.is_empty() && ran.stderr.contains("error:"), "{arguments}: {ran}");
    }
}
