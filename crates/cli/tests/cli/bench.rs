//! `supercargo bench`: what it prints, not how fast it is.

use serde_json::Value;

use crate::invocation::supercargo;

/// Every kind, in the order of the tables; `sampled` has a row for each of the first five and each percentage.
const KINDS: [&str; 17] = [
    "basic",
    "nodeaffinity",
    "spread",
    "interpod",
    "unique",
    "refused",
    "refused-changed",
    "preempt",
    "churn",
    "volumes",
    "nodevolumelimits",
    "affinity-required",
    "spread-hard",
    "extender",
    "devices",
    "devices-constraints",
    "devices-alternatives",
];
const SAMPLES: [i64; 4] = [0, 5, 20, 50];

fn rows(arguments: &str) -> Vec<Value> {
    let ran = supercargo(&format!("bench {arguments} --json"));
    assert_eq!(ran.code, Some(0), "{ran}");
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn json_has_an_object_with_the_agreed_fields_for_each_kind() {
    let mut rows = rows("--nodes 60 --bound 120 --pods 40");
    let (simulate, start) = (rows.pop().unwrap(), rows.pop().unwrap());
    for (row, kind) in [(&start, "start"), (&simulate, "simulate")] {
        assert_eq!((&row["kind"], &row["nodes"], &row["bound"]), (&kind.into(), &60.into(), &120.into()));
        assert!(row["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{row}");
    }
    assert_eq!(simulate["pods"], 20);
    let told: Vec<(&str, i64)> =
        rows.iter().map(|row| (row["kind"].as_str().unwrap(), row["percentage"].as_i64().unwrap())).collect();
    let sampled = KINDS[..5].iter().flat_map(|kind| SAMPLES.map(|percentage| (*kind, percentage)));
    let expected: Vec<(&str, i64)> = KINDS.iter().map(|kind| (*kind, 100)).chain(sampled).collect();
    assert_eq!(told, expected);
    for row in &rows {
        assert_eq!((&row["nodes"], &row["bound"], &row["pods"]), (&60.into(), &120.into(), &40.into()));
        // All come to what they are to: a node, as 60 of 32 cpus have room for 160; a refusal; or victims.
        assert_eq!(row["placed"], 40, "{row}");
        for field in ["pods_per_second", "p50_us", "p99_us", "p999_us"] {
            assert!(row[field].as_f64().is_some_and(|number| number > 0.0), "{field} in {row}");
        }
        assert_eq!(row["ratio"].is_null(), row["kind"] == "extender", "{row}");
        assert_eq!(row["ratio_to_all_nodes"].is_null(), row["percentage"] == 100, "{row}");
        assert!(row["peak_rss_mb"].is_u64(), "{row}");
    }
}

#[test]
fn without_a_number_of_bound_pods_there_are_two_for_each_node() {
    let rows = rows("--kind refused --nodes 20 --pods 3");
    assert_eq!((rows.len(), &rows[0]["bound"]), (1, &40.into()), "{rows:?}");
}

#[test]
fn one_kind_is_a_table_with_one_row() {
    let ran = supercargo("bench --kind spread --nodes 30 --bound 0 --pods 5 --percentage 0");
    assert_eq!(ran.code, Some(0), "{ran}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{ran}");
    assert!(lines[0].starts_with("KIND") && lines[1].starts_with("spread"), "{ran}");
}

#[test]
fn devices_are_given_until_there_are_none() {
    // 6 nodes of 8 devices: 48 claims for one, 24 for two of the same root.
    for (kind, pods, placed) in
        [("devices", 50, 48), ("devices-constraints", 25, 24), ("devices-alternatives", 50, 48)]
    {
        let ran = supercargo(&format!("bench --kind {kind} --nodes 6 --bound 12 --pods {pods} --json"));
        assert_eq!(ran.code, Some(0), "{ran}");
        let row: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((row["kind"].as_str(), row["placed"].as_u64()), (Some(kind), Some(placed)), "{row}");
    }
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for arguments in ["--nodes 0", "--pods 0", "--percentage 101", "--kind fast", "--nodes many"] {
        let ran = supercargo(&format!("bench {arguments}"));
        assert_eq!(ran.code, Some(2), "{arguments}: {ran}");
        assert!(ran.stdout.is_empty() && ran.stderr.contains("error:"), "{arguments}: {ran}");
    }
}
