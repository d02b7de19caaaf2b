//! The one door to the world: everything that the live scheduler does outside itself goes through it, so that all of it
//! can run on virtual time against a simulated server.
//!
//! Besides [`World`], only channels and combinators of futures are used: no other clock, timer, thread, socket or source
//! of randomness.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    future::{AbortHandle, BoxFuture, Either, abortable, select},
    stream::BoxStream,
};
use http::{HeaderMap, Uri, header};
use jiff::Timestamp;
use supercargo_framework::bugs::{self, Bug};
use supercargo_manifest::clip;
use tokio::sync::oneshot;

/// How long a request waits for its answer unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest line of a watch that is read: objects are at most 1.5 MiB in etcd, some more when written as JSON.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The longest reply that is read: a page of 500 large pods fits.
pub const MAX_REPLY_BYTES: usize = 256 << 20;

/// The longest that a server's wish about the next try is heeded: whoever asks for an hour is asked again all the same.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// A server's wish about the next try in whole seconds, as far as it is heeded; dates are not sent by API servers.
pub fn heeded_wait(seconds: &str) -> Option<Duration> {
    let wait = Duration::from_secs(seconds.parse().ok()?);
    Some(if bugs::is_on(Bug::PatienceWithoutEnd) { wait } else { wait.min(MAX_RETRY_AFTER) })
}

/// How much is read of a reply that refuses something: what it says is cut before it is told.
pub const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How much is told of a body that is not what it should be.
const MAX_TOLD_BYTES: usize = 200;

/// A world that is shared by all parts of a scheduler.
pub type SharedWorld = Arc<dyn World>;

/// The lines of a watch, each a JSON text without its line end. The stream ends when the server ends the watch.
pub type Lines = BoxStream<'static, Result<Bytes, Cut>>;

/// What a scheduler does outside itself.
pub trait World: Send + Sync + 'static {
    /// The wall clock: for what is written into objects, never for how long something took.
    fn now(&self) -> Timestamp;

    /// Time since some moment in the past, which no change of the wall clock touches. It goes on while the process is
    /// stopped.
    fn uptime(&self) -> Duration;

    /// Ends after a span of [`uptime`](Self::uptime).
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;

    /// A random number.
    fn random(&self) -> u64;

    /// Runs a task beside the others.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs a task that may block its thread, so that nobody else is held up.
    fn spawn_aside(&self, task: BoxFuture<'static, ()>);

    /// Lets other tasks run, and takes in what has come by network meanwhile.
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(yield_once())
    }

    /// Sends one request and reads its whole reply, whatever its status.
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>>;

    /// Opens a watch. The request's timeout is for its opening; how long it stays open is the server's to say.
    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>>;
}

async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// A world's time, for extenders.
pub struct WorldClock(pub SharedWorld);

impl supercargo_extender::Clock for WorldClock {
    fn uptime(&self) -> Duration {
        self.0.uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Read.
    Get,
    /// Make.
    Post,
    /// Replace.
    Put,
    /// Change in part.
    Patch,
    /// Remove.
    Delete,
}

impl Method {
    /// HTTP's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// An object as JSON.
    Json,
    /// A patch in which lists are merged by key.
    StrategicMergePatch,
    /// A patch in which lists are replaced.
    MergePatch,
}

impl ContentType {
    /// HTTP's name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::StrategicMergePatch => "application/strategic-merge-patch+json",
            Self::MergePatch => "application/merge-patch+json",
        }
    }
}

/// A request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is done.
    pub method: Method,
    /// Path and query, from the leading slash on.
    pub path: String,
    /// How the body is written.
    pub content_type: ContentType,
    /// The body; may be empty.
    pub body: Bytes,
    /// How long to wait for the answer.
    pub timeout: Duration,
}

impl Request {
    /// A request with a body.
    pub fn new(method: Method, path: impl Into<String>, content_type: ContentType, body: Bytes) -> Self {
        Self { method, path: path.into(), content_type, body, timeout: DEFAULT_TIMEOUT }
    }

    /// A request that reads.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::Get, path, ContentType::Json, Bytes::new())
    }

    /// The same request with another patience.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// As it goes over the wire, to a server at `base`: scheme, host and whatever path comes before the API's own.
    pub fn to_http(&self, base: &str, user_agent: &str) -> Result<http::Request<Bytes>, Unanswered> {
        let unsent = |error: &dyn fmt::Display| Unanswered::NotSent(format!("{}: {error}", self.path));
        let uri: Uri = format!("{base}{}", self.path).parse().map_err(|error| unsent(&error))?;
        let mut wire = http::Request::builder()
            .method(self.method.as_str())
            .uri(uri)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, user_agent);
        if !self.body.is_empty() {
            wire = wire.header(header::CONTENT_TYPE, self.content_type.as_str());
        }
        wire.body(self.body.clone()).map_err(|error| unsent(&error))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)
    }
}

/// The API server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status code.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// How long the server asks to wait before the next try, as far as it is heeded ([`heeded_wait`]).
    pub retry_after: Option<Duration>,
}

impl Reply {
    /// An answer without wish about the next try.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), retry_after: None }
    }

    /// What came over the wire.
    pub fn from_http(head: &http::response::Parts, body: impl Into<Bytes>) -> Self {
        Self { status: head.status.as_u16(), body: body.into(), retry_after: retry_after(&head.headers) }
    }

    /// Whether what was asked for has been done.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the server says in the body of a refusal, cut if it is long.
    pub fn message(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Status {
            message: String,
        }
        match serde_json::from_slice::<Status>(&self.body) {
            Ok(status) => clip(&status.message).into_owned(),
            Err(_) => String::from_utf8_lossy(&self.body[..self.body.len().min(MAX_TOLD_BYTES)]).into_owned(),
        }
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    heeded_wait(headers.get(header::RETRY_AFTER)?.to_str().ok()?)
}

/// A request without answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It never left: nothing has happened at the server.
    NotSent(String),
    /// It left, or may have: whether the server has done it is unknown. This is not a failure.
    OutcomeUnknown(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "not sent: {why}"),
            Self::OutcomeUnknown(why) => write!(f, "no answer, and the outcome is unknown: {why}"),
        }
    }
}

impl std::error::Error for Unanswered {}

/// A watch that was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The server answered, with something other than 200.
    Reply(Reply),
    /// The server did not answer.
    Unanswered(Unanswered),
}

/// Why the lines of a watch ended before the server ended them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut(pub String);

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a future gives, unless it takes longer than `span`.
pub async fn within<T>(
    world: &dyn World,
    span: Duration,
    future: impl Future<Output = T> + Unpin,
) -> Option<T> {
    match select(future, world.sleep(span)).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
    }
}

/// What a future gives that may block its thread; `None` if it ends without an answer. Dropped, it is not polled again.
pub(crate) async fn run_aside<T: Send + 'static>(
    world: &dyn World,
    future: BoxFuture<'static, T>,
) -> Option<T> {
    struct Ends(AbortHandle);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let (tell, told) = oneshot::channel();
    let (future, abort) = abortable(future);
    let _ends = Ends(abort);
    world.spawn_aside(Box::pin(async move {
        if let Ok(value) = future.await {
            // Whoever waited may have gone.
            let _ = tell.send(value);
        }
    }));
    told.await.ok()
}

/// A span that is longer by a random share of up to `factor`, so that many clients do not come at the same moment.
pub fn jittered(world: &dyn World, span: Duration, factor: f64) -> Duration {
    // 53 bits are what an f64 holds exactly.
    let share = (world.random() >> 11) as f64 / (1u64 << 53) as f64;
    span.mul_f64(1.0 + share * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_one_object() {
        fn takes(_: Option<SharedWorld>) {}
        takes(None);
    }

    #[test]
    fn what_a_server_says_is_cut() {
        let body = serde_json::json!({"message": "no ".repeat(1 << 20)}).to_string();
        let message = Reply::new(403, body).message();
        assert!(message.starts_with("no no") && message.len() < 1100, "{}", message.len());
    }

    #[test]
    fn a_request_tells_itself() {
        assert_eq!(Request::get("/api/v1/pods?limit=1").to_string(), "GET /api/v1/pods?limit=1");
    }
}
