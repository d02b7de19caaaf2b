//! The world of one simulated process: the test cluster is its API server, and requests take their time.

use std::{
    io,
    sync::{
        Arc, Weak,
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
use jiff::Timestamp;
use supercargo_framework::virtual_time::{Executor, ProcessId, VirtualClock};
use supercargo_live::world::{Cut, Lines, Refused, Reply, Request, Unanswered, World};
use supercargo_testcluster::{Answer, ApiServer};

/// How long a request is on its way, and its answer on the way back.
const LATENCY: Duration = Duration::from_millis(1);
/// How long a change takes to the watches: an API server answers before it tells the others.
const WATCH_LATENCY: Duration = Duration::from_millis(2);
/// How many lines of a watch are on their way at once.
const LINES_ON_THE_WAY: usize = 4096;

/// The world as one process sees it.
pub struct SimulatedWorld {
    /// Its tasks hold the world: they must not hold themselves.
    executor: Weak<Executor>,
    process: ProcessId,
    clock: VirtualClock,
    server: ApiServer,
    seed: u64,
    drawn: AtomicU64,
}

impl SimulatedWorld {
    /// The world of a process.
    pub fn new(executor: &Arc<Executor>, process: ProcessId, server: &ApiServer, seed: u64) -> Self {
        Self {
            executor: Arc::downgrade(executor),
            process,
            clock: executor.clock().clone(),
            server: server.clone(),
            seed,
            drawn: AtomicU64::new(0),
        }
    }

    /// Sends a request and waits for the head of its answer, as long as the request says.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<http::Response<Answer>, Unanswered>> + use<> {
        let (clock, server) = (self.clock.clone(), self.server.clone());
        async move {
            let timeout = clock.sleep(request.timeout);
            let exchange = Box::pin(async move {
                clock.sleep(LATENCY).await;
                let answer = server.answer(wire(request)?).await.map_err(broken)?;
                clock.sleep(LATENCY).await;
                Ok(answer)
            });
            match select(exchange, timeout).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(Unanswered::OutcomeUnknown("no answer in time".to_owned())),
            }
        }
    }
}

fn wire(request: Request) -> Result<http::Request<Bytes>, Unanswered> {
    let built = http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.path)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, "supercargo")
        .header(header::CONTENT_TYPE, request.content_type.as_str())
        .body(request.body);
    built.map_err(|error| Unanswered::NotSent(format!("{}: {error}", request.path)))
}

fn broken(error: io::Error) -> Unanswered {
    Unanswered::OutcomeUnknown(error.to_string())
}

async fn reply(answer: http::Response<Answer>) -> Result<Reply, Unanswered> {
    let (head, body) = answer.into_parts();
    let seconds = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = body.collect().await.map_err(broken)?.to_bytes();
    Ok(Reply { status: head.status.as_u16(), body, retry_after: seconds.map(Duration::from_secs) })
}

fn lines(body: Answer, clock: VirtualClock) -> Lines {
    let Answer::Lines(lines) = body else {
        return futures_util::stream::iter([Err(Cut("the answer is no watch".to_owned()))]).boxed();
    };
    let line = move |piece: io::Result<Bytes>| {
        let arrives = clock.sleep(WATCH_LATENCY);
        async move {
            arrives.await;
            match piece {
                Ok(line) => Ok(line.slice(..line.len() - usize::from(line.ends_with(b"\n")))),
                Err(error) => Err(Cut(error.to_string())),
            }
        }
    };
    lines.map(line).buffered(LINES_ON_THE_WAY).boxed()
}

impl World for SimulatedWorld {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(span)
    }

    fn random(&self) -> u64 {
        // SplitMix64.
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mut mixed = self.seed.wrapping_add(drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        // Once the simulation is over, nothing runs any more.
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(self.process, task);
        }
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let answer = self.call(request);
        Box::pin(async move { reply(answer.await?).await })
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        let (answer, clock) = (self.call(request), self.clock.clone());
        Box::pin(async move {
            let answer = answer.await.map_err(Refused::Unanswered)?;
            if answer.status() == StatusCode::OK {
                return Ok(lines(answer.into_body(), clock));
            }
            let reply = reply(answer).await;
            Err(reply.map_or_else(Refused::Unanswered, Refused::Reply))
        })
    }
}
