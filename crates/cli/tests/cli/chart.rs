//! Renders the Helm chart: the part of its template language that the chart keeps to. Anything else is refused, so that what is
//! not understood is not taken for rendered.
//!
//! Known are `{{ .A.B }}`, `{{ include "name" . }}`, `{{ toYaml .A }}`, the filters `nindent N` and `default .A`, `if`, `else`,
//! `else if eq .A "b"`, `end`, `define`, comments, and the dashes that take white space away.

use std::{collections::HashMap, fs};

use serde_json::{Value, json};

use crate::{invocation::project, manifests::documents};

/// Values beside the chart's own: none, in kube-scheduler's place, and all that can be switched on.
pub(crate) const VALUES: [&str; 3] = [
    "{}",
    r#"{"schedulerName": "default-scheduler", "tolerations": [], "profile": {"percentageOfNodesToScore": 100}}"#,
    r#"{"leaseName": "own", "tracingEndpoint": "http://collector:4318", "extraArgs": ["--explain-in-events"],
        "podMonitor": {"enabled": true, "interval": "30s"}, "nodeSelector": {"kubernetes.io/os": "linux"},
        "imagePullSecrets": [{"name": "registry"}],
        "extenders": [{"urlPrefix": "http://localhost:8888", "filterVerb": "filter", "nodeCacheCapable": true}],
        "profile": {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}}}}"#,
];

/// The objects of the chart with some values.
pub(crate) fn render(values: &str) -> Vec<Value> {
    let folder = project().join("deploy/chart");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file of the chart");
    let about = documents("Chart.yaml", &read("Chart.yaml")).remove(0);
    let mut all = documents("values.yaml", &read("values.yaml")).remove(0);
    let given: Value = serde_json::from_str(values).expect("JSON");
    for (key, value) in given.as_object().expect("an object") {
        assert!(all.get(key).is_some(), "values.yaml has no {key}");
        all[key] = value.clone();
    }
    let context = json!({
        "Values": all,
        "Release": {"Name": "supercargo", "Namespace": "kube-system"},
        "Chart": {"AppVersion": about["appVersion"]},
    });
    let mut chart = Chart { context, defined: HashMap::new() };
    chart.render("_names.tpl", &read("templates/_names.tpl"));
    let files = ["rbac.yaml", "config.yaml", "deployment.yaml", "podmonitor.yaml"];
    let on_disk = fs::read_dir(folder.join("templates")).expect("templates").count();
    assert_eq!(on_disk, files.len() + 1, "a template is not rendered here");
    let texts = files.map(|file| (file, chart.render(file, &read(&format!("templates/{file}")))));
    texts.iter().flat_map(|(file, text)| documents(file, text)).collect()
}

/// What the chart's permissions are, made from those that the command prints.
pub(crate) fn permissions(printed: &str) -> String {
    let comment = "{{- /* What `supercargo rbac` prints for the defaults, under the release's name; a test compares. */}}";
    let (_, rest) = printed.split_once('\n').expect("a comment on the first line");
    let lines = rest.lines().map(|line| match line.trim() {
        "name: supercargo" => line.replace("supercargo", "{{ .Release.Name }}"),
        "name: supercargo-lease" | "name: supercargo-reader" => {
            line.replace("supercargo", "{{ .Release.Name }}")
        }
        "namespace: kube-system" => line.replace("kube-system", "{{ .Release.Namespace }}"),
        "resourceNames: [kube-scheduler]" => {
            line.replace("kube-scheduler", r#"{{ include "supercargo.lease" . }}"#)
        }
        _ => line.to_owned(),
    });
    format!("{comment}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

struct Chart {
    context: Value,
    /// Named templates.
    defined: HashMap<String, Vec<Piece>>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Action(String),
}

impl Chart {
    fn render(&mut self, file: &str, text: &str) -> String {
        let (mut out, mut at) = (String::new(), 0);
        let end = self.block(&pieces(text), &mut at, true, &mut out);
        assert_eq!(end, None, "{file}: an end without a beginning");
        out
    }

    /// Renders from a place on, or passes over it, up to the `else` or `end` that ends the block; and says which it was.
    fn block(&mut self, pieces: &[Piece], at: &mut usize, shown: bool, out: &mut String) -> Option<String> {
        while let Some(piece) = pieces.get(*at) {
            *at += 1;
            let action = match piece {
                Piece::Text(text) if shown => {
                    out.push_str(text);
                    continue;
                }
                Piece::Text(_) => continue,
                Piece::Action(action) => action,
            };
            if action == "end" || action == "else" || action.starts_with("else ") {
                return Some(action.clone());
            } else if let Some(condition) = action.strip_prefix("if ") {
                self.choice(condition, pieces, at, shown, out);
            } else if let Some(name) = action.strip_prefix("define ") {
                let begin = *at;
                self.block(pieces, at, false, out);
                self.defined.insert(unquoted(name), pieces[begin..*at - 1].to_vec());
            } else if shown && !action.starts_with("/*") {
                out.push_str(&self.text(action));
            }
        }
        None
    }

    fn choice(&mut self, condition: &str, pieces: &[Piece], at: &mut usize, shown: bool, out: &mut String) {
        let (mut condition, mut taken) = (Some(condition.to_owned()), false);
        loop {
            let holds = shown && !taken && condition.as_deref().is_none_or(|condition| self.holds(condition));
            taken |= holds;
            let end = self.block(pieces, at, holds, out).expect("an `if` has an `end`");
            if end == "end" {
                return;
            }
            condition = end.strip_prefix("else if ").map(str::to_owned);
        }
    }

    fn holds(&self, condition: &str) -> bool {
        match condition.strip_prefix("eq ").and_then(|rest| rest.split_once(' ')) {
            Some((path, text)) => self.at(path) == unquoted(text),
            None => !is_empty(&self.at(condition)),
        }
    }

    /// What an action puts out: an expression, and filters behind it.
    fn text(&mut self, action: &str) -> String {
        let mut parts = action.split(" | ");
        let mut text = self.expression(parts.next().unwrap_or_default());
        for filter in parts {
            text = match filter.split_once(' ') {
                Some(("nindent", columns)) => {
                    let indent = " ".repeat(columns.parse().expect("a number"));
                    text.lines().map(|line| format!("\n{indent}{line}")).collect()
                }
                Some(("default", path)) if text.is_empty() => written(&self.at(path)),
                Some(("default", _)) => text,
                _ => panic!("the filter {filter:?} is not known here"),
            };
        }
        text
    }

    fn expression(&mut self, expression: &str) -> String {
        if let Some(name) = expression.strip_prefix("include ").and_then(|rest| rest.strip_suffix(" .")) {
            let body =
                self.defined.get(&unquoted(name)).cloned().unwrap_or_else(|| panic!("{name} is not defined"));
            let (mut out, mut at) = (String::new(), 0);
            self.block(&body, &mut at, true, &mut out);
            return out;
        }
        match expression.strip_prefix("toYaml ") {
            Some(path) => {
                let value = self.at(path).to_string().parse().expect("JSON");
                supercargo_config::to_yaml(&value).trim_end().to_owned()
            }
            None => written(&self.at(expression)),
        }
    }

    /// The value at a path such as `.Values.image.tag`.
    fn at(&self, path: &str) -> Value {
        let names = path.strip_prefix('.').unwrap_or_else(|| panic!("{path:?} is not known here"));
        names.split('.').fold(self.context.clone(), |value, name| {
            value.get(name).cloned().unwrap_or_else(|| panic!("there is no {path}"))
        })
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(holds) => !holds,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(holds) => holds.to_string(),
        other => panic!("{other} is not written as it is: use toYaml"),
    }
}

fn unquoted(text: &str) -> String {
    let inner = text.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or_else(|| panic!("{text} is not in quotes")).to_owned()
}

/// Texts and actions in turn; a dash at the edge of an action takes the white space beside it away.
fn pieces(text: &str) -> Vec<Piece> {
    let (mut pieces, mut rest, mut trims) = (Vec::new(), text, false);
    loop {
        let (before, after) =
            rest.split_once("{{").map_or((rest, None), |(before, after)| (before, Some(after)));
        let mut before = if trims { before.trim_start() } else { before };
        let Some(after) = after else {
            pieces.push(Piece::Text(before.to_owned()));
            return pieces;
        };
        let (mut action, following) = after.split_once("}}").expect("an action has an end");
        if let Some(stripped) = action.strip_prefix('-') {
            (action, before) = (stripped, before.trim_end());
        }
        trims = action.ends_with('-');
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(Piece::Action(action.trim_end_matches('-').trim().to_owned()));
        rest = following;
    }
}
