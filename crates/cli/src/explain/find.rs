//! The pod that is meant by a name.

use std::{collections::HashSet, sync::Arc};

use supercargo_manifest::{Problem, nearest};
use supercargo_model::{Pod, object::Object};
use supercargo_sim::resource_claims;

/// How many names a hint has at most.
const MAX_HINTED_NAMES: usize = 5;

/// The words by which kubectl knows a pod's kind.
const KIND_WORDS: [&str; 3] = ["pod", "pods", "po"];

/// A name without the kind that kubectl puts before it.
pub(super) fn without_kind(name: &str) -> &str {
    match name.split_once('/') {
        Some((kind, name)) if KIND_WORDS.contains(&kind) => name,
        _ => name,
    }
}

/// The pod of a name, or of `namespace/name`.
pub(super) fn find(objects: &[Object], name: &str) -> Result<Arc<Pod>, Problem> {
    let named: Vec<&Pod> = pods(objects).filter(|pod| is_named(pod, name)).collect();
    match named[..] {
        [] => Err(unknown(objects, name)),
        [pod] if pod.node.is_none() && (pod.finished || pod.terminating) => {
            let state = if pod.finished { "has ended" } else { "is being deleted" };
            Err(Problem::error(format!("pod {} {state}: no scheduler looks at it", pod.key())))
        }
        [pod] => Ok(Arc::new(pod.clone())),
        _ => {
            let keys: Vec<String> = named.iter().map(|pod| pod.key().to_string()).collect();
            let message = format!("there are {} pods with the name {name}", keys.len());
            Err(Problem::error(message).hint(format!("say which: {}", keys.join(", "))))
        }
    }
}

/// Takes a bound pod out of the cluster and gives it as if it were pending; it is to be decided alone.
pub(super) fn unbind(objects: &mut Vec<Object>, pod: &Pod) -> (Arc<Pod>, bool) {
    objects.retain(|object| !matches!(object, Object::Pod(other) if other.uid == pod.uid));
    resource_claims::give_back(objects, &HashSet::from([pod.key()]));
    (super::unbound(pod), true)
}

fn pods(objects: &[Object]) -> impl Iterator<Item = &Pod> {
    objects.iter().filter_map(|object| match object {
        Object::Pod(pod) => Some(pod),
        _ => None,
    })
}

fn is_named(pod: &Pod, name: &str) -> bool {
    match name.split_once('/') {
        Some((namespace, name)) => &*pod.namespace == namespace && &*pod.name == name,
        None => &*pod.name == name,
    }
}

fn unknown(objects: &[Object], name: &str) -> Problem {
    let problem = Problem::error(format!("there is no pod {name}"));
    match near(objects, name) {
        near if near.is_empty() => match pods(objects).count() {
            0 => problem.hint("there are no pods at all in what was read"),
            count => problem.hint(format!("{count} pods were read, none with a name like this")),
        },
        near => problem.hint(format!("did you mean {}?", near.join(", "))),
    }
}

/// The pods whose names are like the given one: a slip of the fingers first, then those that contain it.
fn near(objects: &[Object], name: &str) -> Vec<String> {
    let (_, bare) = name.rsplit_once('/').unwrap_or(("", name));
    let mut rest: Vec<&Pod> = pods(objects).collect();
    let mut found: Vec<String> = Vec::new();
    while found.len() < MAX_HINTED_NAMES {
        let Some(near) = nearest(bare, rest.iter().map(|pod| &*pod.name)) else { break };
        let Some(place) = rest.iter().position(|pod| &*pod.name == near) else { break };
        found.push(rest.remove(place).key().to_string());
    }
    let containing = rest.iter().filter(|pod| !bare.is_empty() && pod.name.contains(bare));
    found.extend(containing.map(|pod| pod.key().to_string()));
    found.truncate(MAX_HINTED_NAMES);
    found
}
