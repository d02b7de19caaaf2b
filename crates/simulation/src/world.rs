//! The world of one simulated process: the test cluster is its API server, and requests take their time.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{BoxFuture, Either, select},
};
use http::{StatusCode, header};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use memchr::memmem;
use supercargo_framework::virtual_time::{Executor, ProcessId, VirtualClock};
use supercargo_live::world::{Cut, Lines, Refused, Reply, Request, Unanswered, World, heeded_wait};
use supercargo_testcluster::{ApiServer, ResponseBody};
use tokio::sync::oneshot;

/// How long a request is on its way, and its answer on the way back.
const LATENCY: Duration = Duration::from_millis(1);
/// How long a change takes to the watches: an API server answers before it tells the others.
const WATCH_LATENCY: Duration = Duration::from_millis(2);
/// How many lines of a watch are on their way at once.
const LINES_ON_THE_WAY: usize = 4096;

/// Hears what goes over a process's connection to the API server.
pub trait Wiretap: Send + Sync {
    /// A request leaves the process.
    fn sent(&self, request: &Request);

    /// The server has answered, whether or not the answer arrives; no status is a connection that broke.
    fn answered(&self, request: &Request, sent: Duration, status: Option<u16>);

    /// The answer has reached the process.
    fn arrived(&self, request: &Request, status: u16, body: &Bytes);

    /// Changes of a resource have reached the process up to a version.
    fn delivered(&self, resource: &str, version: u64);
}

/// A process's connection to the API server, and its wall clock: both can be tampered with while it runs.
#[derive(Default)]
pub struct Link(Mutex<LinkState>);

#[derive(Default)]
struct LinkState {
    /// Nothing gets through.
    down: bool,
    /// Added to what each request takes.
    slower: Duration,
    /// Added to what changes take to a watch, by resource: kinds overtake each other.
    watches_slower: BTreeMap<String, Duration>,
    /// How far the process's wall clock is off.
    clock_off: SignedDuration,
    wiretap: Option<Arc<dyn Wiretap>>,
}

impl Link {
    /// A connection that somebody listens to.
    pub fn tapped(wiretap: Arc<dyn Wiretap>) -> Self {
        Self(Mutex::new(LinkState { wiretap: Some(wiretap), ..LinkState::default() }))
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing gets through, or everything again.
    pub fn set_down(&self, down: bool) {
        self.state().down = down;
    }

    /// Requests take longer by this.
    pub fn set_slower(&self, by: Duration) {
        self.state().slower = by;
    }

    /// Changes of a resource reach watches later by this.
    pub fn set_watch_slower(&self, resource: &str, by: Duration) {
        self.state().watches_slower.insert(resource.to_owned(), by);
    }

    /// The wall clock is off by this from now on.
    pub fn set_clock_off(&self, by: SignedDuration) {
        self.state().clock_off = by;
    }

    /// Nothing is wrong with it any more; a wall clock that was set stays as it is.
    pub fn mend(&self) {
        let mut state = self.state();
        (state.down, state.slower) = (false, Duration::ZERO);
        state.watches_slower.clear();
    }

    fn latency(&self) -> Duration {
        LATENCY + self.state().slower
    }

    fn watch_latency(&self, resource: &str) -> Duration {
        WATCH_LATENCY + self.state().watches_slower.get(resource).copied().unwrap_or_default()
    }

    fn wiretap(&self) -> Option<Arc<dyn Wiretap>> {
        self.state().wiretap.clone()
    }
}

/// The world as one process sees it.
pub struct SimulatedWorld {
    /// Its tasks hold the world: they must not hold themselves.
    executor: Weak<Executor>,
    process: ProcessId,
    /// What is on its way goes on when the process has ended.
    network: ProcessId,
    clock: VirtualClock,
    server: ApiServer,
    link: Arc<Link>,
    user_agent: String,
    seed: u64,
    drawn: AtomicU64,
}

impl SimulatedWorld {
    /// The world of a process.
    pub fn new(executor: &Arc<Executor>, process: ProcessId, server: &ApiServer, seed: u64) -> Self {
        Self {
            executor: Arc::downgrade(executor),
            process,
            network: executor.process(),
            clock: executor.clock().clone(),
            server: server.clone(),
            link: Arc::default(),
            user_agent: "supercargo".to_owned(),
            seed,
            drawn: AtomicU64::new(0),
        }
    }

    /// The same over a connection that can be tampered with, under a name of its own.
    #[must_use]
    pub fn over(self, link: &Arc<Link>, name: &str) -> Self {
        Self { link: link.clone(), user_agent: format!("supercargo/{name}"), ..self }
    }

    /// Sends a request and waits for the head of its answer, as long as the request says. Once it is sent, it arrives
    /// whatever becomes of its sender.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<http::Response<ResponseBody>, Unanswered>> + use<> {
        let (clock, server, link) = (self.clock.clone(), self.server.clone(), self.link.clone());
        let (timeout, wire) = (request.timeout, request.to_http("", &self.user_agent));
        let (answer, answered) = oneshot::channel();
        let executor = self.executor.clone();
        let (network, patience) = (self.network, self.clock.clone());
        async move {
            let tap = link.wiretap();
            if let Some(tap) = &tap {
                tap.sent(&request);
            }
            if link.state().down {
                clock.sleep(link.latency()).await;
                return Err(Unanswered::NotSent("connection refused".to_owned()));
            }
            let (wire, sent) = (wire?, clock.uptime());
            let exchange = async move {
                clock.sleep(link.latency()).await;
                let got = server.answer(wire).await;
                if let Some(tap) = &tap {
                    told(&**tap, &request, sent, &got);
                }
                clock.sleep(link.latency()).await;
                if let (Some(tap), Ok(answer)) = (tap, &got) {
                    tap.arrived(&request, answer.status().as_u16(), &whole(answer.body()));
                }
                // Whoever asked may have gone.
                let _ = answer.send(got);
            };
            if let Some(executor) = executor.upgrade() {
                executor.spawn(network, Box::pin(exchange));
            }
            match select(answered, patience.sleep(timeout)).await {
                Either::Left((Ok(answer), _)) => answer.map_err(broken),
                Either::Left((Err(_), _)) => {
                    Err(Unanswered::OutcomeUnknown("the connection broke".to_owned()))
                }
                Either::Right(_) => Err(Unanswered::OutcomeUnknown("no answer in time".to_owned())),
            }
        }
    }
}

/// Lets somebody hear of an answer.
fn told(
    tap: &dyn Wiretap,
    request: &Request,
    sent: Duration,
    got: &io::Result<http::Response<ResponseBody>>,
) {
    tap.answered(request, sent, got.as_ref().ok().map(|answer| answer.status().as_u16()));
}

fn whole(answer: &ResponseBody) -> Bytes {
    match answer {
        ResponseBody::Whole(Some(body)) => body.clone(),
        ResponseBody::Whole(None) | ResponseBody::Lines(_) => Bytes::new(),
    }
}

fn broken(error: io::Error) -> Unanswered {
    Unanswered::OutcomeUnknown(error.to_string())
}

async fn reply(answer: http::Response<ResponseBody>) -> Result<Reply, Unanswered> {
    let (head, body) = answer.into_parts();
    let retry_after =
        head.headers.get(header::RETRY_AFTER).and_then(|value| heeded_wait(value.to_str().ok()?));
    let body = body.collect().await.map_err(broken)?.to_bytes();
    Ok(Reply { status: head.status.as_u16(), body, retry_after })
}

/// The resource that a path is about: `pods` in `/api/v1/pods?watch=true`.
pub fn resource_in(path: &str) -> &str {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let mut parts = path.trim_start_matches('/').split('/');
    let skipped = if parts.next() == Some("api") { 0 } else { 1 };
    let mut parts = parts.skip(skipped + 1);
    match (parts.next(), parts.next(), parts.next()) {
        (Some("namespaces"), Some(_), Some(resource)) => resource,
        (Some(resource), ..) => resource,
        _ => "",
    }
}

/// The version that a line of a watch carries, without reading all of it.
fn version_of(line: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"resourceVersion\":\"";
    let at = memmem::find(line, KEY)? + KEY.len();
    let digits = line[at..].split(|byte| *byte == b'"').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn lines(body: ResponseBody, resource: String, clock: VirtualClock, link: Arc<Link>) -> Lines {
    let ResponseBody::Lines(lines) = body else {
        return futures_util::stream::iter([Err(Cut("the answer is no watch".to_owned()))]).boxed();
    };
    let tap = link.wiretap();
    let on_the_way = {
        let resource = resource.clone();
        move |piece: io::Result<Bytes>| {
            let arrives = clock.sleep(link.watch_latency(&resource));
            async move {
                arrives.await;
                match piece {
                    Ok(line) => Ok(line.slice(..line.len() - usize::from(line.ends_with(b"\n")))),
                    Err(error) => Err(Cut(error.to_string())),
                }
            }
        }
    };
    let arrived = move |line: &Result<Bytes, Cut>| {
        let version = line.as_ref().ok().filter(|_| tap.is_some()).and_then(|line| version_of(line));
        if let (Some(tap), Some(version)) = (&tap, version) {
            tap.delivered(&resource, version);
        }
    };
    lines.map(on_the_way).buffered(LINES_ON_THE_WAY).inspect(arrived).boxed()
}

impl World for SimulatedWorld {
    fn now(&self) -> Timestamp {
        let off = self.link.state().clock_off;
        self.clock.now().checked_add(off).unwrap_or(Timestamp::MAX)
    }

    fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(span)
    }

    fn random(&self) -> u64 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        crate::random::mixed(self.seed.wrapping_add(drawn.wrapping_mul(crate::random::GOLDEN)))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        // Once the simulation is over, nothing runs any more.
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(self.process, task);
        }
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let answer = self.call(request);
        Box::pin(async move { reply(answer.await?).await })
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        let resource = resource_in(&request.path).to_owned();
        let (answer, clock, link) = (self.call(request), self.clock.clone(), self.link.clone());
        Box::pin(async move {
            let answer = answer.await.map_err(Refused::Unanswered)?;
            if answer.status() == StatusCode::OK {
                return Ok(lines(answer.into_body(), resource, clock, link));
            }
            let reply = reply(answer).await;
            Err(reply.map_or_else(Refused::Unanswered, Refused::Reply))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_lines_tell_what_they_are_about() {
        for (path, resource) in [
            ("/api/v1/pods?watch=true", "pods"),
            ("/api/v1/namespaces/a/pods/p/binding", "pods"),
            ("/apis/apps/v1/replicasets?limit=500", "replicasets"),
            ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", "leases"),
            ("/api/v1/namespaces/a", "namespaces"),
        ] {
            assert_eq!(resource_in(path), resource, "{path}");
        }
        assert_eq!(
            version_of(br#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"17"}}}"#),
            Some(17)
        );
        assert_eq!(version_of(b"{}"), None);
    }
}
