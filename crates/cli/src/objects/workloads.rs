//! Makes the pods of what was given as new to a cluster, and completes them as an API server would.

use std::collections::{HashMap, HashSet};

use supercargo_manifest::Problems;
use supercargo_model::{
    ApiResource, Declared, Key, Kind, Name, Node,
    object::{Object, Objects, Reader},
};
use supercargo_sim::{
    priority_classes::{self, PRIORITY_CLASSES},
    resource_claims::{self, RESOURCE_CLAIM_TEMPLATES},
    workloads::{Setting, expand},
};

use crate::output::Console;

pub(crate) use supercargo_sim::workloads::KINDS;

/// How pods are made.
pub(crate) struct Making<'a> {
    pub(crate) replicas: Option<u32>,
    pub(crate) namespace: Option<&'a str>,
    /// What plugins read.
    pub(crate) declared: &'a Declared,
}

/// What pods are completed from: what says their priorities, and what their claims to devices are made from.
pub(crate) const COMPLETING: [&ApiResource; 2] = [&PRIORITY_CLASSES, &RESOURCE_CLAIM_TEMPLATES];

/// A reader that also reads what pods are completed from.
pub(crate) fn reader(declared: &Declared) -> Reader {
    let mut declared = declared.clone();
    for kind in COMPLETING {
        if !declared.kinds.contains(&kind) {
            declared.kinds.push(kind);
        }
    }
    Reader::new(declared)
}

impl Making<'_> {
    /// Makes the pods of the workloads that were set aside, and gives every pod its priority and its claims to devices. `cluster` is what the objects
    /// are new to, if they do not hold it themselves.
    pub(crate) fn complete(
        &self,
        objects: &mut Objects,
        cluster: &[Object],
        console: &mut Console,
    ) -> Result<(), Problems> {
        let aside = std::mem::take(&mut objects.set_aside);
        if !aside.is_empty() {
            let all = || objects.objects.iter().chain(cluster);
            let (nodes, daemons) = (nodes(all()), daemons(all()));
            let setting = Setting {
                nodes: &nodes,
                daemons: &daemons,
                replicas: self.replicas,
                namespace: self.namespace.unwrap_or("default"),
                annotations: &self.declared.annotations,
            };
            let mut problems = Problems::default();
            let mut made = Vec::new();
            for workload in &aside {
                match expand(workload, &setting) {
                    Ok(more) => made.push(more),
                    Err(more) => problems.extend(more),
                }
            }
            if !problems.is_empty() {
                return Err(problems);
            }
            let keeps_texts = !objects.texts.is_empty();
            let mut places = Places::new(objects);
            for more in made {
                more.notes.iter().for_each(|note| console.note(note));
                more.claims.into_iter().for_each(|claim| places.add_if_absent(claim, objects));
                more.objects.into_iter().for_each(|object| places.put(object, objects));
                if keeps_texts {
                    let texts = more.texts.into_iter().map(|(key, text)| ((Kind::Pod, key), text));
                    objects.texts.extend(texts);
                }
            }
        }
        let keeps = |kind| self.declared.kinds.contains(&kind);
        let (classes, templates) = (keeps(&PRIORITY_CLASSES), keeps(&RESOURCE_CLAIM_TEMPLATES));
        objects.warnings.extend(priority_classes::resolve(&mut objects.objects, classes));
        objects.warnings.extend(resource_claims::resolve(&mut objects.objects, templates));
        Ok(())
    }
}

/// Where objects are, by name.
struct Places(HashMap<(Kind, Key), usize>);

impl Places {
    fn new(objects: &Objects) -> Self {
        let objects = objects.objects.iter().enumerate();
        Self(objects.map(|(index, object)| ((object.kind(), object.key()), index)).collect())
    }

    fn put(&mut self, object: Object, objects: &mut Objects) {
        match self.0.get(&(object.kind(), object.key())) {
            Some(index) => {
                objects.replaced += usize::from(object.kind() == Kind::Pod);
                objects.objects[*index] = object;
            }
            None => self.push(object, objects),
        }
    }

    fn add_if_absent(&mut self, object: Object, objects: &mut Objects) {
        if !self.0.contains_key(&(object.kind(), object.key())) {
            self.push(object, objects);
        }
    }

    fn push(&mut self, object: Object, objects: &mut Objects) {
        self.0.insert((object.kind(), object.key()), objects.objects.len());
        objects.objects.push(object);
    }
}

fn nodes<'o>(objects: impl Iterator<Item = &'o Object>) -> Vec<&'o Node> {
    let nodes = objects.filter_map(|object| match object {
        Object::Node(node) => Some(node),
        _ => None,
    });
    nodes.collect()
}

/// The daemons that run, by namespace, name of their set, and node.
fn daemons<'o>(objects: impl Iterator<Item = &'o Object>) -> HashSet<(Name, Name, Name)> {
    let of = |object: &Object| {
        let Object::Pod(pod) = object else { return None };
        let owner = pod.spec.controller.as_ref().filter(|owner| &*owner.kind == "DaemonSet")?;
        Some((pod.namespace.clone(), owner.name.clone(), pod.node.clone()?))
    };
    objects.filter_map(of).collect()
}
