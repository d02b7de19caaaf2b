//! Older versions of the kind, rewritten as v1. Values keep the place where they were written.

use supercargo_manifest::{Problem, Problems, Source, Value, ValueKind};

use crate::{
    header::{API_VERSION, Version},
    place::Text,
    tree::{self, At},
};

/// A document in the form of v1.
pub(crate) struct Upgraded {
    pub(crate) root: Value,
    /// Where the beginning of a path in v1 stands in the older form.
    renamed: Vec<(String, &'static str)>,
}

impl Upgraded {
    /// Makes a path of v1 the one that was written.
    pub(crate) fn rename(&self, path: &mut String) {
        for (new, old) in &self.renamed {
            if let Some(rest) = path.strip_prefix(&**new) {
                *path = format!("{old}{rest}");
                return;
            }
        }
    }
}

/// Rewrites a document as v1. What has no clear meaning in v1 is an error.
pub(crate) fn upgrade(source: &Source, root: &Value, version: Version, problems: &mut Problems) -> Upgraded {
    let text = Text { source, root };
    let mut upgraded = Upgraded { root: root.clone(), renamed: Vec::new() };
    if version == Version::V1 {
        warn_of_addresses(text, problems);
        return upgraded;
    }
    let message = format!("{} is deprecated: it is read as v1, with the defaults of v1", version.name());
    let hint = "write it anew with: supercargo config migrate FILE; that keeps older default weights, too";
    problems.push(text.warning("apiVersion", message).hint(hint));
    if version == Version::V1Alpha1 {
        one_profile(&mut upgraded, text, problems);
        algorithm_source(&mut upgraded, text, problems);
    }
    if matches!(version, Version::V1Alpha1 | Version::V1Alpha2) {
        lock_object(&mut upgraded);
        preemption(&mut upgraded.root);
        let arguments = [
            ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
            ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
        ];
        for (field, plugin, argument) in arguments {
            if let Some(value) = tree::take(&mut upgraded.root, field) {
                let paths = set_argument(&mut upgraded.root, plugin, argument, &value);
                // These are more exact than what is renamed already.
                upgraded.renamed.splice(0..0, paths.into_iter().map(|path| (path, field)));
            }
        }
        let profiles = text.root.get("profiles").map_or(0, |profiles| profiles.items().len());
        let paths =
            (0..profiles).map(|index| format!("profiles[{index}].plugins")).chain(["plugins".to_owned()]);
        paths.for_each(|path| unreserve(&path, text, &mut upgraded, problems));
    }
    upgraded
}

/// The addresses are no fields of v1 in kube-scheduler, which would refuse the file.
fn warn_of_addresses(text: Text<'_>, problems: &mut Problems) {
    for field in ["healthzBindAddress", "metricsBindAddress"] {
        if text.find(field).is_some_and(|value| !value.is_null()) {
            let message = "this field is a Supercargo extension in v1: kube-scheduler has it up to v1beta2 only, and refuses it in v1";
            problems.push(
                text.warning(field, message).hint("remove it before you give the file to kube-scheduler"),
            );
        }
    }
}

/// What was said once for the whole scheduler is said in a profile now.
fn one_profile(upgraded: &mut Upgraded, text: Text<'_>, problems: &mut Problems) {
    if text.find("plugins.postFilter").is_some() {
        let message = "in v1alpha1 postFilter was what preScore is now, and in v1 it is something else";
        let hint = "move the plugins to preScore and remove postFilter, or write v1 if you mean preemption";
        problems.push(text.error("plugins.postFilter", message).hint(hint));
        crate::place::remove(&mut upgraded.root, "plugins.postFilter");
    }
    if let Some(profiles) = text.find("profiles").filter(|profiles| !profiles.is_null()) {
        let problem =
            Problem::error("v1alpha1 has no profiles").at(text.source, profiles.at).path("profiles");
        problems.push(problem.hint(format!("write {API_VERSION}")));
        return;
    }
    let at = At(text.root.at);
    let mut profile = at.map([]);
    for field in ["schedulerName", "plugins", "pluginConfig"] {
        if let Some(value) = tree::take(&mut upgraded.root, field) {
            tree::set(&mut profile, field, value);
        }
    }
    tree::set(&mut upgraded.root, "profiles", at.list([profile]));
    upgraded.renamed.push(("profiles[0].".to_owned(), ""));
}

/// Which algorithm is meant: a provider by name, or a policy in another place.
pub(crate) fn algorithm_source(upgraded: &mut Upgraded, text: Text<'_>, problems: &mut Problems) {
    let Some(source) = tree::take(&mut upgraded.root, "algorithmSource") else {
        return;
    };
    if source.get("policy").is_some_and(|policy| !policy.is_null()) {
        let message = "a policy stands in another file or ConfigMap, and cannot be read from here";
        let hint = "translate it to a profile with: supercargo config migrate POLICY-FILE";
        problems.push(text.error("algorithmSource.policy", message).hint(hint));
        return;
    }
    match source.get("provider").map(|provider| (provider, provider.as_str())) {
        Some((_, Some("DefaultProvider"))) | None => {}
        Some((provider, Some("ClusterAutoscalerProvider"))) => {
            let at = At(provider.at);
            let resources =
                ["cpu", "memory"].map(|name| at.map([("name", at.text(name)), ("weight", at.number(1))]));
            let strategy = at.map([("type", at.text("MostAllocated")), ("resources", at.list(resources))]);
            set_argument(&mut upgraded.root, "NodeResourcesFit", "scoringStrategy", &strategy);
        }
        Some(_) => {
            let message = "there is no such provider of an algorithm";
            let hint = "write DefaultProvider or ClusterAutoscalerProvider, or remove algorithmSource";
            problems.push(text.error("algorithmSource.provider", message).hint(hint));
        }
    }
}

/// The lock had other names.
fn lock_object(upgraded: &mut Upgraded) {
    if upgraded.root.get("leaderElection").is_none() {
        return;
    }
    let Some(election) = tree::entry(&mut upgraded.root, "leaderElection", ValueKind::Null) else {
        return;
    };
    for (old, new) in [("lockObjectName", "resourceName"), ("lockObjectNamespace", "resourceNamespace")] {
        if let Some(value) = tree::take(election, old) {
            tree::set(election, new, value);
        }
    }
}

/// Whether pods may be evicted was a switch, and is a plugin now.
fn preemption(root: &mut Value) {
    let Some(disable) = tree::take(root, "disablePreemption") else {
        return;
    };
    if disable.as_bool() != Some(true) {
        return;
    }
    let at = At(disable.at);
    for_each_profile(root, at, |_, profile| {
        let plugins = tree::entry(profile, "plugins", ValueKind::Map(Vec::new()));
        if let Some(set) =
            plugins.and_then(|plugins| tree::entry(plugins, "postFilter", ValueKind::Map(Vec::new())))
        {
            tree::append(set, "disabled", at.map([("name", at.text("DefaultPreemption"))]));
        }
    });
}

/// Sets an argument of a plugin in all profiles, unless a profile sets it itself; the paths where it is set.
pub(crate) fn set_argument(root: &mut Value, plugin: &str, argument: &str, value: &Value) -> Vec<String> {
    let at = At(value.at);
    let mut paths = Vec::new();
    for_each_profile(root, at, |index, profile| {
        let Some(Value { kind: ValueKind::List(configs), .. }) =
            tree::entry(profile, "pluginConfig", ValueKind::List(Vec::new()))
        else {
            return;
        };
        let names_it = |config: &Value| config.get("name").and_then(Value::as_str) == Some(plugin);
        let place = configs.iter().position(names_it).unwrap_or_else(|| {
            configs.push(at.map([("name", at.text(plugin)), ("args", at.map([]))]));
            configs.len() - 1
        });
        if let Some(args) = tree::entry(&mut configs[place], "args", ValueKind::Map(Vec::new()))
            && args.get(argument).is_none()
        {
            tree::set(args, argument, value.clone());
            paths.push(format!("profiles[{index}].pluginConfig[{place}].args.{argument}"));
        }
    });
    paths
}

pub(crate) fn for_each_profile(root: &mut Value, at: At, mut change: impl FnMut(usize, &mut Value)) {
    let Some(Value { kind: ValueKind::List(profiles), .. }) =
        tree::entry(root, "profiles", ValueKind::List(Vec::new()))
    else {
        return;
    };
    if profiles.is_empty() {
        profiles.push(at.map([]));
    }
    profiles.iter_mut().enumerate().for_each(|(index, profile)| change(index, profile));
}

/// Reserve and unreserve are one point now.
fn unreserve(path: &str, text: Text<'_>, upgraded: &mut Upgraded, problems: &mut Problems) {
    let field = format!("{path}.unreserve");
    if text.find(&field).is_none() {
        return;
    }
    let message = "unreserve is part of reserve since v1beta1";
    problems.push(text.error(&*field, message).hint("name the plugins at reserve, and remove unreserve"));
    let in_v1 = if path == "plugins" { format!("profiles[0].{field}") } else { field };
    crate::place::remove(&mut upgraded.root, &in_v1);
}
