//! How a controller follows the objects of a resource.

use std::sync::Arc;

use crate::api::Api;
use crate::resource::Resource;
use crate::signal::SignalReceiver;
use crate::store::{EventType, News, StoreEvent, StoredObject};

/// Tells a controller what has changed since it last asked.
pub(super) struct ChangeFollower {
    resource: &'static Resource,
    news: SignalReceiver,
    seen: u64,
}

impl ChangeFollower {
    /// The first answer is everything there is.
    pub(super) fn new(api: &Api, resource: &'static Resource) -> Self {
        let mut news = api.store().subscribe(resource);
        news.mark_changed();
        Self { resource, news, seen: 0 }
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&mut self) {
        self.news.changed().await;
    }

    /// The objects that are new or changed. After a long pause that is everything there is.
    pub(super) fn read(&mut self, api: &Api) -> Vec<Arc<StoredObject>> {
        self.follow(api).present().cloned().collect()
    }

    /// What has happened.
    pub(super) fn follow(&mut self, api: &Api) -> Followed {
        let store = api.store();
        let mut found = Vec::new();
        loop {
            // A store that was set back knows nothing of what was seen.
            let starts_anew = self.seen == 0 || self.seen > store.version();
            let news = if starts_anew { News::TooLate(0) } else { store.news(self.resource, self.seen) };
            match news {
                News::TooLate(_) => {
                    self.seen = store.version();
                    let all = store.objects(self.resource, "", None).map(|(_, object)| object.clone());
                    return Followed::Everything(all.collect());
                }
                News::Changes(changes, seen) if changes.is_empty() => {
                    self.seen = seen;
                    return Followed::Changes(found);
                }
                News::Changes(changes, seen) => {
                    found.extend(changes);
                    self.seen = seen;
                }
            }
        }
    }
}

/// What has happened to the objects of a resource since a controller last asked.
pub(super) enum Followed {
    /// Nobody knows any more: this is all there is.
    Everything(Vec<Arc<StoredObject>>),
    Changes(Vec<Arc<StoreEvent>>),
}

impl Followed {
    /// The objects that are new or changed.
    pub(super) fn present(&self) -> impl Iterator<Item = &Arc<StoredObject>> {
        let (all, changes) = match self {
            Self::Everything(all) => (all.as_slice(), &[][..]),
            Self::Changes(changes) => (&[][..], changes.as_slice()),
        };
        let present = changes.iter().filter(|change| change.kind != EventType::Deleted);
        all.iter().chain(present.map(|change| &change.object))
    }

    /// Whether something has happened that a controller is concerned with; it is where nobody knows.
    pub(super) fn concerns(&self, is_concern: impl Fn(&StoreEvent) -> bool) -> bool {
        match self {
            Self::Everything(_) => true,
            Self::Changes(changes) => changes.iter().any(|change| is_concern(change)),
        }
    }
}
