//! The real world: an API server over HTTP, the machine's clocks and its randomness.
//!
//! Requests go over HTTP/1.1 connections that are kept and shared: as many as there are requests at a time. Nothing is
//! compressed, nothing is repeated behind the caller's back.

mod access;
mod connections;
mod credentials;
mod endpoint;
mod in_cluster;
mod kubeconfig;
mod lines;
mod proxy;
mod target;
pub(crate) mod threads;
mod throttle;
mod trouble;

#[cfg(test)]
mod tests;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::Timestamp;

pub use access::{RestConfig, Unreachable};
pub use endpoint::Endpoint;
use supercargo_extender::body::{self, Read};
use supercargo_manifest::Problem;

use crate::world::{
    Lines, MAX_REFUSAL_BYTES, MAX_REPLY_BYTES, Refused, Reply, Request, Unanswered, World, heeded_wait,
};
use connections::{Connections, Trusted};
use credentials::Credentials;
use target::Target;
use threads::Threads;
use throttle::Throttle;

/// How we name ourselves to the server.
const USER_AGENT: &str = concat!("supercargo/", env!("CARGO_PKG_VERSION"));

type Response = http::Response<Incoming>;

/// The real world. It lives on a tokio runtime.
pub struct RealWorld {
    started: Instant,
    seed: RandomState,
    drawn: AtomicU64,
    server: Arc<Server>,
    namespace: String,
    checks_certificate: bool,
    threads: Threads,
}

/// The API server, and how to reach it.
struct Server {
    connections: Connections,
    credentials: Credentials,
    /// Scheme, host and whatever path comes before the API's own; no slash at the end.
    base: String,
    throttle: Option<Throttle>,
}

impl RealWorld {
    /// Finds the API server. Whether it is there is seen with the first request.
    pub async fn open(access: &RestConfig) -> Result<Self, Unreachable> {
        let target = access::find(access, &|name| std::env::var_os(name))?;
        let throttle = access.queries_per_second.map(|rate| Throttle::new(rate, access.burst));
        Self::at(target, throttle).await
    }

    /// Asks another server than the API server.
    pub async fn open_endpoint(endpoint: &Endpoint) -> Result<Self, Unreachable> {
        Self::at(endpoint::find(endpoint, &|name| std::env::var_os(name))?, None).await
    }

    async fn at(target: Target, throttle: Option<Throttle>) -> Result<Self, Unreachable> {
        let base = target.server.to_string().trim_end_matches('/').to_owned();
        let unusable = |why: String| unusable(&base, &why);
        let checks_certificate = target.tls.trusted != Trusted::Anybody;
        let credential = target.credentials.current().await.map_err(unusable)?;
        let connections = Connections::new(target.tls, target.proxy, &credential)
            .map_err(|fault| unusable(fault.what()))?;
        let server = Server { connections, credentials: target.credentials, base, throttle };
        let namespace = target.namespace;
        Ok(Self {
            started: Instant::now(),
            seed: RandomState::new(),
            drawn: AtomicU64::new(0),
            server: Arc::new(server),
            namespace: if namespace.is_empty() { "default".to_owned() } else { namespace },
            checks_certificate,
            threads: Threads::default(),
        })
    }

    /// Where the API server is.
    pub fn server(&self) -> &str {
        &self.server.base
    }

    /// Whether the API server has to show a certificate that is trusted.
    pub fn checks_certificate(&self) -> bool {
        self.checks_certificate
    }

    /// The namespace of the kubeconfig's context, or of the pod that the process runs in; `default` if they name none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// What keeps us from asking the server, with the hint that it may end with.
fn unusable(server: &str, why: &str) -> Problem {
    let (why, hint) = why
        .split_once("\nhint: ")
        .unwrap_or((why, "look at the kubeconfig's certificates, tokens and exec commands"));
    Problem::error(format!("the credentials for {server} cannot be used: {why}")).hint(hint)
}

/// The name of the machine; in a cluster, of the pod.
pub fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name =
        kernel.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    let name = name.unwrap_or_default().trim().to_lowercase();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(span).boxed()
    }

    fn random(&self) -> u64 {
        // SipHash under a key from the operating system: unpredictable enough for jitter, names and ties.
        self.seed.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.threads.spawn(task);
    }

    fn yield_now(&self) -> BoxFuture<'static, ()> {
        // Unlike a task that merely wakes itself, this lets the runtime look at its sockets.
        tokio::task::yield_now().boxed()
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let server = self.server.clone();
        Box::pin(async move {
            if let Some(throttle) = &server.throttle {
                throttle.pass().await;
            }
            let timeout = request.timeout;
            server.within(timeout, server.exchange(request)).await
        })
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        let server = self.server.clone();
        Box::pin(async move {
            let timeout = request.timeout;
            let opened = server.within(timeout, server.call(request)).await;
            let response = opened.map_err(Refused::Unanswered)?;
            if response.status() == StatusCode::OK {
                return Ok(lines::of(response.into_body()));
            }
            let reply = server.within(timeout, server.read(response)).await;
            Err(reply.map_or_else(Refused::Unanswered, Refused::Reply))
        })
    }
}

impl Server {
    async fn exchange(&self, request: Request) -> Result<Reply, Unanswered> {
        let response = self.call(request).await?;
        self.read(response).await
    }

    /// Sends a request and reads the head of its answer.
    async fn call(&self, request: Request) -> Result<Response, Unanswered> {
        let unsent =
            |error: &dyn std::fmt::Display| Unanswered::NotSent(format!("{}: {error}", request.path));
        let uri: Uri = format!("{}{}", self.base, request.path).parse().map_err(|e| unsent(&e))?;
        let mut wire = http::Request::builder()
            .method(request.method.as_str())
            .uri(uri)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT);
        if !request.body.is_empty() {
            wire = wire.header(header::CONTENT_TYPE, request.content_type.as_str());
        }
        let mut wire = wire.body(Full::new(request.body.clone())).map_err(|e| unsent(&e))?;
        let credential = self.credentials.current().await.map_err(Unanswered::NotSent)?;
        self.credentials.sign(&credential, wire.headers_mut());
        let answer = self.connections.client(&credential).request(wire).await;
        let response = answer.map_err(|error| trouble::unanswered(&error, &self.base))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.credentials.refused(&credential);
            self.connections.refused(&credential);
        }
        Ok(response)
    }

    async fn read(&self, response: Response) -> Result<Reply, Unanswered> {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let refuses = !response.status().is_success();
        let max_bytes = if refuses { MAX_REFUSAL_BYTES } else { MAX_REPLY_BYTES };
        let reply = |body: Vec<u8>| Reply { status, body: body.into(), retry_after };
        match body::read(response.into_body(), max_bytes).await {
            Ok(Read::Whole(body)) => Ok(reply(body)),
            Ok(Read::Beginning(body)) if refuses => Ok(reply(body)),
            Ok(Read::Beginning(_)) => {
                let why = format!("{} answers with more than {} MiB", self.base, MAX_REPLY_BYTES >> 20);
                Err(Unanswered::OutcomeUnknown(why))
            }
            Err(error) => Err(Unanswered::OutcomeUnknown(trouble::told(&error, &self.base))),
        }
    }

    async fn within<T>(
        &self,
        timeout: Duration,
        answer: impl Future<Output = Result<T, Unanswered>>,
    ) -> Result<T, Unanswered> {
        match select(Box::pin(answer), Box::pin(tokio::time::sleep(timeout))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => {
                let why = format!("{} has not answered for {} s", self.base, timeout.as_secs_f32());
                Err(Unanswered::OutcomeUnknown(why))
            }
        }
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    heeded_wait(headers.get(header::RETRY_AFTER)?.to_str().ok()?)
}
