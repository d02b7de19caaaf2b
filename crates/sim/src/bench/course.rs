//! What is done with each pod of a workload.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use supercargo_engine::{
    Decision, Engine, Placement,
    extender_calls::{ExtenderAnswer, ExtenderAnswers, ExtenderCall, ExtenderRole, PlaceStep, Sieved},
};
use supercargo_framework::assumed::AssumedObjects;
use supercargo_model::{Name, Pod};

use super::BenchWorkload;
use crate::resource_claims::reserve;

/// What came of a pod.
#[derive(Clone, Copy, Default)]
pub(super) struct Came {
    /// It found a node, or, where that is what is measured, its refusal or its victims.
    pub(super) well: bool,
    /// Time that others would have taken.
    pub(super) outside: Duration,
}

/// Does what is to be done with a pod.
pub(super) fn schedule(
    workload: BenchWorkload,
    engine: &mut Engine,
    assumed: &mut AssumedObjects,
    pod: &Arc<Pod>,
    fast: bool,
) -> Came {
    match workload {
        BenchWorkload::Extender => return with_extender(engine, pod),
        BenchWorkload::Refused | BenchWorkload::RefusedChanged | BenchWorkload::Preempt => {}
        _ => {
            let node = place(engine, pod, fast);
            // What was chosen for one pod is nobody else's: keeping it is a part of the decision.
            let keeps = matches!(workload, BenchWorkload::Devices(_));
            let well = node.is_some_and(|node| !keeps || reserve(engine, assumed, pod, &node).is_ok());
            return Came { well, ..Came::default() };
        }
    }
    let Some(decision) = decide(engine, pod, fast) else {
        return Came::default();
    };
    let well = match workload {
        BenchWorkload::Preempt => make_room(engine, pod, &decision),
        _ => decision.message().is_some_and(|message| !message.is_empty()),
    };
    Came { well, ..Came::default() }
}

/// Places and assumes a pod; where.
fn place(engine: &mut Engine, pod: &Arc<Pod>, fast: bool) -> Option<Name> {
    let node = if fast {
        engine.place(pod).and_then(|placement| placement.node().cloned())
    } else {
        engine.decide(pod).and_then(|decision| decision.node().cloned())
    }?;
    engine.assume(pod, node.clone());
    Some(node)
}

/// The record of a pod that fits nowhere.
fn decide(engine: &mut Engine, pod: &Arc<Pod>, fast: bool) -> Option<Decision> {
    if !fast {
        return engine.decide(pod);
    }
    match engine.place(pod)? {
        Placement::Decided(decision) => Some(*decision),
        Placement::On { .. } => None,
    }
}

/// The victims go at once; the pod waits with its claim to the node.
fn make_room(engine: &mut Engine, pod: &Arc<Pod>, decision: &Decision) -> bool {
    let Some(Ok(nomination)) = &decision.preemption else {
        return false;
    };
    for victim in &nomination.victims {
        engine.cluster_mut().remove_pod(&victim.key());
    }
    engine.nominations_mut().nominate(pod.clone(), nomination.node.clone());
    true
}

/// An extender that is asked about every pod: it refuses and scores.
pub(super) fn extender() -> ExtenderRole {
    ExtenderRole {
        name: "http://extender.local".into(),
        filters: true,
        weight: Some(1),
        ..ExtenderRole::default()
    }
}

/// The extender passes all nodes and scores them; the time that its answers take is not ours.
fn with_extender(engine: &mut Engine, pod: &Arc<Pod>) -> Came {
    let mut answers = ExtenderAnswers::default();
    let mut outside = Duration::ZERO;
    loop {
        match engine.place_with(pod, &mut answers) {
            None => return Came { well: false, outside },
            Some(PlaceStep::Placed(placement)) => {
                let node = placement.node().cloned();
                let well = node.is_some();
                if let Some(node) = node {
                    engine.assume(pod, node);
                }
                return Came { well, outside };
            }
            Some(PlaceStep::Call(call)) => {
                let asked = Instant::now();
                let answer = answer(&call);
                outside += asked.elapsed();
                answers.add(engine.extenders(), call, answer);
            }
        }
    }
}

fn answer(call: &ExtenderCall) -> ExtenderAnswer {
    match call {
        ExtenderCall::Filter { nodes, .. } => {
            ExtenderAnswer::Filter(Ok(Sieved { passed: vec![true; nodes.len()], ..Sieved::default() }))
        }
        ExtenderCall::Prioritize { nodes, .. } => {
            ExtenderAnswer::Prioritize(vec![Ok((0..nodes.len() as i64).map(|i| i % 11).collect())])
        }
        ExtenderCall::Preempt { .. } => ExtenderAnswer::Preempt(Ok(Vec::new())),
    }
}
