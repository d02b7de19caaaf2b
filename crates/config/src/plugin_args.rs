//! Checks the arguments that a profile gives its plugins. What they mean is the plugins' own business: they
//! are made, once, to hear what they say.

use std::collections::HashMap;

use supercargo_framework::registry::Registry;
use supercargo_manifest::{Problem, Problems, Value};

use crate::{
    configuration::{Arguments, ProfileConfiguration},
    document::ProfileFields,
    place::{self, Text},
    plugin_sets,
};

const GROUP: &str = "kubescheduler.config.k8s.io/";

/// Reports arguments that are given twice, to nobody, or that their plugin does not accept.
pub(crate) fn check(
    at: &str,
    fields: &ProfileFields,
    profile: &ProfileConfiguration,
    registry: &Registry,
    text: Text<'_>,
    problems: &mut Problems,
) {
    let mut seen = HashMap::new();
    for (index, config) in fields.plugin_config.iter().enumerate() {
        let path = format!("{at}.pluginConfig[{index}]");
        let name = &*config.name;
        if let Some(first) = seen.get(name) {
            let message = format!("the arguments of {name} are given already, in {at}.pluginConfig[{first}]");
            problems.push(text.error(path, message).hint("put all arguments of a plugin in one entry"));
            continue;
        }
        seen.insert(name, index);
        if let Some(instead) = plugin_sets::forbidden(name) {
            let message = format!("kube-scheduler has no plugin {name} any more");
            problems.push(text.error(path, message).hint(instead));
        }
    }
    for arguments in profile.arguments.iter().filter(|arguments| registry.get(&arguments.plugin).is_some()) {
        check_type(arguments, text, problems);
        problems.extend(ask(arguments, registry));
    }
    // What is loaded has been made already, and has said what it had to say.
    for arguments in profile.arguments.iter().filter(|given| profile.loaded.contains_key(&given.plugin)) {
        check_type(arguments, text, problems);
    }
}

/// What a plugin says about its arguments. A plugin may stop at the first that it cannot read; so it is asked
/// again without those it complained about.
fn ask(arguments: &Arguments, registry: &Registry) -> Problems {
    let build =
        |arguments: &Arguments| registry.get(&arguments.plugin).map(|plugin| plugin.build(&arguments.args()));
    let Some(Err(mut problems)) = build(arguments) else {
        return Problems::default();
    };
    let mut rest = arguments.clone();
    for problem in &problems {
        if let Some(field) = problem.path.strip_prefix(&*arguments.path) {
            place::remove(&mut rest.value, field);
        }
    }
    if let Some(Err(more)) = build(&rest) {
        let follows =
            |problem: &Problem| problems.iter().any(|cause| place::related(&cause.path, &problem.path));
        let more: Vec<Problem> = more.into_iter().filter(|problem| !follows(problem)).collect();
        problems.extend(more);
    }
    problems
}

/// Arguments may say what they are; then they must be that.
fn check_type(arguments: &Arguments, text: Text<'_>, problems: &mut Problems) {
    let Arguments { plugin, value, path, .. } = arguments;
    let expected = format!("{plugin}Args");
    if let Some(kind) = value.get("kind").and_then(Value::as_str).filter(|kind| *kind != expected) {
        let message = format!("the plugin {plugin} takes {expected}, not {kind}");
        problems
            .push(text.error(path.as_str(), message).hint("leave kind and apiVersion out of the arguments"));
    }
    let version = value.get("apiVersion").and_then(Value::as_str);
    if let Some(version) = version.filter(|version| !version.starts_with(GROUP)) {
        let message = format!("{version:?} is not a version of a plugin's arguments");
        problems
            .push(text.error(path.as_str(), message).hint("leave kind and apiVersion out of the arguments"));
    }
}
