//! Priorities of pods that no API server has seen: their classes say them.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use supercargo_manifest::{Problem, Problems, nearest};
use supercargo_model::{ApiResource, Name, object::Object, pod::PriorityFrom};

/// Where priority classes are on an API server.
pub static PRIORITY_CLASSES: ApiResource = ApiResource {
    group: "scheduling.k8s.io",
    version: "v1",
    plural: "priorityclasses",
    kind: "PriorityClass",
    namespaced: false,
};

/// Classes that every cluster has.
const BUILT_IN: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// How many warnings are given.
const MAX_WARNINGS: usize = 10;

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PriorityClass {
    value: i32,
    global_default: bool,
    preemption_policy: Option<String>,
}

/// Gives every pod that has no priority yet that of its class, and takes the classes away unless somebody else reads them,
/// too. What makes no sense is told.
pub fn resolve(objects: &mut Vec<Object>, keeps_classes: bool) -> Problems {
    let mut warnings = Problems::default();
    let classes = take_classes(objects, keeps_classes, &mut warnings);
    let default =
        classes.values().filter(|class| class.global_default).max_by_key(|class| class.value).cloned();
    let mut unknown: BTreeMap<Name, usize> = BTreeMap::new();
    for object in objects {
        let Object::Pod(pod) = object else { continue };
        let class = match std::mem::take(&mut pod.priority_from) {
            PriorityFrom::Spec => continue,
            PriorityFrom::GlobalDefault => default.as_ref(),
            PriorityFrom::Class(name) => {
                let class = classes.get(&*name);
                if class.is_none() {
                    *unknown.entry(name).or_default() += 1;
                }
                class
            }
        };
        if let Some(class) = class {
            let spec = Arc::make_mut(&mut pod.spec);
            spec.priority = class.value;
            spec.never_preempts |= class.preemption_policy.as_deref() == Some("Never");
        }
    }
    warnings
        .extend(unknown.iter().take(MAX_WARNINGS).map(|(name, pods)| unknown_class(name, *pods, &classes)));
    warnings
}

fn take_classes(
    objects: &mut Vec<Object>,
    keeps: bool,
    warnings: &mut Problems,
) -> BTreeMap<String, PriorityClass> {
    let built_in =
        BUILT_IN.map(|(name, value)| (name.to_owned(), PriorityClass { value, ..Default::default() }));
    let mut classes = BTreeMap::from(built_in);
    objects.retain(|object| {
        let Object::Custom(custom) = object else { return true };
        if *custom.api != PRIORITY_CLASSES {
            return true;
        }
        match custom.read::<PriorityClass>("") {
            Ok(class) => drop(classes.insert(custom.name.to_string(), class)),
            Err(error) => {
                warnings
                    .push(Problem::warning(format!("PriorityClass {} is left out: {error}", custom.name)));
            }
        }
        keeps
    });
    classes
}

fn unknown_class(name: &Name, pods: usize, classes: &BTreeMap<String, PriorityClass>) -> Problem {
    let whose = if pods == 1 { "a pod asks".to_owned() } else { format!("{pods} pods ask") };
    let message =
        format!("{whose} for the priority class {name}, and there is none: their priority is taken for 0");
    let problem = Problem::warning(message);
    match nearest(name, classes.keys().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem.hint("give the PriorityClass objects, too: `kubectl get priorityclasses -o yaml`"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use supercargo_manifest::Source;
    use supercargo_model::{Declared, object::Reader};

    use super::*;

    /// The priorities of pods, and whether they evict nobody; and what is told.
    fn resolved(classes: &[serde_json::Value], pods: &[serde_json::Value]) -> (Vec<(i32, bool)>, String) {
        let declared = Declared { kinds: vec![&PRIORITY_CLASSES], ..Declared::default() };
        let mut reader = Reader::new(declared);
        for (i, class) in classes.iter().enumerate() {
            let mut class = class.clone();
            class["apiVersion"] = "scheduling.k8s.io/v1".into();
            class["kind"] = "PriorityClass".into();
            reader.read(&Source::new(format!("class-{i}"), class.to_string()));
        }
        for (i, spec) in pods.iter().enumerate() {
            let pod =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": i.to_string()}, "spec": spec});
            reader.read(&Source::new(format!("pod-{i}"), pod.to_string()));
        }
        let mut objects = reader.finish().expect("they make sense").objects;
        let warnings = resolve(&mut objects, false);
        assert_eq!(objects.len(), pods.len(), "the classes are gone");
        let told = objects.iter().map(|object| match object {
            Object::Pod(pod) => (pod.spec.priority, pod.spec.never_preempts),
            other => panic!("{other:?}"),
        });
        (told.collect(), warnings.to_string())
    }

    #[test]
    fn pods_get_what_their_class_says() {
        let classes = [
            json!({"metadata": {"name": "high"}, "value": 1000}),
            json!({"metadata": {"name": "polite"}, "value": 900, "preemptionPolicy": "Never"}),
            json!({"metadata": {"name": "normal"}, "value": 7, "globalDefault": true}),
        ];
        let pods = [
            json!({"priorityClassName": "high"}),
            json!({"priorityClassName": "polite"}),
            json!({}),
            // What an API server has filled in stays.
            json!({"priorityClassName": "high", "priority": 3}),
            json!({"priorityClassName": "system-node-critical"}),
        ];
        let (told, warnings) = resolved(&classes, &pods);
        assert_eq!(told, [(1000, false), (900, true), (7, false), (3, false), (2_000_001_000, false)]);
        assert_eq!(warnings, "");
    }

    #[test]
    fn a_class_that_is_not_there_is_told_once() {
        let classes = [json!({"metadata": {"name": "high"}, "value": 1000})];
        let pods = [json!({"priorityClassName": "hihg"}), json!({"priorityClassName": "hihg"})];
        let (told, warnings) = resolved(&classes, &pods);
        assert_eq!(told, [(0, false), (0, false)]);
        assert!(warnings.contains("2 pods ask for the priority class hihg"), "{warnings}");
        assert!(warnings.ends_with("hint: did you mean high?"), "{warnings}");
    }
}
