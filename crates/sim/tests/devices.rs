//! Theme `dra` of the conformance data: verdicts, scores, the devices of every feasible node, and all writes, as kube-scheduler
//! 1.36.4 had them.

use std::{fs, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use supercargo_manifest::Source;
use supercargo_sim::conformance::ConformanceCase;

#[test]
fn claims_get_what_kube_scheduler_gave_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/scenarios");
    let registry = supercargo_plugins::registry();
    let (mut pods, mut different) = (0, Vec::new());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("dra-") {
            continue;
        }
        let mut text = String::new();
        GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        let case = ConformanceCase::read(&Source::new(name.clone(), text), &registry)
            .unwrap_or_else(|problems| panic!("{name}: {problems}"));
        pods += case.pods();
        let found = case.check(&registry).unwrap_or_else(|problems| panic!("{name}: {problems}"));
        different.extend(found.into_iter().map(|one| {
            let node = one.node.unwrap_or_default();
            format!(
                "{name} {} {node} {}:\n  expected {}\n  got      {}",
                one.pod, one.what, one.expected, one.got
            )
        }));
    }
    different.sort();
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
    assert!(pods > 1500, "{pods}");
}
