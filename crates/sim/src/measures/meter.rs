//! Measures a cluster while time passes: sums over the nodes that are updated where something has changed, weighed by how
//! long they held.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use supercargo_model::{Cluster, Name, Node, NodeInfo, changes::Moment};

use super::{PodMix, ResourceMeasures};

/// What a cluster looked like at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// When, in seconds since the first event.
    pub at_seconds: f64,
    /// Pods on nodes.
    pub running: usize,
    /// Pods that wait for one.
    pub pending: usize,
    /// Nodes with a pod.
    pub nodes_in_use: usize,
    /// By resource, in the order of the measures.
    pub resources: Vec<ResourceSample>,
}

/// One resource at a moment, as shares of 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSample {
    /// The resource.
    pub resource: Name,
    /// Requested of allocatable.
    pub utilisation: f64,
    /// Standard deviation of the nodes' utilisation.
    pub imbalance: f64,
    /// Utilisation of the emptiest node.
    pub min: f64,
    /// Utilisation of the fullest node.
    pub max: f64,
    /// Share of what is free that the trace's pods cannot use.
    pub fragmentation: f64,
}

/// One resource of one node, or the sum over all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amounts {
    allocatable: f64,
    used: f64,
    /// What is free; never less than nothing.
    free: f64,
    /// The part of it that the trace's pods cannot use.
    unusable: f64,
    /// Nodes that offer the resource, their utilisations and the squares of those.
    nodes: f64,
    utilisation: f64,
    square: f64,
}

impl Amounts {
    fn new(allocatable: f64, used: f64) -> Self {
        let share = if allocatable > 0.0 { used / allocatable } else { 0.0 };
        Self {
            allocatable,
            used,
            free: (allocatable - used).max(0.0),
            unusable: 0.0,
            nodes: f64::from(u8::from(allocatable > 0.0)),
            utilisation: share,
            square: share * share,
        }
    }

    fn add(&mut self, other: &Self, times: f64) {
        self.allocatable += times * other.allocatable;
        self.used += times * other.used;
        self.free += times * other.free;
        self.unusable += times * other.unusable;
        self.nodes += times * other.nodes;
        self.utilisation += times * other.utilisation;
        self.square += times * other.square;
    }

    fn deviation(&self) -> f64 {
        if self.nodes < 1.0 {
            return 0.0;
        }
        let mean = self.utilisation / self.nodes;
        // What rounding leaves of nothing may be less than nothing.
        (self.square / self.nodes - mean * mean).max(0.0).sqrt()
    }
}

/// A node as it was last looked at.
struct NodeState {
    node: Arc<Node>,
    /// Which classes of pods it lets in.
    admitted: Vec<bool>,
    pods: usize,
    amounts: Vec<Amounts>,
}

/// A resource over time.
#[derive(Clone, Copy, Debug, Default)]
struct Integral {
    allocatable: f64,
    used: f64,
    free: f64,
    unusable: f64,
    deviation: f64,
}

/// Measures a cluster while time passes.
pub struct ClusterMeter<'m> {
    mix: &'m PodMix,
    /// By resource: whether any pod of the trace asks for it. What nobody asks for is not in pieces.
    asked_for: Vec<bool>,
    nodes: Vec<Option<NodeState>>,
    sums: Vec<Amounts>,
    running: usize,
    pending: usize,
    in_use: usize,
    seen: Option<Moment>,
    now: Duration,
    /// Measuring begins with the first pod.
    began: Option<Duration>,
    integrals: Vec<Integral>,
    in_use_seconds: f64,
    /// Samples are taken at even distances until the end.
    sample_every: Duration,
    next_sample: Duration,
    samples: Vec<Sample>,
    /// There is no span of time to measure: what counts is how it ends.
    end_only: bool,
}

/// The share of a part; nothing of nothing is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl<'m> ClusterMeter<'m> {
    /// Measures a span of time with about as many samples; if it has no length, the end.
    pub fn new(mix: &'m PodMix, length: Duration, samples: u32) -> Self {
        let resources = mix.resources.len();
        Self {
            mix,
            asked_for: (0..resources).map(|resource| mix.is_asked_for(resource)).collect(),
            nodes: Vec::new(),
            sums: vec![Amounts::default(); resources],
            running: 0,
            pending: 0,
            in_use: 0,
            seen: None,
            now: Duration::ZERO,
            began: None,
            integrals: vec![Integral::default(); resources],
            in_use_seconds: 0.0,
            sample_every: (length / samples.max(1)).max(Duration::from_nanos(1)),
            next_sample: Duration::ZERO,
            samples: Vec::new(),
            end_only: length.is_zero(),
        }
    }

    /// Looks at what has changed in a cluster, and at how many pods wait.
    pub fn look(&mut self, cluster: &Cluster, pending: usize) {
        self.pending = pending;
        self.running = cluster.pods().len();
        if self.began.is_none() && (pending > 0 || self.running > 0) {
            (self.began, self.next_sample) = (Some(self.now), self.now);
        }
        let now = cluster.changes().now();
        match self.seen.and_then(|seen| cluster.changes().since(seen)) {
            Some(changes) => {
                for change in changes {
                    self.look_at(cluster.node_at(change.node));
                }
            }
            None => self.look_at_all(cluster),
        }
        self.seen = Some(now);
    }

    fn look_at_all(&mut self, cluster: &Cluster) {
        for index in 0..self.nodes.len() {
            let gone = self.nodes[index].as_ref().is_some_and(|known| {
                cluster.node(&known.node.name).is_none_or(|info| info.id.index() != index)
            });
            if gone {
                self.forget(index);
            }
        }
        for node in cluster.nodes() {
            self.look_at(node);
        }
    }

    fn forget(&mut self, index: usize) {
        if let Some(known) = self.nodes[index].take() {
            self.in_use -= usize::from(known.pods > 0);
            self.sums.iter_mut().zip(&known.amounts).for_each(|(sum, amounts)| sum.add(amounts, -1.0));
        }
    }

    fn look_at(&mut self, info: &NodeInfo) {
        let index = info.id.index();
        if index >= self.nodes.len() {
            self.nodes.resize_with(index + 1, || None);
        }
        let amounts = self.mix.resources.iter().map(|name| {
            Amounts::new(info.node.allocatable.get(name) as f64, info.requested.get(name) as f64)
        });
        let amounts: Vec<Amounts> = amounts.collect();
        let admitted = match self.nodes[index].take() {
            Some(known) if Arc::ptr_eq(&known.node, &info.node) => {
                let same = |(new, old): (&Amounts, &Amounts)| new.used == old.used;
                if known.pods == info.pods.len() && amounts.iter().zip(&known.amounts).all(same) {
                    self.nodes[index] = Some(known);
                    return;
                }
                self.take_out(&known);
                known.admitted
            }
            Some(known) => {
                self.take_out(&known);
                self.mix.admitted(&info.node)
            }
            None => self.mix.admitted(&info.node),
        };
        self.put_in(info, admitted, amounts);
    }

    fn take_out(&mut self, known: &NodeState) {
        self.in_use -= usize::from(known.pods > 0);
        self.sums.iter_mut().zip(&known.amounts).for_each(|(sum, amounts)| sum.add(amounts, -1.0));
    }

    fn put_in(&mut self, info: &NodeInfo, admitted: Vec<bool>, mut amounts: Vec<Amounts>) {
        let pods = info.pods.len();
        let is_full = pods as i64 >= info.node.allocatable.pods;
        let free: Vec<f64> = amounts.iter().map(|amounts| amounts.free).collect();
        let mut fitting = vec![0.0; amounts.len()];
        if !is_full {
            self.mix.fitting(&admitted, &free, &mut fitting);
        }
        for ((amounts, fitting), asked_for) in amounts.iter_mut().zip(fitting).zip(&self.asked_for) {
            // What rounding adds to all of it is not worth telling.
            amounts.unusable = if *asked_for { amounts.free * (1.0 - fitting).max(0.0) } else { 0.0 };
        }
        self.in_use += usize::from(pods > 0);
        self.sums.iter_mut().zip(&amounts).for_each(|(sum, amounts)| sum.add(amounts, 1.0));
        self.nodes[info.id.index()] = Some(NodeState { node: info.node.clone(), admitted, pods, amounts });
    }

    /// Time passes, and everything stays as it was last looked at.
    pub fn pass_to(&mut self, now: Duration) {
        if now <= self.now {
            return;
        }
        if self.began.is_some() && !self.end_only {
            while self.next_sample < now {
                self.take_sample();
                self.next_sample += self.sample_every;
            }
            let seconds = (now - self.now).as_secs_f64();
            self.in_use_seconds += seconds * self.in_use as f64;
            for (integral, sums) in self.integrals.iter_mut().zip(&self.sums) {
                integral.allocatable += seconds * sums.allocatable;
                integral.used += seconds * sums.used;
                integral.free += seconds * sums.free;
                integral.unusable += seconds * sums.unusable;
                integral.deviation += seconds * sums.deviation();
            }
        }
        self.now = now;
    }

    fn take_sample(&mut self) {
        self.sum_up_anew();
        let resources = self.mix.resources.iter().zip(&self.sums).enumerate();
        let resources = resources.map(|(i, (resource, sums))| {
            let (min, max) = self.extremes(i);
            ResourceSample {
                resource: resource.clone(),
                utilisation: share(sums.used, sums.allocatable),
                imbalance: sums.deviation(),
                min,
                max,
                fragmentation: share(sums.unusable, sums.free),
            }
        });
        let resources = resources.collect();
        self.samples.push(Sample {
            at_seconds: self.next_sample.as_secs_f64(),
            running: self.running,
            pending: self.pending,
            nodes_in_use: self.in_use,
            resources,
        });
    }

    /// What rounding has left in the sums does not grow from sample to sample.
    fn sum_up_anew(&mut self) {
        self.sums.fill(Amounts::default());
        for node in self.nodes.iter().flatten() {
            self.sums.iter_mut().zip(&node.amounts).for_each(|(sum, amounts)| sum.add(amounts, 1.0));
        }
    }

    /// The utilisation of the emptiest and of the fullest node that offers a resource.
    fn extremes(&self, resource: usize) -> (f64, f64) {
        let offering = self.nodes.iter().flatten().map(|node| node.amounts[resource]);
        let shares = offering.filter(|amounts| amounts.nodes > 0.0).map(|amounts| amounts.utilisation);
        let (min, max) = shares.fold((f64::INFINITY, 0.0_f64), |(min, max), s| (min.min(s), max.max(s)));
        (if min.is_finite() { min } else { 0.0 }, max)
    }

    /// What it all came to: nodes in use and each resource over time, and the samples.
    pub fn finish(mut self) -> (f64, Vec<ResourceMeasures>, Vec<Sample>) {
        if self.began.is_none() || self.samples.is_empty() {
            self.next_sample = self.now;
            self.take_sample();
        }
        let mut seconds = (self.now - self.began.unwrap_or(self.now)).as_secs_f64();
        if self.end_only || seconds == 0.0 {
            (self.now, self.end_only, self.began) = (Duration::ZERO, false, Some(Duration::ZERO));
            self.next_sample = Duration::MAX;
            self.pass_to(Duration::from_secs(1));
            seconds = 1.0;
        }
        let resources = self.mix.resources.iter().enumerate();
        let resources = resources.map(|(i, name)| self.resource(i, name, seconds)).collect();
        (share(self.in_use_seconds, seconds), resources, self.samples)
    }

    fn resource(&self, index: usize, name: &Name, seconds: f64) -> ResourceMeasures {
        let integral = &self.integrals[index];
        let samples = || self.samples.iter().map(|sample| &sample.resources[index]);
        let mean =
            |of: fn(&ResourceSample) -> f64| samples().map(of).sum::<f64>() / self.samples.len() as f64;
        ResourceMeasures {
            resource: name.clone(),
            utilisation: share(integral.used, integral.allocatable),
            utilisation_peak: samples().map(|sample| sample.utilisation).fold(0.0, f64::max),
            imbalance: share(integral.deviation, seconds),
            imbalance_min: mean(|sample| sample.min),
            imbalance_max: mean(|sample| sample.max),
            fragmentation: share(integral.unusable, integral.free),
            unusable: share(integral.unusable, integral.allocatable),
        }
    }
}
