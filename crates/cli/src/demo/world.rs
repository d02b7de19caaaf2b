//! The demo's world: this machine's clocks and threads, and an API server in the same process that is asked without a
//! connection. What is said is the same to the byte; but to pack it into HTTP and to take it out again is most of the work where
//! both are not optimised.

use std::{io, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use jiff::Timestamp;
use supercargo_live::{
    real::RealWorld,
    world::{Cut, Lines, Refused, Reply, Request, Unanswered, World},
};
use supercargo_testcluster::{InProcessClient, ResponseBody};

/// What the server knows the scheduler by.
const USER_AGENT: &str = concat!("supercargo/", env!("CARGO_PKG_VERSION"));

pub(super) struct DemoWorld {
    machine: RealWorld,
    server: InProcessClient,
}

impl DemoWorld {
    pub(super) fn new(machine: RealWorld, server: InProcessClient) -> Self {
        Self { machine, server }
    }
}

impl World for DemoWorld {
    fn now(&self) -> Timestamp {
        self.machine.now()
    }

    fn uptime(&self) -> Duration {
        self.machine.uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.machine.sleep(span)
    }

    fn random(&self) -> u64 {
        self.machine.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.machine.spawn(task);
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.machine.spawn_aside(task);
    }

    fn yield_now(&self) -> BoxFuture<'static, ()> {
        self.machine.yield_now()
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let server = self.server.clone();
        async move { reply(call(&server, &request).await?) }.boxed()
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        let server = self.server.clone();
        async move {
            let answer = call(&server, &request).await.map_err(Refused::Unanswered)?;
            match answer {
                (_, ResponseBody::Lines(lines)) => Ok(lines.map(line).boxed()),
                refusal => Err(reply(refusal).map_or_else(Refused::Unanswered, Refused::Reply)),
            }
        }
        .boxed()
    }
}

type Answer = (http::response::Parts, ResponseBody);

async fn call(server: &InProcessClient, request: &Request) -> Result<Answer, Unanswered> {
    let wire = request.to_http("", USER_AGENT)?;
    let answer = tokio::time::timeout(request.timeout, server.send(wire)).await;
    let answer = answer.map_err(|_| Unanswered::OutcomeUnknown("no answer in time".to_owned()))?;
    Ok(answer.map_err(|error| broken(&error))?.into_parts())
}

fn reply((head, body): Answer) -> Result<Reply, Unanswered> {
    match body {
        ResponseBody::Whole(body) => Ok(Reply::from_http(&head, body.unwrap_or_default())),
        ResponseBody::Lines(_) => Err(Unanswered::OutcomeUnknown("the answer is a watch".to_owned())),
    }
}

fn broken(error: &io::Error) -> Unanswered {
    Unanswered::OutcomeUnknown(error.to_string())
}

/// A line of a watch without its end.
fn line(line: io::Result<Bytes>) -> Result<Bytes, Cut> {
    match line {
        Ok(line) => Ok(line.slice(..line.len() - usize::from(line.ends_with(b"\n")))),
        Err(error) => Err(Cut(error.to_string())),
    }
}
