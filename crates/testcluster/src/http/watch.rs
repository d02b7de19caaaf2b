//! Watches: a stream of lines, one for each change that the caller has selected.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep};

use super::Server;
use super::body::Answer;
use super::query::Query;
use super::view::{View, error_line};
use crate::api::ListOptions;
use crate::events;
use crate::failure::{Cause, Failure};
use crate::object;
use crate::selector::Selector;
use crate::store::{Change, ChangeKind, News, Object};

/// How many lines wait for a slow reader; more of the past is read from the history when it is ready.
const LINES_IN_FLIGHT: usize = 64;
/// How often chance may cut a watch.
const CHANCE_INTERVAL: Duration = Duration::from_secs(1);

/// A watch as it was asked for.
pub(super) struct Watch {
    view: View,
    namespace: String,
    selector: Selector,
    bookmarks: bool,
    timeout: Option<Duration>,
    /// Objects that are told as added before anything else.
    initial: Vec<Arc<Object>>,
    tells_end_of_initial: bool,
    seen: u64,
}

/// Why a watch ends.
enum End {
    /// The reader is gone, or its time is over.
    Quiet,
    /// The connection breaks.
    Cut,
}

impl Watch {
    pub(super) fn new(server: &Server, view: View, namespace: &str, query: &Query) -> Result<Self, Failure> {
        let resource = view.resource;
        let asked = query.version()?;
        let streams_list = query.is_true("sendInitialEvents");
        if streams_list && query.text("resourceVersionMatch") != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(Failure::invalid(resource, "", Cause::forbidden("resourceVersionMatch", why)));
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let mut watch = Self {
            view,
            namespace: namespace.to_owned(),
            selector: query.selector(resource)?,
            bookmarks: query.is_true("allowWatchBookmarks"),
            timeout: query.timeout()?,
            initial: Vec::new(),
            tells_end_of_initial: streams_list,
            seen: asked.unwrap_or(0),
        };
        if streams_list || watch.seen == 0 {
            let options =
                ListOptions { selector: watch.selector.clone(), version: asked, ..ListOptions::default() };
            let listing = server.api.list(resource, namespace, &options)?;
            watch.seen = listing.version;
            watch.initial = listing.objects;
            return Ok(watch);
        }
        let store = server.api.store();
        let (newest, forgotten) = (store.version(), store.forgotten(resource));
        if watch.seen > newest {
            return Err(Failure::version_too_large(watch.seen, newest));
        }
        if watch.seen < forgotten && server.faults.gone_as_status() {
            return Err(Failure::expired(watch.seen, forgotten));
        }
        Ok(watch)
    }

    /// Starts the watch; it ends by itself when nobody reads it any more.
    pub(super) fn start(self, server: Arc<Server>) -> Answer {
        let (lines, reader) = mpsc::channel(LINES_IN_FLIGHT);
        tokio::spawn(async move {
            if let End::Cut = self.run(&server, &lines).await {
                let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the watch was cut");
                // Nobody reads: it is cut all the same.
                let _ = lines.send(Err(broken)).await;
            }
        });
        Answer::Stream(reader)
    }

    async fn run(mut self, server: &Server, lines: &mpsc::Sender<io::Result<Bytes>>) -> End {
        let mut cuts = server.faults.watch_cuts();
        let mut stops = server.stops();
        let timeout = self.timeout;
        let time_is_over = async {
            match timeout {
                Some(timeout) => sleep(timeout).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.tell(server, lines) => End::Quiet,
            () = time_is_over => End::Quiet,
            () = lines.closed() => End::Quiet,
            _ = stops.changed() => End::Cut,
            _ = cuts.changed() => End::Cut,
            () = cut_by_chance(server) => End::Cut,
        }
    }

    async fn tell(&mut self, server: &Server, lines: &mpsc::Sender<io::Result<Bytes>>) {
        let resource = self.view.resource;
        let mut news = server.api.store().subscribe(resource);
        for (place, object) in std::mem::take(&mut self.initial).into_iter().enumerate() {
            let line = self.view.line(ChangeKind::Added, &object, place == 0);
            if lines.send(Ok(line)).await.is_err() {
                return;
            }
        }
        if self.tells_end_of_initial
            && self.bookmarks
            && lines.send(Ok(self.view.bookmark(self.seen, true))).await.is_err()
        {
            return;
        }
        let every = server.bookmark_interval.max(Duration::from_millis(1));
        let mut bookmark = interval_at(Instant::now() + every, every);
        loop {
            news.mark_unchanged();
            let found = server.api.store().news(resource, self.seen);
            let (changes, seen) = match found {
                News::Changes(changes, seen) => (changes, seen),
                News::TooLate(oldest) => {
                    // It ends here, whether anybody hears it or not.
                    let _ = lines.send(Ok(error_line(&Failure::expired(self.seen, oldest)))).await;
                    return;
                }
            };
            self.seen = seen;
            let nothing_new = changes.is_empty();
            for line in changes.iter().filter_map(|change| self.line(change)) {
                if lines.send(Ok(line)).await.is_err() {
                    return;
                }
            }
            if !nothing_new {
                continue;
            }
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                _ = bookmark.tick(), if self.bookmarks => {
                    if lines.send(Ok(self.view.bookmark(self.seen, false))).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// How the change looks to this watch, which may not have selected the object before, or no longer.
    fn line(&self, change: &Change) -> Option<Bytes> {
        let selects = |object: &Object| {
            (self.namespace.is_empty() || object::namespace(&object.value) == self.namespace)
                && events::selects(self.view.resource, &self.selector, &object.value)
        };
        let before = change.previous.as_deref().filter(|previous| selects(previous));
        let now = change.kind != ChangeKind::Deleted && selects(&change.object);
        match (before, now) {
            (Some(_), true) => Some(self.view.change_line(change)),
            (Some(_), false) if change.kind == ChangeKind::Deleted => Some(self.view.change_line(change)),
            (Some(previous), false) => Some(self.view.left_line(previous, change.object.version)),
            (None, true) if change.kind == ChangeKind::Added => Some(self.view.change_line(change)),
            (None, true) => Some(self.view.line(ChangeKind::Added, &change.object, false)),
            (None, false) => None,
        }
    }
}

async fn cut_by_chance(server: &Server) {
    loop {
        sleep(CHANCE_INTERVAL).await;
        if server.faults.cuts_watch_now() {
            return;
        }
    }
}
