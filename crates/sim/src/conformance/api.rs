//! An API server that does what a recorded one did: it stores claims, plays the drivers' part, turns down what was turned
//! down, and remembers what was written.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_framework::{
    handle::{ApiError, ApiFailure, ApiRequest, Handle, Verb},
    offline::{OfflineApi, OfflineHandle},
    virtual_time::VirtualClock,
};
use supercargo_model::{Cluster, Key, Kind, Timestamp, object::Object};

/// A write, in the fields of the data.
pub(super) type Write = Value;

/// The API server. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct RecordedApi(OfflineHandle<Claims>);

#[derive(Default)]
struct Claims {
    /// As they are written.
    claims: BTreeMap<Key, Value>,
    version: u64,
    /// What the drivers say of each claim as soon as it has devices.
    drivers: BTreeMap<Key, Value>,
    /// What the server said to a write that it turned down, by claim.
    refusals: BTreeMap<Key, String>,
    /// The names of claims that are made next.
    names: Vec<String>,
    written: Vec<Write>,
}

impl RecordedApi {
    /// The handle that effects go through.
    pub(super) fn handle(&self) -> Arc<dyn Handle> {
        Arc::new(self.0.clone())
    }

    /// Stores a claim, or forgets it. What was written at some time stays that, whatever the data says.
    pub(super) fn store(&self, key: Key, claim: Option<Value>) {
        self.0.with(|api, cluster| {
            let time = |claim: &Value| claim["status"]["allocation"]["allocationTimestamp"].clone();
            let written = api.claims.get(&key).map(time).filter(|time| !time.is_null());
            let claim = claim.map(|mut claim| {
                if let (Some(written), false) = (written, time(&claim).is_null()) {
                    claim["status"]["allocation"]["allocationTimestamp"] = written;
                }
                claim
            });
            api.store(cluster, key, claim);
        });
    }

    /// What happens to the claims that a pod uses: what drivers will say, what is turned down, how new ones are called.
    pub(super) fn expect(
        &self,
        drivers: BTreeMap<Key, Value>,
        refusals: BTreeMap<Key, String>,
        names: Vec<String>,
    ) {
        self.0.with(|api, cluster| {
            (api.drivers, api.refusals, api.names) = (drivers, refusals, names);
            let allocated: Vec<Key> = api.claims.keys().cloned().collect();
            allocated.iter().for_each(|key| api.let_drivers_answer(cluster, key));
        });
    }

    /// The claims as they are now, to come back to.
    pub(super) fn copy(&self) -> BTreeMap<Key, Value> {
        self.0.with(|api, _| api.claims.clone())
    }

    /// Comes back to what the claims were.
    pub(super) fn restore(&self, claims: BTreeMap<Key, Value>) {
        self.0.with(|api, cluster| {
            let gone: Vec<Key> =
                api.claims.keys().filter(|key| !claims.contains_key(*key)).cloned().collect();
            gone.into_iter().for_each(|key| api.store(cluster, key, None));
            claims.into_iter().for_each(|(key, claim)| api.store(cluster, key, Some(claim)));
        });
    }

    /// What was written since the last time.
    pub(super) fn take_written(&self) -> Vec<Write> {
        self.0.with(|api, _| std::mem::take(&mut api.written))
    }

    /// Runs an effect, and whatever others it begins, to their end.
    pub(super) fn run<T>(&self, effect: impl Future<Output = T>) -> Option<T> {
        let (tasks, mut effect) = (self.0.tasks(), std::pin::pin!(effect));
        let mut ended = None;
        loop {
            tasks.run_ready();
            if ended.is_none()
                && let Poll::Ready(value) = effect.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                ended = Some(value);
                continue;
            }
            if tasks.is_idle() && !tasks.clock().advance_to_next_timer(Duration::MAX) {
                return ended;
            }
        }
    }
}

impl OfflineApi for Claims {
    fn answer(
        &mut self,
        cluster: &mut Arc<Cluster>,
        request: &ApiRequest,
        now: Timestamp,
    ) -> Result<Value, ApiError> {
        if request.verb == Verb::Get {
            return self.find(&request.key);
        }
        self.written.push(recorded(request, now));
        if request.resource.kind != Kind::ResourceClaim.api().kind {
            return Ok(json!({}));
        }
        if request.subresource == "status"
            && let Some(refusal) = self.refusals.get(&request.key)
        {
            return Err(ApiError::new(ApiFailure::Refused, refusal.clone()));
        }
        self.write(cluster, request)
    }
}

impl Claims {
    fn store(&mut self, cluster: &mut Arc<Cluster>, key: Key, claim: Option<Value>) {
        let cluster = Arc::make_mut(cluster);
        match claim {
            None => {
                self.claims.remove(&key);
                cluster.remove(Kind::ResourceClaim, &key);
            }
            Some(mut claim) => {
                self.version += 1;
                claim["metadata"]["resourceVersion"] = self.version.to_string().into();
                if let Ok(object) = Object::from_value(Kind::ResourceClaim, &claim) {
                    cluster.put(object);
                }
                self.claims.insert(key, claim);
            }
        }
    }

    /// Drivers answer as soon as a claim has devices that must get ready.
    fn let_drivers_answer(&mut self, cluster: &mut Arc<Cluster>, key: &Key) {
        let answer = self.drivers.get(key).cloned();
        let claim = self.claims.get(key).filter(|claim| !claim["status"]["allocation"].is_null()).cloned();
        if let (Some(answer), Some(mut claim)) = (answer, claim) {
            claim["status"]["devices"] = answer;
            self.store(cluster, key.clone(), Some(claim));
        }
    }

    fn find(&self, key: &Key) -> Result<Value, ApiError> {
        let missing = || {
            let message = format!("resourceclaims.resource.k8s.io {:?} not found", key.name);
            ApiError::new(ApiFailure::NotFound, message)
        };
        self.claims.get(key).cloned().ok_or_else(missing)
    }

    fn write(&mut self, cluster: &mut Arc<Cluster>, request: &ApiRequest) -> Result<Value, ApiError> {
        let mut key = request.key.clone();
        let claim = match request.verb {
            Verb::Create => {
                let mut made = request.body.clone();
                let name = if self.names.is_empty() { "unexpected".into() } else { self.names.remove(0) };
                let number = name.rsplit('-').next().unwrap_or_default().trim_start_matches('0');
                made["metadata"]["uid"] = format!("uid-created-{number}").into();
                key.name = name.as_str().into();
                made["metadata"]["name"] = name.into();
                if made["spec"]["devices"]["requests"].is_null() {
                    // A server leaves out what is not there.
                    made["spec"] = json!({"devices": {}});
                }
                made
            }
            Verb::Delete => {
                let gone = self.find(&key)?;
                self.store(cluster, key, None);
                return Ok(gone);
            }
            Verb::StrategicMergePatch => {
                let mut claim = self.find(&key)?;
                let gone = &request.body["status"]["reservedFor"][0]["uid"];
                if let Some(reserved) = claim["status"]["reservedFor"].as_array_mut() {
                    reserved.retain(|consumer| consumer["uid"] != *gone);
                }
                claim
            }
            _ => {
                self.find(&key)?;
                request.body.clone()
            }
        };
        self.store(cluster, key.clone(), Some(claim));
        self.let_drivers_answer(cluster, &key);
        self.find(&key)
    }
}

/// A request in the fields of the data: of an update only what is meant by it.
fn recorded(request: &ApiRequest, now: Timestamp) -> Write {
    let mut resource = request.resource.plural.to_owned();
    if !request.subresource.is_empty() {
        resource = format!("{resource}/{}", request.subresource);
    }
    let (verb, patch_type) = match request.verb {
        Verb::Get => ("get", None),
        Verb::Create => ("create", None),
        Verb::Update => ("update", None),
        Verb::MergePatch => ("patch", Some("application/merge-patch+json")),
        Verb::StrategicMergePatch => ("patch", Some("application/strategic-merge-patch+json")),
        Verb::Delete => ("delete", None),
    };
    let mut body = request.body.clone();
    match (request.verb, &*request.subresource) {
        (Verb::Update, "status") => body = json!({"status": request.body["status"]}),
        (Verb::Update, _) => {
            body = json!({"metadata": {"finalizers": request.body["metadata"]["finalizers"]}});
        }
        (Verb::Create, _) => {
            body.as_object_mut().map(|body| ["apiVersion", "kind"].map(|field| body.remove(field)));
        }
        _ => {}
    }
    let mut write = json!({"verb": verb, "resource": resource, "namespace": &*request.key.namespace});
    if !request.key.name.is_empty() {
        write["name"] = (*request.key.name).into();
    }
    if let Some(patch_type) = patch_type {
        write["patchType"] = patch_type.into();
    }
    if request.verb != Verb::Delete {
        write["body"] = masked(body, Some(now));
    }
    write
}

/// As the data has what is random, or was the present time.
pub(super) fn masked(mut value: Value, now: Option<Timestamp>) -> Value {
    let is_now = |time: &Value| {
        let time = time.as_str().and_then(|time| time.parse::<Timestamp>().ok());
        let began = VirtualClock::default().now();
        time.is_some_and(|time| now.is_some_and(|now| (began..=now).contains(&time)))
    };
    match &mut value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match name.as_str() {
                    "shareID" => *value = "<share>".into(),
                    "allocationTimestamp" if is_now(value) => *value = "<time>".into(),
                    _ => *value = masked(value.take(), now),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = masked(item.take(), now)),
        _ => {}
    }
    value
}
