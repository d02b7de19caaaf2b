//! The effective configuration as the page shows it, and what becomes of it with other weights.

use serde::Serialize;
use serde_json::json;
use supercargo_config::{self as config, Configuration, EffectivePlugin, REDACTED, without_password};
use supercargo_framework::registry::{Point, Registry};
use supercargo_manifest::{Location, Problems, Value, ValueKind};
use supercargo_server::{Query, QueryAnswer};

use super::json_answer;

/// A configuration that can be shown: without private keys and passwords.
pub(crate) struct ShownConfiguration {
    /// All of it, as it would be written.
    written: Value,
    profiles: Vec<ShownProfile>,
    settings: Vec<(&'static str, String)>,
    extenders: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct ShownProfile {
    name: String,
    points: Vec<ShownPoint>,
}

#[derive(Serialize)]
struct ShownPoint {
    point: &'static str,
    plugins: Vec<EffectivePlugin>,
}

impl ShownConfiguration {
    pub(crate) fn new(configuration: &Configuration, warnings: &Problems, registry: &Registry) -> Self {
        let mut written: Value =
            configuration.to_json(registry).parse().expect("what is written can be read");
        redact(&mut written);
        let mut profiles: Vec<ShownProfile> = Vec::new();
        for row in configuration.table() {
            if profiles.last().is_none_or(|profile| profile.name != row.profile) {
                profiles.push(ShownProfile { name: row.profile, points: Vec::new() });
            }
            if let Some(profile) = profiles.last_mut() {
                profile.points.push(ShownPoint { point: row.point, plugins: row.plugins });
            }
        }
        Self {
            written,
            profiles,
            settings: settings(configuration),
            extenders: configuration.extenders.iter().map(|extender| extender.name().into_owned()).collect(),
            warnings: warnings.into_iter().map(ToString::to_string).collect(),
        }
    }

    /// All of it; or, if weights are given (`profile=NAME&weight=PLUGIN=N`), what is to be written for them.
    pub(crate) fn answer(&self, query: &Query) -> QueryAnswer {
        let weights: Result<Vec<(&str, i32)>, String> = query.all("weight").map(weight).collect();
        let weights = match weights {
            Ok(weights) => weights,
            Err(wrong) => return QueryAnswer::BadRequest(wrong),
        };
        if weights.is_empty() {
            return json_answer(&json!({
                "profiles": self.profiles, "settings": self.settings, "extenders": self.extenders,
                "warnings": self.warnings, "yaml": config::to_yaml(&self.written),
            }));
        }
        match self.reweighed(query.get("profile").unwrap_or_default(), &weights) {
            Ok(written) => json_answer(&json!({"yaml": config::to_yaml(&written)})),
            Err(wrong) => QueryAnswer::BadRequest(wrong),
        }
    }

    /// The configuration with other weights of a profile. A weight of 0 takes the plugin out of scoring: written down, it
    /// would mean 1.
    fn reweighed(&self, profile: &str, weights: &[(&str, i32)]) -> Result<Value, String> {
        let mut written = self.written.clone();
        let scoring = list(&mut written, "profiles")
            .into_iter()
            .flatten()
            .find(|one| one.get("schedulerName").and_then(Value::as_str) == Some(profile))
            .and_then(|one| list(field(field(one, "plugins")?, Point::Score.name())?, "enabled"));
        let scoring = scoring.ok_or_else(|| format!("there is no profile {profile:?} that scores"))?;
        for (plugin, weight) in weights {
            let is_meant = |choice: &Value| choice.get("name").and_then(Value::as_str) == Some(plugin);
            let choice = scoring.iter_mut().find(|choice| is_meant(choice));
            let choice = choice.ok_or_else(|| format!("profile {profile} does not score by {plugin:?}"))?;
            if let Some(written) = field(choice, "weight") {
                written.kind = ValueKind::Number(weight.to_string().into());
            }
            if *weight == 0 {
                scoring.retain(|choice| !is_meant(choice));
            }
        }
        Ok(written)
    }
}

/// A weight as it is asked for: `PLUGIN=N`.
fn weight(text: &str) -> Result<(&str, i32), String> {
    let wrong = || format!("weight {text:?} is not PLUGIN=N with N from 0 on");
    let (plugin, weight) = text.rsplit_once('=').ok_or_else(wrong)?;
    let weight = weight.parse().ok().filter(|weight| *weight >= 0);
    Ok((plugin, weight.ok_or_else(wrong)?))
}

fn field<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    match &mut value.kind {
        ValueKind::Map(entries) => {
            entries.iter_mut().find(|entry| &*entry.key == key).map(|entry| &mut entry.value)
        }
        _ => None,
    }
}

fn list<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Vec<Value>> {
    match &mut field(value, key)?.kind {
        ValueKind::List(items) => Some(items),
        _ => None,
    }
}

/// Takes out the private keys and passwords that a configuration may hold.
fn redact(written: &mut Value) {
    for extender in list(written, "extenders").into_iter().flatten() {
        if let Some(Value { kind: ValueKind::String(address), .. }) = field(extender, "urlPrefix") {
            *address = without_password(address).into();
        }
        if let Some(key) = field(extender, "tlsConfig").and_then(|tls| field(tls, "keyData")) {
            *key = Value { at: Location::START, kind: ValueKind::String(REDACTED.into()) };
        }
    }
}

fn settings(configuration: &Configuration) -> Vec<(&'static str, String)> {
    let percentage = match configuration.percentage_of_nodes_to_score {
        0 => "0 (by the size of the cluster)".to_owned(),
        percentage => percentage.to_string(),
    };
    vec![
        ("percentageOfNodesToScore", percentage),
        ("tieBreak", format!("{:?}", configuration.tie_break).to_lowercase()),
        ("podInitialBackoffSeconds", configuration.pod_initial_backoff_seconds.to_string()),
        ("podMaxBackoffSeconds", configuration.pod_max_backoff_seconds.to_string()),
        ("parallelism", configuration.parallelism.to_string()),
        ("leaderElection.leaderElect", configuration.leader_election.leader_elect.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use supercargo_manifest::Source;

    use super::*;

    const TEXT: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
- schedulerName: two
";
    const EXTENDERS: &str = "
extenders:
- {urlPrefix: 'https://user:hunter2@a', filterVerb: f, tlsConfig: {keyData: c2VjcmV0, certData: eA==}}
";

    fn shown(more: &str, registry: &Registry) -> ShownConfiguration {
        let loaded = config::load(&Source::new("test", format!("{TEXT}{more}")), registry).unwrap();
        ShownConfiguration::new(&loaded.configuration, &loaded.warnings, registry)
    }

    /// What the score plugins of a profile weigh, in a configuration as it is written.
    fn weights(written: &Value, profile: &str, registry: &Registry) -> Vec<(String, i32)> {
        let text = config::to_yaml(written);
        let loaded = config::load(&Source::new("written", text), registry).unwrap();
        let profile =
            loaded.configuration.profiles.iter().find(|one| &*one.scheduler_name == profile).unwrap();
        profile.at(Point::Score).iter().map(|choice| (choice.plugin.to_string(), choice.weight)).collect()
    }

    #[test]
    fn other_weights_are_what_is_read_back() {
        let registry = supercargo_plugins::registry();
        let shown = shown("", &registry);
        let before = weights(&shown.written, "two", &registry);
        let [first, second] = [&before[0].0, &before[1].0];
        let written = shown.reweighed("two", &[(first, 7), (second, 0)]).unwrap();
        let mut expected = before.clone();
        expected[0].1 = 7;
        // A weight of 0 would be read as 1: the plugin is left out.
        expected.remove(1);
        assert_eq!(weights(&written, "two", &registry), expected);
        assert_eq!(weights(&written, "one", &registry), before, "the other profile stays as it is");
        assert!(shown.reweighed("three", &[(first, 7)]).is_err());
        assert!(shown.reweighed("two", &[("Nobody", 7)]).is_err());
    }

    #[test]
    fn private_keys_and_passwords_are_not_shown() {
        let registry = supercargo_plugins::registry();
        let shown = shown(EXTENDERS, &registry);
        assert_eq!(shown.extenders, [format!("https://{REDACTED}@a")]);
        let text = config::to_yaml(&shown.written);
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("eA==") && text.contains(REDACTED) && !text.contains("c2VjcmV0"), "{text}");
        // A warning quotes the line.
        let warnings = shown.warnings.join("\n");
        assert!(warnings.contains("filterVerb: f") && warnings.contains(REDACTED), "{warnings}");
        assert!(!warnings.contains("hunter2") && !warnings.contains("c2VjcmV0"), "{warnings}");
    }

    #[test]
    fn a_weight_is_a_plugin_and_a_number() {
        for (text, expected) in [
            ("A=5", Some(("A", 5))),
            ("a=b=0", Some(("a=b", 0))),
            ("A", None),
            ("A=-1", None),
            ("A=1.5", None),
        ] {
            assert_eq!(weight(text).ok(), expected, "{text}");
        }
    }
}
