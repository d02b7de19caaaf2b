//! Compares what configurations mean with what kube-scheduler makes of them.

use serde::Deserialize;
use supercargo_config as config;
use supercargo_framework::registry::Registry;
use supercargo_manifest::{self as manifest, Problems, Severity, Source, UnknownFields};

use crate::{
    conformance::{CheckedCases, Comparison},
    sampling::single,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    input: String,
    effective: Option<serde_json::Value>,
    error: Option<String>,
    #[serde(default)]
    error_paths: Vec<String>,
    documented: Option<String>,
}

/// Checks a list of configurations: what they amount to, or which fields are to blame.
pub fn check_configurations(source: &Source, registry: &Registry) -> Result<CheckedCases, Problems> {
    let cases: Vec<Case> = manifest::decode(source, &single(source)?, "", UnknownFields::Ignore)?;
    let mut checked = CheckedCases::default();
    for (i, case) in cases.iter().enumerate() {
        let subject = format!("case {}", i + 1);
        let text = Source::new(subject.as_str(), case.input.as_str());
        let loaded = config::load(&text, registry);
        checked.case(&subject, |about| case.compare(about, &loaded));
    }
    Ok(checked)
}

impl Case {
    fn compare(&self, about: &mut Comparison<'_>, loaded: &Result<config::Loaded, Problems>) {
        match loaded {
            Ok(loaded) if self.error.is_none() => {
                if let Some(expected) = &self.effective {
                    compare_effective(about, expected, &loaded.configuration);
                }
                if self.documented.is_some() && loaded.warnings.is_empty() {
                    about.equal(None, "warnings", &"at least one", &"none");
                }
            }
            Ok(_) => about.equal(None, "verdict", &self.error.as_deref(), &Some("accepted")),
            Err(problems) if self.error.is_some() => self.compare_blame(about, problems),
            Err(problems) => about.equal(None, "verdict", &"accepted", &problems.to_string().as_str()),
        }
    }

    fn compare_blame(&self, about: &mut Comparison<'_>, problems: &Problems) {
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
        let blamed: Vec<&str> = errors.map(|problem| problem.path.as_str()).collect();
        for expected in &self.error_paths {
            if !blamed.iter().any(|ours| names(ours, expected)) {
                about.equal(None, "blamed field", &expected.as_str(), &blamed.join(", ").as_str());
            }
        }
    }
}

/// Field by field, and the plugins point by point, so that a difference can be read.
fn compare_effective(
    about: &mut Comparison<'_>,
    expected: &serde_json::Value,
    configuration: &config::Configuration,
) {
    let got = serde_json::to_value(configuration.effective()).unwrap_or_default();
    compare_fields(about, "", expected, &got);
}

fn compare_fields(
    about: &mut Comparison<'_>,
    path: &str,
    expected: &serde_json::Value,
    got: &serde_json::Value,
) {
    let (Some(want), Some(have)) = (expected.as_object(), got.as_object()) else {
        return about.equal(None, path, expected, got);
    };
    let fields: std::collections::BTreeSet<&String> = want.keys().chain(have.keys()).collect();
    for field in fields {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        let value = |side: &serde_json::Value| side.get(field).cloned().unwrap_or_default();
        compare_fields(about, &path, &value(expected), &value(got));
    }
}

/// Ours may say more precisely where in the field the mistake is; kube-scheduler leaves out where the arguments of a
/// plugin stand when the plugin itself refuses them.
fn names(ours: &str, expected: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    ours.strip_prefix(expected).is_some_and(ends) || ours.ends_with(&format!(".args.{expected}"))
}
