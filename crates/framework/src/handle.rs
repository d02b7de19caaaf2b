//! The way out of a plugin: the one [`Handle`] through which effects see the cluster, read and write API objects, wait,
//! and tell.
//!
//! A plugin gets its [`HandleRef`] with its [arguments](crate::registry::Args::handle), when it is made. Who runs the
//! profile connects it: the live scheduler to an API server, offline runs to a cluster in memory. Until then everything
//! asked of it fails, and nothing is done.

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use supercargo_model::{Cluster, Key, Kind, Name, Pod, Timestamp};

pub use supercargo_model::ApiResource;

use crate::{
    answer::Answer,
    points::Binding,
    preemption::Nominations,
    status::{Status, Verdict},
    waiting::WaitingPods,
};

/// Something that takes its time, beside the deciding task.
pub type Effect<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How often a request is sent that the server had no time for, or that did not reach it.
const ATTEMPTS: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(200);

/// The scheduler's cache between two decisions.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Nodes, the pods on them (assumed ones included), and every other object that is watched.
    pub cluster: &'a Cluster,
    /// The pods for which room is being made.
    pub nominations: &'a Nominations,
    /// The pods that have no node yet.
    pub pending: &'a dyn PendingPods,
}

/// The pods that wait for a node, or are being scheduled.
pub trait PendingPods {
    /// The newest version of a pod.
    fn find(&self, uid: &str) -> Option<&Arc<Pod>>;

    /// All of them, in no particular order.
    fn all(&self) -> Box<dyn Iterator<Item = &Arc<Pod>> + '_>;
}

/// No pod is pending.
pub struct NoPendingPods;

impl PendingPods for NoPendingPods {
    fn find(&self, _: &str) -> Option<&Arc<Pod>> {
        None
    }

    fn all(&self) -> Box<dyn Iterator<Item = &Arc<Pod>> + '_> {
        Box::new(std::iter::empty())
    }
}

/// Something whose change a check waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// An object comes, changes or goes.
    Object(Kind, Key),
    /// A pod without a node goes, by its uid.
    PendingPod(Name),
}

/// A short look at the cache.
pub type Look = Box<dyn FnOnce(&View<'_>) + Send>;

/// Looks whether something has come about; if not, the things of which one has to change first.
pub type Check = Box<dyn FnMut(&View<'_>) -> Option<Vec<Dependency>> + Send>;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// It is read.
    Get,
    /// It is made.
    Create,
    /// It is replaced; the body names the version that it was made from.
    Update,
    /// It is changed in part, lists as a whole.
    MergePatch,
    /// It is changed in part, lists by their keys.
    StrategicMergePatch,
    /// It is deleted.
    Delete,
}

/// A request about one object.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiRequest {
    /// What is done.
    pub verb: Verb,
    /// Where objects of its kind are.
    pub resource: ApiResource,
    /// Which object.
    pub key: Key,
    /// Which part of it, such as `status`; empty for the object itself.
    pub subresource: Cow<'static, str>,
    /// What is sent along.
    pub body: Value,
}

impl ApiRequest {
    /// A request about an object itself.
    pub fn new(verb: Verb, resource: ApiResource, key: Key, body: Value) -> Self {
        Self { verb, resource, key, subresource: Cow::Borrowed(""), body }
    }

    /// Deletes an object, if it still is the one with this identity.
    pub fn delete(resource: ApiResource, key: Key, uid: &str) -> Self {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        Self::new(Verb::Delete, resource, key, options)
    }

    /// The same about a part of the object.
    #[must_use]
    pub fn at(self, subresource: impl Into<Cow<'static, str>>) -> Self {
        Self { subresource: subresource.into(), ..self }
    }

    /// The path that it is sent to.
    pub fn path(&self) -> String {
        let mut path = self.resource.path(&self.key.namespace);
        if self.verb != Verb::Create {
            path.push('/');
            path.push_str(&self.key.name);
        }
        if !self.subresource.is_empty() {
            path.push('/');
            path.push_str(&self.subresource);
        }
        path
    }
}

/// Why a request brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// What kind of failure it is.
    pub failure: ApiFailure,
    /// What the server, or whoever failed, says.
    pub message: String,
}

/// The kinds of failures of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFailure {
    /// There is no such object.
    NotFound,
    /// The object is not what it was when it was read, or is there already.
    Conflict,
    /// The server has no time, and wishes not to be asked before so long. Nothing was done.
    Busy(Option<Duration>),
    /// Something broke in the server: whether it was done is unknown.
    ServerError(Option<Duration>),
    /// The server does not do it.
    Refused,
    /// It never left: nothing was done.
    NotSent,
    /// There was no answer: whether it was done is unknown. This is not a failure.
    OutcomeUnknown,
    /// Another scheduler leads, so that nothing may be written.
    NotLeading,
}

impl ApiError {
    /// A failure, and what is said about it.
    pub fn new(failure: ApiFailure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into() }
    }

    /// Whether it may have been done all the same.
    pub fn is_unknown(&self) -> bool {
        matches!(self.failure, ApiFailure::OutcomeUnknown | ApiFailure::ServerError(_))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        Self::error(error.message)
    }
}

/// An object that is told about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectReference {
    /// Group and version.
    pub api_version: Cow<'static, str>,
    /// Kind.
    pub kind: Cow<'static, str>,
    /// Namespace, empty for objects without, and name.
    pub key: Key,
    /// Identity.
    pub uid: Name,
    /// Which version of it; empty if that does not matter.
    pub version: Name,
}

impl ObjectReference {
    /// A pod, in the version that is known.
    pub fn pod(pod: &Pod) -> Self {
        Self {
            api_version: Cow::Borrowed("v1"),
            kind: Cow::Borrowed("Pod"),
            key: pod.key(),
            uid: pod.uid.clone(),
            version: pod.version.0.clone(),
        }
    }
}

/// Something that happened, for people: recorded as a Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Occurrence {
    /// What it happened to.
    pub regarding: ObjectReference,
    /// What else had a part in it.
    pub related: Option<ObjectReference>,
    /// The scheduler's name, as pods ask for it.
    pub scheduler_name: Name,
    /// Whether somebody should look at it.
    pub is_warning: bool,
    /// Why, in a word.
    pub reason: Cow<'static, str>,
    /// What was being done.
    pub action: Cow<'static, str>,
    /// What happened, in a sentence.
    pub note: String,
}

/// What is counted, under the names that kube-scheduler's metrics have.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// Keeping volumes for a pod has failed.
    VolumeAssumeFailed,
    /// Binding a pod's volumes has failed.
    VolumeBindFailed,
    /// Room is made for a pod by evicting so many others.
    Victims(usize),
    /// The evictions for a pod have ended.
    Evicted {
        /// Whether all victims were evicted.
        success: bool,
        /// How long they took.
        took: Duration,
    },
    /// A claim for a pod's extended resources was made, or could not be.
    ClaimCreated {
        /// Whether it is there.
        success: bool,
    },
    /// A pod has waited for a device to become ready.
    DeviceAwaited {
        /// The pod's profile.
        profile: Name,
        /// Whose device it is.
        driver: Name,
        /// Whether it was this device that had to become ready.
        has_conditions: bool,
        /// How it ended.
        outcome: AwaitOutcome,
        /// How long it took.
        took: Duration,
    },
    /// What an operator wrote for a plugin cannot be read.
    UnreadableInput,
    /// What an operator is to write for a plugin is not there, or is there again.
    MissingInput(bool),
}

/// How waiting for devices has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitOutcome {
    /// They are ready.
    Ready,
    /// One has failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// Nobody can tell.
    Unknown,
}

/// A kind of work that runs beside the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Evicts pods.
    Preemption,
    /// Anything else.
    Other,
}

/// What plugins' effects go through. Plugins use it by way of their [`HandleRef`].
pub trait Handle: Send + Sync {
    /// Runs a short look at the cache between two decisions, and ends when that has been done.
    fn look(&self, look: Look) -> Effect<'static, Verdict>;

    /// Runs a check between two decisions, and again whenever something changes that it depends on, before pods are woken
    /// by the change. Ends when the check finds what it looks for; dropped, it is not run again.
    fn until(&self, check: Check) -> Effect<'static, Verdict>;

    /// Sends one request, once. Writes are not sent unless this replica is the leader.
    fn send(&self, request: ApiRequest) -> Effect<'static, Result<Value, ApiError>>;

    /// Binds a pod: ends when it is clear what became of it.
    fn bind(&self, binding: Binding) -> Effect<'static, Verdict>;

    /// The wall clock: for what is written into objects.
    fn now(&self) -> Timestamp;

    /// Time since some start, which no change of the wall clock touches.
    fn uptime(&self) -> Duration;

    /// Ends after a while.
    fn sleep(&self, span: Duration) -> Effect<'static, ()>;

    /// Runs an effect beside the others. It must not block its thread.
    fn spawn(&self, work: Work, effect: Effect<'static, ()>);

    /// Tells people what happened.
    fn record(&self, occurrence: Occurrence);

    /// Logs a line.
    fn log(&self, level: LogLevel, line: &str);

    /// Counts.
    fn measure(&self, measured: Measurement);

    /// The pods that Permit plugins make wait.
    fn waiting_pods(&self) -> &WaitingPods;

    /// Gives a pod its turn, wherever it waits.
    fn activate(&self, uid: Name);

    /// Gives a pod its turn if this plugin's PreEnqueue held it back when something would have woken it.
    fn look_again(&self, uid: Name, plugin: Name);
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Somebody has to do something.
    Error,
    /// Somebody should look at it.
    Warn,
    /// Good to know.
    Info,
}

/// A plugin's way to its [`Handle`]. Clones are the same.
#[derive(Clone, Default)]
pub struct HandleRef(Arc<OnceLock<Arc<dyn Handle>>>);

impl HandleRef {
    /// Connects it; the first handle stays.
    pub fn connect(&self, handle: &Arc<dyn Handle>) {
        let _ = self.0.set(handle.clone());
    }

    /// The handle; `None` where nothing is carried out, as in a check of the configuration.
    pub fn get(&self) -> Option<&Arc<dyn Handle>> {
        self.0.get()
    }

    /// The handle, or the error that a step ends with for want of it.
    pub fn connected(&self) -> Result<&Arc<dyn Handle>, Status> {
        self.get().ok_or_else(|| Status::error("nothing is carried out here: the plugin has no handle"))
    }

    /// What a short look at the cache says. Nobody is scheduled meanwhile: what takes time is done with the answer.
    pub async fn with_cluster<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let answer = Answer::default();
        let given = answer.clone();
        let looked = self.connected()?.look(Box::new(move |view| given.give(look(view))));
        looked.await?;
        answer.take().ok_or_else(stops)
    }

    /// Waits until a check finds something. It is run now, and again when one of the things changes that it named last.
    pub async fn until<T: Send + 'static>(
        &self,
        mut check: impl FnMut(&View<'_>) -> Result<T, Vec<Dependency>> + Send + 'static,
    ) -> Result<T, Status> {
        let answer = Answer::default();
        let given = answer.clone();
        let found = self.connected()?.until(Box::new(move |view| match check(view) {
            Ok(value) => {
                given.give(value);
                None
            }
            Err(dependencies) => Some(dependencies),
        }));
        found.await?;
        answer.take().ok_or_else(stops)
    }

    /// Sends one request, again as long as the server has no time or cannot be reached. An unknown outcome is told as such.
    pub async fn send(&self, request: ApiRequest) -> Result<Value, ApiError> {
        let unconnected = |status: Status| ApiError::new(ApiFailure::NotSent, status.message());
        let handle = self.connected().map_err(unconnected)?;
        let mut attempt = 1;
        loop {
            let error = match handle.send(request.clone()).await {
                Ok(object) => return Ok(object),
                Err(error) => error,
            };
            let pause = match error.failure {
                ApiFailure::Busy(wish) => wish.unwrap_or(BUSY_PAUSE * attempt),
                ApiFailure::NotSent => BUSY_PAUSE * attempt,
                _ => return Err(error),
            };
            if attempt == ATTEMPTS {
                return Err(error);
            }
            handle.sleep(pause).await;
            attempt += 1;
        }
    }

    /// Reads an object as it is in the API server.
    pub async fn get_object(&self, resource: &ApiResource, key: &Key) -> Result<Value, ApiError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let request = ApiRequest::new(Verb::Get, *resource, key.clone(), Value::Null);
            match self.send(request).await {
                // To read again does no harm.
                Err(error) if error.is_unknown() => last = Some(error),
                read => return read,
            }
            if let Some(handle) = self.get() {
                handle.sleep(BUSY_PAUSE).await;
            }
        }
        Err(last.unwrap_or_else(|| ApiError::new(ApiFailure::OutcomeUnknown, "no answer")))
    }

    /// The same, as a type of the caller's.
    pub async fn get_as<T: DeserializeOwned>(
        &self,
        resource: &ApiResource,
        key: &Key,
    ) -> Result<T, ApiError> {
        let object = self.get_object(resource, key).await?;
        serde_json::from_value(object)
            .map_err(|error| ApiError::new(ApiFailure::Refused, format!("{key}: {error}")))
    }

    /// Makes an object. Where the outcome is unknown, it is looked up.
    pub async fn create(&self, resource: &ApiResource, key: &Key, object: Value) -> Result<Value, ApiError> {
        let request = ApiRequest::new(Verb::Create, *resource, key.clone(), object);
        match self.send(request).await {
            Err(error) if error.is_unknown() => self.get_object(resource, key).await.map_err(|_| error),
            made => made,
        }
    }

    /// Reads an object and changes it, unless it is as it should be already; the object as it is then. Where the outcome
    /// is unknown, or somebody else was quicker, it is read and looked at again.
    pub async fn bring_about(
        &self,
        resource: &ApiResource,
        key: &Key,
        change: impl Fn(&mut Value) -> Result<bool, String> + Send,
    ) -> Result<Value, ApiError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let mut object = self.get_object(resource, key).await?;
            if !change(&mut object).map_err(|why| ApiError::new(ApiFailure::Conflict, why))? {
                return Ok(object);
            }
            match self.send(ApiRequest::new(Verb::Update, *resource, key.clone(), object)).await {
                Err(error) if error.is_unknown() || error.failure == ApiFailure::Conflict => {
                    last = Some(error);
                }
                done => return done,
            }
            self.sleep(BUSY_PAUSE).await;
        }
        Err(last.unwrap_or_else(|| ApiError::new(ApiFailure::OutcomeUnknown, "no answer")))
    }

    /// Changes an object, or a part of it such as `status`, by a merge patch.
    pub async fn merge_patch(
        &self,
        resource: &ApiResource,
        key: &Key,
        subresource: &'static str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        self.send(ApiRequest::new(Verb::MergePatch, *resource, key.clone(), patch).at(subresource)).await
    }

    /// Deletes an object, if it still is the one with this identity. One that is gone needs nothing more.
    pub async fn delete(&self, resource: &ApiResource, key: &Key, uid: &str) -> Result<(), ApiError> {
        match self.send(ApiRequest::delete(*resource, key.clone(), uid)).await {
            Err(ApiError { failure: ApiFailure::NotFound, .. }) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Ends after a while; at once where nothing is carried out.
    pub async fn sleep(&self, span: Duration) {
        if let Some(handle) = self.get() {
            handle.sleep(span).await;
        }
    }

    /// Tells people what happened.
    pub fn record(&self, occurrence: Occurrence) {
        if let Some(handle) = self.get() {
            handle.record(occurrence);
        }
    }

    /// Logs a line.
    pub fn log(&self, level: LogLevel, line: &str) {
        if let Some(handle) = self.get() {
            handle.log(level, line);
        }
    }

    /// Counts.
    pub fn measure(&self, measured: Measurement) {
        if let Some(handle) = self.get() {
            handle.measure(measured);
        }
    }
}

fn stops() -> Status {
    Status::error("the scheduler stops")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_where_the_api_has_them() {
        let custom = ApiResource {
            group: "example.com",
            version: "v1",
            plural: "permits",
            kind: "Permit",
            namespaced: true,
        };
        let key = Key::new("ns", "x");
        let request =
            |verb, resource: &ApiResource| ApiRequest::new(verb, *resource, key.clone(), Value::Null);
        let cases = [
            (request(Verb::Get, &ApiResource::PODS), "/api/v1/namespaces/ns/pods/x"),
            (request(Verb::Update, &ApiResource::PERSISTENT_VOLUMES), "/api/v1/persistentvolumes/x"),
            (request(Verb::Create, &custom), "/apis/example.com/v1/namespaces/ns/permits"),
            (
                request(Verb::MergePatch, &custom).at("status"),
                "/apis/example.com/v1/namespaces/ns/permits/x/status",
            ),
        ];
        for (request, path) in cases {
            assert_eq!(request.path(), path);
        }
    }
}
