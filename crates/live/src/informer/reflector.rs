//! One resource: its list, its watch, and what to do when either ends.

mod objects;
mod refusals;

use std::time::Duration;

use futures_util::StreamExt;
use supercargo_framework::bugs::{self, Bug};
use supercargo_model::{Key, object::Kind};
use tokio::sync::mpsc;

use super::{
    InformerHealth, Resource, WatchEvent,
    backoff::WatchBackoff,
    complaints::Complaints,
    known_objects::KnownObjects,
    paths,
    wire::{self, Head},
};
use crate::world::{Lines, Refused, Reply, SharedWorld, Unanswered, within};

/// A watch lives for a random time between this and twice this, so that a server's clients do not all come back at once.
const SHORTEST_WATCH: Duration = Duration::from_secs(300);
/// Servers that send bookmarks send one a minute. Twice and a half that time without a line: nobody is there any more.
const LONGEST_SILENCE: Duration = Duration::from_secs(150);
/// How long a watch without bookmarks may outlive its time.
const GRACE: Duration = Duration::from_secs(30);
/// A server that knows no streaming lists never says that one has ended.
const LONGEST_SILENCE_IN_LIST: Duration = Duration::from_secs(30);
/// A page of a list is large, and so is its patience.
const LONGEST_PAGE: Duration = Duration::from_secs(120);
/// A watch that ends sooner than this without a line is trouble, not a clean end.
const SHORTEST_CLEAN_WATCH: Duration = Duration::from_secs(1);

/// What comes next for a resource.
enum Step {
    /// Read everything anew.
    List,
    /// Ask for the changes since the last version that is known.
    Resume,
    /// Read the changes.
    Follow(Lines),
    /// Nobody takes the watch events any more.
    End,
}

/// Nobody takes the watch events any more.
struct Unheard;

/// Whether the server gives streaming lists, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Streaming {
    Untried,
    /// It has given one.
    Works,
    /// It has given one, and the last one failed: the next list is in pages.
    Pausing,
    /// It never gave one.
    Never,
}

impl Streaming {
    fn is_tried(self) -> bool {
        matches!(self, Self::Untried | Self::Works)
    }

    fn failed(self) -> Self {
        if self == Self::Works { Self::Pausing } else { Self::Never }
    }

    fn paged_instead(self) -> Self {
        if self == Self::Pausing { Self::Works } else { self }
    }
}

pub(super) struct Reflector {
    world: SharedWorld,
    resource: Resource,
    watch_events: mpsc::Sender<WatchEvent>,
    health: InformerHealth,
    known: KnownObjects,
    /// The last version that is known.
    version: String,
    backoff: WatchBackoff,
    complaints: Complaints,
    streaming: Streaming,
    /// How many lists in a row grew old before their last page.
    expired_lists: u32,
    sends_bookmarks: bool,
    /// The connection broke: the server may have restarted, with an older state even.
    unsure: bool,
    synced: bool,
    /// How often a list that is forbidden is tried.
    forbidden: WatchBackoff,
    /// When it was last told that a list is forbidden.
    told_forbidden: Option<Duration>,
    told_unserved: bool,
}

impl Reflector {
    pub(super) fn new(
        world: SharedWorld,
        resource: Resource,
        watch_events: mpsc::Sender<WatchEvent>,
        health: InformerHealth,
        complaints: Complaints,
    ) -> Self {
        Self {
            world,
            complaints,
            resource,
            watch_events,
            health,
            known: KnownObjects::default(),
            version: String::new(),
            backoff: WatchBackoff::new(),
            streaming: Streaming::Untried,
            expired_lists: 0,
            sends_bookmarks: false,
            unsure: false,
            synced: false,
            forbidden: WatchBackoff::short(),
            told_forbidden: None,
            told_unserved: false,
        }
    }

    pub(super) async fn run(mut self) {
        let mut step = Step::List;
        loop {
            let next = match step {
                Step::List if self.streaming.is_tried() => self.stream_list().await,
                Step::List => self.page_list().await,
                Step::Resume => self.resume().await,
                Step::Follow(lines) => self.follow(lines).await,
                Step::End => return,
            };
            step = next.unwrap_or(Step::End);
            if self.watch_events.is_closed() {
                return;
            }
        }
    }

    /// The list as a stream. Whatever goes wrong with it, pages are asked for next: servers that offer streaming lists and
    /// cannot keep what they promise (for want of etcd's progress notifications, say) give those.
    async fn stream_list(&mut self) -> Result<Step, Unheard> {
        let request = paths::streaming_list(&self.resource, self.lifetime());
        let mut lines = match self.world.watch(request).await {
            Ok(lines) => lines,
            Err(Refused::Reply(reply)) if matches!(reply.status, 400 | 405 | 406 | 422 | 501) => {
                tracing::debug!(kind = self.kind().name(), "the server gives no streaming lists");
                self.streaming = Streaming::Never;
                return Ok(Step::List);
            }
            Err(refused) => {
                // Nobody is there, or too busy: what kind of list it is matters nothing.
                let passing = matches!(
                    refused,
                    Refused::Unanswered(Unanswered::NotSent(_))
                        | Refused::Reply(Reply { status: 403 | 404 | 429, .. })
                );
                if !passing {
                    self.streaming = self.streaming.failed();
                }
                return self.list_refused(refused).await;
            }
        };
        self.known.begin_list();
        let before = self.version.clone();
        let why = loop {
            let line = match within(&*self.world, LONGEST_SILENCE_IN_LIST, lines.next()).await {
                Some(Some(Ok(line))) => line,
                Some(Some(Err(cut))) => break format!("cut: {cut}"),
                Some(None) => break "ended early".to_owned(),
                None => break format!("silent for {} s", LONGEST_SILENCE_IN_LIST.as_secs()),
            };
            match self.line(&line, Phase::List).await? {
                Heard::Change => {}
                Heard::EndOfList => {
                    self.streaming = Streaming::Works;
                    if is_older(&self.version, &before) {
                        // What looked the same by its version may be something else.
                        self.known.distrust_versions();
                        return Ok(Step::List);
                    }
                    self.end_list().await?;
                    return Ok(Step::Follow(lines));
                }
                Heard::Error(status) => break format!("ended with {}: {}", status.code, status.message),
                Heard::Nonsense => break "a line that is no JSON".to_owned(),
            }
        };
        self.complaints.say(&*self.world, self.kind(), &format!("streaming list {why}; asking for pages"));
        self.streaming = self.streaming.failed();
        Ok(Step::List)
    }

    async fn page_list(&mut self) -> Result<Step, Unheard> {
        self.known.begin_list();
        let mut continue_from = None;
        // A server that cannot keep a list for as long as its pages take is now and then asked for all at once.
        let pages = self.expired_lists % 3 != 2;
        loop {
            let request = paths::page(&self.resource, continue_from.as_deref(), pages).within(LONGEST_PAGE);
            let reply = match self.world.send(request).await {
                Ok(reply) if reply.status == 410 && continue_from.is_some() => {
                    self.expired_lists += 1;
                    return self.trouble(Step::List, "the list grew old in the middle").await;
                }
                Ok(reply) if !reply.is_success() => return self.list_refused(Refused::Reply(reply)).await,
                Ok(reply) => reply,
                Err(unanswered) => return self.list_refused(Refused::Unanswered(unanswered)).await,
            };
            let Ok(page) = serde_json::from_slice::<wire::Page<'_>>(&reply.body) else {
                return self.trouble(Step::List, "a list that is no JSON").await;
            };
            if continue_from.is_none() && is_older(&page.metadata.resource_version, &self.version) {
                self.known.distrust_versions();
            }
            for item in page.items.iter().flatten() {
                self.item(item.get()).await?;
            }
            if page.metadata.continue_from.is_empty() {
                self.version = page.metadata.resource_version;
                self.end_list().await?;
                self.streaming = self.streaming.paged_instead();
                return Ok(Step::Resume);
            }
            continue_from = Some(page.metadata.continue_from);
        }
    }

    async fn end_list(&mut self) -> Result<(), Unheard> {
        self.tell_missing().await?;
        self.health.regained(&self.resource);
        self.unsure = false;
        self.expired_lists = 0;
        self.forbidden = WatchBackoff::short();
        self.told_forbidden = None;
        self.told_unserved = false;
        self.tell_synced().await?;
        self.tell_up_to().await
    }

    /// All there is to tell up to our version has been told.
    async fn tell_up_to(&mut self) -> Result<(), Unheard> {
        match self.version.parse() {
            Ok(version) => self.tell(WatchEvent::UpTo(self.kind(), version)).await,
            Err(_) => Ok(()),
        }
    }

    /// Whatever the list that has ended did not name is gone.
    async fn tell_missing(&mut self) -> Result<(), Unheard> {
        for (key, uid) in self.known.end_list() {
            if bugs::is_on(Bug::RelistForgetsDeletions) {
                continue;
            }
            self.tell(WatchEvent::Gone { kind: self.kind(), key, uid }).await?;
        }
        Ok(())
    }

    async fn tell_synced(&mut self) -> Result<(), Unheard> {
        if std::mem::replace(&mut self.synced, true) {
            return Ok(());
        }
        self.tell(WatchEvent::Synced(self.kind())).await
    }

    async fn resume(&mut self) -> Result<Step, Unheard> {
        if self.unsure && self.went_back().await {
            self.known.distrust_versions();
            // Known to be of the past, so that the list need not find it out once more.
            self.version.clear();
            return Ok(Step::List);
        }
        let request = paths::watch(&self.resource, &self.version, self.lifetime());
        match self.world.watch(request).await {
            Ok(lines) => Ok(Step::Follow(lines)),
            Err(Refused::Reply(reply)) if reply.status == 410 => self.expired().await,
            Err(refused @ Refused::Reply(Reply { status: 429 | 500.., .. })) => {
                self.refused(Step::Resume, refused).await
            }
            Err(refused @ Refused::Unanswered(_)) => {
                self.unsure = true;
                self.refused(Step::Resume, refused).await
            }
            Err(refused) => self.refused(Step::List, refused).await,
        }
    }

    /// Whether the server's state is older than what we have seen: then a watch from our version would be silent until the
    /// server has caught up, and everything in between would be lost.
    async fn went_back(&mut self) -> bool {
        let Ok(reply) = self.world.send(paths::present_version(&self.resource)).await else { return false };
        let Ok(page) = serde_json::from_slice::<wire::Page<'_>>(&reply.body) else { return false };
        let went_back = reply.is_success() && is_older(&page.metadata.resource_version, &self.version);
        self.unsure = !reply.is_success();
        went_back
    }

    async fn follow(&mut self, mut lines: Lines) -> Result<Step, Unheard> {
        let opened = self.world.uptime();
        let mut quiet = true;
        let mut first = within(&*self.world, SHORTEST_CLEAN_WATCH, lines.next()).await;
        if first.is_none() {
            // It stands, and there is nothing to tell.
            self.health.regained(&self.resource);
        }
        loop {
            let patience = if self.sends_bookmarks { LONGEST_SILENCE } else { 2 * SHORTEST_WATCH + GRACE };
            let next = match first.take() {
                Some(next) => Some(next),
                None => within(&*self.world, patience, lines.next()).await,
            };
            let line = match next {
                Some(Some(Ok(line))) => line,
                Some(Some(Err(cut))) => {
                    self.unsure = true;
                    return self.trouble(Step::Resume, &format!("watch cut: {cut}")).await;
                }
                Some(None) if quiet && self.world.uptime() - opened < SHORTEST_CLEAN_WATCH => {
                    return self.trouble(Step::Resume, "watch ended at once").await;
                }
                Some(None) => return Ok(Step::Resume),
                None => {
                    self.unsure = true;
                    self.health.lost(&self.resource, self.world.uptime());
                    self.complaints.say(&*self.world, self.kind(), "watch gone silent; opening it anew");
                    return Ok(Step::Resume);
                }
            };
            quiet = false;
            match self.line(&line, Phase::Watch).await? {
                Heard::Change | Heard::EndOfList => self.health.regained(&self.resource),
                Heard::Error(status) if status.code == 410 => return self.expired().await,
                Heard::Error(status) => {
                    let next = if matches!(status.code, 429 | 500..) { Step::Resume } else { Step::List };
                    return self.trouble(next, &format!("watch ended: {}", status.message)).await;
                }
                Heard::Nonsense => {
                    return self.trouble(Step::List, "a line that is no JSON").await;
                }
            }
        }
    }

    async fn line(&mut self, line: &[u8], phase: Phase) -> Result<Heard, Unheard> {
        let Ok(head) = Head::of_line(line, self.kind()) else { return Ok(Heard::Nonsense) };
        match &*head.change {
            "ADDED" | "MODIFIED" => {
                let text = || wire::text_of_line(line);
                self.object(&head, |resource| wire::object_of_line(line, resource), text).await?;
            }
            "DELETED" => {
                if let Some(uid) = self.known.forget(&head.namespace, &head.name) {
                    let key = Key::new(&*head.namespace, &*head.name);
                    self.tell(WatchEvent::Gone { kind: self.kind(), key, uid }).await?;
                }
            }
            "BOOKMARK" => self.sends_bookmarks = true,
            "ERROR" => return Ok(Heard::Error(wire::status_of_line(line))),
            _ => return Ok(Heard::Nonsense),
        }
        // The objects of a list come in any order of versions.
        if (phase == Phase::Watch || head.ends_list) && !head.version.is_empty() {
            self.version.clear();
            self.version.push_str(&head.version);
            if phase == Phase::Watch && matches!(&*head.change, "DELETED" | "BOOKMARK") {
                self.tell_up_to().await?;
            }
        }
        Ok(if head.ends_list && phase == Phase::List { Heard::EndOfList } else { Heard::Change })
    }

    /// The server has forgotten our version. That is nobody's fault, unless it happens again at once.
    async fn expired(&mut self) -> Result<Step, Unheard> {
        if bugs::is_on(Bug::GoneIsNotRelisted) {
            return self.trouble(Step::Resume, "the server has forgotten our version").await;
        }
        if self.backoff.is_first(&*self.world) {
            tracing::debug!(kind = self.kind().name(), "the server has forgotten our version");
            return Ok(Step::List);
        }
        self.trouble(Step::List, "the server forgets versions too soon").await
    }

    async fn trouble(&mut self, next: Step, what: &str) -> Result<Step, Unheard> {
        self.health.lost(&self.resource, self.world.uptime());
        self.complaints.say(&*self.world, self.kind(), what);
        let wait = self.backoff.next(&*self.world);
        self.world.sleep(wait).await;
        Ok(next)
    }

    async fn tell(&mut self, event: WatchEvent) -> Result<(), Unheard> {
        self.watch_events.send(event).await.map_err(|_| Unheard)
    }

    fn lifetime(&self) -> Duration {
        crate::world::jittered(&*self.world, SHORTEST_WATCH, 1.0)
    }

    fn kind(&self) -> Kind {
        self.resource.kind
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    List,
    Watch,
}

/// What a line was.
enum Heard {
    Change,
    EndOfList,
    Error(wire::Status),
    Nonsense,
}

/// Whether a version comes before another, as far as they are numbers.
fn is_older(version: &str, than: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    number(version).zip(number(than)).is_some_and(|(version, than)| version < than)
}
