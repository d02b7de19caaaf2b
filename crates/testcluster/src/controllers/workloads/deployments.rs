//! A deployment has one replica set for its template. Those of older templates are emptied: step by step where the deployment
//! spells a rolling update out, at once otherwise.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{CONTROLLER, all, by_controller, owner_reference, replicas};
use crate::StatusError;
use crate::api::{Api, Caller, ObjectAddress};
use crate::controllers::budgets::{amount, amount_rounded_down};
use crate::object::{self, as_map, at, list_at, map_at, name, namespace, set_condition, text, uid};
use crate::resource::{DEPLOYMENTS, REPLICA_SETS};
use crate::store::StoredObject;

const TEMPLATE_HASH: &str = "pod-template-hash";
/// By this `kubectl rollout history` and `undo` tell replica sets apart.
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn reconcile(api: &Api) -> Result<(), StatusError> {
    let (deployments, sets) = (all(api, &DEPLOYMENTS), all(api, &REPLICA_SETS));
    let owned = by_controller(&sets);
    for deployment in deployments.iter().filter(|deployment| !object::is_terminating(&deployment.value)) {
        let sets = owned.get(uid(&deployment.value)).map_or(&[][..], Vec::as_slice);
        reconcile_one(api, &deployment.value, sets)?;
    }
    Ok(())
}

fn reconcile_one(api: &Api, deployment: &Value, sets: &[&Arc<StoredObject>]) -> Result<(), StatusError> {
    let set_name = format!("{}-{}", name(deployment), template_hash(deployment));
    let (current, older): (Vec<&Value>, Vec<&Value>) =
        sets.iter().map(|set| &set.value).partition(|set| name(set) == set_name);
    let current = current.first().copied();
    let rollout = Rollout::new(deployment, current, &older);
    let latest = older.iter().map(|set| revision(set)).max().unwrap_or(0);
    let revision = current.map(revision).filter(|own| *own > latest).unwrap_or(latest + 1);
    match current {
        Some(set) => change(api, set, rollout.current_size(), revision)?,
        None => {
            let set = replica_set(deployment, &set_name, rollout.current_size(), revision);
            api.create(&REPLICA_SETS, namespace(deployment), set, &Caller::controller(CONTROLLER))?;
        }
    }
    for (set, size) in older.iter().zip(rollout.older_sizes()) {
        change(api, set, size, self::revision(set))?;
    }
    write_status(api, deployment, &rollout, revision)
}

/// How many pods a set wants, and how many of its pods are there and ready.
#[derive(Clone, Copy, Debug, Default)]
struct SetSize {
    wanted: u64,
    pods: u64,
    ready: u64,
}

impl SetSize {
    fn of(set: &Value) -> Self {
        Self {
            wanted: replicas(set, "spec", "replicas"),
            pods: replicas(set, "status", "replicas"),
            ready: replicas(set, "status", "readyReplicas"),
        }
    }
}

/// Where a deployment is on the way from older sets to the current one.
#[derive(Debug)]
struct Rollout {
    wanted: u64,
    /// How many more and fewer pods there may be meanwhile, if it goes step by step.
    bounds: Option<(u64, u64)>,
    current: SetSize,
    older: Vec<SetSize>,
}

impl Rollout {
    fn new(deployment: &Value, current: Option<&Value>, older: &[&Value]) -> Self {
        let wanted = replicas(deployment, "spec", "replicas");
        let bounds = at(deployment, &["spec", "strategy", "rollingUpdate"]).map(|rolling| {
            let given = |key: &str| rolling.get(key).cloned().unwrap_or_else(|| "25%".into());
            let (surge, missing) =
                (amount(&given("maxSurge"), wanted), amount_rounded_down(&given("maxUnavailable"), wanted));
            // With neither it would never move.
            (surge, if surge == 0 { missing.max(1) } else { missing })
        });
        Self {
            wanted,
            bounds,
            current: current.map(SetSize::of).unwrap_or_default(),
            older: older.iter().map(|set| SetSize::of(set)).collect(),
        }
    }

    fn sum(&self, part: impl Fn(&SetSize) -> u64) -> u64 {
        self.older.iter().map(&part).fold(part(&self.current), u64::saturating_add)
    }

    /// How many pods the current set may want now.
    fn current_size(&self) -> u64 {
        let Some((surge, _)) = self.bounds.filter(|_| self.older.iter().any(|set| set.wanted > 0)) else {
            return self.wanted;
        };
        let room = self.wanted.saturating_add(surge).saturating_sub(self.sum(|set| set.wanted));
        self.current.wanted.saturating_add(room).min(self.wanted)
    }

    /// How many pods each older set may keep wanting: those that are not ready go first.
    fn older_sizes(&self) -> Vec<u64> {
        let Some((_, missing)) = self.bounds else { return vec![0; self.older.len()] };
        let least = self.wanted.saturating_sub(missing);
        let not_ready_yet = self.current.wanted.saturating_sub(self.current.ready);
        let mut may_go = self.sum(|set| set.wanted).saturating_sub(least).saturating_sub(not_ready_yet);
        let mut ready_may_go = self.sum(|set| set.ready).saturating_sub(least);
        let sizes = self.older.iter().map(|set| {
            let not_ready = set.wanted.saturating_sub(set.ready).min(may_go);
            may_go -= not_ready;
            let ready = (set.wanted - not_ready).min(ready_may_go).min(may_go);
            may_go -= ready;
            ready_may_go -= ready;
            set.wanted - not_ready - ready
        });
        sizes.collect()
    }

    fn is_complete(&self) -> bool {
        self.current.ready == self.wanted && self.sum(|set| set.pods) == self.wanted
    }
}

fn revision(set: &Value) -> u64 {
    text(set, &["metadata", "annotations", REVISION]).parse().unwrap_or(0)
}

fn set_revision(value: &mut Value, revision: u64) {
    let annotations = map_at(value, "metadata").entry("annotations").or_insert(Value::Null);
    as_map(annotations).insert(REVISION.to_owned(), revision.to_string().into());
}

fn change(api: &Api, set: &Value, size: u64, to_revision: u64) -> Result<(), StatusError> {
    if replicas(set, "spec", "replicas") == size && revision(set) == to_revision {
        return Ok(());
    }
    let mut value = set.clone();
    map_at(&mut value, "spec").insert("replicas".to_owned(), size.into());
    set_revision(&mut value, to_revision);
    let place = ObjectAddress::new(&REPLICA_SETS, namespace(set), name(set));
    api.update(place, "", value, &Caller::controller(CONTROLLER)).map(drop)
}

fn write_status(api: &Api, deployment: &Value, rollout: &Rollout, revision: u64) -> Result<(), StatusError> {
    let ready = rollout.sum(|set| set.ready);
    let mut value = deployment.clone();
    set_revision(&mut value, revision);
    let generation = at(deployment, &["metadata", "generation"]).cloned().unwrap_or_default();
    let status = map_at(&mut value, "status");
    for (key, number) in [
        ("replicas", rollout.sum(|set| set.pods)),
        ("readyReplicas", ready),
        ("availableReplicas", ready),
        ("unavailableReplicas", rollout.sum(|set| set.pods).max(rollout.wanted).saturating_sub(ready)),
        ("updatedReplicas", rollout.current.pods),
    ] {
        status.insert(key.to_owned(), number.into());
    }
    status.insert("observedGeneration".to_owned(), generation);
    let now = api.time.now();
    for condition in conditions(rollout, ready) {
        let (kind, reason) = (condition["type"].clone(), condition["reason"].clone());
        if !set_condition(&mut value, condition, &now) {
            // It is as true as before, maybe for another reason.
            let known = list_at(map_at(&mut value, "status"), "conditions");
            for known in known.iter_mut().filter(|known| known["type"] == kind) {
                known["reason"] = reason.clone();
            }
        }
    }
    let place = ObjectAddress::new(&DEPLOYMENTS, namespace(deployment), name(deployment));
    api.update(place, "", value, &Caller::controller(CONTROLLER)).map(drop)
}

/// What `kubectl wait` and `describe` look at.
fn conditions(rollout: &Rollout, ready: u64) -> [Value; 2] {
    let missing = rollout.bounds.map_or(0, |(_, missing)| missing);
    let (available, reason) = match ready >= rollout.wanted.saturating_sub(missing) {
        true => ("True", "MinimumReplicasAvailable"),
        false => ("False", "MinimumReplicasUnavailable"),
    };
    let progress = if rollout.is_complete() { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    [
        json!({"type": "Available", "status": available, "reason": reason}),
        json!({"type": "Progressing", "status": "True", "reason": progress}),
    ]
}

/// Ten digits that follow from the template.
fn template_hash(deployment: &Value) -> String {
    let template =
        at(deployment, &["spec", "template"]).map(|told| meant(told).to_string()).unwrap_or_default();
    // FNV-1a: any function will do that gives the same for the same text in every run.
    let hash = template.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:010x}", hash & 0xff_ffff_ffff)
}

/// A template without what says nothing: clients in Go write it, others leave it out, and it is one template.
fn meant(told: &Value) -> Value {
    let says_nothing = |key: &str, value: &Value| {
        value.is_null() || key == "resources" && value.as_object().is_some_and(Map::is_empty)
    };
    match told {
        Value::Object(map) => {
            let said = map.iter().filter(|(key, value)| !says_nothing(key, value));
            Value::Object(said.map(|(key, value)| (key.clone(), meant(value))).collect())
        }
        Value::Array(list) => list.iter().map(meant).collect(),
        other => other.clone(),
    }
}

fn replica_set(deployment: &Value, set_name: &str, wanted: u64, revision: u64) -> Value {
    let hash = template_hash(deployment);
    let mut template = at(deployment, &["spec", "template"]).cloned().unwrap_or_default();
    let mut selector = at(deployment, &["spec", "selector"]).cloned().unwrap_or_default();
    for labels in [
        map_at(&mut template, "metadata").entry("labels").or_insert(Value::Null),
        as_map(&mut selector).entry("matchLabels").or_insert(Value::Null),
    ] {
        as_map(labels).insert(TEMPLATE_HASH.to_owned(), hash.as_str().into());
    }
    json!({
        "metadata": {
            "name": set_name,
            "labels": at(&template, &["metadata", "labels"]),
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [owner_reference(&DEPLOYMENTS, deployment)],
        },
        "spec": {"replicas": wanted, "selector": selector, "template": template},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set((wanted, ready): (u64, u64)) -> SetSize {
        SetSize { wanted, pods: wanted, ready }
    }

    #[test]
    fn a_rolling_update_goes_step_by_step() {
        // Of 8 pods, 2 more and 2 fewer are allowed: at least 6 are ready, at most 10 wanted.
        let step = |current, older| {
            let rollout =
                Rollout { wanted: 8, bounds: Some((2, 2)), current: set(current), older: vec![set(older)] };
            (rollout.current_size(), rollout.older_sizes()[0])
        };
        for (current, older, expected, why) in [
            ((0, 0), (8, 8), (2, 6), "8 + 2 − 8 more; 8 − 6 ready ones go"),
            ((2, 0), (6, 6), (4, 6), "8 + 2 − 8 more; 6 ready are the least"),
            ((4, 2), (6, 6), (4, 4), "10 are wanted; 6 + 2 − 6 ready ones go"),
            ((4, 4), (4, 4), (6, 2), "8 + 2 − 8 more; 4 + 4 − 6 ready ones go"),
            ((8, 8), (2, 2), (8, 0), "all are there"),
            ((2, 2), (8, 4), (2, 4), "the four that are not ready go first"),
            ((8, 8), (0, 0), (8, 0), "done"),
        ] {
            assert_eq!(step(current, older), expected, "{why}");
        }
    }

    #[test]
    fn what_says_nothing_makes_no_other_template() {
        let hash = |template: Value| template_hash(&json!({"spec": {"template": template}}));
        let terse = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}});
        let wordy = json!({"metadata": {"creationTimestamp": null, "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "resources": {}}]}});
        let other = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "d"}]}});
        assert_eq!(hash(terse.clone()), hash(wordy));
        assert_ne!(hash(terse), hash(other));
    }

    #[test]
    fn without_a_spelled_out_strategy_it_goes_at_once() {
        let rollout = Rollout { wanted: 3, bounds: None, current: set((0, 0)), older: vec![set((5, 5))] };
        assert_eq!((rollout.current_size(), rollout.older_sizes()), (3, vec![0]));
    }
}
