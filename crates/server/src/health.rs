//! `/healthz`, `/livez` and `/readyz`: named checks, listed and excluded as in every Kubernetes component.
//!
//! The lists are open to everybody, and so keep reasons to themselves; a single check (`/readyz/<check>`) tells its reason,
//! and only to callers who may ask.

use std::{fmt::Write, sync::Arc};

use axum::{
    Router,
    extract::RawQuery,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::metrics::{Metrics, Success};

/// A named question with the answer "well", or why not.
#[derive(Clone)]
pub struct HealthCheck {
    name: String,
    ask: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl HealthCheck {
    /// A check that asks a closure. It should answer at once; the name becomes part of a path.
    pub fn new(name: &str, ask: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name: name.to_owned(), ask: Arc::new(ask) }
    }

    /// Well whenever it can be asked.
    pub fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }

    /// Well while the flag is up.
    pub fn flag(name: &str, flag: watch::Receiver<bool>, otherwise: &'static str) -> Self {
        Self::new(name, move || if *flag.borrow() { Ok(()) } else { Err(otherwise.to_owned()) })
    }

    /// Well until the process is told to stop, so that nobody sends it anything more.
    pub fn shutdown(stop: CancellationToken) -> Self {
        let stopping = "the process is shutting down";
        Self::new("shutdown", move || if stop.is_cancelled() { Err(stopping.to_owned()) } else { Ok(()) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The checks behind each address. One without checks answers to a ping.
#[derive(Clone, Default)]
pub struct Health {
    /// The older address: whether to leave the process running.
    pub healthz: Vec<HealthCheck>,
    /// Whether to leave the process running.
    pub livez: Vec<HealthCheck>,
    /// Whether it does its work.
    pub readyz: Vec<HealthCheck>,
}

impl Health {
    pub(crate) fn routes(self, metrics: &Arc<Metrics>) -> Router {
        let Self { healthz, livez, readyz } = self;
        [("healthz", healthz), ("livez", livez), ("readyz", readyz)]
            .into_iter()
            .fold(Router::new(), |router, (endpoint, checks)| {
                endpoint_routes(router, endpoint, checks, metrics)
            })
    }
}

fn endpoint_routes(
    router: Router,
    endpoint: &'static str,
    checks: Vec<HealthCheck>,
    metrics: &Arc<Metrics>,
) -> Router {
    let checks: Arc<[HealthCheck]> =
        if checks.is_empty() { [HealthCheck::ping()].into() } else { checks.into() };
    let router = checks.iter().fold(router, |router, check| {
        let check = check.clone();
        router.route(&format!("/{endpoint}/{}", check.name), get(async move || one(&check)))
    });
    let metrics = metrics.clone();
    let all =
        async move |RawQuery(query): RawQuery| all(endpoint, &checks, &query.unwrap_or_default(), &metrics);
    router.route(&format!("/{endpoint}"), get(all))
}

fn one(check: &HealthCheck) -> Response {
    match (check.ask)() {
        Ok(()) => text(StatusCode::OK, "ok".into()),
        Err(reason) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")),
    }
}

fn all(endpoint: &str, checks: &[HealthCheck], query: &str, metrics: &Metrics) -> Response {
    let query: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let mut excluded: Vec<_> =
        query.iter().filter(|(key, _)| key == "exclude").map(|(_, name)| name).collect();
    let verbose = query.iter().any(|(key, _)| key == "verbose");

    let mut list = String::new();
    let mut failed = false;
    for check in checks {
        let name = &check.name;
        if query.iter().any(|(key, value)| key == "exclude" && value == name) {
            excluded.retain(|other| *other != name);
            line(&mut list, format_args!("[+]{name} excluded: ok"));
            continue;
        }
        let result = (check.ask)();
        let outcome = if result.is_ok() { Success::Success } else { Success::Error };
        metrics.checks.checked(name, endpoint, outcome);
        match result {
            Ok(()) => line(&mut list, format_args!("[+]{name} ok")),
            Err(reason) => {
                failed = true;
                info!(check = name, endpoint, reason, "a health check failed");
                line(&mut list, format_args!("[-]{name} failed: reason withheld"));
            }
        }
    }
    if !excluded.is_empty() {
        let names: Vec<_> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        line(&mut list, format_args!("warn: some health checks cannot be excluded: no matches for {names}"));
    }
    match (failed, verbose) {
        (true, _) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{list}{endpoint} check failed\n")),
        (false, true) => text(StatusCode::OK, format!("{list}{endpoint} check passed\n")),
        (false, false) => text(StatusCode::OK, "ok".into()),
    }
}

fn line(list: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(list, "{line}").expect("a string takes everything");
}

fn text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
