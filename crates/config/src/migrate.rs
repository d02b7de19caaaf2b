//! Old configurations, written anew as v1.

use supercargo_manifest::{self as manifest, Problem, Problems, Source, Value};

use crate::{
    header::{self, API_VERSION},
    legacy, policy,
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
/// `kubescheduler.config.k8s.io/v1`.
///
/// # Errors
///
/// What is wrong with the text, and what has no counterpart in v1.
pub fn migrate(source: &Source) -> Result<Migrated, Problems> {
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
    if problems.has_errors() {
        return Err(problems);
    }
    // That the old version is deprecated is why it is written anew.
    problems.0.retain(|problem| problem.path != "apiVersion");
    tree::set(&mut upgraded.root, "apiVersion", At::NOWHERE.text(API_VERSION));
    Ok(Migrated { yaml: yaml::write(&upgraded.root), warnings: problems })
}

/// Policies often came without a kind.
fn is_policy(root: &Value) -> bool {
    match root.get("kind").and_then(Value::as_str) {
        Some(kind) => kind == "Policy",
        None => root.get("predicates").is_some() || root.get("priorities").is_some(),
    }
}
