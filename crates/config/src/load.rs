//! From a text to a configuration, with everything that is wrong with it.

use std::collections::HashSet;

use supercargo_framework::registry::Registry;
use supercargo_manifest::{self as manifest, Problem, Problems, Severity, Source, UnknownFields, Value};

use crate::{
    configuration::Configuration,
    document::Document,
    header, legacy, pitfalls,
    place::{self, Text},
    resolve::{self, Resolved},
};

/// A configuration, and what is worth a look in the text that it was read from.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub configuration: Configuration,
    /// All of it warnings.
    pub warnings: Problems,
}

/// Reads a KubeSchedulerConfiguration (YAML or JSON) for the plugins that exist.
///
/// # Errors
///
/// Everything that is wrong with the text, and the warnings as well, in the order of the text.
pub fn load(source: &Source, registry: &Registry) -> Result<Loaded, Problems> {
    let documents = manifest::read(source)?;
    let Some(root) = documents.first() else {
        let hint = format!("begin with apiVersion: {} and kind: {}", header::API_VERSION, header::KIND);
        let mut problem = Problem::error("there is no configuration in this text").hint(hint);
        problem.source = Some(source.clone());
        return Err(problem.into());
    };
    let mut problems = Problems::default();
    if let Some(second) = documents.get(1) {
        let message = "only the first document of a text is read, and this is the second";
        problems.push(
            Problem::warning(message).at(source, second.at).hint("put it in a file of its own, or remove it"),
        );
    }
    let Some(version) = header::read(source, root, &mut problems) else {
        return Err(in_order(problems));
    };
    let upgraded = legacy::upgrade(source, root, version, &mut problems);
    let resolved = read(source, &upgraded.root, registry, &mut problems);
    for problem in &mut problems.0 {
        upgraded.rename(&mut problem.path);
    }
    let problems = in_order(problems);
    match resolved {
        Some(mut resolved) if !problems.has_errors() => {
            for arguments in
                resolved.configuration.profiles.iter_mut().flat_map(|profile| &mut profile.arguments)
            {
                upgraded.rename(&mut arguments.path);
            }
            Ok(Loaded { configuration: resolved.configuration, warnings: problems })
        }
        _ => Err(problems),
    }
}

/// The configuration that holds when nothing is configured.
///
/// # Errors
///
/// If a plugin that is on by default does not exist.
pub fn default_configuration(registry: &Registry) -> Result<Configuration, Problems> {
    let text = format!("apiVersion: {}\nkind: {}\n", header::API_VERSION, header::KIND);
    load(&Source::new("<defaults>", text), registry).map(|loaded| loaded.configuration)
}

pub(crate) fn read<'r>(
    source: &Source,
    root: &Value,
    registry: &'r Registry,
    problems: &mut Problems,
) -> Option<Resolved<'r>> {
    let (document, wrong) = decode(source, root);
    let mut found = Problems::default();
    let text = Text { source, root };
    let resolved = document.map(|document| {
        let resolved = resolve::resolve(&document, text, registry, &mut found);
        pitfalls::warn(&document, &resolved, text, &mut found);
        resolved
    });
    // What follows only from a field that could not be read says nothing about the text.
    let follows = |problem: &Problem| wrong.iter().any(|cause| place::related(&cause.path, &problem.path));
    problems.extend(found.into_iter().filter(|problem| !follows(problem)));
    problems.extend(wrong);
    resolved
}

/// The document as far as it can be read: fields of the wrong type count as absent, so that the others can be
/// checked.
fn decode(source: &Source, root: &Value) -> (Option<Document>, Problems) {
    let wrong = match manifest::decode(source, root, "", UnknownFields::Deny) {
        Ok(document) => return (Some(document), Problems::default()),
        Err(wrong) => wrong,
    };
    let mut rest = root.clone();
    place::remove_all(&mut rest, wrong.iter().map(|problem| &*problem.path));
    (manifest::decode(source, &rest, "", UnknownFields::Ignore).ok(), wrong)
}

/// In the order of the text, each once; where they stand in the same place, errors first.
pub(crate) fn in_order(problems: Problems) -> Problems {
    let mut known = HashSet::new();
    let mut ordered: Vec<Problem> = problems.into_iter().collect();
    ordered.retain(|problem| {
        known.insert((problem.at, problem.path.clone(), problem.message.clone(), problem.hint.clone()))
    });
    ordered.sort_by_key(|problem| (problem.at, problem.severity == Severity::Warning));
    Problems(ordered)
}
