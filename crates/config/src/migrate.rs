//! Old configurations, written anew as v1: so that kube-scheduler 1.36 takes them, and what it no longer has is said.

mod gone;
mod strategies;
mod weights;

use supercargo_framework::registry::Registry;
use supercargo_manifest::{self as manifest, Problem, Problems, Source, Value};

use crate::{
    defaults,
    header::{self, API_VERSION, Version},
    legacy::{self, Upgraded},
    load,
    place::Text,
    policy,
    tree::{self, At},
    yaml,
};

/// A configuration in the form of v1.
#[derive(Debug)]
pub struct Migrated {
    /// Its text.
    pub yaml: String,
    /// What does not mean quite the same as before.
    pub warnings: Problems,
}

/// Writes a legacy `Policy`, or a KubeSchedulerConfiguration of any version, as
/// `kubescheduler.config.k8s.io/v1`, with the default weights that held in its version.
///
/// # Errors
///
/// What is wrong with the text, and what has no counterpart in v1.
pub fn migrate(source: &Source, registry: &Registry) -> Result<Migrated, Problems> {
    let documents = manifest::read(source)?;
    let Some(root) = documents.first() else {
        let mut problem = Problem::error("there is no configuration in this text");
        problem.source = Some(source.clone());
        return Err(problem.into());
    };
    if is_policy(root) {
        let (value, warnings) = policy::translate(source, root)?;
        return Ok(Migrated { yaml: yaml::write(&value), warnings });
    }
    let mut problems = Problems::default();
    let Some(version) = header::read(source, root, &mut problems) else {
        return Err(problems);
    };
    let mut upgraded = legacy::upgrade(source, root, version, &mut problems);
    // That the old version is deprecated is why it is written anew.
    problems.0.retain(|problem| problem.path != "apiVersion");
    if version != Version::V1 {
        modernise(&mut upgraded, Text { source, root }, version, &mut problems);
    }
    tree::set(&mut upgraded.root, "apiVersion", At::NOWHERE.text(API_VERSION));
    check(source, &upgraded, registry, &mut problems);
    for problem in &mut problems.0 {
        upgraded.rename(&mut problem.path);
    }
    let problems = load::in_order(problems);
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(Migrated { yaml: yaml::write(&upgraded.root), warnings: problems })
}

/// What is written anew must be accepted; problems stand where the old text has their cause.
fn check(source: &Source, upgraded: &Upgraded, registry: &Registry, problems: &mut Problems) {
    let mut found = Problems::default();
    load::read(source, &upgraded.root, registry, &mut found);
    if found.has_errors() {
        problems.extend(found);
    }
}

/// Leaves out what v1 no longer has, and writes down what v1 takes for granted otherwise.
fn modernise(upgraded: &mut Upgraded, text: Text<'_>, version: Version, problems: &mut Problems) {
    let at = At(text.root.at);
    // Most would not even have been read in these versions; what they mean is clear.
    legacy::algorithm_source(upgraded, text, problems);
    addresses(&mut upgraded.root, text, problems);
    lock(&mut upgraded.root, text, problems);
    legacy::for_each_profile(&mut upgraded.root, at, |index, profile| {
        let mut found = Problems::default();
        let mut old = OldProfile { path: format!("profiles[{index}]"), profile, text, problems: &mut found };
        strategies::rename(&mut old, version);
        gone::leave_out(&mut old, version);
        weights::keep(&mut old, version);
        untype_arguments(old.profile);
        problems.extend(found);
    });
}

/// A profile on its way to v1.
struct OldProfile<'a> {
    /// Its path in v1.
    path: String,
    profile: &'a mut Value,
    text: Text<'a>,
    problems: &'a mut Problems,
}

impl OldProfile<'_> {
    fn warn(&mut self, path: &str, at: &Value, message: String, hint: &str) {
        let path = format!("{}.{path}", self.path);
        let problem = Problem::warning(message).at(self.text.source, at.at).path(path).hint(hint);
        self.problems.push(problem);
    }

    /// The entries of a list of plugins.
    fn listed(&self, point: &str, list: &str) -> &[Value] {
        let set = self.profile.get("plugins").and_then(|plugins| plugins.get(point));
        set.and_then(|set| set.get(list)).map_or(&[], Value::items)
    }

    /// Whether a list of plugins names this one.
    fn names(&self, point: &str, list: &str, plugin: &str) -> bool {
        self.listed(point, list).iter().any(|item| tree::name_of(item) == Some(plugin))
    }

    /// A list of plugins, to change it, if it is there.
    fn list_mut(&mut self, point: &str, list: &str) -> Option<&mut Vec<Value>> {
        tree::list_mut(tree::get_mut(tree::get_mut(self.profile, "plugins")?, point)?, list)
    }

    /// Adds an entry to a list of plugins.
    fn add(&mut self, point: &str, list: &str, entry: Value) {
        let empty = || manifest::ValueKind::Map(Vec::new());
        let plugins = tree::entry(self.profile, "plugins", empty());
        if let Some(set) = plugins.and_then(|plugins| tree::entry(plugins, point, empty())) {
            tree::append(set, list, entry);
        }
    }

    /// Takes the arguments of a plugin out.
    fn take_arguments(&mut self, plugin: &str) -> Option<Value> {
        let configs = tree::list_mut(self.profile, "pluginConfig")?;
        let index = configs.iter().position(|config| tree::name_of(config) == Some(plugin))?;
        tree::take(&mut configs.remove(index), "args")
    }
}

/// kube-scheduler serves at one address, which is a flag's.
fn addresses(root: &mut Value, text: Text<'_>, problems: &mut Problems) {
    for field in ["healthzBindAddress", "metricsBindAddress"] {
        let Some(value) = tree::take(root, field) else { continue };
        // Empty, or port 0: nothing was served.
        if value.as_str().is_some_and(|address| !address.is_empty() && !address.ends_with(":0")) {
            let message = format!("{field} is left out: v1 has no such field");
            let hint = "health and metrics are served, with TLS, where --bind-address and --secure-port say";
            problems.push(text.warning(field, message).hint(hint));
        }
    }
}

/// Leaders meet at a Lease, and nowhere else.
fn lock(root: &mut Value, text: Text<'_>, problems: &mut Problems) {
    const OTHERS: [&str; 4] = ["endpoints", "configmaps", "endpointsleases", "configmapsleases"];
    let Some(lock) = tree::get_mut(root, "leaderElection").and_then(|e| tree::get_mut(e, "resourceLock"))
    else {
        return;
    };
    if let Some(old) = lock.as_str().filter(|old| OTHERS.contains(old)) {
        let message = format!("the lock is a Lease now, in place of {old}");
        let hint = "stop schedulers that still use the other lock first: the two do not see each other";
        problems.push(text.warning("leaderElection.resourceLock", message).hint(hint));
        *lock = At(lock.at).text(defaults::RESOURCE_LOCK);
    }
}

/// Arguments that say of which old version they are would be refused; they need not say it.
fn untype_arguments(profile: &mut Value) {
    for config in tree::list_mut(profile, "pluginConfig").into_iter().flatten() {
        let Some(args) = tree::get_mut(config, "args") else { continue };
        let version = args.get("apiVersion").and_then(Value::as_str);
        if version.is_some_and(|version| version.starts_with(header::GROUP)) {
            *args = tree::without(args, &["apiVersion", "kind"]);
        }
    }
}

/// Policies often came without a kind.
fn is_policy(root: &Value) -> bool {
    match root.get("kind").and_then(Value::as_str) {
        Some(kind) => kind == "Policy",
        None => root.get("predicates").is_some() || root.get("priorities").is_some(),
    }
}
