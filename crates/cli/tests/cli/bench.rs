//! `supercargo bench`: what it prints, not how fast it is.

use serde_json::Value;

use crate::invocation::supercargo;

#[test]
fn json_has_an_object_with_the_agreed_fields_for_each_kind() {
    let ran = supercargo("bench --nodes 60 --bound 120 --pods 40 --json");
    assert_eq!(ran.code, Some(0), "{ran}");
    let rows: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["basic", "nodeaffinity", "spread", "interpod", "unique"]);
    for row in &rows {
        assert_eq!((&row["nodes"], &row["bound"], &row["pods"]), (&60.into(), &120.into(), &40.into()));
        // All fit: 60 nodes of 32 cpus for 160 pods.
        assert_eq!(row["placed"], 40, "{row}");
        for field in ["pods_per_second", "p50_us", "p99_us", "p999_us", "ratio"] {
            assert!(row[field].as_f64().is_some_and(|number| number > 0.0), "{field} in {row}");
        }
        assert!(row["peak_rss_mb"].is_u64(), "{row}");
    }
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
