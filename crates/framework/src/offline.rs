//! API objects in memory, and a handle over them on virtual time: for the tests of plugins, and for whoever runs effects
//! offline.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_model::{Cluster, Name, Timestamp};

use crate::{
    handle::{
        ApiError, ApiFailure, ApiRequest, Check, Effect, Handle, HandleRef, LogLevel, Look, Measurement,
        NoPendingPods, Occurrence, Verb, View, Work,
    },
    points::Binding,
    preemption::Nominations,
    status::{Status, Verdict},
    virtual_time::Executor,
    waiting::WaitingPods,
};

/// API objects by path, and what an API server does with requests about them.
#[derive(Clone, Debug, Default)]
pub struct ApiObjects {
    by_path: BTreeMap<String, Value>,
    version: u64,
}

impl ApiObjects {
    /// Puts an object at a path.
    pub fn put(&mut self, path: impl Into<String>, object: Value) {
        self.by_path.insert(path.into(), object);
    }

    /// The object at a path.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.by_path.get(path)
    }

    /// Takes the object away that is at a path.
    pub fn take(&mut self, path: &str) -> Option<Value> {
        self.by_path.remove(path)
    }

    /// A version that no object had before.
    pub fn new_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Does what a request asks for. The object as it is then; or as it was, if it is deleted.
    pub fn answer(&mut self, request: &ApiRequest) -> Result<Value, ApiError> {
        let path = object_path(request);
        let stored = self.by_path.get(&path);
        if request.verb == Verb::Create {
            return match stored {
                Some(_) => Err(ApiError::new(ApiFailure::Conflict, format!("{path} already exists"))),
                None => Ok(self.store(path, request.body.clone())),
            };
        }
        let Some(mut stored) = stored.cloned() else {
            return Err(ApiError::new(ApiFailure::NotFound, format!("{path} not found")));
        };
        check_identity(request, &stored)?;
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
                merge(&mut stored, &request.body, request.verb == Verb::StrategicMergePatch);
                Ok(self.store(path, stored))
            }
            Verb::Delete => {
                self.by_path.remove(&path);
                Ok(stored)
            }
        }
    }

    fn store(&mut self, path: String, mut object: Value) -> Value {
        object["metadata"]["resourceVersion"] = json!(self.new_version());
        self.by_path.insert(path, object.clone());
        object
    }
}

/// Where the object of a request is, whatever part of it is meant.
pub fn object_path(request: &ApiRequest) -> String {
    format!("{}/{}", request.resource.path(&request.key.namespace), request.key.name)
}

/// A request may say which object it is about.
fn check_identity(request: &ApiRequest, stored: &Value) -> Result<(), ApiError> {
    let meant = match request.verb {
        Verb::Delete => &request.body["preconditions"]["uid"],
        _ => &request.body["metadata"]["uid"],
    };
    let uid = &stored["metadata"]["uid"];
    if meant.is_null() || uid.is_null() || meant == uid {
        return Ok(());
    }
    Err(ApiError::new(ApiFailure::Conflict, "it is another object"))
}

/// Merges a patch: lists as a whole, or by the keys of their entries.
fn merge(into: &mut Value, patch: &Value, by_keys: bool) {
    match patch {
        Value::Object(fields) => {
            for (name, value) in fields {
                if !value.is_null() {
                    merge(&mut into[name], value, by_keys);
                } else if let Value::Object(kept) = into {
                    kept.remove(name);
                }
            }
        }
        Value::Array(entries) if by_keys => merge_list(into, entries, patch),
        _ => *into = patch.clone(),
    }
}

/// The fields by which Kubernetes tells the entries of lists apart.
const LIST_KEYS: [&str; 3] = ["type", "name", "uid"];

fn merge_list(into: &mut Value, entries: &[Value], whole: &Value) {
    let has = |key: &&&str| entries.iter().all(|entry| entry[**key].is_string());
    let (Some(key), Value::Array(kept)) = (LIST_KEYS.iter().find(has), &mut *into) else {
        *into = whole.clone();
        return;
    };
    for entry in entries {
        match kept.iter_mut().find(|other| other[*key] == entry[*key]) {
            Some(other) => merge(other, entry, true),
            None => kept.push(entry.clone()),
        }
    }
}

/// What stands for the API server of an [`OfflineHandle`].
pub trait OfflineApi: Send + 'static {
    /// Does what a request asks for at a time; what the scheduler sees of that changes with it.
    fn answer(
        &mut self,
        cluster: &mut Arc<Cluster>,
        request: &ApiRequest,
        now: Timestamp,
    ) -> Result<Value, ApiError>;
}

/// What is shown of the cluster stays as it is.
impl OfflineApi for ApiObjects {
    fn answer(
        &mut self,
        _: &mut Arc<Cluster>,
        request: &ApiRequest,
        _: Timestamp,
    ) -> Result<Value, ApiError> {
        Self::answer(self, request)
    }
}

/// A handle over an API and a cluster in memory, without a scheduler. Time passes when everybody waits. Clones are the same.
#[derive(Default)]
pub struct OfflineHandle<A = ApiObjects>(Arc<Inner<A>>);

impl<A> Clone for OfflineHandle<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Default)]
struct Inner<A> {
    tasks: Executor,
    state: Mutex<State<A>>,
    waiting: WaitingPods,
}

#[derive(Default)]
struct State<A> {
    api: A,
    cluster: Arc<Cluster>,
    /// How many other clusters are still to be shown, and who waits for one of them.
    to_come: usize,
    waiting: Vec<Waker>,
    bound: Vec<Binding>,
    told: Vec<String>,
    notes: Vec<(Duration, Note)>,
}

/// What went through a handle without a way back.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A log line.
    Logged(LogLevel, String),
    /// A measurement.
    Measured(Measurement),
    /// A pod is to be tried again, by its uid.
    Activated(Name),
    /// A pod may be tried again if something would have given it its turn, by its uid.
    LookedAgain(Name),
}

impl<A> OfflineHandle<A> {
    /// Looks at the API and the cluster, or changes them.
    pub fn with<T>(&self, work: impl FnOnce(&mut A, &mut Arc<Cluster>) -> T) -> T {
        let State { api, cluster, .. } = &mut *self.locked();
        work(api, cluster)
    }

    /// The tasks, and the time.
    pub fn tasks(&self) -> &Executor {
        &self.0.tasks
    }

    /// The notes of what happened, for people.
    pub fn told(&self) -> Vec<String> {
        self.locked().told.clone()
    }

    /// What went through it without a way back, and how long after the start.
    pub fn notes(&self) -> Vec<(Duration, Note)> {
        self.locked().notes.clone()
    }

    fn note(&self, note: Note) {
        let at = self.0.tasks.clock().uptime();
        self.locked().notes.push((at, note));
    }

    fn locked(&self) -> MutexGuard<'_, State<A>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    /// Shows another cluster after a while. Until then it is worth waiting for.
    pub fn show_later(&self, span: Duration, cluster: Cluster) {
        self.locked().to_come += 1;
        let (handle, sleep) = (self.clone(), self.sleep(span));
        let show = async move {
            sleep.await;
            let waiting = {
                let mut state = handle.locked();
                state.cluster = Arc::new(cluster);
                state.to_come -= 1;
                std::mem::take(&mut state.waiting)
            };
            waiting.into_iter().for_each(Waker::wake);
        };
        self.spawn(Work::Other, Box::pin(show));
    }

    /// Puts an object at a path.
    pub fn put(&self, path: &str, object: Value) {
        self.locked().api.put(path, object);
    }

    /// The object at a path.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.locked().api.get(path).cloned()
    }

    /// Lets somebody else change the objects after a while.
    pub fn later(&self, span: Duration, deed: impl FnOnce(&mut ApiObjects) + Send + 'static) {
        let (handle, sleep) = (self.clone(), self.sleep(span));
        self.spawn(
            Work::Other,
            Box::pin(async move {
                sleep.await;
                deed(&mut handle.locked().api);
            }),
        );
    }

    /// The pods that were bound.
    pub fn bound(&self) -> Vec<Binding> {
        self.locked().bound.clone()
    }

    /// Runs an effect to its end, and lets time pass for it; `None` if it waits for what does not come.
    pub fn run<T>(&self, effect: impl Future<Output = T>) -> Option<T> {
        let mut effect = std::pin::pin!(effect);
        loop {
            self.0.tasks.run_ready();
            if let Poll::Ready(value) = effect.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return Some(value);
            }
            if self.0.tasks.is_idle() && !self.0.tasks.clock().advance_to_next_timer(Duration::MAX) {
                return None;
            }
        }
    }
}

impl<A: OfflineApi> Handle for OfflineHandle<A> {
    fn look(&self, look: Look) -> Effect<'static, Verdict> {
        let cluster = self.locked().cluster.clone();
        let nominations = Nominations::default();
        look(&View { cluster: &cluster, nominations: &nominations, pending: &NoPendingPods });
        Box::pin(std::future::ready(Ok(())))
    }

    /// Where no other cluster is to be shown, what is not so now is waited for in vain.
    fn until(&self, mut check: Check) -> Effect<'static, Verdict> {
        let handle = self.clone();
        Box::pin(std::future::poll_fn(move |context| {
            let cluster = handle.locked().cluster.clone();
            let nominations = Nominations::default();
            let view = View { cluster: &cluster, nominations: &nominations, pending: &NoPendingPods };
            if check(&view).is_none() {
                return Poll::Ready(Ok(()));
            }
            let mut state = handle.locked();
            if state.to_come == 0 {
                return Poll::Ready(Err(Status::error("nothing changes here by itself")));
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        }))
    }

    fn send(&self, request: ApiRequest) -> Effect<'static, Result<Value, ApiError>> {
        let now = self.now();
        Box::pin(std::future::ready(self.with(|api, cluster| api.answer(cluster, &request, now))))
    }

    fn bind(&self, binding: Binding) -> Effect<'static, Verdict> {
        self.locked().bound.push(binding);
        Box::pin(std::future::ready(Ok(())))
    }

    fn now(&self) -> Timestamp {
        self.0.tasks.clock().now()
    }

    fn uptime(&self) -> Duration {
        self.0.tasks.clock().uptime()
    }

    fn sleep(&self, span: Duration) -> Effect<'static, ()> {
        self.0.tasks.clock().sleep(span)
    }

    fn spawn(&self, _: Work, effect: Effect<'static, ()>) {
        self.0.tasks.spawn(self.0.tasks.process(), effect);
    }

    fn record(&self, occurrence: Occurrence) {
        self.locked().told.push(occurrence.note);
    }

    fn log(&self, level: LogLevel, line: &str) {
        self.note(Note::Logged(level, line.to_owned()));
    }

    fn measure(&self, measurement: Measurement) {
        self.note(Note::Measured(measurement));
    }

    fn waiting_pods(&self) -> &WaitingPods {
        &self.0.waiting
    }

    fn activate(&self, pod_uid: Name) {
        self.note(Note::Activated(pod_uid));
    }

    fn look_again(&self, pod_uid: Name, _: Name) {
        self.note(Note::LookedAgain(pod_uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::ApiResource;
    use supercargo_model::{
        Key,
        testing::{cluster, node},
    };

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
        handle.later(Duration::from_secs(5), |objects| objects.put("/x", json!({})));
        let way = handle.connected();
        handle.run(way.sleep(Duration::from_secs(4)));
        assert!(handle.object("/x").is_none());
        handle.run(way.sleep(Duration::from_secs(1)));
        assert!(handle.object("/x").is_some());
        assert_eq!(handle.uptime(), Duration::from_secs(5));
    }

    #[test]
    fn whoever_waits_for_another_cluster_gets_it_when_it_is_shown() {
        let handle = OfflineHandle::default();
        let way = handle.connected();
        let is_there = |expected: bool| {
            way.until(move |view| match view.cluster.node("n").is_some() == expected {
                true => Ok(()),
                false => Err(Vec::new()),
            })
        };
        let in_vain = Err(Status::error("nothing changes here by itself"));
        assert_eq!(handle.run(is_there(true)), Some(in_vain));
        handle.show_later(Duration::from_secs(1), Cluster::default());
        handle.show_later(Duration::from_secs(3), cluster([node("n")]));
        assert_eq!(handle.run(is_there(true)), Some(Ok(())));
        assert_eq!(handle.uptime(), Duration::from_secs(3));
        handle.show_later(Duration::from_secs(2), Cluster::default());
        // Beside others, whom nobody but this change wakes.
        let way = way.clone();
        handle.spawn(
            Work::Other,
            Box::pin(async move {
                let has_none =
                    |view: &View<'_>| view.cluster.node("n").is_none().then_some(()).ok_or_else(Vec::new);
                let found = way.until(has_none).await;
                way.log(LogLevel::Info, &format!("{found:?}"));
            }),
        );
        handle.tasks().run_for(Duration::from_secs(60));
        let line = Note::Logged(LogLevel::Info, "Ok(())".to_owned());
        assert_eq!(handle.notes(), [(Duration::from_secs(5), line)]);
    }
}
