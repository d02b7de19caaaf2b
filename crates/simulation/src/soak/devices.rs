//! Devices: drivers that publish late, vanish and come back, claims of a pod's own and shared ones, and pods that want them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    acts::Later,
    plan::{Act, Plan, PlannedStep},
    rules::text,
    run::Simulation,
};
use crate::random::SeededRandom;

/// The driver whose binding conditions the server answers.
const DRIVER: &str = "gpu.example.com";
const CLASS: &str = "gpu";
/// Where pods with claims live: nobody deletes it.
const NAMESPACE: &str = "default";
/// What claims are made from, by name, with the devices that they want.
const TEMPLATES: [&str; 6] = ["one", "two-of-a-root", "share", "either", "ready", "part"];
/// Which acts are followed by one about devices, in thousandths.
const FOLLOWED_PER_MILLE: u64 = 450;
/// How long a pod with claims lives, at most, in seconds; 0 is for ever.
const LIVES_SECONDS: [u64; 4] = [0, 5, 60, 600];

/// The same plan, with devices. What else is drawn from its seed stays what it is.
pub fn with_devices(mut plan: Plan) -> Plan {
    let random = &mut SeededRandom::new(plan.seed ^ 0xde_71ce5);
    plan.setup.devices = true;
    let act = |random: &mut SeededRandom| Act::Devices { sort: random.number(), pick: random.number() };
    // Something to begin with: a slice on some nodes.
    let mut steps: Vec<PlannedStep> = (0..3)
        .map(|_| PlannedStep { at_millis: 500, act: Act::Devices { sort: 0, pick: random.number() } })
        .collect();
    for step in std::mem::take(&mut plan.steps) {
        let (at_millis, is_look) = (step.at_millis, step.act == Act::Look);
        steps.push(step);
        if !is_look && random.per_mille(FOLLOWED_PER_MILLE) {
            steps.push(PlannedStep { at_millis, act: act(random) });
        }
    }
    plan.steps = steps;
    plan
}

/// What is there before anybody does anything.
pub(super) fn beginnings() -> Vec<Value> {
    let class = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CLASS},
        "spec": {"selectors": [{"cel": {"expression": format!("device.driver == {DRIVER:?}")}}]},
    });
    let template = |name: &&str| {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"namespace": NAMESPACE, "name": name}, "spec": {"spec": {"devices": wanted(name)}},
        })
    };
    TEMPLATES.iter().map(template).chain([class]).collect()
}

/// What a claim of a sort asks for. Each sort of device has a model of its own.
fn wanted(template: &str) -> Value {
    let of = |model: &str, count: u64| {
        let selector = format!("device.attributes[{DRIVER:?}].model == {model:?}");
        json!({"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count,
               "selectors": [{"cel": {"expression": selector}}]})
    };
    let named = |name: &str, mut asked: Value| {
        asked["name"] = name.into();
        asked
    };
    match template {
        "two-of-a-root" => json!({
            "requests": [{"name": "pair", "exactly": of("plain", 2)}],
            "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
        }),
        "share" => {
            let mut asked = of("shared", 1);
            asked["capacity"] = json!({"requests": {"memory": "3Gi"}});
            json!({"requests": [{"name": "share", "exactly": asked}]})
        }
        "either" => json!({"requests": [{"name": "either", "firstAvailable": [
            named("part", of("part", 1)), named("plain", of("plain", 1))]}]}),
        "ready" => json!({"requests": [{"name": "ready", "exactly": of("slow", 1)}]}),
        "part" => json!({"requests": [{"name": "part", "exactly": of("part", 1)}]}),
        _ => json!({"requests": [{"name": "one", "exactly": of("plain", 1)}]}),
    }
}

fn device(name: &str, model: &str, root: u64) -> Value {
    json!({"name": name, "attributes": {
        "model": {"string": model}, "resource.kubernetes.io/pcieRoot": {"string": format!("root-{root}")}}})
}

/// The slices of a node: plain devices, one that has to become ready, and a device that is offered in parts.
fn slices(node: &str, generation: u64) -> [Value; 3] {
    let slice = |name: String, pool: String, count: u64, part: &str, content: Value| {
        let mut slice = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
            "spec": {"driver": DRIVER, "nodeName": node,
                     "pool": {"name": pool, "generation": generation, "resourceSliceCount": count}},
        });
        slice["spec"][part] = content;
        slice
    };
    let mut slow = device("slow", "slow", 9);
    slow["bindsToNode"] = true.into();
    slow["bindingConditions"] = json!(["ready"]);
    slow["bindingFailureConditions"] = json!(["broken"]);
    let plain = (0..3).map(|i| device(&format!("plain-{i}"), "plain", i / 2)).chain([slow]);
    let part = |name: &str, takes: &str| {
        let mut part = device(name, "part", 8);
        part["consumesCounters"] = json!([{"counterSet": "whole", "counters": {"parts": {"value": takes}}}]);
        part
    };
    let parts = json!([part("large", "4"), part("medium", "3"), part("small", "2")]);
    let counters = json!([{"name": "whole", "counters": {"parts": {"value": "7"}}}]);
    let parts_pool = format!("{node}-parts");
    [
        slice(format!("{node}-plain"), node.to_owned(), 1, "devices", plain.collect()),
        slice(format!("{node}-counters"), parts_pool.clone(), 2, "sharedCounters", counters),
        slice(format!("{node}-parts"), parts_pool, 2, "devices", parts),
    ]
}

/// A device that all nodes reach, and several claims can have a part of.
fn shared_slice(number: u64) -> Value {
    let mut shared = device("shared", "shared", 7);
    shared["allowMultipleAllocations"] = true.into();
    shared["capacity"] = json!({"memory": {"value": "10Gi"}});
    let pool = format!("network-{number}");
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": pool},
        "spec": {"driver": DRIVER, "allNodes": true, "devices": [shared],
                 "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}},
    })
}

impl Simulation<'_> {
    /// Something happens to devices, or to those who want some.
    pub(super) fn act_on_devices(&mut self, sort: u64, pick: u64) {
        match sort % 12 {
            0 | 1 => self.publish(pick, 1),
            2 => drop(self.create(shared_slice(pick % 2))),
            3 => self.driver_vanishes(pick),
            // A driver that has started anew.
            4 => self.publish(pick, 2 + self.named),
            5 => self.claim_goes(pick),
            6 => self.share_a_claim(pick),
            _ => (0..1 + pick % 3).for_each(|i| self.create_claiming(pick.rotate_left(i as u32))),
        }
    }

    fn publish(&mut self, pick: u64, generation: u64) {
        let Some(node) = self.pick("nodes", pick, |_| true) else { return };
        for slice in slices(text(&node, &["metadata", "name"]), generation) {
            let name = text(&slice, &["metadata", "name"]);
            if self.server.get("resourceslices", "", name).is_ok() {
                self.update(slice);
            } else {
                self.create(slice);
            }
        }
    }

    fn driver_vanishes(&mut self, pick: u64) {
        if let Some(slice) = self.pick("resourceslices", pick, |_| true) {
            self.delete("resourceslices", &slice);
        }
    }

    fn claim_goes(&mut self, pick: u64) {
        if let Some(claim) = self.pick("resourceclaims", pick, |_| true) {
            self.delete("resourceclaims", &claim);
        }
    }

    fn create_claiming(&mut self, pick: u64) {
        let template = TEMPLATES[(pick % TEMPLATES.len() as u64) as usize];
        self.create_with_claim(json!({"name": "devices", "resourceClaimTemplateName": template}), pick);
    }

    /// A claim of its own, and pods that share it.
    fn share_a_claim(&mut self, pick: u64) {
        let name = self.name("claim");
        let template = TEMPLATES[(pick % TEMPLATES.len() as u64) as usize];
        self.create(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"namespace": NAMESPACE, "name": name}, "spec": {"devices": wanted(template)},
        }));
        for i in 0..2 + pick % 2 {
            let claim = json!({"name": "devices", "resourceClaimName": name});
            self.create_with_claim(claim, pick.rotate_left(i as u32));
        }
    }

    fn create_with_claim(&mut self, claim: Value, pick: u64) {
        let name = self.name("pod");
        let container = json!({"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "100m"}}});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": NAMESPACE, "name": name},
            "spec": {"containers": [container], "resourceClaims": [claim], "terminationGracePeriodSeconds": 1},
        });
        let Some(created) = self.create(pod) else { return };
        self.newest_pod = Some((NAMESPACE.to_owned(), name.clone()));
        let seconds = LIVES_SECONDS[(pick / 7 % LIVES_SECONDS.len() as u64) as usize];
        if seconds > 0 {
            let uid = text(&created, &["metadata", "uid"]).to_owned();
            let ends = Later::PodEnds { namespace: NAMESPACE.to_owned(), name, uid };
            self.after(Duration::from_secs(seconds), ends);
        }
    }
}
