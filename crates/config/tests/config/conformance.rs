//! What a real kube-scheduler made of configurations: `data/configurations.json`.

use serde_json::Value;
use supercargo_config::load;
use supercargo_manifest::{Problem, Severity, Source};

const CASES: &str = include_str!("../data/configurations.json");

fn cases() -> Vec<Value> {
    serde_json::from_str(CASES).expect("the data is JSON")
}

fn check(case: &Value) -> Result<(), String> {
    let input = case["input"].as_str().ok_or("a case has an input")?;
    let result = load(&Source::new("config.yaml", input), &supercargo_plugins::registry());
    if let Some(expected) = case.get("effective") {
        let loaded = result.map_err(|problems| format!("is refused:\n{problems}"))?;
        let effective = serde_json::to_value(loaded.configuration.effective()).map_err(|e| e.to_string())?;
        return if effective == *expected {
            Ok(())
        } else {
            Err(format!("means {effective:#}\nnot {expected:#}"))
        };
    }
    if case.get("documented").is_some() {
        let loaded = result.map_err(|problems| format!("is refused:\n{problems}"))?;
        return if loaded.warnings.is_empty() { Err("is not warned about".into()) } else { Ok(()) };
    }
    let Err(problems) = result else {
        return Err("is accepted".into());
    };
    let errors: Vec<&Problem> =
        problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    for path in case["errorPaths"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !errors.iter().any(|error| names(&error.path, path)) {
            return Err(format!("is not blamed on {path}:\n{problems}"));
        }
    }
    Ok(())
}

/// Ours may say more precisely where in the field the mistake is; kube-scheduler leaves out where the
/// arguments of a plugin stand when the plugin itself refuses them.
fn names(ours: &str, expected: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    ours.strip_prefix(expected).is_some_and(ends) || ours.ends_with(&format!(".args.{expected}"))
}

#[test]
fn means_what_kube_scheduler_says() {
    let failures: Vec<String> = (cases().iter())
        .filter_map(|case| check(case).err().map(|why| format!("{}\n{why}", case["input"])))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n\n{}", failures.len(), cases().len(), failures.join("\n\n"));
}

#[test]
fn errors_are_all_located() {
    for case in cases().iter().filter(|case| case.get("error").is_some()) {
        let input = case["input"].as_str().unwrap_or_default();
        let Err(problems) = load(&Source::new("config.yaml", input), &supercargo_plugins::registry()) else {
            continue;
        };
        assert!(problems.iter().all(|problem| problem.at.is_some()), "{problems}");
    }
}
