//! Checks the arguments that a profile gives its plugins. What they mean is the plugins' own business: they
//! are made, once, to hear what they say.

use std::collections::{HashMap, HashSet};

use supercargo_framework::registry::{Args, Registry};
use supercargo_manifest::{Problem, Problems, Value};

use crate::{
    configuration::{PluginArguments, ProfileConfiguration},
    document::ProfileFields,
    header::GROUP,
    merge::{Entry, Merged},
    place::{self, Text},
    plugin_sets,
};

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

/// Reports plugins that run, were given no arguments and cannot do without.
pub(crate) fn check_absent(
    at: &str,
    merged: &Merged,
    profile: &ProfileConfiguration,
    registry: &Registry,
    text: Text<'_>,
    problems: &mut Problems,
) {
    let has_arguments = |entry: &Entry| profile.arguments.iter().any(|given| given.plugin == entry.name);
    let mut made = HashSet::new();
    let running = merged.points.values().flatten().filter(|entry| !has_arguments(entry));
    for entry in running.filter(|entry| made.insert(&entry.name)) {
        let built = registry.get(&entry.name).map(|plugin| plugin.build(&Args::none()));
        if let Some(Err(missing)) = built {
            let path = entry.written.as_deref().map_or_else(|| at.to_owned(), |path| format!("{at}.{path}"));
            problems.push(cannot_do_without(&entry.name, &missing, path, text));
        }
    }
}

fn cannot_do_without(plugin: &str, missing: &Problems, path: String, text: Text<'_>) -> Problem {
    let told = missing.iter().map(|problem| match &*problem.path {
        "" => problem.message.clone(),
        field => format!("{field}: {}", problem.message),
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let message = format!("the plugin {plugin} needs arguments, and none are given: {told}");
    let hint = format!("give them in the profile's pluginConfig, as `- name: {plugin}` with `args`");
    text.error(path, message).hint(hint)
}

/// What a plugin says about its arguments. A plugin may stop at the first that it cannot read; so it is asked
/// again without those it complained about.
fn ask(arguments: &PluginArguments, registry: &Registry) -> Problems {
    let build = |arguments: &PluginArguments| {
        registry.get(&arguments.plugin).map(|plugin| plugin.build(&arguments.args()))
    };
    let Some(Err(mut problems)) = build(arguments) else {
        return Problems::default();
    };
    let mut rest = arguments.clone();
    let fields = problems.iter().filter_map(|problem| problem.path.strip_prefix(&*arguments.path));
    place::remove_all(&mut rest.value, fields);
    if let Some(Err(more)) = build(&rest) {
        let follows =
            |problem: &Problem| problems.iter().any(|cause| place::related(&cause.path, &problem.path));
        let more: Vec<Problem> = more.into_iter().filter(|problem| !follows(problem)).collect();
        problems.extend(more);
    }
    problems
}

/// Arguments may say what they are; then they must be that.
fn check_type(arguments: &PluginArguments, text: Text<'_>, problems: &mut Problems) {
    let PluginArguments { plugin, value, path, .. } = arguments;
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
