use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::*;
use crate::read;

#[derive(Deserialize, PartialEq, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct Pod {
    name: String,
    node_name: Option<String>,
    priority: i32,
    weight: u8,
    share: f64,
    host_network: bool,
    labels: BTreeMap<String, String>,
    containers: Vec<Container>,
    restart_policy: RestartPolicy,
    port: Option<Port>,
    limits: BTreeMap<Even, u64>,
    pair: Option<(u8, u8)>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Container {
    name: String,
    image: String,
    #[serde(default)]
    cores: Even,
    #[serde(default)]
    probe: Option<Probe>,
}

#[derive(Deserialize, PartialEq, Debug, Default)]
enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
enum Probe {
    Exec(Vec<String>),
    HttpGet { path: String },
    None,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Name(String),
}

/// A type that has something of its own to say about its text.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Even(u64);

impl<'de> Deserialize<'de> for Even {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse() {
            Ok(number) if number % 2 == 0 => Ok(Self(number)),
            Ok(number) => Err(D::Error::custom(format!("{number} is odd\nhint: take {}", number + 1))),
            Err(_) => Err(D::Error::custom(format!("{text:?} is not even a number"))),
        }
    }
}

fn pod(text: &str, unknown: UnknownFields) -> Result<Pod, Vec<String>> {
    let source = Source::new("pod.yaml", text);
    let documents = read(&source).unwrap_or_else(|problems| panic!("{problems}"));
    decode(&source, &documents[0], "", unknown).map_err(|problems| problems.iter().map(told).collect())
}

fn told(problem: &Problem) -> String {
    let at = problem.at.expect("a decoding error has a place");
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}:{} {}: {}{hint}", at.line, at.column, problem.path, problem.message)
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(pod(text, UnknownFields::Deny).expect_err(text), expected, "{text:?}");
}

#[test]
fn everything_fits() {
    let text = "
name: web
nodeName: n1
priority: -5
weight: 0x10
share: 2
hostNetwork: yes
labels: {app.kubernetes.io/name: web, empty: ''}
containers:
  - {name: a, image: nginx, cores: '4'}
  - {name: b, image: redis, probe: {exec: [ls, -l]}}
  - {name: c, image: redis, probe: {httpGet: {path: /}}}
  - {name: d, image: redis, probe: none}
restartPolicy: Never
port: http
limits: {'2': 3}
pair: [1, 2]
";
    let container = |name: &str, image: &str, cores: u64, probe| Container {
        name: name.to_owned(),
        image: image.to_owned(),
        cores: Even(cores),
        probe,
    };
    let expected = Pod {
        name: "web".to_owned(),
        node_name: Some("n1".to_owned()),
        priority: -5,
        weight: 16,
        share: 2.0,
        host_network: true,
        labels: [("app.kubernetes.io/name", "web"), ("empty", "")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        containers: vec![
            container("a", "nginx", 4, None),
            container("b", "redis", 0, Some(Probe::Exec(vec!["ls".to_owned(), "-l".to_owned()]))),
            container("c", "redis", 0, Some(Probe::HttpGet { path: "/".to_owned() })),
            container("d", "redis", 0, Some(Probe::None)),
        ],
        restart_policy: RestartPolicy::Never,
        port: Some(Port::Name("http".to_owned())),
        limits: [(Even(2), 3)].into(),
        pair: Some((1, 2)),
    };
    assert_eq!(pod(text, UnknownFields::Deny), Ok(expected));
}

#[test]
fn a_null_field_is_absent() {
    let text =
        "{name: , nodeName: null, priority: ~, labels: , containers: , restartPolicy: , port: , pair: }";
    assert_eq!(pod(text, UnknownFields::Deny), Ok(Pod::default()));
    // A required field does not become present by being null.
    check("containers: [{name: a, image: }]", &["1:14 containers[0]: the field image is missing"]);
}

#[test]
fn mismatches() {
    for (text, expected) in [
        ("name: 5", r#"1:7 name: expected a string, found a number (put it in quotes: "5")"#),
        ("name: yes", "1:7 name: expected a string, found a boolean (put it in quotes)"),
        ("name: [a]", "1:7 name: expected a string, found a list"),
        ("nodeName: 1e3", r#"1:11 nodeName: expected a string, found a number (put it in quotes: "1e3")"#),
        ("priority: high", "1:11 priority: expected an integer, found a string"),
        ("priority: '5'", "1:11 priority: expected an integer, found a string (write it without quotes)"),
        ("priority: 1.5", "1:11 priority: expected an integer, found the number 1.5"),
        ("priority: 1.0", "1:11 priority: expected an integer, found the number 1.0"),
        ("priority: 2147483648", "1:11 priority: 2147483648 is not between -2147483648 and 2147483647"),
        ("weight: 256", "1:9 weight: 256 is not between 0 and 255"),
        ("weight: -1", "1:9 weight: -1 is not between 0 and 255"),
        (
            "weight: 9999999999999999999999999999999999999999",
            "1:9 weight: 9999999999999999999999999999999999999999 is not between 0 and 255",
        ),
        ("share: much", "1:8 share: expected a number, found a string"),
        ("share: '0.5'", "1:8 share: expected a number, found a string (write it without quotes)"),
        (
            "hostNetwork: 'true'",
            "1:14 hostNetwork: expected a boolean, found a string (write it without quotes)",
        ),
        ("hostNetwork: 1", "1:14 hostNetwork: expected a boolean, found a number"),
        ("labels: [a]", "1:9 labels: expected a map, found a list"),
        ("labels: {a: 1}", r#"1:13 labels.a: expected a string, found a number (put it in quotes: "1")"#),
        ("labels: {a: }", r#"1:11 labels.a: expected a string, found null (write "" for an empty string)"#),
        (
            "labels: {app.kubernetes.io/name: 1}",
            r#"1:34 labels[app.kubernetes.io/name]: expected a string, found a number (put it in quotes: "1")"#,
        ),
        ("containers: {}", "1:13 containers: expected a list, found a map"),
        ("containers: [a]", "1:14 containers[0]: expected a map, found a string"),
        ("containers: [~]", "1:14 containers[0]: expected a map, found null"),
        ("containers:\n- name: a", "2:3 containers[0]: the field image is missing"),
        ("containers: [{name: a, image: b, cores: '3'}]", "1:41 containers[0].cores: 3 is odd (take 4)"),
        (
            "containers: [{name: a, image: b, cores: x}]",
            r#"1:41 containers[0].cores: "x" is not even a number"#,
        ),
        ("limits: {'3': 1}", "1:10 limits.3: 3 is odd (take 4)"),
        (
            "restartPolicy: onfailure",
            r#"1:16 restartPolicy: "onfailure" is not one of Always, OnFailure, Never (did you mean OnFailure?)"#,
        ),
        ("restartPolicy: Maybe", r#"1:16 restartPolicy: "Maybe" is not one of Always, OnFailure, Never"#),
        ("restartPolicy: 5", "1:16 restartPolicy: expected one of Always, OnFailure, Never, found a number"),
        ("restartPolicy: {Never: 1}", r#"1:16 restartPolicy: "Never" takes no value"#),
        (
            "containers: [{name: a, image: b, probe: exec}]",
            r#"1:41 containers[0].probe: "exec" needs a value (write it as a map with the key exec)"#,
        ),
        (
            "containers: [{name: a, image: b, probe: {httpGet: {path: 1}}}]",
            r#"1:58 containers[0].probe.httpGet.path: expected a string, found a number (put it in quotes: "1")"#,
        ),
        (
            "containers: [{name: a, image: b, probe: {}}]",
            "1:41 containers[0].probe: expected one of the keys exec, httpGet, none",
        ),
        ("port: []", "1:7 port: data did not match any variant of untagged enum Port"),
        ("pair: [1]", "1:7 pair: expected a list of 2 items, found 1 of them"),
        ("pair: [1, x]", "1:11 pair[1]: expected an integer, found a string"),
        ("[]", "1:1 : expected a map, found a list"),
        ("web", "1:1 : expected a map, found a string"),
    ] {
        check(text, &[expected]);
    }
}

#[test]
fn all_problems_at_once() {
    check(
        "
priority: high
labels: {a: 1, b: x, c: 2}
name: 7
containers:
- name: a
  cores: '3'
- name: 1
  image: 2
- image: x
  nmae: y
- {name: d, image: d}
restartPolicy: never
nodename: n1
",
        &[
            "2:11 priority: expected an integer, found a string",
            r#"3:13 labels.a: expected a string, found a number (put it in quotes: "1")"#,
            r#"3:25 labels.c: expected a string, found a number (put it in quotes: "2")"#,
            r#"4:7 name: expected a string, found a number (put it in quotes: "7")"#,
            "6:3 containers[0]: the field image is missing",
            "7:10 containers[0].cores: 3 is odd (take 4)",
            r#"8:9 containers[1].name: expected a string, found a number (put it in quotes: "1")"#,
            r#"9:10 containers[1].image: expected a string, found a number (put it in quotes: "2")"#,
            "10:3 containers[2]: the field name is missing",
            "11:3 containers[2].nmae: there is no such field (did you mean name?)",
            r#"13:16 restartPolicy: "never" is not one of Always, OnFailure, Never (did you mean Never?)"#,
            "14:1 nodename: there is no such field (did you mean nodeName?)",
        ],
    );
}

#[test]
fn what_was_left_out_is_not_missed() {
    #[derive(Deserialize, Debug)]
    #[serde(try_from = "Unchecked")]
    struct Checked {}
    #[derive(Deserialize)]
    struct Unchecked {
        items: Vec<u8>,
    }
    impl TryFrom<Unchecked> for Checked {
        type Error = &'static str;
        fn try_from(unchecked: Unchecked) -> Result<Self, &'static str> {
            if unchecked.items.is_empty() { Err("there are no items") } else { Ok(Self {}) }
        }
    }
    for (text, expected) in [
        ("items: []", "there are no items"),
        // Without its only item the list is empty, but that is not what is wrong with the text.
        ("items: [x]", "expected an integer, found a string"),
    ] {
        let source = Source::new("t", text);
        let documents = read(&source).expect(text);
        let problems = decode::<Checked>(&source, &documents[0], "", UnknownFields::Deny).expect_err(text);
        assert_eq!(problems.iter().map(|problem| &*problem.message).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn unknown_fields() {
    let text =
        "{nme: a, hostnetwork: true, zzz: null, containers: [{name: a, image: b, imagePullPolicy: x}]}";
    check(
        text,
        &[
            "1:2 nme: there is no such field (did you mean name?)",
            "1:10 hostnetwork: there is no such field (did you mean hostNetwork?)",
            "1:29 zzz: there is no such field",
            "1:73 containers[0].imagePullPolicy: there is no such field",
        ],
    );
    let ignored = pod(text, UnknownFields::Ignore).expect("unknown fields are passed over");
    assert_eq!(ignored.containers.len(), 1);
}

#[test]
fn the_path_may_begin_elsewhere() {
    let source = Source::new("list.yaml", "items: [{name: 1}]");
    let documents = read(&source).expect("valid");
    let item = &documents[0].get("items").expect("a list").items()[0];
    let problems = decode::<Pod>(&source, item, "items[0]", UnknownFields::Ignore).expect_err("no string");
    assert_eq!(problems.0[0].path, "items[0].name");
    assert_eq!(problems.0[0].source.as_ref(), Some(&source));
}

#[test]
fn any_number_of_problems_ends() {
    let labels: String = (0..500).map(|index| format!("  l{index}: 1\n")).collect();
    let problems = pod(&format!("labels:\n{labels}"), UnknownFields::Deny).expect_err("no strings");
    assert_eq!(problems.len(), 100);
}

#[test]
fn numbers_of_any_type() {
    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Any {
        Signed(i64),
        Unsigned(u64),
        Float(f64),
        Text(String),
    }
    for (text, expected) in [
        ("5", Any::Signed(5)),
        ("-0x10", Any::Signed(-16)),
        ("18446744073709551615", Any::Unsigned(u64::MAX)),
        ("18446744073709551616", Any::Float(18_446_744_073_709_551_616.0)),
        ("1.5", Any::Float(1.5)),
        (".inf", Any::Float(f64::INFINITY)),
        ("1x", Any::Text("1x".to_owned())),
    ] {
        let source = Source::new("t", text);
        let value = &read(&source).expect(text)[0];
        assert_eq!(decode(&source, value, "", UnknownFields::Deny), Ok(expected), "{text}");
    }
}
