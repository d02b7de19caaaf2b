//! The scenarios of tests/live, played on virtual time and compared with what kube-scheduler did.
//!
//! `SCENARIO=part-of-a-name` plays only some, and `SEED=7` another course of chance. What was seen is written to the folder
//! that `RECORD` names.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use supercargo_simulation::scenario::{
    Difference, Expectation, Level, Scenario, SimulatedStage, Stage, differences, play, read_folder,
};

/// What differs, by scenario: an error, or differences.
type Outcome = BTreeMap<String, Result<Vec<Difference>, String>>;

/// Seeds for which whole seconds begin at other moments.
const OTHER_SEEDS: [u64; 2] = [3, 6];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live").join(name)
}

fn seed() -> u64 {
    env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

fn scenarios() -> Vec<Scenario> {
    let only = env::var("SCENARIO").unwrap_or_default();
    let scenarios = read_folder(&folder("scenarios")).expect("scenarios").into_iter();
    scenarios.filter(|scenario| scenario.name.contains(&only)).collect()
}

/// Plays every scenario once, for all tests.
fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let played = |scenario: &Scenario| {
            let seen = seen(scenario, seed())?;
            if let Some(folder) = env::var_os("RECORD") {
                record(&PathBuf::from(folder), scenario, &seen);
            }
            compared(scenario, &seen)
        };
        scenarios().iter().map(|scenario| (scenario.name.clone(), played(scenario))).collect()
    })
}

fn seen(scenario: &Scenario, seed: u64) -> Result<Map<String, Value>, String> {
    let registry = supercargo_plugins::registry();
    let stage = SimulatedStage::new(scenario, &registry, seed);
    play(scenario, &mut stage.map_err(|problems| problems.to_string())?)
}

fn compared(scenario: &Scenario, seen: &Map<String, Value>) -> Result<Vec<Difference>, String> {
    let expectation = Expectation::read(&folder("expect"), &scenario.name);
    Ok(differences(&expectation.map_err(|error| error.to_string())?, seen))
}

fn record(folder: &Path, scenario: &Scenario, seen: &Map<String, Value>) {
    let record = json!({"theme": scenario.theme, "checkpoints": seen, "ignore": []});
    let text = serde_json::to_string_pretty(&record).expect("it is written");
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join(format!("{}.json", scenario.name)), text).expect("a file");
}

/// Why something differs, and what.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDifference {
    #[allow(dead_code, reason = "for people")]
    reason: String,
    /// Scenarios that end otherwise.
    #[serde(default)]
    scenarios: Vec<String>,
    /// Counts that are others.
    #[serde(default)]
    counts: Vec<String>,
}

fn known() -> Vec<KnownDifference> {
    let text = fs::read_to_string(folder("known-differences.json")).expect("known differences");
    serde_json::from_str(&text).expect("known differences")
}

/// The scenarios that are known to end otherwise.
fn known_to_differ() -> Vec<String> {
    known().into_iter().flat_map(|known| known.scenarios).collect()
}

#[test]
fn the_cluster_becomes_what_kube_scheduler_makes_of_it() {
    let known = known_to_differ();
    let mut report = String::new();
    for (name, outcome) in outcome() {
        let found: Vec<String> = match outcome {
            Err(why) => vec![why.clone()],
            Ok(differences) => (differences.iter().filter(|one| one.level() <= Level::Events))
                .map(|one| format!("{:?} {one}", one.level()))
                .collect(),
        };
        match (known.contains(name), found.is_empty()) {
            (true, true) => writeln!(report, "{name} does not differ any more: take it off the list"),
            (false, false) => writeln!(report, "{name} differs:\n    {}", found.join("\n    ")),
            (true, false) | (false, true) => Ok(()),
        }
        .expect("a string");
    }
    assert!(report.is_empty(), "of {} scenarios:\n{report}", outcome().len());
}

#[test]
fn counts_differ_only_where_it_is_known_why() {
    let differing = known_to_differ();
    let known = known();
    let played = |line: &&String| outcome().keys().any(|name| line.starts_with(&format!("{name}: ")));
    let listed: Vec<&String> = known.iter().flat_map(|known| &known.counts).filter(played).collect();
    let mut found: Vec<String> = Vec::new();
    for (name, outcome) in outcome().iter().filter(|(name, _)| !differing.contains(name)) {
        let differences = outcome.iter().flatten().filter(|one| one.level() == Level::Metrics);
        found.extend(differences.map(|one| format!("{name}: {one}")));
    }
    let new: Vec<&String> = found.iter().filter(|line| !listed.contains(line)).collect();
    let mended: Vec<&&String> = listed.iter().filter(|line| !found.contains(line)).collect();
    assert!(
        new.is_empty() && mended.is_empty(),
        "tests/live/known-differences.json is not what is found.\nnew: {new:#?}\nmended: {mended:#?}"
    );
}

#[test]
fn it_does_not_matter_when_whole_seconds_begin() {
    let mut report = String::new();
    for scenario in &scenarios() {
        let first = outcome().get(&scenario.name);
        for seed in OTHER_SEEDS {
            let other = seen(scenario, seed).and_then(|seen| compared(scenario, &seen));
            if first != Some(&other) {
                writeln!(report, "{} with seed {seed}: {other:#?}", scenario.name).expect("a string");
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn the_same_seed_leads_to_the_same_course_of_things() {
    let registry = supercargo_plugins::registry();
    let everything = |scenario: &Scenario| {
        let mut stage = SimulatedStage::new(scenario, &registry, seed()).expect("a stage");
        let seen = play(scenario, &mut stage);
        // Names, identities, versions and times among it.
        let lists = ["/api/v1/pods", "/apis/events.k8s.io/v1/events", "/api/v1/persistentvolumeclaims"];
        (seen, lists.map(|list| stage.request("GET", list, "", Value::Null)))
    };
    for scenario in scenarios() {
        assert_eq!(everything(&scenario), everything(&scenario), "{}", scenario.name);
    }
}
