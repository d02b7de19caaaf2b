//! Explanations agree with what kube-scheduler answered, in every number.

use std::{fs, io::Read, path::Path};

use flate2::read::GzDecoder;
use supercargo_manifest::Source;
use supercargo_sim::{conformance::ConformanceCase, explanation::Explanation, report::PodReport};

fn scenarios() -> Vec<Source> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/scenarios");
    let files = fs::read_dir(folder).expect("the conformance data");
    let read = |file: fs::DirEntry| {
        let packed = fs::read(file.path()).expect("a readable file");
        let mut text = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("packed text");
        Source::new(file.file_name().to_string_lossy(), text)
    };
    // What was written for a pod's claims is there for the next: devices.rs follows that.
    let has_claims = |file: &fs::DirEntry| file.file_name().to_string_lossy().starts_with("dra-");
    files.map(|file| file.expect("an entry")).filter(|file| !has_claims(file)).map(read).collect()
}

/// Every number of a feasible node, and that its points add up.
fn compare_scores(place: &str, expected: &PodReport, got: &Explanation) -> usize {
    let mut numbers = 0;
    assert_eq!(got.nodes.len(), expected.feasible.len(), "{place}");
    for (i, name) in expected.feasible.iter().enumerate() {
        let node =
            got.nodes.iter().find(|node| node.name == *name).unwrap_or_else(|| panic!("{place}: {name}"));
        assert_eq!(node.total, expected.total[i], "{place}: {name}");
        let ahead = expected.total.iter().filter(|total| **total > expected.total[i]).count();
        assert_eq!(node.rank, ahead + 1, "{place}: {name}");
        assert_eq!(node.plugins.len(), expected.plugins.len(), "{place}: {name}");
        for (plugin, scores) in &expected.plugins {
            let points = node.plugins[plugin];
            assert_eq!(
                (points.normalized, points.weight),
                (scores.scores[i], scores.weight),
                "{place}: {plugin}"
            );
            assert_eq!(points.points, scores.scores[i] * i64::from(scores.weight), "{place}: {plugin}");
            numbers += 3;
        }
        let sum: i64 = node.plugins.values().map(|points| points.points).sum();
        assert_eq!(sum, node.total, "{place}: {name}");
        numbers += 2;
    }
    numbers
}

/// Whoever kube-scheduler says refused a node is the first of those who do, and nobody else is said to be reported.
fn compare_refusals(place: &str, expected: &PodReport, got: &Explanation) -> usize {
    for node in &got.why_not {
        let place = format!("{place}: {}", node.node);
        assert!(node.exists, "{place}");
        let reported: Vec<_> = node.objections.iter().filter(|objection| objection.reported).collect();
        match (expected.rejected.get(&node.node), &expected.pre_filter) {
            (Some(refusal), _) if refusal.is_ruled_out() => assert_eq!(reported.len(), 1, "{place}"),
            (Some(refusal), _) => {
                let [objection] = reported[..] else { panic!("{place}: {:?}", node.objections) };
                let mut reasons = objection.reasons.clone();
                reasons.sort();
                assert_eq!(objection.plugin, refusal.plugin, "{place}");
                assert_eq!(objection.code, refusal.code, "{place}");
                assert_eq!(Some(reasons), refusal.reasons, "{place}");
                let first = node.objections.iter().find(|objection| objection.point == "filter");
                assert_eq!(first.map(|first| &first.plugin), Some(&refusal.plugin), "{place}");
            }
            (None, Some(_)) => assert_eq!(reported.len(), 1, "{place}"),
            (None, None) => {
                assert!(
                    expected.result == "Error" || node.objections.is_empty(),
                    "{place}: {:?}",
                    node.objections
                );
            }
        }
    }
    got.why_not.len()
}

#[test]
fn explanations_agree_with_the_conformance_data_in_every_number() {
    let registry = supercargo_plugins::registry();
    let (mut pods, mut numbers, mut refusals) = (0, 0, 0);
    for source in scenarios() {
        let scenario =
            ConformanceCase::read(&source, &registry).unwrap_or_else(|problems| panic!("{problems}"));
        let explained = scenario.explanations(&registry).unwrap_or_else(|problems| panic!("{problems}"));
        for (expected, got) in explained {
            let place = format!("{}: {}", scenario.name, expected.pod);
            assert_eq!(got.report.result, expected.result, "{place}");
            assert_eq!(got.report.best, expected.best, "{place}");
            numbers += compare_scores(&place, expected, &got);
            refusals += compare_refusals(&place, expected, &got);
            let refused: usize = got.rejections.iter().map(|group| group.count).sum();
            let ruled_out = got.ruled_out.as_ref().map_or(0, |ruled_out| ruled_out.nodes.len());
            assert_eq!(refused + ruled_out, expected.rejected.len(), "{place}");
            pods += 1;
        }
    }
    assert!(pods > 2_500 && numbers > 100_000 && refusals > 20_000, "{pods} {numbers} {refusals}");
}
