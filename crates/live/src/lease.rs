//! Which of several schedulers works: leader election on a Lease of coordination.k8s.io/v1, by the rules of client-go, so
//! that kube-scheduler and Supercargo never work at the same time.
//!
//! Clocks of different machines are never compared: how long a foreign lease has stood unchanged is measured here, on the
//! clock that goes on while the process is stopped. A holder counts its own lease from before it asked for the renewal,
//! and for no longer than the renewal deadline; so a leader that was frozen knows, before anything else, that its time is
//! over. Coordinated leader election (LeaseCandidates) is not taken part in.
//!
//! Whoever gives the lease back writes into it up to which versions it had seen the cluster, its own bindings among it. The
//! next leader decides nothing on an older view, so that no room is given twice where kube-scheduler relies on its watch
//! being faster than its election.

mod record;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::{Either, select};
use serde_json::{Value, json};
use supercargo_framework::bugs::{self, Bug};
use tokio::sync::watch;

use crate::{
    requests::{micro_time, whole_seconds},
    world::{ContentType, Method, Reply, Request, SharedWorld, World, jittered, within},
};
use record::LeaderElectionRecord;

/// Waits between attempts to get the lease are longer by up to this factor.
const JITTER: f64 = 1.2;

/// At most one line about trouble with the lease in this time: every retry has the same.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(30);

/// The newest version of an object that was seen, by resource.
pub type SeenVersions = BTreeMap<String, u64>;

/// The terms of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who we are; see [`identity`].
    pub identity: String,
    /// How long the others wait for a silent leader.
    pub lease_duration: Duration,
    /// How long the leader tries to stay the leader.
    pub renew_deadline: Duration,
    /// How long to wait between attempts.
    pub retry_period: Duration,
    /// The name that events about the election are reported under: the first profile's scheduler name.
    pub component: String,
}

impl Terms {
    /// kube-scheduler's terms: the Lease kube-system/kube-scheduler, 15 s, 10 s and 2 s.
    pub fn usual(identity: impl Into<String>) -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            name: "kube-scheduler".to_owned(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            component: "default-scheduler".to_owned(),
        }
    }
}

/// A name that no other process has: the host's name and a random UUID.
pub fn identity(world: &dyn World, host: &str) -> String {
    format!("{host}_{}", random_uuid(world))
}

/// A random UUID (version 4).
pub(crate) fn random_uuid(world: &dyn World) -> String {
    let bits = (u128::from(world.random()) << 64) | u128::from(world.random());
    let bits = bits & !(0xF << 76) | (0x4 << 76);
    let bits = bits & !(0x3 << 62) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// How we stand in the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadershipState {
    /// Somebody else leads, or nobody yet.
    Waiting,
    /// We lead.
    Leading,
    /// We led, and do so no more. The election is over for this process.
    Lost,
    /// We gave the lease back.
    Released,
}

/// Our part in an election. Clones are the same part.
#[derive(Clone)]
pub struct Lease {
    shared: Arc<Shared>,
}

struct Shared {
    world: SharedWorld,
    terms: Terms,
    state: watch::Sender<LeadershipState>,
    /// Whether we want to lead yet.
    campaigning: watch::Sender<bool>,
    /// Whether we have been asked to give the lease back.
    leaving: watch::Sender<bool>,
    observed: Mutex<Observed>,
    trouble: Mutex<Trouble>,
}

/// What was told last about a server that does not answer, or refuses.
#[derive(Default)]
struct Trouble {
    told: Option<Duration>,
    suppressed: u64,
}

/// What is known of the Lease.
#[derive(Default)]
struct Observed {
    /// The object as the server has it, for writing it back.
    object: Value,
    record: LeaderElectionRecord,
    /// When the record was first seen as it is.
    since: Duration,
    /// Until when we may act as the leader.
    valid_until: Duration,
    /// What the leader before us had seen when it gave the lease back.
    handed_over: SeenVersions,
    /// When we became the leader.
    led_since: Duration,
    /// What we have seen when we give the lease back; without it, the lease is left to run out.
    hands_over: Option<SeenVersions>,
}

/// Takes part in an election until the lease has been held and lost, or given back.
pub fn campaign(world: &SharedWorld, terms: Terms) -> Lease {
    let lease = stand_by(world, terms);
    lease.campaign();
    lease
}

/// Is ready to take part in an election, once it is told to [campaign](Lease::campaign).
pub fn stand_by(world: &SharedWorld, terms: Terms) -> Lease {
    let shared = Arc::new(Shared {
        world: world.clone(),
        terms,
        state: watch::Sender::new(LeadershipState::Waiting),
        campaigning: watch::Sender::new(false),
        leaving: watch::Sender::new(false),
        observed: Mutex::default(),
        trouble: Mutex::default(),
    });
    world.spawn(Box::pin(shared.clone().run()));
    Lease { shared }
}

impl Lease {
    /// Takes part in the election from now on.
    pub fn campaign(&self) {
        self.shared.campaigning.send_replace(true);
    }

    /// Whether we hold a valid lease at this moment: to be asked right before anything is written.
    pub fn is_held(&self) -> bool {
        let shared = &self.shared;
        *shared.state.borrow() == LeadershipState::Leading
            && !*shared.leaving.borrow()
            && (shared.world.uptime() < shared.observed().valid_until
                || bugs::is_on(Bug::LeaseKeptAfterDeadline))
    }

    /// How we stand.
    pub fn state(&self) -> LeadershipState {
        *self.shared.state.borrow()
    }

    /// Ends when we lead; or gives false when that will never be.
    pub async fn acquired(&self) -> bool {
        self.until(|state| state != LeadershipState::Waiting).await == LeadershipState::Leading
    }

    /// Ends when we have led and do so no more, or have given the lease back.
    pub async fn lost(&self) {
        self.until(|state| matches!(state, LeadershipState::Lost | LeadershipState::Released)).await;
    }

    /// Who holds the lease, as far as is known; empty for nobody.
    pub fn holder(&self) -> String {
        self.shared.observed().record.holder.clone()
    }

    /// What the leader before us had seen when it gave the lease back, and since when we lead. Nothing if it did not give it
    /// back.
    pub fn handed_over(&self) -> (SeenVersions, Duration) {
        let observed = self.shared.observed();
        (observed.handed_over.clone(), observed.led_since)
    }

    /// Gives the lease back, if we have it, so that another need not wait for it to run out; the next leader is told what we
    /// have `seen`. Whatever is written under the lease must have come to an end, and have been seen, before this is called:
    /// if that is not so, `seen` is `None`, nothing more is written under the lease, and it runs out.
    pub async fn release(&self, seen: Option<SeenVersions>) {
        self.shared.observed().hands_over = seen;
        self.shared.leaving.send_replace(true);
        self.lost().await;
    }

    async fn until(&self, wanted: impl Fn(LeadershipState) -> bool) -> LeadershipState {
        let mut state = self.shared.state.subscribe();
        let found = state.wait_for(|state| wanted(*state)).await;
        found.map_or(LeadershipState::Lost, |state| *state)
    }
}

impl Shared {
    async fn run(self: Arc<Self>) {
        let lease = self.describe();
        if self.is_wanted().await && self.acquire().await {
            tracing::info!(lease, "became leader");
            self.observed().led_since = self.world.uptime();
            self.state.send_replace(LeadershipState::Leading);
            self.record_event("became leader");
            self.stay().await;
            if !*self.leaving.borrow() {
                tracing::error!(lease, "the lease is lost");
                self.state.send_replace(LeadershipState::Lost);
                return;
            }
            let hands_over = self.observed().hands_over.take();
            match hands_over {
                Some(seen) => self.give_back(&seen).await,
                None => {
                    tracing::warn!(lease, "not released, because not all that was sent has been seen done")
                }
            }
        }
        self.state.send_replace(LeadershipState::Released);
    }

    /// Waits until it is to take part; false if it is to leave before.
    async fn is_wanted(&self) -> bool {
        let (mut campaigning, mut leaving) = (self.campaigning.subscribe(), self.leaving.subscribe());
        let wanted = Box::pin(campaigning.wait_for(|campaigning| *campaigning));
        let unwanted = Box::pin(leaving.wait_for(|leaving| *leaving));
        matches!(select(wanted, unwanted).await, Either::Left((Ok(_), _)))
    }

    /// Tries until it has the lease; false if it is to leave before.
    async fn acquire(&self) -> bool {
        tracing::info!(lease = self.describe(), identity = self.terms.identity, "waiting for the lease");
        loop {
            let before = self.holder();
            let won = self.attempt().await;
            let holder = self.holder();
            if holder != before {
                tracing::info!(lease = self.describe(), holder, "new leader");
            }
            if won || self.pause(jittered(&*self.world, self.terms.retry_period, JITTER)).await {
                return won;
            }
        }
    }

    /// Renews the lease until that has failed for the length of the deadline, or until it is to leave.
    async fn stay(&self) {
        while !self.pause(self.terms.retry_period).await {
            let renewed = within(&*self.world, self.terms.renew_deadline, Box::pin(self.renew())).await;
            if renewed != Some(true) {
                return;
            }
        }
    }

    /// Tries to renew until it succeeds; false if it is to leave before, or if the lease is not ours any more. Even one that
    /// has become free since is not taken up again: somebody else may have led, and whatever we planned was before that.
    async fn renew(&self) -> bool {
        loop {
            if self.attempt().await {
                return true;
            }
            if !self.is_ours() {
                return false;
            }
            if self.pause(self.terms.retry_period).await {
                return false;
            }
        }
    }

    /// Waits; true, and at once, if it is to leave.
    async fn pause(&self, span: Duration) -> bool {
        let mut leaving = self.leaving.subscribe();
        let asked = Box::pin(leaving.wait_for(|leaving| *leaving));
        within(&*self.world, span, asked).await.is_some()
    }

    /// Takes the lease if it is free or has run out, renews it if it is ours; false otherwise.
    async fn attempt(&self) -> bool {
        let asked_at = self.world.uptime();
        if self.is_ours() && self.is_valid(asked_at) && self.write(asked_at, self.renewed_record()).await {
            return true;
        }
        match self.get().await {
            Some(Found::Lease(object)) => self.observe(object),
            Some(Found::Nothing) => return self.create(asked_at).await,
            None => return false,
        }
        if self.is_leading() && !self.is_ours() {
            return false;
        }
        let now = self.world.uptime();
        let held_by_another = !self.observed().record.holder.is_empty() && !self.is_ours();
        if held_by_another && self.is_valid(now) && !bugs::is_on(Bug::LeaseStolenEarly) {
            return false;
        }
        let record = self.renewed_record();
        self.write(now, record).await
    }

    /// The record that makes us the holder from now on, or still.
    fn renewed_record(&self) -> LeaderElectionRecord {
        let now = micro_time(self.world.now());
        let old = &self.observed().record;
        let ours = old.holder == self.terms.identity;
        LeaderElectionRecord {
            holder: self.terms.identity.clone(),
            lease_seconds: self.terms.lease_duration.as_secs(),
            acquired: if ours { old.acquired.clone() } else { now.clone() },
            renewed: now,
            transitions: if ours { old.transitions } else { old.transitions.saturating_add(1) },
        }
    }

    async fn get(&self) -> Option<Found> {
        let reply = self.ask(Request::get(format!("{}/{}", self.collection(), self.terms.name))).await?;
        match reply.status {
            404 => Some(Found::Nothing),
            200 => serde_json::from_slice(&reply.body).ok().map(Found::Lease),
            status => {
                self.complain(&format!("the lease cannot be read: {status}: {}", reply.message()));
                None
            }
        }
    }

    async fn create(&self, asked_at: Duration) -> bool {
        let record = LeaderElectionRecord { transitions: 0, ..self.renewed_record() };
        let object = record::new_object(&self.terms.namespace, &self.terms.name, &record);
        self.put(asked_at, Method::Post, self.collection(), object, record).await
    }

    /// Replaces the record in the object as it was last seen: a version that is not the last one is refused.
    async fn write(&self, asked_at: Duration, record: LeaderElectionRecord) -> bool {
        let object = record::with_record(self.observed().object.clone(), &record);
        self.replace(asked_at, object, record).await
    }

    async fn replace(&self, asked_at: Duration, object: Value, record: LeaderElectionRecord) -> bool {
        let path = format!("{}/{}", self.collection(), self.terms.name);
        self.put(asked_at, Method::Put, path, object, record).await
    }

    async fn put(
        &self,
        asked_at: Duration,
        method: Method,
        path: String,
        object: Value,
        record: LeaderElectionRecord,
    ) -> bool {
        let request = Request::new(method, path, ContentType::Json, object.to_string().into());
        let Some(reply) = self.ask(request).await else { return false };
        if !reply.is_success() {
            let said = reply.message();
            tracing::debug!(lease = self.describe(), status = reply.status, "not written: {said}");
            return false;
        }
        let mut observed = self.observed();
        if !self.is_leading() {
            // The server has replaced what we had read, and nothing else.
            observed.handed_over = record::seen(&observed.object);
        }
        observed.object = serde_json::from_slice(&reply.body).unwrap_or(object);
        observed.record = record;
        observed.since = self.world.uptime();
        observed.valid_until = asked_at + self.terms.renew_deadline;
        true
    }

    /// Gives the lease back if it is still ours.
    async fn give_back(&self, seen: &SeenVersions) {
        let Some(Found::Lease(object)) = self.get().await else { return };
        self.observe(object);
        if !self.is_ours() {
            return;
        }
        let now = micro_time(self.world.now());
        let transitions = self.observed().record.transitions;
        let record = LeaderElectionRecord {
            holder: String::new(),
            lease_seconds: 1,
            acquired: now.clone(),
            renewed: now,
            transitions,
        };
        let object = record::with_record(self.observed().object.clone(), &record);
        if self.replace(self.world.uptime(), record::with_seen(object, seen), record).await {
            tracing::info!(lease = self.describe(), "released lease");
        }
    }

    /// Tells people what happened to the lease, as client-go does. It is tried once: nothing depends on it.
    fn record_event(self: &Arc<Self>, what: &str) {
        let (now, terms) = (self.world.now(), &self.terms);
        let meta = self.observed().object["metadata"].clone();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{}.{:x}", terms.name, now.as_nanosecond()),
                "namespace": terms.namespace,
            },
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": terms.namespace,
                "name": terms.name,
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            },
            "type": "Normal",
            "reason": "LeaderElection",
            "message": format!("{} {what}", terms.identity),
            "source": {"component": terms.component},
            "reportingComponent": terms.component,
            "reportingInstance": "",
            "firstTimestamp": whole_seconds(now),
            "lastTimestamp": whole_seconds(now),
            "count": 1,
        });
        let path = format!("/api/v1/namespaces/{}/events", terms.namespace);
        let request = Request::new(Method::Post, path, ContentType::Json, event.to_string().into());
        let shared = self.clone();
        self.world.spawn(Box::pin(async move {
            if let Some(reply) = shared.ask(request).await.filter(|reply| !reply.is_success()) {
                tracing::debug!(lease = shared.describe(), "event refused: {}", reply.message());
            }
        }));
    }

    async fn ask(&self, request: Request) -> Option<Reply> {
        let told = request.to_string();
        // An answer that comes too late for a second try is of no use.
        match self.world.send(request.within(self.terms.renew_deadline / 2)).await {
            Ok(reply) => Some(reply),
            Err(unanswered) => {
                self.complain(&format!("{told}: {unanswered}"));
                None
            }
        }
    }

    /// Tells what keeps us from the lease: at once, and then rarely, with a count.
    fn complain(&self, what: &str) {
        let now = self.world.uptime();
        let mut trouble = self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if trouble.told.is_some_and(|then| now.saturating_sub(then) < COMPLAINT_PAUSE) {
            trouble.suppressed += 1;
            return;
        }
        let suppressed = Some(std::mem::take(&mut trouble.suppressed)).filter(|count| *count > 0);
        trouble.told = Some(now);
        tracing::warn!(lease = self.describe(), suppressed, "{what}");
    }

    fn observe(&self, object: Value) {
        let record = LeaderElectionRecord::of(&object);
        let mut observed = self.observed();
        observed.object = object;
        if observed.record != record {
            observed.record = record;
            observed.since = self.world.uptime();
        }
    }

    fn is_leading(&self) -> bool {
        *self.state.borrow() == LeadershipState::Leading
    }

    fn is_ours(&self) -> bool {
        self.observed().record.holder == self.terms.identity
    }

    /// Whether the record has changed within its own duration. One that the API has no room for is nonsense: ours counts.
    fn is_valid(&self, now: Duration) -> bool {
        let observed = self.observed();
        let duration = match u32::try_from(observed.record.lease_seconds) {
            Ok(seconds) if seconds <= i32::MAX as u32 => Duration::from_secs(seconds.into()),
            _ => self.terms.lease_duration,
        };
        if bugs::is_on(Bug::LeaseByWallClock) {
            let renewed = observed.record.renewed.parse::<jiff::Timestamp>();
            return renewed.is_ok_and(|renewed| renewed + duration > self.world.now());
        }
        observed.since.saturating_add(duration) > now
    }

    fn holder(&self) -> String {
        self.observed().record.holder.clone()
    }

    fn observed(&self) -> std::sync::MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.terms.namespace)
    }

    fn describe(&self) -> String {
        format!("{}/{}", self.terms.namespace, self.terms.name)
    }
}

enum Found {
    Lease(Value),
    Nothing,
}
