//! Changes to the cluster that was read, before anything is scheduled on it.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use supercargo_config::Configuration;
use supercargo_manifest::{Problem, Problems};
use supercargo_model::{
    Key, Name, Node,
    object::{Object, Reader},
};
use supercargo_sim::{
    placement_tests::PlacementTest,
    what_if::{self, DisplacedPods},
};

use crate::{
    input,
    output::{Console, listed},
};

/// How many copies of a node can be added.
const MAX_COPIES: u32 = 100_000;
/// How many budgets are told that would hold a drain up.
const MAX_TOLD_BUDGETS: usize = 5;

/// What is different from the cluster that was read.
#[derive(clap::Args)]
pub(crate) struct ClusterEdits {
    /// Add a node like the one in this file; FILE:N adds N of them, each with a name of its own
    #[arg(long, value_name = "FILE[:N]")]
    add_node: Vec<String>,

    /// Drain a node as kubectl does: it is cordoned, and its pods wait for another, but for daemons and static pods
    #[arg(long, value_name = "NODE")]
    drain: Vec<String>,

    /// Take a node away, as if it had failed; its pods wait for another
    #[arg(long, value_name = "NODE")]
    without: Vec<String>,

    /// Decide all pods anew, also those that run, but for daemons and static pods: the more important first, then the older
    #[arg(long)]
    reschedule: bool,
}

impl ClusterEdits {
    /// What a placement test asks for, with files relative to a folder.
    pub(crate) fn of_test(test: &PlacementTest, folder: &Path) -> Self {
        let file = |given: &String| folder.join(given).display().to_string();
        Self {
            add_node: test.add_nodes.iter().map(file).collect(),
            drain: test.drain.clone(),
            without: test.without.clone(),
            reschedule: false,
        }
    }

    /// Adds nodes.
    pub(crate) fn add_nodes(&self, objects: &mut Vec<Object>) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for given in &self.add_node {
            match nodes_of(given) {
                Ok((nodes, copies)) => what_if::add_nodes(objects, &nodes, copies),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Takes pods off their nodes: which, and where they were.
    pub(crate) fn unbind(
        &self,
        objects: &mut Vec<Object>,
        configuration: &Configuration,
        console: &mut Console,
    ) -> Result<HashMap<Key, Name>, Problems> {
        let mut was_on = HashMap::new();
        for node in &self.drain {
            let moved = what_if::drain(objects, node)?;
            tell_drain(node, &moved, console);
            was_on.extend(moved.pods);
        }
        for node in &self.without {
            was_on.extend(what_if::remove_node(objects, node)?.pods);
        }
        if self.reschedule {
            let profiles = configuration.profiles.iter();
            let asked = profiles.map(|profile| profile.scheduler_name.clone()).collect();
            was_on.extend(what_if::reschedule(objects, &asked).pods);
        }
        Ok(was_on)
    }
}

/// The nodes of a file, and how many copies of each are wanted.
fn nodes_of(given: &str) -> Result<(Vec<Node>, u32), Problems> {
    let (path, copies) = path_and_copies(given)?;
    let mut reader = Reader::default();
    for source in input::manifests([&path])? {
        reader.read(&source);
    }
    let objects = reader.finish()?.objects.into_iter();
    let nodes: Vec<Node> = objects
        .filter_map(|object| match object {
            Object::Node(node) => Some(node),
            _ => None,
        })
        .collect();
    if nodes.is_empty() {
        return Err(input::about(&path, "there is no Node in this file")
            .hint("write one, or take what `kubectl get node NAME -o yaml` prints")
            .into());
    }
    Ok((nodes, copies))
}

fn path_and_copies(given: &str) -> Result<(PathBuf, u32), Problem> {
    let counted = given.rsplit_once(':').filter(|_| !Path::new(given).exists());
    let Some((path, count)) = counted else { return Ok((given.into(), 1)) };
    match count.parse() {
        Ok(copies) if (1..=MAX_COPIES).contains(&copies) => Ok((path.into(), copies)),
        _ => Err(Problem::error(format!("--add-node {given}: {count} is no number of nodes"))
            .hint(format!("write FILE:N with N from 1 to {MAX_COPIES}"))),
    }
}

/// Says what kubectl would have said.
fn tell_drain(node: &str, moved: &DisplacedPods, console: &mut Console) {
    if moved.unmanaged > 0 {
        let pods =
            if moved.unmanaged == 1 { "1 pod".to_owned() } else { format!("{} pods", moved.unmanaged) };
        console.note(format!(
            "{pods} on {node} would not be made anew by a controller: kubectl drain refuses that without --force; here \
             they wait for a node, too"
        ));
    }
    let budgets: Vec<String> = (moved.budgets.iter())
        .map(|(budget, allowed, pods)| format!("{budget} ({pods} pods, {allowed} allowed)"))
        .collect();
    if !budgets.is_empty() {
        console.note(format!(
            "draining {node} would wait for disruption budgets: {}",
            listed(&budgets, MAX_TOLD_BUDGETS)
        ));
    }
}
