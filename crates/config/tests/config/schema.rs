//! The schema accepts what is accepted, and refuses unknown fields and wrong types.

use serde_json::Value;
use supercargo_config::{default_configuration, load, schema};
use supercargo_manifest::{Source, Value as Located, ValueKind};

fn the_schema() -> Value {
    serde_json::from_str(&schema(&supercargo_plugins::registry())).expect("the schema is JSON")
}

fn json(text: &str) -> Value {
    fn plain(value: &Located) -> Value {
        match &value.kind {
            ValueKind::Null => Value::Null,
            ValueKind::Bool(boolean) => Value::Bool(*boolean),
            ValueKind::Number(text) => serde_json::from_str(text).expect("the number is plain"),
            ValueKind::String(text) => Value::String(text.to_string()),
            ValueKind::List(items) => items.iter().map(plain).collect(),
            ValueKind::Map(entries) => entries.iter().map(|e| (e.key.to_string(), plain(&e.value))).collect(),
        }
    }
    plain(&text.parse().expect("it is YAML"))
}

/// The part of JSON Schema that ours uses.
fn accepts(schema: &Value, value: &Value) -> bool {
    let number = |key: &str| schema[key].as_f64();
    let has_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some(other) => panic!("the schema has the unknown type {other}"),
        None => true,
    };
    let has_fields = value.as_object().is_none_or(|map| {
        let known = schema["properties"].as_object();
        map.iter().all(|(key, value)| match known.and_then(|known| known.get(key)) {
            Some(schema) => accepts(schema, value),
            None => match &schema["additionalProperties"] {
                Value::Bool(allowed) => *allowed,
                Value::Null => true,
                inner => accepts(inner, value),
            },
        })
    });
    let required = schema["required"].as_array().into_iter().flatten();
    let conditions = schema["allOf"].as_array().into_iter().flatten();
    has_type
        && has_fields
        && (schema.get("const").is_none_or(|constant| constant == value))
        && (schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value)))
        && (value.as_array().is_none_or(|items| items.iter().all(|item| accepts(&schema["items"], item))))
        && (value
            .as_object()
            .is_none_or(|map| required.filter_map(Value::as_str).all(|key| map.contains_key(key))))
        && (number("minimum").is_none_or(|least| value.as_f64().is_none_or(|number| number >= least)))
        && (number("maximum").is_none_or(|most| value.as_f64().is_none_or(|number| number <= most)))
        && conditions.into_iter().all(|c| !accepts(&c["if"], value) || accepts(&c["then"], value))
}

#[test]
fn accepts_what_is_accepted() {
    let (schema, registry) = (the_schema(), supercargo_plugins::registry());
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../data/configurations.json")).expect("the data is JSON");
    let v1 =
        cases.iter().filter_map(|case| case["input"].as_str()).filter(|input| input.contains("k8s.io/v1\n"));
    for input in v1.filter(|input| load(&Source::new("x", *input), &registry).is_ok()) {
        assert!(accepts(&schema, &json(input)), "{input}");
    }
    // The example of the repository.
    let example = include_str!("../../../../examples/scheduler-config.yaml");
    assert!(load(&Source::new("example", example), &registry).is_ok());
    assert!(accepts(&schema, &json(example)));
    let full = default_configuration(&registry).expect("the defaults are complete").to_yaml(&registry);
    assert!(accepts(&schema, &json(&full)), "{full}");
}

#[test]
fn refuses_unknown_fields_and_wrong_types() {
    let (schema, registry) = (the_schema(), supercargo_plugins::registry());
    for lines in [
        "someUnknownField: 3",
        "parallelism: many",
        "parallelism: 1.5",
        "parallelism: 99999999999",
        "percentageOfNodesToScore: '50'",
        "profiles: {}",
        "tieBreak: last",
        "clientConnection: {qps: fast}",
        "leaderElection: {leaderElect: 1}",
        "leaderElection: {leaseduration: 15s}",
        "profiles: [{schedulerName: 5}]",
        "profiles: [{plugins: {scores: {}}}]",
        "profiles: [{plugins: {score: {enabled: [{weight: 1}]}}}]",
        "profiles: [{plugins: {score: {enabled: [{name: NoSuchPlugin}]}}}]",
        "profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]",
        "profiles: [{pluginConfig: [{args: {}}]}]",
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {unknownField: 3}}]}]",
        "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: heavy}}]}]",
        "profiles: [{pluginConfig: [{name: DefaultPreemption, args: {kind: InterPodAffinityArgs}}]}]",
        "extenders: [{enableHttps: true}]",
        "extenders: [{managedResources: [example.com/foo]}]",
    ] {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{lines}\n"
        );
        assert!(load(&Source::new("x", &*text), &registry).is_err(), "the loader accepts {lines}");
        assert!(!accepts(&schema, &json(&text)), "the schema accepts {lines}");
    }
}

#[test]
fn every_field_is_described() {
    fn undescribed(at: &str, schema: &Value, found: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{at}.{name}");
            let inside = matches!(&**name, "name" | "apiVersion" | "kind") || path.contains(".tlsConfig.");
            if field["description"].is_null() && !inside {
                found.push(path.clone());
            }
            undescribed(&path, field, found);
            undescribed(&path, &field["items"], found);
        }
    }
    let mut found = Vec::new();
    undescribed("", &the_schema(), &mut found);
    assert!(found.is_empty(), "{found:?}");
}
