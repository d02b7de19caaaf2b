//! The manifests of deploy/ and of the Helm chart have the fields of their kinds, with values of their types, and fit each other.
//!
//! There is no helm here: the chart keeps to a small part of the template language, which [`chart`](crate::chart) renders and
//! refuses anything beyond.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    chart,
    documents::{known_metrics, metrics_in},
    invocation::{data, project, run, supercargo},
};

/// The documents of a text in YAML, as JSON.
pub(crate) fn documents(name: &str, text: &str) -> Vec<Value> {
    let source = supercargo_manifest::Source::new(name, text);
    let documents =
        supercargo_manifest::read(&source).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let json = documents.iter().map(|document| serde_json::from_str(&document.to_json()).expect("JSON"));
    json.filter(|document: &Value| !document.is_null()).collect()
}

fn deployed(name: &str) -> Vec<Value> {
    documents(name, &fs::read_to_string(project().join("deploy").join(name)).expect("a file of deploy/"))
}

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(data().join("manifest-schema.json")).unwrap()).unwrap()
}

/// Checks a value against a type of the schema, and adds what is wrong.
fn check(schema: &Value, kind: &str, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let mut expect = |holds: bool| {
        if !holds {
            wrong.push(format!("{path}: {value} is no {kind}"));
        }
    };
    if let Some(expected) = kind.strip_prefix('=') {
        return expect(value == expected);
    }
    if let Some(inner) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        let Some(items) = value.as_array() else { return expect(false) };
        for (i, item) in items.iter().enumerate() {
            check(schema, inner, item, &format!("{path}[{i}]"), wrong);
        }
        return;
    }
    if let Some(inner) = kind.strip_prefix('{').and_then(|kind| kind.strip_suffix('}')) {
        let Some(entries) = value.as_object() else { return expect(false) };
        for (key, item) in entries {
            check(schema, inner, item, &format!("{path}.{key}"), wrong);
        }
        return;
    }
    match kind {
        "string" => expect(value.is_string()),
        "integer" => expect(value.is_i64()),
        "boolean" => expect(value.is_boolean()),
        "integer|string" => expect(value.is_i64() || value.is_string()),
        _ => {
            let fields = schema[kind].as_object().unwrap_or_else(|| panic!("the schema has no {kind:?}"));
            let Some(entries) = value.as_object() else { return expect(false) };
            for (key, item) in entries {
                let path = format!("{path}.{key}");
                match fields.get(key).and_then(Value::as_str) {
                    Some(kind) => check(schema, kind, item, &path, wrong),
                    None => wrong.push(format!("{path}: {kind} has no such field")),
                }
            }
        }
    }
}

/// What is wrong with objects, by the schema and by each other.
fn problems(objects: &[Value]) -> Vec<String> {
    let (schema, mut wrong) = (schema(), Vec::new());
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let path = format!("{kind}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
        if schema[kind].is_object() {
            check(&schema, kind, object, &path, &mut wrong);
        } else {
            wrong.push(format!("{path}: the schema has no such kind"));
        }
        let (wanted, labels) =
            (&object["spec"]["selector"]["matchLabels"], &object["spec"]["template"]["metadata"]["labels"]);
        let selects = |(key, value): (&String, &Value)| labels[key] == *value;
        if kind == "Deployment" && !wanted.as_object().is_some_and(|wanted| wanted.iter().all(selects)) {
            wrong.push(format!("{path}: its selector {wanted} does not select its own pods, {labels}"));
        }
    }
    wrong
}

const FILES: [&str; 7] = [
    "rbac.yaml",
    "scheduler.yaml",
    "second-scheduler.yaml",
    "podmonitor.yaml",
    "alerts.yaml",
    "kubeadm/kube-scheduler.yaml",
    "kubeadm/kube-scheduler+strategic.yaml",
];

#[test]
fn they_have_the_fields_of_their_kinds() {
    for file in FILES {
        let objects = deployed(file);
        assert!(!objects.is_empty(), "{file} is empty");
        let wrong = problems(&objects);
        assert!(wrong.is_empty(), "{file}: {wrong:#?}");
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let mut deployment =
        deployed("scheduler.yaml").into_iter().find(|object| object["kind"] == "Deployment").unwrap();
    deployment["spec"]["replica"] = json!(2);
    deployment["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] = json!("10259");
    deployment["spec"]["template"]["metadata"]["labels"] = json!({});
    let wrong = problems(&[deployment]);
    for (found, expected) in
        wrong.iter().zip(["replica: DeploymentSpec has no such field", "is no integer", "does not select"])
    {
        assert!(found.contains(expected), "{wrong:#?}");
    }
    assert_eq!(wrong.len(), 3, "{wrong:#?}");
}

#[test]
fn every_kind_of_pod_starts_the_command_with_flags_that_it_knows() {
    let mut pods: Vec<Value> = FILES.iter().flat_map(|file| deployed(file)).collect();
    for values in chart::VALUES {
        pods.extend(chart::render(values));
    }
    let mut started = 0;
    for object in
        pods.iter().filter(|object| ["Pod", "Deployment"].contains(&object["kind"].as_str().unwrap()))
    {
        let spec =
            if object["kind"] == "Pod" { &object["spec"] } else { &object["spec"]["template"]["spec"] };
        let container = &spec["containers"][0];
        let words = container["command"].as_array().into_iter().chain(container["args"].as_array()).flatten();
        let words: Vec<&str> = words.filter_map(Value::as_str).filter(|word| *word != "supercargo").collect();
        assert_eq!(words[0], "run");
        // It ends at once, after all flags have been read.
        let ran = supercargo(&format!("{} --version", words.join(" ")));
        assert_eq!(ran.code, Some(0), "{words:?}: {ran}");
        let version = format!("supercargo:{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(container["image"], *version);
        started += 1;
    }
    assert!(started >= 6, "{started}");
}

#[test]
fn kubeadms_patch_makes_of_its_manifest_what_the_manifest_is() {
    let (manifest, patch) =
        (deployed("kubeadm/kube-scheduler.yaml"), deployed("kubeadm/kube-scheduler+strategic.yaml"));
    let (whole, part) = (&manifest[0]["spec"]["containers"][0], &patch[0]["spec"]["containers"][0]);
    for (field, value) in part.as_object().unwrap() {
        assert_eq!(whole[field], *value, "{field}");
    }
    assert_eq!(manifest[0]["metadata"]["name"], patch[0]["metadata"]["name"]);
}

#[test]
fn alerts_and_the_dashboard_ask_for_metrics_that_exist_and_say_what_they_mean() {
    let known = known_metrics();
    let rules = deployed("alerts.yaml").remove(0)["spec"]["groups"][0]["rules"].take();
    let rules = rules.as_array().unwrap();
    assert!(rules.len() >= 15);
    let operating = fs::read_to_string(project().join("docs/operating.md")).unwrap();
    for rule in rules {
        let (alert, expression) = (rule["alert"].as_str().unwrap(), rule["expr"].as_str().unwrap());
        for metric in metrics_in(expression) {
            assert!(known.contains(&metric), "{alert}: there is no metric {metric}");
        }
        check_brackets(expression);
        assert!(
            ["critical", "warning", "info"].contains(&rule["labels"]["severity"].as_str().unwrap()),
            "{alert}"
        );
        assert!(
            rule["annotations"]["summary"].is_string() && rule["annotations"]["description"].is_string(),
            "{alert}"
        );
        assert!(operating.contains(&format!("`{alert}`")), "docs/operating.md does not mention {alert}");
    }
    let dashboard = fs::read_to_string(project().join("deploy/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        assert!(
            panel["description"].as_str().is_some_and(|text| text.len() > 20),
            "{title} has no description"
        );
        let expressions: Vec<&str> = panel["targets"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|target| target["expr"].as_str())
            .collect();
        let asked = metrics_in(&expressions.join(" "));
        assert!(!asked.is_empty(), "{title} shows nothing");
        assert!(asked.is_subset(&known), "{title}: {asked:?}");
        expressions.iter().for_each(|expression| check_brackets(expression));
    }
    let ids: std::collections::BTreeSet<i64> =
        panels.iter().filter_map(|panel| panel["id"].as_i64()).collect();
    assert_eq!(ids.len(), panels.len(), "every panel has an id of its own");
    // Whatever only Supercargo measures is on the dashboard.
    let shown = metrics_in(&dashboard.to_string());
    let own = known.iter().filter(|name| name.starts_with("supercargo_"));
    let missing: Vec<&String> =
        own.filter(|name| !shown.contains(*name) && !name.ends_with("_build_info")).collect();
    let elsewhere = ["supercargo_events_dropped_total", "supercargo_watch_restarts_total"];
    assert!(missing.iter().all(|name| elsewhere.contains(&&***name)), "not on the dashboard: {missing:?}");
}

/// Brackets that match: a slip of the pen is found without Prometheus.
fn check_brackets(expression: &str) {
    let mut open = Vec::new();
    let mut quoted = false;
    for c in expression.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => open.push(c),
            ')' | ']' | '}' if !quoted => {
                let matching = match c {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                assert_eq!(open.pop(), Some(matching), "{expression}");
            }
            _ => {}
        }
    }
    assert!(open.is_empty() && !quoted, "{expression}");
}

#[test]
fn the_chart_renders_what_fits_together() {
    for values in chart::VALUES {
        let objects = chart::render(values);
        let wrong = problems(&objects);
        assert!(wrong.is_empty(), "{values}: {wrong:#?}");
        let named = |kind: &str| {
            objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
        };
        let config = named("ConfigMap")["data"]["config.yaml"].as_str().unwrap();
        let checked = run(&project(), "config check -", config);
        assert_eq!(checked.code, Some(0), "{checked}\n{config}");
        // The permission is for the Lease that is configured.
        let config = documents("config", config).remove(0);
        let lease = named("Role")["rules"][1]["resourceNames"][0].clone();
        assert_eq!(lease, config["leaderElection"]["resourceName"], "{values}");
        let account = &named("Deployment")["spec"]["template"]["spec"]["serviceAccountName"];
        assert_eq!(named("ServiceAccount")["metadata"]["name"], *account);
    }
}

/// Kinds that an operator brings along.
fn is_custom(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.starts_with("monitoring.coreos.com/"))
}

/// What kubectl makes of objects on a test cluster, if there is a kubectl.
#[test]
fn kubectl_takes_them() {
    if Command::new("kubectl").arg("version").arg("--client").output().is_err() {
        assert!(env::var_os("CI").is_none(), "CI installs kubectl");
        return;
    }
    let mut cluster = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(["testcluster", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test cluster starts");
    let mut address = String::new();
    BufReader::new(cluster.stdout.take().expect("a pipe")).read_line(&mut address).expect("its address");
    let sets = FILES.iter().map(|file| (file.to_string(), deployed(file)));
    let sets = sets.chain(chart::VALUES.iter().map(|values| ((*values).to_owned(), chart::render(values))));
    let folder = tempfile::tempdir().expect("a folder");
    let mut failures = Vec::new();
    for (name, mut objects) in sets {
        objects.retain(|object| !is_custom(object));
        if objects.is_empty() {
            continue;
        }
        let file = folder.path().join("list.json");
        fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
            .expect("a file");
        let arguments = ["apply", "--dry-run=client", "--validate=false", "--server", address.trim(), "-f"];
        let output = Command::new("kubectl").args(arguments).arg(&file).output().expect("kubectl runs");
        let created = String::from_utf8_lossy(&output.stdout).matches("(dry run)").count();
        if !output.status.success() || created != objects.len() {
            failures.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    // It may have ended by itself, and then the failures tell.
    let _ = cluster.kill();
    let _ = cluster.wait();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_charts_permissions_are_those_of_the_defaults() {
    let printed = supercargo("rbac").stdout;
    let expected = chart::permissions(&printed);
    let path = project().join("deploy/chart/templates/rbac.yaml");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).expect("the file can be written");
    }
    let hint = "stale: UPDATE_DOCS=1 cargo test -p supercargo --test cli manifests";
    assert_eq!(fs::read_to_string(path).unwrap(), expected, "{hint}");
}
