//! The test cluster as tests hold it: objects without the wire, the referee's record, and faults.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Request, Response};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::access::AccessRules;
use crate::api::{Api, Caller, DeleteOptions, ListOptions, ObjectAddress, Patch};
use crate::clock::{Clock, SystemClock};
use crate::failure::StatusError;
use crate::faults::{FaultPlan, FaultRule, Faults, ServerAction};
use crate::http::{self, ResponseBody, Server};
use crate::in_process::InProcessClient;
use crate::object::{self, as_map};
use crate::options::TestClusterOptions;
use crate::patch::PatchKind;
use crate::referee::{AcceptedBinding, Violation};
use crate::requests::RequestGroup;
use crate::resource::{PODS, Resource};
use crate::selector::Selector;
use crate::signal::SignalReceiver;
use crate::store::{EventType, News, StoreEvent, StoreSnapshot, StoredObject};
use crate::{NOTICE, controllers, events};

/// How often a condition is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A Kubernetes API server in memory, on loopback. It ends when it is dropped.
pub struct TestCluster {
    api_server: ApiServer,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

/// The API server itself, without a port: it answers whoever is in the same process, on whatever time it is given.
///
/// What is created through this type is trusted: it may have a status, a uid, a node.
#[derive(Clone)]
pub struct ApiServer {
    server: Arc<Server>,
}

impl TestCluster {
    /// Starts a cluster on threads of its own, so that it runs whatever the caller does.
    pub fn start(options: TestClusterOptions) -> io::Result<Self> {
        tracing::warn!("{NOTICE}");
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("testcluster")
            .enable_io()
            .enable_time()
            .build()?;
        let (api_server, actions) = ApiServer::with_actions(&options, Arc::new(SystemClock::start()));
        let server = &api_server.server;
        let listener = {
            let _context = runtime.enter();
            http::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)))?
        };
        let address = listener.local_addr()?;
        runtime.spawn(http::serve(server.clone(), listener, actions));
        controllers::start(&server.api, &options, |task| drop(runtime.spawn(task)));
        Ok(Self { api_server, address, runtime: Some(runtime) })
    }

    /// Where it listens, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The way to ask it from this process without a connection.
    pub fn in_process(&self) -> InProcessClient {
        let threads = self.runtime.as_ref().expect("it is there until this is dropped").handle().clone();
        InProcessClient::new(self.api_server.clone(), threads)
    }

    /// Waits until the condition holds.
    pub async fn wait_until(
        &self,
        mut condition: impl FnMut(&Self) -> bool,
        timeout: Duration,
    ) -> Result<(), TimedOut> {
        let start = Instant::now();
        while !condition(self) {
            if start.elapsed() > timeout {
                return Err(TimedOut { after: timeout });
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the condition holds, for callers that are not asynchronous.
    pub fn wait_until_blocking(
        &self,
        mut condition: impl FnMut(&Self) -> bool,
        timeout: Duration,
    ) -> Result<(), TimedOut> {
        let start = Instant::now();
        while !condition(self) {
            if start.elapsed() > timeout {
                return Err(TimedOut { after: timeout });
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Ends it: the port is closed, and so are all connections.
    pub fn shutdown(self) {}
}

impl Deref for TestCluster {
    type Target = ApiServer;

    fn deref(&self) -> &ApiServer {
        &self.api_server
    }
}

impl ApiServer {
    /// A server that answers only in this process. Its controllers are tasks for `spawn`; of the options, the port and the
    /// threads mean nothing to it, and it cannot be told to restart.
    pub fn new(
        options: &TestClusterOptions,
        clock: Arc<dyn Clock>,
        spawn: impl FnMut(BoxFuture<'static, ()>),
    ) -> Self {
        let (api_server, _) = Self::with_actions(options, clock);
        controllers::start(&api_server.server.api, options, spawn);
        api_server
    }

    fn with_actions(
        options: &TestClusterOptions,
        clock: Arc<dyn Clock>,
    ) -> (Self, mpsc::UnboundedReceiver<ServerAction>) {
        let api = Arc::new(Api::new(options.history_limit, options.seed, clock));
        let (sender, actions) = mpsc::unbounded_channel();
        let faults = Arc::new(Faults::new(sender));
        (Self { server: Arc::new(Server::new(api, faults, options.bookmark_interval)) }, actions)
    }

    /// Answers a request as it would over HTTP. An error is a connection that breaks without an answer.
    pub fn answer(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = io::Result<Response<ResponseBody>>> + Send + use<> {
        http::answer(self.server.clone(), request)
    }

    fn named(&self, name: &str) -> Result<&'static Resource, StatusError> {
        let found = self.server.api.served().named(name);
        found.filter(|found| !found.is_review()).ok_or_else(StatusError::no_such_path)
    }

    fn resource_of(&self, object: &Value) -> Result<&'static Resource, StatusError> {
        let (api_version, kind) = (object::text(object, &["apiVersion"]), object::text(object, &["kind"]));
        let found = self.server.api.served().of_kind(api_version, kind);
        found.filter(|found| !found.is_review()).ok_or_else(|| {
            StatusError::bad_request(format!("no kind {kind:?} is registered for version {api_version:?}"))
        })
    }

    /// Stores a new object, whose `apiVersion` and `kind` say what it is.
    pub fn create(&self, object: Value) -> Result<Value, StatusError> {
        let resource = self.resource_of(&object)?;
        let created = self.server.api.create(resource, "", object, &Caller::test())?;
        Ok(whole(resource, &created))
    }

    /// Stores new objects, one after another, up to the first that cannot be.
    pub fn create_many(&self, objects: impl IntoIterator<Item = Value>) -> Result<(), StatusError> {
        let test = Caller::test();
        for object in objects {
            self.server.api.create(self.resource_of(&object)?, "", object, &test)?;
        }
        Ok(())
    }

    /// The object, if it exists. The resource is named as people do: `pods`, `pod`, `po`, `deployments.apps`.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, StatusError> {
        let resource = self.named(resource)?;
        let found = self.server.api.get(ObjectAddress::new(resource, namespace, name))?;
        Ok(whole(resource, &found))
    }

    /// All objects of a resource, or those of a namespace.
    pub fn list(&self, resource: &str, namespace: &str) -> Result<Vec<Value>, StatusError> {
        self.list_selected(resource, namespace, "", "")
    }

    /// Those that the label and field selectors select.
    pub fn list_selected(
        &self,
        resource: &str,
        namespace: &str,
        labels: &str,
        fields: &str,
    ) -> Result<Vec<Value>, StatusError> {
        let resource = self.named(resource)?;
        let selector = Selector::parse(resource, labels, fields)?;
        let listing =
            self.server.api.list(resource, namespace, &ListOptions { selector, ..ListOptions::default() })?;
        Ok(listing.objects.iter().map(|object| whole(resource, object)).collect())
    }

    /// How many objects of a resource there are.
    pub fn count(&self, resource: &str) -> Result<usize, StatusError> {
        let resource = self.named(resource)?;
        Ok(self.server.api.store().count(resource))
    }

    /// Replaces an object, its status too. A `resourceVersion` in it must be the current one.
    pub fn update(&self, object: Value) -> Result<Value, StatusError> {
        let resource = self.resource_of(&object)?;
        let (namespace, name) = (object::namespace(&object).to_owned(), object::name(&object).to_owned());
        let place = ObjectAddress::new(resource, &namespace, &name);
        let updated = self.server.api.update(place, "", object, &Caller::test())?;
        Ok(whole(resource, &updated))
    }

    /// Changes an object; `resource` may name a subresource, as in `pods/status`.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        kind: PatchKind,
        patch: Value,
    ) -> Result<Value, StatusError> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let resource = self.named(resource)?;
        if !subresource.is_empty() && !resource.has(subresource) {
            return Err(StatusError::no_such_path());
        }
        let caller = Caller { field_manager: "test".to_owned(), ..Caller::test() };
        let place = ObjectAddress::new(resource, namespace, name);
        let patched = self.server.api.patch(place, subresource, &Patch { kind, value: patch }, &caller)?;
        Ok(whole(resource, &patched))
    }

    /// Deletes an object as `kubectl delete` would: with its grace, and respecting finalizers.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<(), StatusError> {
        self.delete_with(resource, namespace, name, DeleteOptions::default())
    }

    /// Deletes an object without any grace.
    pub fn delete_now(&self, resource: &str, namespace: &str, name: &str) -> Result<(), StatusError> {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        self.delete_with(resource, namespace, name, options)
    }

    fn delete_with(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<(), StatusError> {
        let place = ObjectAddress::new(self.named(resource)?, namespace, name);
        self.server.api.delete(place, &options, &Caller::test()).map(drop)
    }

    /// Binds a pod to a node, as another scheduler would.
    pub fn bind(&self, namespace: &str, pod: &str, node: &str) -> Result<(), StatusError> {
        let binding = json!({"target": {"kind": "Node", "name": node}});
        self.server.api.bind(ObjectAddress::new(&PODS, namespace, pod), &binding, &Caller::test())
    }

    /// How many pods have a node.
    pub fn pods_bound(&self) -> usize {
        let store = self.server.api.store();
        let pods = store.objects(&PODS, "", None);
        pods.filter(|(_, pod)| !object::text(&pod.value, &["spec", "nodeName"]).is_empty()).count()
    }

    /// What happened to a resource's objects after a version, oldest first, and the version up to which this tells. Too long
    /// ago is `None`.
    pub fn changes(&self, resource: &str, after: u64) -> Result<Option<(Vec<SeenChange>, u64)>, StatusError> {
        let resource = self.named(resource)?;
        let (mut all, mut seen) = (Vec::new(), after);
        loop {
            match self.server.api.store().news(resource, seen) {
                News::TooLate(_) => return Ok(None),
                News::Changes(changes, newest) => {
                    let complete = changes.is_empty();
                    seen = newest;
                    all.extend(changes.into_iter().map(SeenChange));
                    if complete {
                        return Ok(Some((all, seen)));
                    }
                }
            }
        }
    }

    /// Wakes whenever something happens to a resource's objects.
    pub fn subscribe(&self, resource: &str) -> Result<SignalReceiver, StatusError> {
        let resource = self.named(resource)?;
        Ok(self.server.api.store().subscribe(resource))
    }

    /// All objects as they are now.
    pub fn snapshot(&self) -> ClusterBackup {
        ClusterBackup(self.server.api.store().snapshot())
    }

    /// Sets everything back to an earlier state, as an administrator restores etcd from a backup: all watches end, and the
    /// history is forgotten. Versions go on from the newest if they are `bumped`; otherwise they repeat.
    pub fn restore(&self, snapshot: &ClusterBackup, bumped: bool) {
        self.server.api.store().restore(&snapshot.0, bumped);
        self.server.faults.act(ServerAction::CutWatches);
    }

    /// Every binding that was accepted, in order.
    pub fn bindings(&self) -> Vec<AcceptedBinding> {
        self.server.api.store().referee.bindings().to_vec()
    }

    /// The bindings from the one with this order on: what is new to whoever has seen those before.
    pub fn bindings_from(&self, order: usize) -> Vec<AcceptedBinding> {
        self.server.api.store().referee.bindings().get(order..).unwrap_or_default().to_vec()
    }

    /// Every rule that a binding broke.
    pub fn violations(&self) -> Vec<Violation> {
        self.server.api.store().referee.violations().to_vec()
    }

    /// How many requests came over HTTP, by verb, resource and user agent.
    pub fn requests(&self) -> BTreeMap<RequestGroup, u64> {
        self.server.requests.all()
    }

    /// How many requests with this verb came for this resource, such as `pods/binding`.
    pub fn requests_for(&self, verb: &str, resource: &str) -> u64 {
        let all = self.server.requests.all();
        all.iter()
            .filter(|(group, _)| group.verb == verb && group.resource == resource)
            .map(|(_, count)| count)
            .sum()
    }

    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.server.api.store().version()
    }

    /// What goes wrong on purpose.
    pub fn faults(&self) -> FaultControl<'_> {
        FaultControl { faults: &self.server.faults, api: &self.server.api }
    }

    /// Who has which token, and who may do what. The cluster waits while this is held.
    pub fn access(&self) -> MutexGuard<'_, AccessRules> {
        self.server.api.access()
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.api_server.server.hang_up();
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it would panic where the caller is itself asynchronous.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestCluster").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// All objects of a cluster as they were at some time.
#[derive(Clone)]
pub struct ClusterBackup(StoreSnapshot);

/// Something that happened to an object.
pub struct SeenChange(Arc<StoreEvent>);

impl SeenChange {
    /// The object after the change; as it was last if it is gone.
    pub fn object(&self) -> &Value {
        &self.0.object.value
    }

    /// The object before the change; none if it is new.
    pub fn previous(&self) -> Option<&Value> {
        self.0.previous.as_ref().map(|previous| &previous.value)
    }

    /// Whether it is gone.
    pub fn is_deletion(&self) -> bool {
        self.0.kind == EventType::Deleted
    }

    /// The version of the change.
    pub fn version(&self) -> u64 {
        self.0.object.version
    }
}

/// A condition did not hold in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut {
    after: Duration,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the condition did not hold within {:?}", self.after)
    }
}

impl Error for TimedOut {}

/// The faults of a cluster.
pub struct FaultControl<'a> {
    faults: &'a Faults,
    api: &'a Api,
}

impl FaultControl<'_> {
    /// All that goes wrong now.
    pub fn plan(&self) -> FaultPlan {
        self.faults.plan()
    }

    /// Replaces all that goes wrong; counting and chance start anew.
    pub fn set(&self, plan: FaultPlan) {
        self.faults.set_plan(plan);
    }

    /// Lets one more thing go wrong.
    pub fn add(&self, rule: FaultRule) {
        self.faults.add_rule(rule);
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.faults.set_plan(FaultPlan::default());
    }

    /// Cuts all watches.
    pub fn cut_watches(&self) {
        self.faults.act(ServerAction::CutWatches);
    }

    /// Forgets the history: watches from before are too late.
    pub fn compact(&self) {
        self.api.store().compact();
    }

    /// Closes the port and all connections for a while, and comes back on the same port with the same objects.
    pub fn restart(&self, down: Duration, forget_history: bool) {
        let down_millis = u64::try_from(down.as_millis()).unwrap_or(u64::MAX);
        self.faults.act(ServerAction::Restart { down_millis, forget_history });
    }
}

fn whole(resource: &'static Resource, object: &StoredObject) -> Value {
    let mut value = events::shown(resource, &object.value).into_owned();
    let map = as_map(&mut value);
    map.insert("apiVersion".to_owned(), resource.api_version().into());
    map.insert("kind".to_owned(), resource.kind.into());
    value
}
