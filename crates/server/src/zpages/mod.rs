//! `/flagz` and `/statusz`: how the process was started and how it is, for people and, in versions, for programs.

mod negotiation;

use std::{collections::BTreeMap, fmt::Write};

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use negotiation::{Form, Version, Wanted, negotiate};

/// The component's name in these pages: tools look for it.
const COMPONENT: &str = "kube-scheduler";
const GROUP: &str = "config.k8s.io";

/// The flags of the process, by name, as `/flagz` shows them.
pub type Flags = BTreeMap<String, String>;

/// What `/statusz` tells.
#[derive(Clone, Debug)]
pub struct Statusz {
    /// When the process started.
    pub started: Timestamp,
    /// What it is a version of.
    pub binary_version: String,
    /// The Kubernetes version that it behaves as: major and minor.
    pub emulation_version: String,
    /// Where else to look.
    pub paths: Vec<&'static str>,
}

/// Answers `/flagz`.
pub(crate) fn flagz(flags: &Flags, headers: &HeaderMap) -> Response {
    answer(
        "Flagz",
        headers,
        || flagz_text(flags),
        || [("flags".to_owned(), json!(flags))].into_iter().collect(),
    )
}

fn flagz_text(flags: &Flags) -> String {
    let mut text = head("flagz");
    for (name, value) in flags {
        writeln!(text, "{name}={value}").expect("a string takes everything");
    }
    text
}

/// Answers `/statusz`.
pub(crate) fn statusz(status: &Statusz, headers: &HeaderMap) -> Response {
    let now = Timestamp::now();
    answer("Statusz", headers, || statusz_text(status, now), || statusz_fields(status, now))
}

fn statusz_text(status: &Statusz, now: Timestamp) -> String {
    let up = uptime_seconds(status, now);
    let mut text = head("statusz");
    let lines = [
        format!("Started: {}", status.started.strftime("%a %b %e %H:%M:%S UTC %Y")),
        format!("Up: {} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60),
        "Go version: none".to_owned(),
        format!("Binary version: {}", status.binary_version),
        format!("Emulation version: {}", status.emulation_version),
        format!("Paths: {}", status.paths.join(" ")),
    ];
    writeln!(text, "\n{}", lines.join("\n")).expect("a string takes everything");
    text
}

fn statusz_fields(status: &Statusz, now: Timestamp) -> Map<String, Value> {
    let fields = [
        ("startTime", json!(status.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
        ("uptimeSeconds", json!(uptime_seconds(status, now))),
        ("goVersion", json!("")),
        ("binaryVersion", json!(status.binary_version)),
        ("emulationVersion", json!(status.emulation_version)),
        ("paths", json!(status.paths)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn uptime_seconds(status: &Statusz, now: Timestamp) -> i64 {
    (now.as_second() - status.started.as_second()).max(0)
}

fn head(page: &str) -> String {
    format!(
        "\n{COMPONENT} {page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
         compatibility guarantees and is for debugging purposes only.\n"
    )
}

/// The page in the form that the caller asks for.
fn answer(
    kind: &str,
    headers: &HeaderMap,
    text: impl FnOnce() -> String,
    fields: impl FnOnce() -> Map<String, Value>,
) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match negotiate(accept, GROUP, kind) {
        Some(Wanted::Text) => with_type("text/plain; charset=utf-8", text()),
        Some(Wanted::Structured(form, version)) => {
            let object = object(kind, version, fields());
            let mut response = match form {
                Form::Json => with_type("application/json", object.to_string()),
                Form::Yaml => with_type("application/yaml", yaml(&object)),
            };
            if version == Version::V1Alpha1 {
                response.headers_mut().insert(header::WARNING, deprecated(kind));
            }
            response
        }
        None => not_acceptable(),
    }
}

fn object(kind: &str, version: Version, fields: Map<String, Value>) -> Value {
    let mut object = json!({
        "kind": kind,
        "apiVersion": format!("{GROUP}/{}", version.as_str()),
        "metadata": {"name": COMPONENT},
    });
    if let Value::Object(object) = &mut object {
        object.extend(fields);
    }
    object
}

/// Maps and lists in blocks; everything else as in JSON, which is YAML too.
fn yaml(object: &Value) -> String {
    let mut text = String::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let lines = match value {
            Value::Object(map) => {
                let lines =
                    map.iter().map(|(key, value)| format!("\n  {}: {value}", Value::from(key.as_str())));
                lines.collect()
            }
            Value::Array(list) => list.iter().map(|value| format!("\n- {value}")).collect(),
            value => format!(" {value}"),
        };
        writeln!(text, "{name}:{lines}").expect("a string takes everything");
    }
    text
}

fn deprecated(kind: &str) -> HeaderValue {
    let page = kind.to_lowercase();
    let warning =
        format!("299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\"");
    HeaderValue::from_str(&warning).expect("a page's name is a word")
}

fn not_acceptable() -> Response {
    let message =
        "only the following media types are accepted: application/json, application/yaml, text/plain";
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "NotAcceptable", "code": 406,
    });
    let mut response = with_type("application/json", status.to_string());
    *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
    response
}

fn with_type(content_type: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, content_type)], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statusz_reads_as_kube_schedulers() {
        let status = Statusz {
            started: "2026-05-03T04:05:06Z".parse().unwrap(),
            binary_version: "1.36.4".into(),
            emulation_version: "1.36".into(),
            paths: vec!["/configz", "/livez"],
        };
        let text = statusz_text(&status, "2026-05-03T05:06:08Z".parse().unwrap());
        let expected = "
kube-scheduler statusz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

Started: Sun May  3 04:05:06 UTC 2026
Up: 1 hr 01 min 02 sec
Go version: none
Binary version: 1.36.4
Emulation version: 1.36
Paths: /configz /livez
";
        assert_eq!(text, expected);
    }
}
