//! What is served where, all of it behind the guard.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    extract::RawQuery,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{
    access::{AccessControl, BoxFuture, guard},
    health::Health,
    metrics::{CONTENT_TYPE, Metrics, PodResources, pod_resources_text},
    ui,
    zpages::{self, Flags, Statusz},
};

/// Where health is told.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// What is told to those who ask for profiles: a Go program's are not to be had from one in Rust.
const NO_PROFILES: &str = "\
There are no Go profiles here: supercargo is written in Rust.

Where time goes:
  /metrics                      durations of decisions, plugins, bindings
  perf record -g -p PID         a profile of the process, on its node
  supercargo bench              the same engine on made-up clusters
What memory is used for:
  heaptrack --pid PID, or process_resident_memory_bytes in /metrics
";

/// Whether a path tells health, and nothing but health.
pub(crate) fn is_health(path: &str) -> bool {
    HEALTH.contains(&path)
}

/// The configurations in force, by name, as `/configz` shows them.
#[derive(Clone, Default)]
pub struct Configz(Arc<Mutex<BTreeMap<String, Value>>>);

impl Configz {
    /// This is the configuration of that name from now on. It is shown as it is: it must hold no secrets.
    pub fn set(&self, name: &str, configuration: Value) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), configuration);
    }

    fn json(&self) -> String {
        let configurations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_string(&*configurations).expect("JSON values are JSON")
    }
}

/// Lists the pods for `/metrics/resources`; nothing while another process leads.
pub type ListPods = Arc<dyn Fn() -> Vec<PodResources> + Send + Sync>;

/// What is asked for in an address, by name.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// What stands behind the question mark of an address.
    pub fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// As it stands in an address.
    pub fn to_text(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// What is answered to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryAnswer {
    /// This, as JSON. Many may be answered with the same bytes.
    Json(Bytes),
    /// What was asked for does not exist.
    NotFound(String),
    /// The question makes no sense.
    BadRequest(String),
    /// Nobody can answer now.
    Unavailable(String),
}

impl IntoResponse for QueryAnswer {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            Self::Json(text) => return json(text),
            Self::NotFound(message) => (StatusCode::NOT_FOUND, message),
            Self::BadRequest(message) => (StatusCode::BAD_REQUEST, message),
            Self::Unavailable(message) => (StatusCode::SERVICE_UNAVAILABLE, message),
        };
        (status, json(serde_json::json!({"message": message}).to_string())).into_response()
    }
}

/// Answers questions.
pub type AnswerQueries = Arc<dyn Fn(Query) -> BoxFuture<'static, QueryAnswer> + Send + Sync>;

/// What is served.
pub struct Routes(Router);

impl Routes {
    /// Health, metrics and configurations.
    pub fn new(health: Health, metrics: Arc<Metrics>, configz: Configz) -> Self {
        let (all, slis) = (metrics.clone(), metrics.clone());
        let router = health
            .routes(&metrics)
            .route("/metrics", get(async move || exposition(all.text())))
            .route("/metrics/slis", get(async move || exposition(slis.checks.text())))
            .route("/configz", get(async move || json(configz.json())));
        Self(router)
    }

    /// With `/metrics/resources`: what each pod asks for.
    pub fn pod_resources(self, list: ListPods) -> Self {
        Self(self.0.route("/metrics/resources", get(async move || pod_resources(list.clone()).await)))
    }

    /// With `/flagz`: the flags of the process. They must hold no secrets.
    pub fn flagz(self, flags: Flags) -> Self {
        let flags = Arc::new(flags);
        let page = async move |headers: HeaderMap| zpages::flagz(&flags, &headers);
        Self(self.0.route("/flagz", get(page)))
    }

    /// With `/statusz`: what runs, since when.
    pub fn statusz(self, status: Statusz) -> Self {
        let status = Arc::new(status);
        let page = async move |headers: HeaderMap| zpages::statusz(&status, &headers);
        Self(self.0.route("/statusz", get(page)))
    }

    /// With `/debug/pprof`, which says where to look instead.
    pub fn profiling(self) -> Self {
        let page = || get(async || (StatusCode::NOT_IMPLEMENTED, NO_PROFILES));
        let paths = ["/debug/pprof", "/debug/pprof/", "/debug/pprof/{*profile}"];
        Self(paths.into_iter().fold(self.0, |router, path| router.route(path, page())))
    }

    /// With a path that answers questions in JSON.
    pub fn answers(self, path: &'static str, answers: AnswerQueries) -> Self {
        let answer = async move |RawQuery(query): RawQuery| {
            answers(Query::parse(query.as_deref().unwrap_or_default())).await
        };
        Self(self.0.route(path, get(answer)))
    }

    /// With the page, for browsers.
    pub fn page(self) -> Self {
        Self(ui::with_page(self.0))
    }

    /// All of it only by a name of this machine, for a server that lets in everybody on it.
    pub fn only_by_local_name(self) -> Self {
        Self(self.0.layer(middleware::from_fn(ui::only_by_local_name)))
    }

    /// With these routes too. Their handlers find the caller as an `Extension<UserInfo>`.
    pub fn merge(self, routes: Router) -> Self {
        Self(self.0.merge(routes))
    }

    /// All of it, also what is not there, for those only whom `access` lets in.
    pub fn protected(self, access: AccessControl) -> Protected {
        Protected(self.0.layer(middleware::from_fn_with_state(Arc::new(access), guard)))
    }
}

/// Routes that nobody reaches but through the guard: the only kind that is served.
#[derive(Clone)]
pub struct Protected(pub(crate) Router);

/// Many pods are many lines: written apart from the threads that answer others.
async fn pod_resources(list: ListPods) -> Response {
    match spawn_blocking(move || pod_resources_text(&list())).await {
        Ok(text) => exposition(text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn exposition(text: String) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

fn json(text: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text.into()).into_response()
}
