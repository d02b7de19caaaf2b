//! Which version of which kind a document says it is.

use supercargo_manifest::{Problem, Problems, Source, Value, nearest};

use crate::place::Text;

/// A version of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V1Beta3,
    V1Beta2,
    V1Beta1,
    V1Alpha2,
    V1Alpha1,
}

pub(crate) const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
pub(crate) const KIND: &str = "KubeSchedulerConfiguration";

/// The group of the kind, and of the arguments of plugins.
pub(crate) const GROUP: &str = "kubescheduler.config.k8s.io/";

const VERSIONS: [(&str, Version); 6] = [
    (API_VERSION, Version::V1),
    ("kubescheduler.config.k8s.io/v1beta3", Version::V1Beta3),
    ("kubescheduler.config.k8s.io/v1beta2", Version::V1Beta2),
    ("kubescheduler.config.k8s.io/v1beta1", Version::V1Beta1),
    ("kubescheduler.config.k8s.io/v1alpha2", Version::V1Alpha2),
    ("kubescheduler.config.k8s.io/v1alpha1", Version::V1Alpha1),
];

impl Version {
    /// Its name without the group.
    pub(crate) fn short_name(self) -> &'static str {
        self.name().strip_prefix(GROUP).unwrap_or_default()
    }

    /// Its name as it is written.
    pub(crate) fn name(self) -> &'static str {
        VERSIONS.iter().find(|(_, version)| *version == self).map_or(API_VERSION, |(name, _)| name)
    }
}

/// The version of a document; `None` if nothing more can be said about it than the problems.
pub(crate) fn read(source: &Source, root: &Value, problems: &mut Problems) -> Option<Version> {
    let text = Text { source, root };
    if root.kind_name() != "a map" {
        let message = format!("expected a {KIND}, found {}", root.kind_name());
        problems.push(
            text.error("", message).hint(format!("begin with apiVersion: {API_VERSION} and kind: {KIND}")),
        );
        return None;
    }
    let kind_is_right = match field(text, "kind", KIND) {
        Ok(KIND) => true,
        Ok(other) => {
            problems.push(wrong_kind(text, other));
            false
        }
        Err(missing) => {
            problems.push(missing);
            true
        }
    };
    let version = match field(text, "apiVersion", API_VERSION) {
        Ok(name) => {
            let known = VERSIONS.iter().find(|(known, _)| *known == name);
            if known.is_none() && kind_is_right {
                problems.push(wrong_version(text, name));
            }
            known.map(|(_, version)| *version)
        }
        Err(missing) => {
            problems.push(missing);
            Some(Version::V1)
        }
    };
    version.filter(|_| kind_is_right)
}

fn field<'v>(text: Text<'v>, name: &str, usual: &str) -> Result<&'v str, Problem> {
    match text.root.get(name) {
        Some(value) if !value.is_null() => match value.as_str() {
            Some("") | None => Err(text.error(name, format!("expected {usual}"))),
            Some(found) => Ok(found),
        },
        _ => {
            Err(text.error(name, format!("the field {name} is missing")).hint(format!("add {name}: {usual}")))
        }
    }
}

fn wrong_kind(text: Text<'_>, kind: &str) -> Problem {
    let problem = text.error("kind", format!("{kind:?} is not a kind of configuration"));
    match kind {
        "Policy" => problem.hint("translate the policy to a profile with: supercargo config migrate FILE"),
        _ => problem.hint(format!("write {KIND}")),
    }
}

fn wrong_version(text: Text<'_>, version: &str) -> Problem {
    let problem = text.error("apiVersion", format!("there is no version {version:?} of {KIND}"));
    match nearest(version, VERSIONS.map(|(name, _)| name)) {
        Some(nearest) => problem.hint(format!("did you mean {nearest}?")),
        None => problem.hint(format!("write {API_VERSION}")),
    }
}
