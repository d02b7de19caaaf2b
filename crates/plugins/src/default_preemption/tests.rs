//! The choice among candidates and the arguments. What a node's victims are needs filters that run: see the engine's tests.

mod evictions;

use std::sync::Arc;

use supercargo_manifest::Source;
use supercargo_model::testing::pod;

use super::{candidate::best, *};

fn with_args(text: &str) -> Result<DefaultPreemption, Problems> {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    DefaultPreemption::new(&Args::new(&source, &documents[0], "args"))
}

/// A victim of a priority that has run since a second of this minute.
fn victim(priority: i32, second: u32) -> Arc<Pod> {
    let name = format!("v-{priority}-{second}");
    pod(&name).priority(priority).started(&format!("2026-01-01T00:00:{second:02}Z")).pod()
}

fn candidate(node: &str, budget_violations: i64, victims: &[(i32, u32)]) -> Candidate {
    Candidate {
        node: node.into(),
        victims: victims.iter().map(|(priority, second)| victim(*priority, *second)).collect(),
        budget_violations,
    }
}

#[test]
fn questions_one_after_another() {
    const LOWEST: i32 = i32::MIN;
    // (name, candidates; the one with the capital letter is best)
    let cases = [
        ("none", vec![], None),
        ("only one", vec![candidate("A", 9, &[(100, 1)])], Some("A")),
        (
            "the fewest violated budgets, whatever else",
            vec![candidate("a", 1, &[(1, 1)]), candidate("B", 0, &[(900, 1), (900, 1)])],
            Some("B"),
        ),
        (
            "the least important of the most important victims",
            vec![candidate("a", 0, &[(10, 1)]), candidate("B", 0, &[(9, 1), (9, 1), (9, 1)])],
            Some("B"),
        ),
        (
            "the lowest sum of priorities",
            vec![candidate("a", 0, &[(10, 1), (5, 1)]), candidate("B", 0, &[(10, 1), (4, 1)])],
            Some("B"),
        ),
        (
            // Each counts with its priority + 2³¹, so that a victim below 0 does not make a set cheaper.
            "a negative victim more is still a victim more",
            vec![candidate("a", 0, &[(-1, 1), (-9, 1)]), candidate("B", 0, &[(-1, 1)])],
            Some("B"),
        ),
        (
            // 10 + 2³¹ + (−2³¹ + 2³¹) = 10 + 2³¹: equal sums, so the number decides.
            "the fewest victims",
            vec![candidate("a", 0, &[(10, 1), (LOWEST, 1)]), candidate("B", 0, &[(10, 1)])],
            Some("B"),
        ),
        (
            "those that have run the shortest",
            vec![candidate("a", 0, &[(10, 1), (5, 9)]), candidate("B", 0, &[(10, 2), (5, 3)])],
            Some("B"),
        ),
        (
            "by the earliest start of the most important",
            vec![candidate("a", 0, &[(10, 8), (10, 1)]), candidate("B", 0, &[(10, 3), (10, 2)])],
            Some("B"),
        ),
        (
            "the first of equals",
            vec![candidate("A", 0, &[(10, 1)]), candidate("b", 0, &[(10, 1)])],
            Some("A"),
        ),
    ];
    for (name, candidates, expected) in cases {
        let chosen = best(candidates).map(|candidate| candidate.node);
        assert_eq!(chosen.as_deref(), expected, "{name}");
    }
}

#[test]
fn a_victim_that_has_not_told_its_start_has_run_the_shortest() {
    let mut unknown = candidate("B", 0, &[]);
    unknown.victims.push(pod("v").priority(10).pod());
    let chosen = best(vec![candidate("a", 0, &[(10, 59)]), unknown]).unwrap();
    assert_eq!(&*chosen.node, "B");
}

#[test]
fn how_many_candidates_are_enough() {
    // (arguments, nodes, candidates)
    let cases = [
        // 10% of the nodes, at least 100, at most all
        ("{}", 50, 50),
        ("{}", 500, 100),
        ("{}", 5_000, 500),
        ("{minCandidateNodesPercentage: 0}", 5_000, 100),
        ("{minCandidateNodesAbsolute: 0}", 505, 50),
        ("{minCandidateNodesPercentage: 100, minCandidateNodesAbsolute: 1}", 7, 7),
        ("{minCandidateNodesAbsolute: 0}", 5, 0),
        ("{}", 0, 0),
    ];
    for (args, nodes, expected) in cases {
        let plugin = with_args(args).unwrap();
        assert_eq!(plugin.enough_candidates(nodes), expected, "{args} {nodes}");
    }
}

#[test]
fn bad_arguments_are_told_with_their_place() {
    let cases: &[(&str, &[&str])] = &[
        ("{minCandidateNodesPercentage: 101}", &["args.minCandidateNodesPercentage"]),
        ("{minCandidateNodesPercentage: -1}", &["args.minCandidateNodesPercentage"]),
        ("{minCandidateNodesAbsolute: -1}", &["args.minCandidateNodesAbsolute"]),
        (
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            &["args.minCandidateNodesPercentage", "args.minCandidateNodesAbsolute"],
        ),
        ("{minCandidates: 1}", &["args.minCandidates"]),
    ];
    for (text, expected) in cases {
        let Err(problems) = with_args(text) else {
            panic!("{text} has a problem");
        };
        let paths: Vec<&str> = problems.0.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(paths, *expected, "{text}");
    }
}
