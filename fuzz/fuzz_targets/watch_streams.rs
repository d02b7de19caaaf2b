//! A reflector follows a server that changes, cuts, forgets, restarts and lies, as the bytes say. Once the server behaves,
//! what has been told is what the server has.
//!
//! The first byte chooses the kind, each further one a step of the server; a step takes its operands from the bytes after it.
#![no_main]

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{self, BoxFuture},
    stream,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use supercargo_framework::virtual_time::{Executor, ProcessId};
use supercargo_live::{
    informer::{self, InformerHealth, Resource, WatchEvent},
    world::{Cut, Lines, Refused, Reply, Request, SharedWorld, Unanswered, World},
};
use supercargo_model::{Key, Kind, Timestamp};
use tokio::sync::mpsc;

/// The kinds, each with a spec that cannot be read. Budgets may be taken for unserved, the others not.
static KINDS: LazyLock<[(Kind, Value); 4]> = LazyLock::new(|| {
    [
        (Kind::Node, json!({"unschedulable": "perhaps"})),
        (Kind::Pod, json!({"containers": 7})),
        (Kind::Service, json!({"selector": 7})),
        (Kind::PodDisruptionBudget, json!({"selector": 7})),
    ]
});
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const STATUSES: [u16; 12] = [400, 403, 404, 405, 406, 410, 422, 429, 500, 501, 503, 200];
/// Around the patience of lists, of watches, and of watches without bookmarks.
const SPANS_SECONDS: [u64; 6] = [0, 1, 5, 31, 160, 700];
/// After this time without trouble everything has been read: the longest silence is not half of it.
const SETTLED: Duration = Duration::from_secs(30 * 60);
/// How many requests that may take: one list and a watch every few minutes, with what was still to be tried again.
const MAX_REQUESTS_WHILE_SETTLING: usize = 100;
/// A resource that can be read is not blind.
const BLIND_AFTER: Duration = Duration::from_secs(60);

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytecode(bytes);
    let (kind, unreadable) = &KINDS[bytes.below(KINDS.len())];
    let play = Play::new(*kind, unreadable.clone());
    let mut cache = Cache::default();
    while !bytes.0.is_empty() {
        play.step(&mut bytes);
        cache.take_in(&play);
    }
    play.behave();
    play.settle(&mut cache);
    if !play.server().lied {
        play.compare(&cache);
    }
    play.server().forget_everything();
    play.settle(&mut cache);
    play.compare(&cache);
});

/// The bytes that have not been read.
struct Bytecode<'b>(&'b [u8]);

impl Bytecode<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.next()) % bound
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }

    fn line(&mut self) -> String {
        let length = usize::from(self.next()).min(self.0.len());
        let (line, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(line).into_owned()
    }
}

/// A server, a reflector, and what it tells.
struct Play {
    executor: Arc<Executor>,
    world: Arc<FuzzedWorld>,
    events: Mutex<mpsc::Receiver<WatchEvent>>,
    health: InformerHealth,
}

impl Play {
    fn new(kind: Kind, unreadable: Value) -> Self {
        let executor = Arc::new(Executor::default());
        let server = Mutex::new(Server::new(kind, unreadable));
        let world = Arc::new(FuzzedWorld {
            process: executor.process(),
            executor: Arc::downgrade(&executor),
            server,
            drawn: AtomicU64::new(0),
        });
        let (shared, health): (SharedWorld, _) = (world.clone(), InformerHealth::default());
        let resource = Resource::of(kind).expect("all objects of the kind are watched");
        let events = Mutex::new(informer::open(&shared, vec![resource], &health));
        Self { executor, world, events, health }
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.world.server()
    }

    fn step(&self, bytes: &mut Bytecode<'_>) {
        let step = bytes.below(20);
        let mut server = self.server();
        match step {
            0 | 1 => server.put(bytes.name(), bytes.next()),
            2 => server.delete(bytes.name()),
            3 => server.recreate(bytes.name(), bytes.next()),
            4 | 5 => {
                drop(server);
                self.executor.run_for(Duration::from_secs(SPANS_SECONDS[bytes.below(SPANS_SECONDS.len())]));
            }
            6 => server.end_watches(Some("connection reset")),
            7 => server.end_watches(None),
            8 => server.oldest = server.version,
            9 => server.bookmark(),
            10 => server.tell_error(STATUSES[bytes.below(STATUSES.len())]),
            11 => server.lie(bytes.line()),
            12 => server.tell_again(bytes.next()),
            13 => server.faults.push_back(Fault::Status(STATUSES[bytes.below(STATUSES.len())], bytes.next())),
            14 => server.faults.push_back(Fault::Unanswered(bytes.next())),
            15 => server.faults.push_back(Fault::CutAfter(bytes.below(8))),
            16 => server.faults.push_back(Fault::Silent),
            17 => server.save(),
            18 => server.restore(),
            _ => server.behaves_as(bytes.next()),
        }
    }

    /// From here on the server does what it should.
    fn behave(&self) {
        let mut server = self.server();
        server.faults.clear();
        server.serves = true;
    }

    fn settle(&self, cache: &mut Cache) {
        self.server().requests = 0;
        let end = self.executor.clock().uptime() + SETTLED;
        // Now and then, for the reflector waits while nobody takes what it tells.
        while self.executor.clock().uptime() < end {
            self.executor.run_for(SETTLED / 10);
            cache.take_in(self);
        }
        let requests = self.server().requests;
        assert!(requests <= MAX_REQUESTS_WHILE_SETTLING, "{requests} requests to a server that answers");
    }

    fn compare(&self, cache: &Cache) {
        let server = self.server();
        let mut objects = cache.objects.clone();
        objects.retain(|key, _| !server.is_ambiguous(key));
        assert_eq!(objects, server.told(), "what was told is what the server has");
        assert_eq!(cache.synced, 1, "a list that was read is told once");
        let now = self.executor.clock().uptime();
        assert_eq!(self.health.blind_to(now, BLIND_AFTER), [], "it can be read");
    }
}

/// What has been told: by name, the identity and the version; no version if it cannot be read.
type Told = BTreeMap<Key, (String, Option<String>)>;

#[derive(Default)]
struct Cache {
    objects: Told,
    synced: usize,
}

impl Cache {
    fn take_in(&mut self, play: &Play) {
        let mut events = play.events.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(event) = events.try_recv() {
            if let WatchEvent::Gone { uid, .. } = &event {
                let server = play.server();
                assert!(server.lied || !server.has_always_had(uid), "{uid} is told gone, and is there");
            }
            self.hear(event);
        }
    }

    fn hear(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Put { object, uid, version, .. } => {
                let before = self.objects.insert(object.key(), (uid.to_string(), Some(version.to_string())));
                assert!(
                    before.is_none_or(|(before, _)| before == *uid),
                    "another object is told gone before"
                );
            }
            WatchEvent::Gone { key, uid, .. } => {
                let before = self.objects.remove(&key).map(|(uid, _)| uid);
                assert_eq!(before.as_deref(), Some(&*uid), "what is told gone was there: {key}");
            }
            WatchEvent::Unreadable { kind: Kind::Pod, key, uid, reason, .. } => {
                assert!(!reason.is_empty(), "{key}");
                self.objects.insert(key, (uid.to_string(), None));
            }
            WatchEvent::Unreadable { key, reason, .. } => {
                assert!(!reason.is_empty() && !self.objects.contains_key(&key), "{key}");
            }
            WatchEvent::Synced(_) => self.synced += 1,
            WatchEvent::UpTo(..) => {}
        }
    }
}

/// What becomes of a request.
enum Fault {
    /// It is answered with a status, and a body that makes more or less sense.
    Status(u16, u8),
    Unanswered(u8),
    /// A watch breaks after so many lines; a list is not answered.
    CutAfter(usize),
    /// A watch has nothing to tell, not even what it should begin with; a list is not answered.
    Silent,
}

struct Stored {
    uid: String,
    version: u64,
    object: Value,
    readable: bool,
}

/// One resource: its objects, and every change since the start.
struct Server {
    kind: Kind,
    unreadable: Value,
    version: u64,
    uids: u64,
    objects: BTreeMap<&'static str, Stored>,
    /// The identities of objects that could not be read at some time.
    unread: BTreeSet<String>,
    /// By identity and version, whether what was put could be read.
    was_readable: BTreeMap<(String, u64), bool>,
    /// Versions of objects that could be read, and after a restore cannot, or the other way round. Whoever did not hear of the
    /// restore takes the one for the other, as client-go does: an object whose version has not changed is told to nobody.
    ambiguous: BTreeSet<(String, u64)>,
    log: Vec<(u64, String)>,
    /// Versions before this one are forgotten.
    oldest: u64,
    watchers: Vec<mpsc::UnboundedSender<Result<Bytes, Cut>>>,
    faults: VecDeque<Fault>,
    saved: Option<(u64, BTreeMap<&'static str, Stored>)>,
    streams_lists: bool,
    page_size: usize,
    /// Whether it serves the resource; and whether it always has.
    serves: bool,
    always_served: bool,
    /// Every watch is too old until a list has been read.
    forces_list: bool,
    /// It told what is not so: only a list can put that right.
    lied: bool,
    requests: usize,
}

impl Server {
    fn new(kind: Kind, unreadable: Value) -> Self {
        Self {
            kind,
            unreadable,
            version: 1,
            uids: 0,
            objects: BTreeMap::new(),
            unread: BTreeSet::new(),
            was_readable: BTreeMap::new(),
            ambiguous: BTreeSet::new(),
            log: Vec::new(),
            oldest: 0,
            watchers: Vec::new(),
            faults: VecDeque::new(),
            saved: None,
            streams_lists: true,
            page_size: usize::MAX,
            serves: true,
            always_served: true,
            forces_list: false,
            lied: false,
            requests: 0,
        }
    }

    fn put(&mut self, name: &'static str, form: u8) {
        let known = self.objects.get(name);
        let change = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let uid = known.map(|known| known.uid.clone()).unwrap_or_else(|| {
            self.uids += 1;
            format!("u{}", self.uids)
        });
        self.version += 1;
        let readable = form % 4 != 3;
        if !readable {
            self.unread.insert(uid.clone());
        }
        let this = (uid.clone(), self.version);
        if self.was_readable.insert(this.clone(), readable).is_some_and(|before| before != readable) {
            self.ambiguous.insert(this);
        }
        let spec = match form % 4 {
            0 => json!({}),
            1 => json!(null),
            2 => json!({"unknown": [{"field": "}"}], "more": null}),
            _ => self.unreadable.clone(),
        };
        let mut metadata = json!({"name": name, "uid": uid, "resourceVersion": self.version.to_string()});
        if self.kind.is_namespaced() {
            metadata["namespace"] = "ns".into();
        }
        if form & 4 != 0 {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true", "\u{e4}\n": "\"}"});
        }
        let object = json!({"kind": self.kind.name(), "spec": spec, "metadata": metadata});
        self.tell(change, &object);
        self.objects.insert(name, Stored { uid, version: self.version, object, readable });
    }

    fn delete(&mut self, name: &'static str) {
        let Some(Stored { mut object, .. }) = self.objects.remove(name) else { return };
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.tell("DELETED", &object);
    }

    fn recreate(&mut self, name: &'static str, form: u8) {
        self.delete(name);
        self.put(name, form);
    }

    fn tell(&mut self, change: &str, object: &Value) {
        let line = line(change, object);
        self.log.push((self.version, line.clone()));
        self.send(line);
    }

    fn send(&mut self, line: String) {
        let line = Bytes::from(line);
        self.watchers.retain(|watcher| watcher.send(Ok(line.clone())).is_ok());
    }

    fn bookmark(&mut self) {
        self.send(bookmark(self.version, false));
    }

    fn tell_error(&mut self, code: u16) {
        self.send(line("ERROR", &json!({"kind": "Status", "code": code, "message": "so it is"})));
        self.end_watches(None);
    }

    fn lie(&mut self, line: String) {
        self.lied = true;
        self.send(line);
    }

    fn tell_again(&mut self, which: u8) {
        self.lied = true;
        if let Some((_, line)) = self.log.iter().rev().nth(which.into()) {
            self.send(line.clone());
        }
    }

    fn end_watches(&mut self, cut: Option<&str>) {
        for watcher in self.watchers.drain(..) {
            if let Some(why) = cut {
                let _ = watcher.send(Err(Cut(why.to_owned())));
            }
        }
    }

    fn save(&mut self) {
        let copy = |(name, stored): (&&'static str, &Stored)| {
            let Stored { uid, version, object, readable } = stored;
            (
                *name,
                Stored { uid: uid.clone(), version: *version, object: object.clone(), readable: *readable },
            )
        };
        self.saved = Some((self.version, self.objects.iter().map(copy).collect()));
    }

    /// Back to an older state, as from a backup: what happened since never did, and its versions are given once more.
    fn restore(&mut self) {
        let Some((version, objects)) = self.saved.take() else { return };
        self.lied = true;
        (self.version, self.objects) = (version, objects);
        self.log.retain(|(at, _)| *at <= version);
        // A backup does not forget versions that it has not come to.
        self.oldest = self.oldest.min(version);
        self.end_watches(Some("the server restarts"));
    }

    fn behaves_as(&mut self, form: u8) {
        self.streams_lists = form & 1 == 0;
        self.page_size = if form & 2 == 0 { usize::MAX } else { 1 + usize::from(form >> 2) % 3 };
        self.serves = form & 64 == 0;
        if !self.serves {
            self.always_served = false;
            self.end_watches(None);
        }
    }

    /// Everybody has to read everything anew.
    fn forget_everything(&mut self) {
        self.forces_list = true;
        self.end_watches(Some("the server restarts"));
    }

    /// Whether an object is there, and could be read ever since it was made.
    fn has_always_had(&self, uid: &str) -> bool {
        let is_there = self.objects.values().any(|stored| stored.uid == uid);
        is_there && self.always_served && !self.unread.contains(uid)
    }

    /// What there is to tell, but for what is ambiguous.
    fn told(&self) -> Told {
        let told = self.objects.iter().filter_map(|(name, stored)| {
            let Stored { uid, version, readable, .. } = stored;
            let namespace = if self.kind.is_namespaced() { "ns" } else { "" };
            let key = Key::new(namespace, *name);
            let version = readable.then(|| version.to_string());
            let is_told = (*readable || self.kind == Kind::Pod) && !self.is_ambiguous(&key);
            is_told.then(|| (key, (uid.clone(), version)))
        });
        told.collect()
    }

    /// Whether it depends on what was heard of a restore how an object is told.
    fn is_ambiguous(&self, key: &Key) -> bool {
        let stored = self.objects.get(&*key.name);
        stored.is_some_and(|stored| self.ambiguous.contains(&(stored.uid.clone(), stored.version)))
    }

    fn reply(&mut self, request: &Request) -> Answer {
        self.requests += 1;
        let reply = match self.faults.pop_front() {
            None if request.path == self.kind.api().group_version_path() => self.discovery(),
            None if !self.serves => Reply::new(404, "404 page not found"),
            None => {
                // Whoever only asks for the present version has read nothing yet.
                self.forces_list &= query(request, "limit") == Some("1");
                return self.list(query(request, "continue"));
            }
            Some(Fault::Status(status, form)) => refusal(status, form),
            Some(Fault::Unanswered(form)) => return Answer::Unanswered(unanswered(form)),
            Some(Fault::CutAfter(_) | Fault::Silent) => return Answer::Hang,
        };
        Answer::Reply(reply)
    }

    fn discovery(&self) -> Reply {
        let resources: Vec<Value> =
            (self.serves.then(|| json!({"name": self.kind.api().plural}))).into_iter().collect();
        Reply::new(200, json!({"resources": resources}).to_string())
    }

    fn list(&self, from: Option<&str>) -> Answer {
        let mut page: Vec<(&&str, &Stored)> =
            self.objects.iter().filter(|(name, _)| from.is_none_or(|from| **name > from)).collect();
        let more = page.len() > self.page_size;
        page.truncate(self.page_size);
        let mark = page.last().filter(|_| more).map_or("", |(name, _)| *name);
        let items: Vec<&Value> = page.iter().map(|(_, stored)| &stored.object).collect();
        let metadata = json!({"resourceVersion": self.version.to_string(), "continue": mark});
        Answer::Reply(Reply::new(200, json!({"metadata": metadata, "items": items}).to_string()))
    }

    fn watch(&mut self, request: &Request) -> Result<Lines, Refused> {
        self.requests += 1;
        let (mut cut, mut silent) = (None, false);
        match self.faults.pop_front() {
            None => {}
            Some(Fault::Status(200, form)) => {
                let said = refusal(200, form).body;
                return Ok(stream::iter([Ok(said)]).boxed());
            }
            Some(Fault::Status(status, form)) => return Err(Refused::Reply(refusal(status, form))),
            Some(Fault::Unanswered(form)) => return Err(Refused::Unanswered(unanswered(form))),
            Some(Fault::CutAfter(lines)) => cut = Some(lines),
            Some(Fault::Silent) => silent = true,
        }
        if !self.serves {
            return Err(Refused::Reply(Reply::new(404, "404 page not found")));
        }
        let gone = Refused::Reply(Reply::new(410, r#"{"message":"too old"}"#));
        let mut lines = Vec::new();
        if query(request, "sendInitialEvents").is_some() {
            if !self.streams_lists {
                return Err(Refused::Reply(Reply::new(422, r#"{"message":"no streaming lists"}"#)));
            }
            self.forces_list &= cut.is_some() || silent;
            lines.extend(self.objects.values().map(|stored| line("ADDED", &stored.object)));
            lines.push(bookmark(self.version, true));
        } else {
            let since = query(request, "resourceVersion").and_then(|since| since.parse().ok()).unwrap_or(0);
            if since < self.oldest || self.forces_list {
                return Err(gone);
            }
            lines.extend(self.log.iter().filter(|(at, _)| *at > since).map(|(_, line)| line.clone()));
        }
        if silent {
            return Ok(stream::pending().boxed());
        }
        if let Some(cut) = cut {
            lines.truncate(cut);
            let lines = stream::iter(lines.into_iter().map(|line| Ok(Bytes::from(line))));
            return Ok(lines.chain(stream::iter([Err(Cut("connection reset".to_owned()))])).boxed());
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        self.watchers.push(sender);
        let live = stream::unfold(receiver, |mut lines| async { Some((lines.recv().await?, lines)) });
        Ok(stream::iter(lines.into_iter().map(|line| Ok(Bytes::from(line)))).chain(live).boxed())
    }
}

fn query<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let (_, query) = request.path.split_once('?')?;
    query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

fn line(change: &str, object: &Value) -> String {
    json!({"type": change, "object": object}).to_string()
}

fn bookmark(version: u64, ends_list: bool) -> String {
    let annotations = if ends_list { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    line("BOOKMARK", &json!({"metadata": metadata}))
}

/// An answer that is none; of 200, too.
fn refusal(status: u16, form: u8) -> Reply {
    let body = match form % 4 {
        0 => r#"{"kind":"Status","message":"not now"}"#,
        1 => "<html>",
        2 => "",
        _ => r#"{"metadata":{"resourceVersion":7},"items":[null]}"#,
    };
    let retry_after = (form & 4 != 0).then(|| Duration::from_secs(u64::from(form)));
    Reply { retry_after, ..Reply::new(status, body) }
}

fn unanswered(form: u8) -> Unanswered {
    let why = "nobody is there".to_owned();
    if form.is_multiple_of(2) { Unanswered::NotSent(why) } else { Unanswered::OutcomeUnknown(why) }
}

enum Answer {
    Reply(Reply),
    Unanswered(Unanswered),
    /// The request's own timeout ends it.
    Hang,
}

/// One thread on virtual time, and the server.
struct FuzzedWorld {
    process: ProcessId,
    /// Its tasks hold the world: they must not hold themselves.
    executor: Weak<Executor>,
    server: Mutex<Server>,
    drawn: AtomicU64,
}

impl FuzzedWorld {
    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executor(&self) -> Arc<Executor> {
        self.executor.upgrade().expect("it outlives its tasks")
    }
}

impl World for FuzzedWorld {
    fn now(&self) -> Timestamp {
        self.executor().clock().now()
    }

    fn uptime(&self) -> Duration {
        self.executor().clock().uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.executor().clock().sleep(span)
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.executor().spawn(self.process, task);
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let timeout = self.sleep(request.timeout);
        match self.server().reply(&request) {
            Answer::Reply(reply) => Box::pin(future::ready(Ok(reply))),
            Answer::Unanswered(unanswered) => Box::pin(future::ready(Err(unanswered))),
            Answer::Hang => Box::pin(async move {
                timeout.await;
                Err(Unanswered::OutcomeUnknown("timed out".to_owned()))
            }),
        }
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        Box::pin(future::ready(self.server().watch(&request)))
    }
}
