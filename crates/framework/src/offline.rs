//! A handle without a scheduler: API objects in memory, and time that passes when somebody waits for it. For the tests of
//! plugins, and for whoever runs effects offline.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_model::{Cluster, Name, Timestamp};

use crate::{
    handle::{
        ApiError, ApiFailure, ApiRequest, Check, Effect, Handle, HandleRef, Level, Look, Measured,
        NoPendingPods, Occurrence, Verb, View, Work,
    },
    points::Binding,
    preemption::Nominations,
    status::{Status, Verdict},
    waiting::WaitingPods,
};

/// What others do to the objects, at a moment.
type Deed = Box<dyn FnOnce(&mut BTreeMap<String, Value>) + Send>;

/// API objects in memory. Clones are the same.
#[derive(Clone, Default)]
pub struct OfflineHandle(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    waiting: WaitingPods,
}

#[derive(Default)]
struct State {
    /// By path.
    objects: BTreeMap<String, Value>,
    version: u64,
    now: Duration,
    deeds: Vec<(Duration, Deed)>,
    cluster: Arc<Cluster>,
    bound: Vec<Binding>,
    told: Vec<String>,
}

impl OfflineHandle {
    /// A way to it, for a plugin that is made by hand.
    pub fn connected(&self) -> HandleRef {
        let (way, handle): (_, Arc<dyn Handle>) = (HandleRef::default(), Arc::new(self.clone()));
        way.connect(&handle);
        way
    }

    /// Shows this cluster to whoever looks.
    pub fn show(&self, cluster: Cluster) {
        self.locked().cluster = Arc::new(cluster);
    }

    /// Puts an object at a path.
    pub fn put(&self, path: &str, object: Value) {
        self.locked().objects.insert(path.to_owned(), object);
    }

    /// The object at a path.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.locked().objects.get(path).cloned()
    }

    /// Lets somebody else change the objects after a while.
    pub fn later(&self, span: Duration, deed: impl FnOnce(&mut BTreeMap<String, Value>) + Send + 'static) {
        let mut state = self.locked();
        let at = state.now + span;
        state.deeds.push((at, Box::new(deed)));
    }

    /// The pods that were bound.
    pub fn bound(&self) -> Vec<Binding> {
        self.locked().bound.clone()
    }

    /// The notes of what happened, for people.
    pub fn told(&self) -> Vec<String> {
        self.locked().told.clone()
    }

    /// Runs an effect to its end; `None` if it waits for what does not come.
    pub fn run<T>(&self, effect: impl Future<Output = T>) -> Option<T> {
        let mut effect = std::pin::pin!(effect);
        match effect.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pass(&mut self, span: Duration) {
        self.now += span;
        while let Some(due) = self.deeds.iter().position(|(at, _)| *at <= self.now) {
            let (_, deed) = self.deeds.remove(due);
            deed(&mut self.objects);
        }
    }

    fn answer(&mut self, request: &ApiRequest) -> Result<Value, ApiError> {
        let mut path = request.path();
        if request.verb == Verb::Create {
            path = format!("{path}/{}", request.key.name);
            if self.objects.contains_key(&path) {
                return Err(ApiError::new(ApiFailure::Conflict, format!("{path} already exists")));
            }
            return Ok(self.store(path, request.body.clone()));
        }
        if !request.subresource.is_empty() {
            path.truncate(path.len() - request.subresource.len() - 1);
        }
        let Some(stored) = self.objects.get(&path).cloned() else {
            return Err(ApiError::new(ApiFailure::NotFound, format!("{path} not found")));
        };
        match request.verb {
            Verb::Get | Verb::Create => Ok(stored),
            Verb::Update => {
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                if version(&request.body) != version(&stored) {
                    return Err(ApiError::new(ApiFailure::Conflict, "the object has been modified"));
                }
                Ok(self.store(path, request.body.clone()))
            }
            Verb::MergePatch | Verb::StrategicMergePatch => {
                let mut patched = stored;
                merge(&mut patched, &request.body);
                Ok(self.store(path, patched))
            }
            Verb::Delete => {
                let uid = &request.body["preconditions"]["uid"];
                if !uid.is_null() && *uid != stored["metadata"]["uid"] {
                    return Err(ApiError::new(ApiFailure::Conflict, "it is another object"));
                }
                self.objects.remove(&path);
                Ok(stored)
            }
        }
    }

    fn store(&mut self, path: String, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path, object.clone());
        object
    }
}

/// Merges a patch, lists as a whole.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            if let Value::Object(kept) = into {
                kept.remove(name);
            }
        } else {
            merge(&mut into[name], value);
        }
    }
}

impl Handle for OfflineHandle {
    fn look(&self, look: Look) -> Effect<'static, Verdict> {
        let cluster = self.locked().cluster.clone();
        let nominations = Nominations::default();
        look(&View { cluster: &cluster, nominations: &nominations, pending: &NoPendingPods });
        Box::pin(std::future::ready(Ok(())))
    }

    /// The cluster does not change by itself: what is not so now is waited for in vain.
    fn until(&self, mut check: Check) -> Effect<'static, Verdict> {
        let cluster = self.locked().cluster.clone();
        let nominations = Nominations::default();
        let waits = check(&View { cluster: &cluster, nominations: &nominations, pending: &NoPendingPods });
        let found: Pin<Box<dyn Future<Output = Verdict> + Send>> = match waits {
            None => Box::pin(std::future::ready(Ok(()))),
            Some(_) => Box::pin(std::future::ready(Err(Status::error("nothing changes here by itself")))),
        };
        found
    }

    fn send(&self, request: ApiRequest) -> Effect<'static, Result<Value, ApiError>> {
        Box::pin(std::future::ready(self.locked().answer(&request)))
    }

    fn bind(&self, binding: Binding) -> Effect<'static, Verdict> {
        self.locked().bound.push(binding);
        Box::pin(std::future::ready(Ok(())))
    }

    fn now(&self) -> Timestamp {
        let start = Timestamp::UNIX_EPOCH;
        start.checked_add(self.uptime()).unwrap_or(start)
    }

    fn uptime(&self) -> Duration {
        self.locked().now
    }

    fn sleep(&self, span: Duration) -> Effect<'static, ()> {
        let handle = self.clone();
        Box::pin(async move { handle.locked().pass(span) })
    }

    fn spawn(&self, _: Work, effect: Effect<'static, ()>) {
        self.run(effect);
    }

    fn record(&self, occurrence: Occurrence) {
        self.locked().told.push(occurrence.note);
    }

    fn log(&self, _: Level, _: &str) {}

    fn measure(&self, _: Measured) {}

    fn waiting_pods(&self) -> &WaitingPods {
        &self.0.waiting
    }

    fn activate(&self, _: Name) {}

    fn look_again(&self, _: Name, _: Name) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::ApiResource;
    use supercargo_model::Key;

    #[test]
    fn objects_are_made_changed_and_deleted() {
        let handle = OfflineHandle::default();
        let way = handle.connected();
        let (group, version, plural, kind) = ("example.com", "v1", "things", "Thing");
        let things = ApiResource { group, version, plural, kind, namespaced: true };
        let key = Key::new("ns", "x");
        let path = "/apis/example.com/v1/namespaces/ns/things/x";
        let ended = handle.run(async {
            let object = json!({"metadata": {"name": "x", "uid": "u"}, "spec": {"a": 1, "b": 2}});
            way.create(&things, &key, object.clone()).await.unwrap();
            let again = way.create(&things, &key, object).await.unwrap_err();
            assert_eq!(again.failure, ApiFailure::Conflict);
            way.bring_about(&things, &key, |object| {
                object["spec"]["a"] = 3.into();
                Ok(true)
            })
            .await
            .unwrap();
            way.merge_patch(&things, &key, "status", json!({"spec": {"b": null}, "status": {"ok": true}}))
                .await
                .unwrap();
            let read = way.get_object(&things, &key).await.unwrap();
            assert_eq!(read["spec"], json!({"a": 3}));
            assert_eq!(read["status"]["ok"], true);
            assert_eq!(way.delete(&things, &key, "other").await.unwrap_err().failure, ApiFailure::Conflict);
            way.delete(&things, &key, "u").await.unwrap();
            way.delete(&things, &key, "u").await.unwrap();
        });
        assert!(ended.is_some() && handle.object(path).is_none());
    }

    #[test]
    fn time_passes_for_whoever_waits() {
        let handle = OfflineHandle::default();
        handle.later(Duration::from_secs(5), |objects| drop(objects.insert("/x".to_owned(), json!({}))));
        let way = handle.connected();
        handle.run(way.sleep(Duration::from_secs(4)));
        assert!(handle.object("/x").is_none());
        handle.run(way.sleep(Duration::from_secs(1)));
        assert!(handle.object("/x").is_some());
        assert_eq!(handle.uptime(), Duration::from_secs(5));
    }
}
