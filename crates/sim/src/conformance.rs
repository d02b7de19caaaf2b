//! Compares our answers with those of a real kube-scheduler, pod by pod and node by node.

mod api;
mod devices;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use supercargo_config as config;
use supercargo_engine::{Engine, Outcome, TieBreak};
use supercargo_framework::{registry::Registry, virtual_time::VirtualClock};
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{
    Cluster, Name, Pod,
    object::{Object, read_object},
};

use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};

use devices::{DeviceCycles, DeviceExpectation};

use crate::{
    explanation::Explanation,
    report::{NodeRejection, PodReport, PreemptionReport},
};

/// A cluster, pods, and what kube-scheduler made of them.
pub struct ConformanceCase {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub theme: String,
    configuration: config::Configuration,
    objects: Vec<Object>,
    queue: Vec<Arc<Pod>>,
    expect: Vec<PodReport>,
    /// What is expected of the pods' claims, and the objects as they are written: theme `dra` only.
    devices: Option<DeviceCase>,
}

struct DeviceCase {
    expect: Vec<DeviceExpectation>,
    written: Vec<serde_json::Value>,
}

/// A place where our answer is not kube-scheduler's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The pod.
    pub pod: String,
    /// The node, where it is about one.
    pub node: Option<String>,
    /// The plugin or the field.
    pub what: String,
    /// What kube-scheduler answered.
    pub expected: String,
    /// What we answer.
    pub got: String,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    theme: String,
}

impl ConformanceCase {
    /// Reads a scenario (JSON).
    pub fn read(source: &Source, registry: &Registry) -> Result<Self, Problems> {
        let documents = manifest::read(source)?;
        let [root] = &documents[..] else {
            let message = "a scenario is one JSON object";
            return Err(Problem::error(message).at(source, manifest::Location::START).into());
        };
        let Header { name, theme } = manifest::decode(source, root, "", UnknownFields::Ignore)?;
        let is_about_devices = theme == devices::THEME;
        Ok(Self {
            name,
            theme,
            configuration: configuration(source, root, registry)?,
            objects: objects(source, root, "objects")?,
            queue: (objects(source, root, "queue")?.into_iter())
                .filter_map(|object| match object {
                    Object::Pod(pod) => Some(Arc::new(pod)),
                    _ => None,
                })
                .collect(),
            expect: expected(source, root)?,
            devices: match is_about_devices {
                true => {
                    let written = devices::written_objects(root);
                    Some(DeviceCase { expect: devices::expectations(source, root)?, written })
                }
                false => None,
            },
        })
    }

    /// How many pods are compared.
    pub fn pods(&self) -> usize {
        self.queue.len()
    }

    /// Explains every pod with regard to every node, beside what kube-scheduler answered. After each pod the expected node is
    /// taken.
    pub fn explanations(&self, registry: &Registry) -> Result<Vec<(&PodReport, Explanation)>, Problems> {
        let mut engine = self.engine(registry)?;
        let nodes: Vec<Name> = engine.cluster().nodes().map(|node| node.name().clone()).collect();
        let mut explanations = Vec::new();
        for (pod, expected) in self.queue.iter().zip(&self.expect) {
            if let Some(decision) = engine.held(pod).or_else(|| engine.decide(pod)) {
                let explained = engine.explain(pod, decision, &nodes);
                explanations.push((expected, Explanation::new(&explained, TieBreak::First, [])));
            }
            if let Some(node) = &expected.placed {
                engine.assume(pod, node.as_str().into());
            }
        }
        Ok(explanations)
    }

    fn engine(&self, registry: &Registry) -> Result<Engine, Problems> {
        let mut cluster = Cluster::default();
        for object in &self.objects {
            cluster.put(object.clone());
        }
        if self.devices.is_some() {
            // After what timed out, and before what has not.
            cluster.set_now(VirtualClock::default().now());
        }
        let overrides = Overrides { percentage: Some(ALL_NODES), ..Overrides::default() };
        setup::engine(cluster, &self.configuration, registry, overrides)
    }

    /// Decides every pod and compares. After each pod the expected node is taken, so that one difference does not make
    /// others.
    pub fn check(&self, registry: &Registry) -> Result<Vec<Mismatch>, Problems> {
        if let Some(devices) = &self.devices {
            return self.check_devices(devices, registry);
        }
        let mut engine = self.engine(registry)?;
        let mut differences = Vec::new();
        for (pod, expected) in self.queue.iter().zip(&self.expect) {
            let got = decide(&mut engine, pod);
            compare(expected, &got, &self.theme, &mut differences);
            compare_fast(&mut engine, pod, &got, &mut differences);
            if let Some(node) = &expected.placed {
                engine.assume(pod, node.as_str().into());
            }
        }
        Ok(differences)
    }

    /// The same with claims: what was written for a pod is there for the next.
    fn check_devices(&self, devices: &DeviceCase, registry: &Registry) -> Result<Vec<Mismatch>, Problems> {
        let mut engine = self.engine(registry)?;
        let mut cycles = DeviceCycles::new(&engine, &devices.written);
        let mut differences = Vec::new();
        for ((pod, expected), more) in self.queue.iter().zip(&self.expect).zip(&devices.expect) {
            let pod = &engine.admit(pod.clone());
            let decision = engine.held(pod).or_else(|| engine.decide(pod));
            let got = decision.as_ref().map_or_else(PodReport::default, PodReport::new);
            let mut want = expected.clone();
            if want.result == "BindError" {
                // It was scheduled, and not bound.
                want.result = "Scheduled".to_owned();
            }
            if want.result == "Error" {
                let mut about = Comparison::new(&want.pod, &mut differences);
                about.equal(None, "result", &want.result, &got.result);
                if want.message.is_some() {
                    about.equal(None, "message", &want.message, &got.message);
                }
                devices::compare_errors(&engine, pod, more, &mut about);
            } else {
                compare(&want, &got, &self.theme, &mut differences);
                compare_fast(&mut engine, pod, &got, &mut differences);
            }
            let mut about = Comparison::new(&want.pod, &mut differences);
            let placed = want.placed.as_deref();
            cycles.check(&mut engine, pod, decision.as_ref(), more, placed, &mut about);
        }
        Ok(differences)
    }
}

fn expected(source: &Source, root: &Value) -> Result<Vec<PodReport>, Problems> {
    match root.get("expect") {
        Some(expect) => manifest::decode(source, expect, "expect", UnknownFields::Ignore),
        None => Ok(Vec::new()),
    }
}

fn decide(engine: &mut Engine, pod: &Pod) -> PodReport {
    let decision = engine.held(pod).or_else(|| engine.decide(pod));
    decision.map_or_else(PodReport::default, |decision| {
        debug_assert!(decision.outcome != Outcome::Gated || decision.refused.is_some());
        PodReport::new(&decision)
    })
}

fn configuration(
    source: &Source,
    root: &Value,
    registry: &Registry,
) -> Result<config::Configuration, Problems> {
    match root.get("config").filter(|value| !value.is_null()) {
        None => config::default_configuration(registry),
        Some(value) => {
            let name = format!("{}: config", source.name);
            let text = Source::new(name, value.to_json());
            config::load(&text, registry).map(|loaded| loaded.configuration)
        }
    }
}

fn objects(source: &Source, root: &Value, field: &str) -> Result<Vec<Object>, Problems> {
    let mut objects = Vec::new();
    let mut problems = Problems::default();
    for (i, value) in root.get(field).map_or(&[][..], Value::items).iter().enumerate() {
        match read_object(source, value, &format!("{field}[{i}]")) {
            Ok(object) => objects.extend(object),
            Err(more) => problems.extend(more),
        }
    }
    if problems.has_errors() { Err(problems) } else { Ok(objects) }
}

/// Collects the differences about one pod.
pub(crate) struct Comparison<'a> {
    pod: &'a str,
    differences: &'a mut Vec<Mismatch>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(pod: &'a str, differences: &'a mut Vec<Mismatch>) -> Self {
        Self { pod, differences }
    }

    pub(crate) fn equal<T: PartialEq + Serialize>(
        &mut self,
        node: Option<&str>,
        what: &str,
        expected: &T,
        got: &T,
    ) {
        if expected != got {
            self.differences.push(Mismatch {
                pod: self.pod.to_owned(),
                node: node.map(str::to_owned),
                what: what.to_owned(),
                expected: shown(expected),
                got: shown(got),
            });
        }
    }
}

/// As in the data, where nothing is written as `null`.
fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

/// How a list of cases compares.
#[derive(Debug, Default)]
pub struct CheckedCases {
    /// Cases that are as kube-scheduler has them.
    pub passed: usize,
    /// Cases that are not.
    pub failed: usize,
    /// Where; the case stands for the pod.
    pub differences: Vec<Mismatch>,
}

impl CheckedCases {
    /// Checks one case.
    pub(crate) fn case(&mut self, subject: &str, check: impl FnOnce(&mut Comparison<'_>)) {
        let before = self.differences.len();
        check(&mut Comparison::new(subject, &mut self.differences));
        if self.differences.len() == before {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

fn compare(expected: &PodReport, got: &PodReport, theme: &str, differences: &mut Vec<Mismatch>) {
    let mut about = Comparison::new(&expected.pod, differences);
    about.equal(None, "pod", &expected.pod, &got.pod);
    about.equal(None, "result", &expected.result, &got.result);
    about.equal(None, "preFilter", &expected.pre_filter, &got.pre_filter);
    // The data has no message where a PreFilter step narrowed the nodes.
    if expected.message.is_some() || !expected.rejected.values().any(NodeRejection::is_ruled_out) {
        about.equal(None, "message", &expected.message, &got.message);
    }
    compare_nodes(&mut about, expected, got);
    compare_scores(&mut about, expected, got);
    about.equal(None, "best", &expected.best, &got.best);
    if theme == "preemption" {
        let normal = |p: &Option<PreemptionReport>| p.clone().unwrap_or_default();
        about.equal(None, "preemption", &normal(&expected.preemption), &normal(&got.preemption));
    }
}

/// The fast path must know the same feasible nodes and scores; what it leaves out scores 0 everywhere.
fn compare_fast(engine: &mut Engine, pod: &Arc<Pod>, full: &PodReport, differences: &mut Vec<Mismatch>) {
    let pod = engine.admit(pod.clone());
    let Some(fast) = engine.inspect().recall(&pod).filter(|_| full.result == "Scheduled") else {
        return;
    };
    let fast = PodReport::new(&fast);
    let mut about = Comparison::new(&full.pod, differences);
    about.equal(None, "feasible, on the fast path", &full.feasible, &fast.feasible);
    by_node(&mut about, &full.feasible, "total, on the fast path", &full.total, &fast.total);
    for (name, full_scores) in &full.plugins {
        let zeros = vec![0; full_scores.scores.len()];
        let fast_scores = fast.plugins.get(name).map_or(&zeros, |plugin| &plugin.scores);
        by_node(
            &mut about,
            &full.feasible,
            &format!("{name}, on the fast path"),
            &full_scores.scores,
            fast_scores,
        );
    }
}

fn compare_nodes(about: &mut Comparison<'_>, expected: &PodReport, got: &PodReport) {
    let nodes = expected.rejected.keys().chain(got.rejected.keys());
    let nodes: std::collections::BTreeSet<&String> = nodes.collect();
    for node in nodes {
        about.equal(Some(node), "rejected", &expected.rejected.get(node), &got.rejected.get(node));
    }
    about.equal(None, "feasible", &expected.feasible, &got.feasible);
}

fn compare_scores(about: &mut Comparison<'_>, expected: &PodReport, got: &PodReport) {
    let names = expected.plugins.keys().chain(got.plugins.keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    for name in names {
        match (expected.plugins.get(name), got.plugins.get(name)) {
            (Some(want), Some(have)) => {
                about.equal(None, &format!("{name} weight"), &want.weight, &have.weight);
                by_node(about, &expected.feasible, name, &want.scores, &have.scores);
            }
            (want, have) => about.equal(None, name, &want.is_some(), &have.is_some()),
        }
    }
    by_node(about, &expected.feasible, "total", &expected.total, &got.total);
}

fn by_node(about: &mut Comparison<'_>, nodes: &[String], what: &str, expected: &[i64], got: &[i64]) {
    about.equal(None, &format!("{what}: number of scores"), &expected.len(), &got.len());
    for ((node, want), have) in nodes.iter().zip(expected).zip(got) {
        about.equal(Some(node), what, want, have);
    }
}
