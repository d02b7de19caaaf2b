//! Theme `dra`: what claims get on every feasible node, what is written when a pod is bound, and what is given up for one that
//! fits nowhere. The fields are described in tests/conformance/README.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};
use supercargo_engine::{Decision, Engine};
use supercargo_framework::{
    Code,
    assumed::{AssumedObjects, ReserveCycle},
    preemption::Nominations,
    profile::{PreFilterEnd, Profile},
};
use supercargo_manifest::{self as manifest, Problem, Problems, Source};
use supercargo_model::{Key, Kind, Name, Pod, devices::Devices, object::Object};

use super::{
    Comparison,
    api::{RecordedApi, Write, masked},
};

/// The theme.
pub(super) const THEME: &str = "dra";

/// What a claim for extended resources is called until it is made.
const EXTENDED: &str = "<extended-resources>";

/// What is expected of a pod besides its verdicts and scores.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeviceExpectation {
    allocations: BTreeMap<String, BTreeMap<String, Value>>,
    extended: BTreeMap<String, Value>,
    pub(super) errors: BTreeMap<String, String>,
    post_filter: Option<PostFilterExpectation>,
    writes: Vec<Write>,
    after: BTreeMap<String, Value>,
    bind_error: Option<String>,
    hold: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PostFilterExpectation {
    code: String,
    message: String,
    writes: Vec<Write>,
}

/// A pod that has devices and is bound only after the next.
struct Held<'c> {
    pod: Arc<Pod>,
    node: Name,
    expected: &'c DeviceExpectation,
}

/// What claims come to, from pod to pod.
pub(super) struct DeviceCycles<'c> {
    api: RecordedApi,
    assumed: AssumedObjects,
    held: Option<Held<'c>>,
}

impl<'c> DeviceCycles<'c> {
    /// Connects the engine's plugins to an API server that has the scenario's claims.
    pub(super) fn new(engine: &Engine, objects: &[Value]) -> Self {
        let api = RecordedApi::default();
        let claims = objects.iter().filter(|object| object["kind"] == Kind::ResourceClaim.name());
        claims.for_each(|claim| api.store(key_of(claim), Some(claim.clone())));
        let handle = api.handle();
        engine.profiles().iter().for_each(|profile| profile.connect(&handle));
        Self { api, assumed: AssumedObjects::default(), held: None }
    }

    /// Compares what a pod's claims get, and does what was done for it. The pod is on its node then, if it was bound.
    pub(super) fn check(
        &mut self,
        engine: &mut Engine,
        pod: &Arc<Pod>,
        decision: Option<&Decision>,
        expected: &'c DeviceExpectation,
        placed: Option<&str>,
        about: &mut Comparison<'_>,
    ) {
        self.compare_allocations(engine, pod, expected, about);
        if let (Some(want), Some(decision)) = (&expected.post_filter, decision) {
            self.compare_post_filter(engine, pod, decision, want, about);
        }
        let earlier = self.held.take();
        if let Some(node) = placed {
            let node = Name::from(node);
            self.reserve(engine, pod, &node, about);
            if expected.hold {
                self.held = Some(Held { pod: pod.clone(), node, expected });
                return;
            }
            self.bind(engine, pod, &node, expected, about);
        }
        self.store_after(engine, expected);
        if let Some(Held { pod, node, expected }) = earlier {
            self.bind(engine, &pod, &node, expected, about);
            self.store_after(engine, expected);
        }
    }

    fn reserve(&mut self, engine: &mut Engine, pod: &Arc<Pod>, node: &Name, about: &mut Comparison<'_>) {
        let Some(profile) = engine.profiles().shared(&pod.spec.scheduler_name) else { return };
        engine.assume(pod, node.clone());
        let mut cycle = ReserveCycle::new(engine.cluster_mut(), &mut self.assumed, pod.uid.clone());
        let reserved = profile.profile.reserve(&mut cycle, pod, node);
        let why = reserved.err().map(|rejection| rejection.status.message());
        about.equal(Some(node), "Reserve", &None, &why);
    }

    fn compare_allocations(
        &mut self,
        engine: &mut Engine,
        pod: &Arc<Pod>,
        expected: &DeviceExpectation,
        about: &mut Comparison<'_>,
    ) {
        let nodes: BTreeSet<&String> = expected.allocations.keys().chain(expected.extended.keys()).collect();
        for node in nodes {
            let none = BTreeMap::new();
            let want = expected.allocations.get(node).unwrap_or(&none);
            let got = self.allocations_on(engine, pod, node);
            about.equal(Some(node), "allocations", want, &got);
            let want = expected.extended.get(node);
            if want.is_some() {
                let got = self.extended_on(engine, pod, node);
                about.equal(Some(node), "extended", &want, &got.as_ref());
            }
        }
    }

    /// What Reserve keeps for the pod's claims on a node, which is taken back.
    fn allocations_on(&mut self, engine: &mut Engine, pod: &Arc<Pod>, node: &str) -> BTreeMap<String, Value> {
        let Some(profile) = engine.profiles().shared(&pod.spec.scheduler_name) else {
            return BTreeMap::new();
        };
        let cluster = engine.cluster_mut();
        let mut cycle = ReserveCycle::new(cluster, &mut self.assumed, pod.uid.clone());
        let node = Name::from(node);
        let _ = profile.profile.reserve(&mut cycle, pod, &node);
        let devices = cluster.devices();
        let mut names: BTreeMap<Name, String> =
            devices.claims().map(|claim| (claim.uid.clone(), claim.name.to_string())).collect();
        names.insert(format!("{EXTENDED} {}", pod.uid).into(), EXTENDED.to_owned());
        let found = names.into_iter().filter_map(|(uid, name)| {
            let kept = devices.in_flight(&uid).filter(|_| !self.is_held(&uid, devices))?;
            Some((name, masked(json!(**kept), None)))
        });
        let found = found.collect();
        profile.profile.unreserve(pod, &node);
        self.assumed.restore(cluster, &pod.uid);
        found
    }

    /// Whether a claim is one of the pod that is bound later.
    fn is_held(&self, claim_uid: &str, devices: &Devices) -> bool {
        self.held.as_ref().is_some_and(|Held { pod, .. }| {
            let named = pod.spec.resource_claims.iter().filter_map(|named| {
                let generated = pod.claims.iter().flat_map(|claims| &claims.generated);
                let generated = generated.into_iter().find(|status| status.name == named.name);
                let made = generated.and_then(|status| status.resource_claim_name.as_ref());
                let name = named.resource_claim_name.as_ref().or(made)?;
                devices.claim(&Key::new(pod.namespace.clone(), name.clone()))
            });
            named.into_iter().any(|claim| *claim.uid == *claim_uid)
        })
    }

    /// What the claim for extended resources asks for on a node: what would be written if the pod were bound there.
    fn extended_on(&mut self, engine: &mut Engine, pod: &Arc<Pod>, node: &str) -> Option<Value> {
        let profile = engine.profiles().shared(&pod.spec.scheduler_name)?;
        let node = Name::from(node);
        let scratch = self.api.copy();
        let cluster = engine.cluster_mut();
        let mut cycle = ReserveCycle::new(cluster, &mut self.assumed, pod.uid.clone());
        let reserved = profile.profile.reserve(&mut cycle, pod, &node).is_ok();
        if reserved {
            for (_, plugin) in profile.profile.pre_binders() {
                if plugin.is_needed(pod, &node) {
                    let _ = self.api.run(plugin.pre_bind(pod, &node));
                }
            }
        }
        let written = self.api.take_written();
        profile.profile.unreserve(pod, &node);
        self.api.run(std::future::ready(()));
        self.api.take_written();
        self.assumed.restore(cluster, &pod.uid);
        self.api.restore(scratch);
        let body = |of: fn(&Value) -> &Value| {
            let found = written.iter().map(|write| of(&write["body"])).find(|found| !found.is_null());
            found.cloned().unwrap_or_default()
        };
        Some(json!({
            "requests": body(|body| &body["spec"]["devices"]["requests"]),
            "mappings": body(|body| &body["status"]["extendedResourceClaimStatus"]["requestMappings"]),
        }))
    }

    fn compare_post_filter(
        &mut self,
        engine: &Engine,
        pod: &Arc<Pod>,
        decision: &Decision,
        want: &PostFilterExpectation,
        about: &mut Comparison<'_>,
    ) {
        let (code, message) = match &decision.preemption {
            Some(Err(status)) => (status.code.name().to_owned(), status.message()),
            Some(Ok(nomination)) => ("Success".to_owned(), nomination.node.to_string()),
            None => (String::new(), String::new()),
        };
        about.equal(None, "postFilter code", &want.code, &code);
        about.equal(None, "postFilter message", &want.message, &message);
        let profile = engine.profile(&pod.spec.scheduler_name);
        if let (Some(profile), Some(follow_up)) = (profile, &decision.follow_up) {
            profile.follow_up(pod, follow_up);
        }
        self.api.run(std::future::ready(()));
        let written = self.api.take_written();
        about.equal(None, "postFilter writes", &want.writes, &written);
    }

    /// Runs the binding cycle of a pod that has its devices, and compares what is written.
    fn bind(
        &mut self,
        engine: &mut Engine,
        pod: &Arc<Pod>,
        node: &Name,
        expected: &DeviceExpectation,
        about: &mut Comparison<'_>,
    ) {
        let Some(profile) = engine.profiles().shared(&pod.spec.scheduler_name) else { return };
        self.api.expect(drivers(expected), refusals(expected), names_of_made(expected));
        let error = self.pre_bind(&profile.profile, pod, node);
        about.equal(Some(node), "bindError", &expected.bind_error, &error);
        if error.is_some() {
            profile.profile.unreserve(pod, node);
            self.api.run(std::future::ready(()));
            self.assumed.restore(engine.cluster_mut(), &pod.uid);
            engine.cluster_mut().remove_pod(&pod.key());
        } else {
            self.assumed.keep(engine.cluster_mut(), &pod.uid);
        }
        let written = self.api.take_written();
        about.equal(Some(node), "writes", &by_plugins(&expected.writes), &written);
    }

    fn pre_bind(&self, profile: &Profile, pod: &Arc<Pod>, node: &Name) -> Option<String> {
        for (name, plugin) in profile.pre_binders() {
            if plugin.is_needed(pod, node) {
                let ended = self.api.run(plugin.pre_bind(pod, node));
                match ended {
                    Some(Ok(())) => {}
                    Some(Err(status)) => {
                        return Some(format!("running PreBind plugin {name:?}: {}", status.message()));
                    }
                    None => return Some("waits for what does not come".to_owned()),
                }
            }
        }
        None
    }

    /// The claims as they are after a pod.
    fn store_after(&mut self, engine: &mut Engine, expected: &DeviceExpectation) {
        for (key, claim) in &expected.after {
            let (namespace, name) = key.split_once('/').unwrap_or(("", key));
            let key = Key::new(namespace, name);
            let claim = Some(claim.clone()).filter(|claim| !claim.is_null());
            match &claim {
                Some(written) => {
                    if let Ok(object) = Object::from_value(Kind::ResourceClaim, written) {
                        engine.cluster_mut().put(object);
                    }
                }
                None => engine.cluster_mut().remove(Kind::ResourceClaim, &key),
            }
            self.api.store(key, claim);
        }
    }
}

/// What each node says by itself, where one fails: a real run ends at the first.
pub(super) fn compare_errors(
    engine: &Engine,
    pod: &Pod,
    expected: &DeviceExpectation,
    about: &mut Comparison<'_>,
) {
    let Some(profile) = engine.profile(&pod.spec.scheduler_name) else { return };
    let cluster = engine.cluster();
    let Ok(PreFilterEnd::Go(found)) = profile.pre_filter(cluster, pod) else { return };
    for node in cluster.nodes() {
        let nominations = Nominations::default();
        let verdict = profile.filter_with_nominated(&found.state, cluster, &nominations, pod, node);
        let error = verdict.err().filter(|rejection| rejection.status.code == Code::Error);
        let error = error.map(|rejection| rejection.status.message());
        about.equal(Some(node.name()), "errors", &expected.errors.get(&**node.name()), &error.as_ref());
    }
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

/// What the drivers said of each claim.
fn drivers(expected: &DeviceExpectation) -> BTreeMap<Key, Value> {
    let told = expected.after.values().filter(|claim| !claim["status"]["devices"].is_null());
    told.map(|claim| (key_of(claim), claim["status"]["devices"].clone())).collect()
}

/// What the server said of a write that it turned down: it stands at the end of the pod's error.
fn refusals(expected: &DeviceExpectation) -> BTreeMap<Key, String> {
    let refused = expected.writes.iter().filter(|write| write["refused"] == true);
    let said = |write: &Write| {
        let key = Key::new(write["namespace"].as_str()?, write["name"].as_str()?);
        let said = expected.bind_error.as_ref()?.split_once(&format!("claim {key}: "))?.1;
        Some((key, said.to_owned()))
    };
    refused.filter_map(said).collect()
}

/// The names of claims that were made, as later writes have them.
fn names_of_made(expected: &DeviceExpectation) -> Vec<String> {
    let made = expected.writes.iter().filter(|write| write["verb"] == "create");
    let beginnings = made.filter_map(|write| write["body"]["metadata"]["generateName"].as_str());
    let name = |beginning: &str| {
        let names = expected.writes.iter().filter_map(|write| write["name"].as_str());
        names.into_iter().find(|name| name.starts_with(beginning)).map(str::to_owned)
    };
    beginnings.filter_map(name).collect()
}

/// The writes that plugins make: not the nomination, and not the binding. Of those that were repeated because the object had
/// changed since it was cached the last counts, as ours are made from what is read right before.
fn by_plugins(writes: &[Write]) -> Vec<Write> {
    let mut all: Vec<Write> = Vec::new();
    for write in writes {
        let is_ours =
            write["resource"] != "pods/binding" && write["body"]["status"]["nominatedNodeName"].is_null();
        let mut write = write.clone();
        write.as_object_mut().map(|fields| fields.remove("refused"));
        let same =
            |other: &Write| ["verb", "resource", "namespace", "name"].iter().all(|f| other[f] == write[f]);
        if !is_ours {
            continue;
        }
        match all.last_mut().filter(|last| same(last)) {
            Some(conflicted) => *conflicted = write,
            None => all.push(write),
        }
    }
    all
}

/// What is expected of each pod. A claim that is gone is `null`, which the located reader leaves out.
pub(super) fn expectations(
    source: &Source,
    root: &manifest::Value,
) -> Result<Vec<DeviceExpectation>, Problems> {
    let written = root.get("expect").map_or_else(|| "[]".to_owned(), manifest::Value::to_json);
    serde_json::from_str(&written).map_err(|error| {
        Problem::error(format!("expect: {error}")).at(source, manifest::Location::START).into()
    })
}

/// The objects of a scenario as they are written.
pub(super) fn written_objects(root: &manifest::Value) -> Vec<Value> {
    let objects = root.get("objects").map_or(&[][..], manifest::Value::items);
    objects.iter().filter_map(|object| serde_json::from_str(&object.to_json()).ok()).collect()
}
