//! Watches: a stream of lines, one for each change that the caller has selected.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use std::vec;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

use super::Server;
use super::query::Query;
use super::view::{View, error_line};
use crate::api::ListOptions;
use crate::events;
use crate::failure::{StatusCause, StatusError};
use crate::object;
use crate::selector::Selector;
use crate::signal::SignalReceiver;
use crate::store::{EventType, News, StoreEvent, StoredObject};

/// How often chance may cut a watch.
const CHANCE_INTERVAL: Duration = Duration::from_secs(1);

/// A watch: whoever reads it pulls the lines out of the history, so that a slow reader costs no memory.
pub(super) struct Watch {
    server: Arc<Server>,
    view: View,
    namespace: String,
    selector: Selector,
    /// Objects that are told as added before anything else.
    initial: vec::IntoIter<Arc<StoredObject>>,
    told_first: bool,
    tells_end_of_initial: bool,
    /// What was read from the history and is not told yet.
    changes: vec::IntoIter<Arc<StoreEvent>>,
    /// The version up to which the history was read.
    seen: u64,
    news: SignalReceiver,
    stops: SignalReceiver,
    cuts: SignalReceiver,
    /// The plan of faults was replaced.
    replans: SignalReceiver,
    times: Times,
}

/// When a watch does something by itself.
struct Times {
    ends_at: Option<Duration>,
    bookmark_at: Option<Duration>,
    chance_at: Duration,
}

/// What a watch has to say next.
enum Next {
    Line(Bytes),
    LastLine(Bytes),
    /// Its time is over.
    End,
    /// The connection breaks.
    Cut,
}

impl Watch {
    pub(super) fn new(
        server: &Arc<Server>,
        view: View,
        namespace: &str,
        query: &Query,
    ) -> Result<Self, StatusError> {
        let resource = view.resource;
        let asked = query.version()?;
        let streams_list = query.is_true("sendInitialEvents");
        if streams_list && query.text("resourceVersionMatch") != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(StatusError::invalid(
                resource,
                "",
                StatusCause::forbidden("resourceVersionMatch", why),
            ));
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let selector = query.selector(resource)?;
        let (initial, seen) = if streams_list || asked.unwrap_or(0) == 0 {
            let options =
                ListOptions { selector: selector.clone(), version: asked, ..ListOptions::default() };
            let listing = server.api.list(resource, namespace, &options)?;
            (listing.objects, listing.version)
        } else {
            (Vec::new(), asked.unwrap_or(0))
        };
        let now = server.api.time.uptime();
        let bookmarks = query.is_true("allowWatchBookmarks");
        let watch = Self {
            view,
            namespace: namespace.to_owned(),
            selector,
            initial: initial.into_iter(),
            told_first: false,
            tells_end_of_initial: streams_list && bookmarks,
            changes: Vec::new().into_iter(),
            seen,
            news: server.api.store().subscribe(resource),
            stops: server.stops(),
            cuts: server.faults.watch_cuts(),
            replans: server.faults.replans(),
            times: Times {
                ends_at: query.timeout()?.map(|timeout| now + timeout),
                bookmark_at: bookmarks.then(|| now + server.bookmark_interval()),
                chance_at: now + CHANCE_INTERVAL,
            },
            server: server.clone(),
        };
        watch.check_version()?;
        Ok(watch)
    }

    fn check_version(&self) -> Result<(), StatusError> {
        let store = self.server.api.store();
        let (newest, forgotten) = (store.version(), store.forgotten(self.view.resource));
        if self.seen > newest {
            return Err(StatusError::version_too_large(self.seen, newest));
        }
        if self.seen < forgotten && self.server.faults.gone_as_status() {
            return Err(StatusError::expired(self.seen, forgotten));
        }
        Ok(())
    }

    /// The lines, as they come.
    pub(super) fn lines(self) -> BoxStream<'static, io::Result<Bytes>> {
        let lines = stream::unfold(Some(self), |watch| async move {
            let mut watch = watch?;
            match watch.next().await {
                Next::Line(line) => Some((Ok(line), Some(watch))),
                Next::LastLine(line) => Some((Ok(line), None)),
                Next::End => None,
                Next::Cut => {
                    let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the watch was cut");
                    Some((Err(broken), None))
                }
            }
        });
        lines.boxed()
    }

    async fn next(&mut self) -> Next {
        loop {
            if let Some(end) = self.ended() {
                return end;
            }
            if let Some(line) = self.initial_line() {
                return Next::Line(line);
            }
            while let Some(change) = self.changes.next() {
                if let Some(line) = self.line(&change) {
                    return Next::Line(line);
                }
            }
            self.news.mark_seen();
            let found = self.server.api.store().news(self.view.resource, self.seen);
            match found {
                News::TooLate(oldest) => {
                    return Next::LastLine(error_line(&StatusError::expired(self.seen, oldest)));
                }
                News::Changes(changes, seen) => {
                    self.seen = seen;
                    if changes.is_empty() {
                        if let Some(line) = self.bookmark() {
                            return Next::Line(line);
                        }
                        self.wait().await;
                    } else {
                        self.changes = changes.into_iter();
                    }
                }
            }
        }
    }

    /// Whether it ends here, for other reasons than what it tells.
    fn ended(&mut self) -> Option<Next> {
        if self.stops.has_changed() || self.cuts.has_changed() {
            return Some(Next::Cut);
        }
        let now = self.server.api.time.uptime();
        if self.times.ends_at.is_some_and(|end| now >= end) {
            return Some(Next::End);
        }
        if now >= self.times.chance_at {
            self.times.chance_at = now + CHANCE_INTERVAL;
            return self.server.faults.cuts_watch_now().then_some(Next::Cut);
        }
        None
    }

    fn initial_line(&mut self) -> Option<Bytes> {
        if let Some(object) = self.initial.next() {
            let first = !std::mem::replace(&mut self.told_first, true);
            return Some(self.view.line(EventType::Added, &object, first));
        }
        std::mem::take(&mut self.tells_end_of_initial).then(|| self.view.bookmark(self.seen, true))
    }

    fn bookmark(&mut self) -> Option<Bytes> {
        let now = self.server.api.time.uptime();
        let at = self.times.bookmark_at.as_mut().filter(|at| now >= **at)?;
        *at = now + self.server.bookmark_interval();
        Some(self.view.bookmark(self.seen, false))
    }

    /// Waits until there may be something to tell, or a reason to end.
    async fn wait(&mut self) {
        let Times { ends_at, bookmark_at, chance_at } = self.times;
        self.replans.mark_seen();
        let chance_at = self.server.faults.cuts_by_chance().then_some(chance_at);
        let next = [ends_at, bookmark_at, chance_at].into_iter().flatten().min().unwrap_or(Duration::MAX);
        // That somebody has ended them is seen in `ended`: they stay changed.
        let (mut stops, mut cuts) = (self.stops.clone(), self.cuts.clone());
        let time = &self.server.api.time;
        tokio::select! {
            biased;
            () = stops.changed() => {}
            () = cuts.changed() => {}
            () = self.news.changed() => {}
            () = self.replans.changed() => {}
            () = time.sleep_until(next) => {}
        }
    }

    /// How the change looks to this watch, which may not have selected the object before, or no longer.
    fn line(&self, change: &StoreEvent) -> Option<Bytes> {
        let selects = |object: &StoredObject| {
            (self.namespace.is_empty() || object::namespace(&object.value) == self.namespace)
                && events::selects(self.view.resource, &self.selector, &object.value)
        };
        let before = change.previous.as_deref().filter(|previous| selects(previous));
        let now = change.kind != EventType::Deleted && selects(&change.object);
        match (before, now) {
            (Some(_), true) => Some(self.view.change_line(change)),
            (Some(_), false) if change.kind == EventType::Deleted => Some(self.view.change_line(change)),
            (Some(previous), false) => Some(self.view.left_line(previous, change.object.version)),
            (None, true) if change.kind == EventType::Added => Some(self.view.change_line(change)),
            (None, true) => Some(self.view.line(EventType::Added, &change.object, false)),
            (None, false) => None,
        }
    }
}
