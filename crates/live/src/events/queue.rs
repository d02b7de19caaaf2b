//! Events that wait to be written, and the series they belong to: bounded, whatever happens.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use foldhash::fast::RandomState;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    MAX_TRIES, SWEEP_PERIOD,
    event::{self, Event, Reference},
};
use crate::requests::micro_time;

/// Events besides `Scheduled` that wait.
const MAX_WAITING: usize = 1000;
/// `Scheduled` events that wait: they are small, and come in bursts as large as a deployment.
const MAX_WAITING_SCHEDULED: usize = 10_000;
/// Series that are counted at a time; the oldest makes room for the next.
const MAX_SERIES: usize = 4096;
/// Events besides `Scheduled` that are written in a second, and at once.
const WRITES_PER_SECOND: u32 = 100;
const BURST: u32 = 500;
/// A series is written again after this time, lest the server forget it (client-go's figure).
const REFRESH_PERIOD: Duration = Duration::from_secs(30 * 60);
/// How long a writer without work sleeps at most.
const IDLE: Duration = Duration::from_secs(600);

type SeriesKey = Arc<event::SeriesKey>;

/// An event, its name and its moment.
#[derive(Clone)]
struct Named {
    event: Arc<Event>,
    name: Arc<str>,
    time: Arc<str>,
}

struct Series {
    named: Named,
    count: u64,
    last: Duration,
    last_time: Timestamp,
    /// How many of them the server knows of; 0 before the first write.
    written: u64,
    written_at: Duration,
    /// A write of it waits or is under way.
    queued: bool,
    /// That write is the last one, unless it happens again.
    ending: bool,
}

/// Something to write.
pub(super) struct EventWrite {
    what: What,
    tries: u32,
}

enum What {
    Once(Named),
    Series(SeriesKey),
}

/// What a writer does next.
pub(super) enum Take {
    Job(EventWrite),
    /// Nothing for now, or for this long.
    Wait(Duration),
    End,
}

/// One write, with what was known when it began.
pub(super) struct Write {
    named: Named,
    count: u64,
    last: Timestamp,
    is_patch: bool,
}

impl Write {
    pub(super) fn namespace(&self) -> &str {
        self.named.event.namespace()
    }

    pub(super) fn name(&self) -> &str {
        &self.named.name
    }

    pub(super) fn is_patch(&self) -> bool {
        self.is_patch
    }

    /// The same, for an event that is not there.
    pub(super) fn as_create(&self) -> Self {
        Self { named: self.named.clone(), is_patch: false, ..*self }
    }

    pub(super) fn patch(&self) -> Value {
        json!({"series": {"count": self.count, "lastObservedTime": micro_time(self.last)}})
    }

    pub(super) fn object(&self, host: &str) -> Value {
        let mut object = self.named.event.written(&self.named.name, &self.named.time, host);
        if self.count > 1 {
            object["series"] = self.patch()["series"].take();
        }
        object
    }
}

pub(super) struct EventQueue {
    once: VecDeque<EventWrite>,
    repeated: VecDeque<EventWrite>,
    later: VecDeque<(Duration, EventWrite)>,
    series: HashMap<SeriesKey, Series, RandomState>,
    /// The series by age.
    ages: VecDeque<SeriesKey>,
    last_name: i128,
    /// When the bucket of writes will be empty again.
    drained_at: Duration,
    is_closed: bool,
    pub(super) dropped: u64,
    pub(super) written: u64,
}

impl EventQueue {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            once: VecDeque::new(),
            repeated: VecDeque::new(),
            later: VecDeque::new(),
            series: HashMap::default(),
            ages: VecDeque::new(),
            last_name: 0,
            drained_at: now,
            is_closed: false,
            dropped: 0,
            written: 0,
        }
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn record(&mut self, event: Event, now: Timestamp, uptime: Duration) {
        let event = Arc::new(event);
        if event.happens_once() {
            if self.once.len() >= MAX_WAITING_SCHEDULED {
                self.dropped += 1;
                return;
            }
            let named = self.named(event, now);
            self.once.push_back(EventWrite { what: What::Once(named), tries: 0 });
            return;
        }
        let key = Arc::new(event.series());
        if let Some(series) = self.series.get_mut(&key) {
            series.count += 1;
            series.last = uptime;
            series.last_time = now;
            series.ending = false;
            // The second makes it a series, which is told at once; the others wait.
            if series.written < 2 && !series.queued {
                self.enqueue(&key);
            }
            return;
        }
        if self.repeated.len() + self.later.len() >= MAX_WAITING {
            self.dropped += 1;
            return;
        }
        self.begin_series(key, event, now, uptime);
    }

    fn begin_series(&mut self, key: SeriesKey, event: Arc<Event>, now: Timestamp, uptime: Duration) {
        while self.series.len() >= MAX_SERIES {
            let Some(oldest) = self.ages.pop_front() else { break };
            self.series.remove(&oldest);
        }
        let named = self.named(event, now);
        let series = Series {
            named,
            count: 1,
            last: uptime,
            last_time: now,
            written: 0,
            written_at: uptime,
            queued: false,
            ending: false,
        };
        self.series.insert(key.clone(), series);
        self.ages.push_back(key.clone());
        self.enqueue(&key);
    }

    fn enqueue(&mut self, key: &SeriesKey) {
        if let Some(series) = self.series.get_mut(key) {
            series.queued = true;
            self.repeated.push_back(EventWrite { what: What::Series(key.clone()), tries: 0 });
        }
    }

    /// The name of the object and the moment, which together no other event of ours has.
    fn named(&mut self, event: Arc<Event>, now: Timestamp) -> Named {
        self.last_name = now.as_nanosecond().max(self.last_name + 1);
        let Reference { name, uid, .. } = &event.regarding;
        let given = format!("{name}.{:x}", self.last_name);
        // An object's name may be too long to have something appended to it.
        let name = if given.len() <= 253 { given } else { format!("{uid}.{:x}", self.last_name) };
        Named { name: name.into(), time: micro_time(now).into(), event }
    }

    pub(super) fn take(&mut self, now: Duration, busy: bool) -> Take {
        if self.is_closed {
            return Take::End;
        }
        if let Some(at) = self.later.iter().position(|(ready, _)| *ready <= now) {
            let (_, job) = self.later.remove(at).expect("its place was just found");
            return Take::Job(job);
        }
        let mut wait = self.later.iter().map(|(ready, _)| *ready - now).min().unwrap_or(IDLE);
        if !self.repeated.is_empty() {
            let early = self.ahead_of_rate(now);
            if early.is_zero() {
                self.drained_at = self.drained_at.max(now) + Duration::from_secs(1) / WRITES_PER_SECOND;
                return Take::Job(self.repeated.pop_front().expect("it is not empty"));
            }
            wait = wait.min(early);
        }
        // Bindings come first; but a queue that fills up is not left to overflow.
        let stands_back = busy && self.once.len() < MAX_WAITING_SCHEDULED / 2;
        match self.once.pop_front_if(|_| !stands_back) {
            Some(job) => Take::Job(job),
            None => Take::Wait(wait),
        }
    }

    fn ahead_of_rate(&self, now: Duration) -> Duration {
        let burst = Duration::from_secs(1) * BURST / WRITES_PER_SECOND;
        self.drained_at.saturating_sub(now).saturating_sub(burst)
    }

    /// What is to be written for a job now; nothing if its series has been given up.
    pub(super) fn write_of(&self, job: &EventWrite) -> Option<Write> {
        match &job.what {
            What::Once(named) => {
                Some(Write { named: named.clone(), count: 1, last: Timestamp::UNIX_EPOCH, is_patch: false })
            }
            What::Series(key) => self.series.get(key).map(|series| Write {
                named: series.named.clone(),
                count: series.count,
                last: series.last_time,
                is_patch: series.written > 0,
            }),
        }
    }

    pub(super) fn done(&mut self, job: EventWrite, write: &Write) {
        self.written += 1;
        let What::Series(key) = job.what else { return };
        let Some(series) = self.series.get_mut(&key) else { return };
        series.written = write.count;
        series.written_at = series.last;
        series.queued = false;
        if series.ending {
            self.forget(&key);
        } else if series.written < 2 && series.count > 1 {
            self.enqueue(&key);
        }
    }

    pub(super) fn give_up(&mut self, job: EventWrite) {
        self.dropped += 1;
        if let What::Series(key) = job.what {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &SeriesKey) {
        self.series.remove(key);
        self.ages.retain(|kept| kept != key);
    }

    pub(super) fn retry(&mut self, mut job: EventWrite, at: Duration) {
        job.tries += 1;
        if job.tries >= MAX_TRIES || self.later.len() >= MAX_WAITING {
            return self.give_up(job);
        }
        self.later.push_back((at, job));
    }

    /// Writes what has not been told of series that have ended or grown old, and forgets those that are told in full.
    pub(super) fn sweep(&mut self, now: Duration) {
        let has_ended = |series: &Series| now.saturating_sub(series.last) > SWEEP_PERIOD;
        let is_told = |series: &Series| series.written == series.count;
        let mut untold = Vec::new();
        // By age rather than by hash: the same world leads to the same course of things.
        for key in &self.ages {
            let Some(series) = self.series.get_mut(key) else { continue };
            let ended = has_ended(series);
            let is_old = series.count > 1 && now.saturating_sub(series.written_at) > REFRESH_PERIOD;
            if !series.queued && ((ended && !is_told(series)) || is_old) {
                series.ending = ended;
                untold.push(key.clone());
            }
        }
        self.series.retain(|_, series| series.queued || !(has_ended(series) && is_told(series)));
        self.ages.retain(|key| self.series.contains_key(key));
        for key in untold {
            self.enqueue(&key);
        }
    }
}
