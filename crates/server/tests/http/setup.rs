//! A server to call, a reviewer that answers as the test says, and a clock that goes as the test says.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Extension, Router, routing::get};
use jiff::Timestamp;
use serde_json::json;
use supercargo_server::{
    AccessControl, AccessDecision, AccessOptions, AccessRequest, BoxFuture, Clock, Configz, ConnectionLimits,
    ConnectionSecurity, Drained, Health, Port, ReviewError, Reviewer, Routes, Server, ServerOptions, Statusz,
    UserInfo,
    metrics::{BuildInfo, Metrics, PodResources},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How the API server behaves.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    Answers,
    Fails,
    Hangs,
}

/// Knows the tokens `ann`, `bob` and `root`, and lets Ann get everything.
pub(crate) struct FakeReviewer {
    pub(crate) mood: Mutex<Mood>,
    pub(crate) tokens_asked: AtomicUsize,
    pub(crate) accesses_asked: Mutex<Vec<AccessRequest>>,
}

impl FakeReviewer {
    async fn in_mood<T>(&self, answer: T) -> Result<T, ReviewError> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Answers => Ok(answer),
            Mood::Fails => Err(ReviewError::new("connection refused")),
            Mood::Hangs => std::future::pending().await,
        }
    }
}

impl Reviewer for FakeReviewer {
    fn review_token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewError>> {
        self.tokens_asked.fetch_add(1, Ordering::SeqCst);
        let user =
            |group: &str| UserInfo { name: token.into(), groups: vec![group.into()], ..UserInfo::default() };
        let answer = match token {
            "ann" | "bob" => Some(user("people")),
            "root" => Some(user("system:masters")),
            _ => None,
        };
        Box::pin(self.in_mood(answer))
    }

    fn review_access<'a>(
        &'a self,
        request: &'a AccessRequest,
    ) -> BoxFuture<'a, Result<AccessDecision, ReviewError>> {
        self.accesses_asked.lock().unwrap().push(request.clone());
        let allowed = ["ann", "prometheus"].contains(&&*request.user.name) && request.verb == "get";
        let reason = if allowed { "" } else { "no rule for it" };
        Box::pin(self.in_mood(AccessDecision { allowed, reason: reason.into() }))
    }
}

/// What a test may set before it starts a server.
pub(crate) struct Setup {
    pub(crate) security: ConnectionSecurity,
    pub(crate) limits: ConnectionLimits,
    pub(crate) health: Health,
    pub(crate) extra: Router,
    pub(crate) access: AccessOptions,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            security: ConnectionSecurity::Plain,
            limits: ConnectionLimits::default(),
            health: Health::default(),
            extra: Router::new()
                .route("/whoami", get(async |Extension(user): Extension<UserInfo>| user.name)),
            access: AccessOptions { review_timeout: Duration::from_millis(100), ..AccessOptions::default() },
        }
    }
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) reviewer: Arc<FakeReviewer>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stop: CancellationToken,
    pub(crate) ended: JoinHandle<Drained>,
    time: Arc<Mutex<Instant>>,
}

impl Setup {
    pub(crate) async fn start(self) -> Running {
        let time = Arc::new(Mutex::new(Instant::now()));
        let shown = time.clone();
        let clock = Clock::from_fn(move || *shown.lock().unwrap());
        let metrics = Arc::new(Metrics::new(&BuildInfo::new("0.1.0", "abc"), clock.clone()));
        let reviewer = Arc::new(FakeReviewer {
            mood: Mutex::new(Mood::Answers),
            tokens_asked: AtomicUsize::new(0),
            accesses_asked: Mutex::default(),
        });
        let configz = Configz::default();
        configz.set("kubescheduler.config.k8s.io", json!({"kind": "KubeSchedulerConfiguration"}));
        let routes = Routes::new(self.health, metrics.clone(), configz)
            .pod_resources(Arc::new(one_pod))
            .flagz([("v".to_owned(), "2".to_owned())].into())
            .statusz(Statusz {
                started: Timestamp::UNIX_EPOCH,
                binary_version: "1.36.4".into(),
                emulation_version: "1.36".into(),
                paths: vec!["/configz", "/metrics"],
            })
            .profiling()
            .merge(self.extra)
            .protected(AccessControl::new(reviewer.clone(), self.access, clock));

        let address = Ipv4Addr::LOCALHOST.into();
        let (port, security, limits) = (Port::Ephemeral, self.security, self.limits);
        let options = ServerOptions { address, port, security, share_port: false, limits };
        let server = Server::bind(options).await.expect("a free port");
        let address = server.address();
        let stop = CancellationToken::new();
        let ended = tokio::spawn(server.serve(routes, stop.clone().cancelled_owned()));
        Running { address, reviewer, metrics, stop, ended, time }
    }
}

impl Running {
    pub(crate) fn pass(&self, time: Duration) {
        *self.time.lock().unwrap() += time;
    }

    pub(crate) fn mood(&self, mood: Mood) {
        *self.reviewer.mood.lock().unwrap() = mood;
    }
}

fn one_pod() -> Vec<PodResources> {
    let (requests, limits) = (vec![("cpu".into(), 2.0)], vec![("cpu".into(), 4.0)]);
    vec![PodResources { pod: "cart".into(), requests, limits, ..PodResources::default() }]
}
