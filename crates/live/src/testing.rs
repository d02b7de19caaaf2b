//! A world for tests: virtual time, one thread, and a server that is a function.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{self, BoxFuture},
    stream,
};
use jiff::Timestamp;

use crate::world::{Cut, Lines, Refused, Reply, Request, Unanswered, World};

/// What a server does with one request.
pub(crate) enum Answer {
    /// Answers.
    Reply(Reply),
    /// Does not answer.
    Unanswered(Unanswered),
    /// Answers after a while.
    Late(Duration, Reply),
    /// Never answers: the request's own timeout ends it.
    Hang,
    /// Sends lines, and then goes on as told.
    Lines(Vec<String>, Then),
}

/// What follows the lines that a server has at once.
pub(crate) enum Then {
    /// It ends the watch.
    End,
    /// The connection breaks.
    Cut,
    /// Nothing, for ever.
    Silence,
    /// What comes out of the stream.
    Live(Lines),
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl ToString) -> Self {
        Self::Reply(Reply::new(status, body.to_string()))
    }
}

/// A server: answers a request at a moment.
pub(crate) type Server = Box<dyn FnMut(&Request, Duration) -> Answer + Send>;

pub(crate) struct FakeWorld {
    inner: Mutex<Inner>,
    server: Mutex<Server>,
    me: Weak<Self>,
}

#[derive(Default)]
struct Inner {
    now: Duration,
    /// How far the wall clock is ahead of the time since the start.
    wall_ahead: i64,
    random: u64,
    timers: BTreeMap<(Duration, u64), Waker>,
    timer_count: u64,
    /// Tasks by age.
    tasks: BTreeMap<usize, BoxFuture<'static, ()>>,
    spawned: usize,
    woken: Woken,
    requests: Vec<(Duration, Request)>,
}

/// The tasks that have been woken.
type Woken = Arc<Mutex<BTreeSet<usize>>>;

/// Wakes a task.
struct Alarm(usize, Woken);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().insert(self.0);
    }
}

impl FakeWorld {
    pub(crate) fn new(server: impl FnMut(&Request, Duration) -> Answer + Send + 'static) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            inner: Mutex::default(),
            server: Mutex::new(Box::new(server)),
            me: me.clone(),
        })
    }

    /// Runs everything that happens in a span of time.
    pub(crate) fn run_for(&self, span: Duration) {
        let end = self.uptime() + span;
        loop {
            while self.poll_woken() {}
            let mut inner = self.inner.lock().unwrap();
            match inner.timers.first_entry() {
                Some(first) if first.key().0 <= end => {
                    let ((at, _), waker) = first.remove_entry();
                    inner.now = inner.now.max(at);
                    drop(inner);
                    waker.wake();
                }
                _ => {
                    inner.now = end;
                    return;
                }
            }
        }
    }

    /// Time goes on while everything stands still, as for a process that is stopped.
    pub(crate) fn freeze_for(&self, span: Duration) {
        self.inner.lock().unwrap().now += span;
    }

    /// Sets the wall clock, and nothing else.
    pub(crate) fn jump_wall_clock(&self, seconds: i64) {
        self.inner.lock().unwrap().wall_ahead += seconds;
    }

    /// Every request so far, with its moment.
    pub(crate) fn requests(&self) -> Vec<(Duration, Request)> {
        self.inner.lock().unwrap().requests.clone()
    }

    /// Polls every task that has been woken, the oldest first; false if there was none.
    fn poll_woken(&self) -> bool {
        let woken = self.inner.lock().unwrap().woken.clone();
        let due = std::mem::take(&mut *woken.lock().unwrap());
        for id in &due {
            // One that wakes itself while it is being polled is polled again in the next round.
            let Some(mut task) = self.inner.lock().unwrap().tasks.remove(id) else { continue };
            let waker = Waker::from(Arc::new(Alarm(*id, woken.clone())));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.inner.lock().unwrap().tasks.insert(*id, task);
            }
        }
        !due.is_empty()
    }

    fn answer(&self, request: &Request) -> Answer {
        let now = self.uptime();
        self.inner.lock().unwrap().requests.push((now, request.clone()));
        (self.server.lock().unwrap())(request, now)
    }

    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { deadline, world: self.me.upgrade().expect("a world outlives its calls") })
    }
}

struct Sleep {
    deadline: Duration,
    world: Arc<FakeWorld>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.world.inner.lock().unwrap();
        if inner.now >= self.deadline {
            return Poll::Ready(());
        }
        inner.timer_count += 1;
        let id = inner.timer_count;
        inner.timers.insert((self.deadline, id), context.waker().clone());
        Poll::Pending
    }
}

impl World for FakeWorld {
    fn now(&self) -> Timestamp {
        let inner = self.inner.lock().unwrap();
        let start = 1_800_000_000_i64 + inner.wall_ahead;
        Timestamp::new(start + inner.now.as_secs() as i64, inner.now.subsec_nanos() as i32).unwrap()
    }

    fn uptime(&self) -> Duration {
        self.inner.lock().unwrap().now
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.uptime() + span)
    }

    fn random(&self) -> u64 {
        let mut inner = self.inner.lock().unwrap();
        // SplitMix64.
        inner.random = inner.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = inner.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut inner = self.inner.lock().unwrap();
        let id = inner.spawned;
        inner.spawned += 1;
        inner.tasks.insert(id, task);
        inner.woken.lock().unwrap().insert(id);
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let timeout = self.sleep(request.timeout);
        match self.answer(&request) {
            Answer::Reply(reply) => Box::pin(future::ready(Ok(reply))),
            Answer::Unanswered(unanswered) => Box::pin(future::ready(Err(unanswered))),
            Answer::Late(delay, reply) => {
                let late = self.sleep(delay);
                Box::pin(async move {
                    late.await;
                    Ok(reply)
                })
            }
            Answer::Hang => Box::pin(async move {
                timeout.await;
                Err(Unanswered::OutcomeUnknown("timed out".to_owned()))
            }),
            Answer::Lines(..) => panic!("{request} is no watch"),
        }
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        let opened = match self.answer(&request) {
            Answer::Reply(reply) | Answer::Late(_, reply) => Err(Refused::Reply(reply)),
            Answer::Unanswered(unanswered) => Err(Refused::Unanswered(unanswered)),
            Answer::Hang => Err(Refused::Unanswered(Unanswered::OutcomeUnknown("timed out".to_owned()))),
            Answer::Lines(lines, then) => {
                let lines = stream::iter(lines.into_iter().map(|line| Ok(Bytes::from(line))));
                let then: Lines = match then {
                    Then::End => stream::empty().boxed(),
                    Then::Cut => stream::iter([Err(Cut("connection reset".to_owned()))]).boxed(),
                    Then::Silence => stream::pending().boxed(),
                    Then::Live(live) => live,
                };
                Ok(lines.chain(then).boxed())
            }
        };
        Box::pin(future::ready(opened))
    }
}
