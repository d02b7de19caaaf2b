//! How a controller follows the objects of a resource.

use std::sync::Arc;

use crate::api::Api;
use crate::resource::Resource;
use crate::signal::SignalReceiver;
use crate::store::{EventType, News, StoredObject};

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
        let store = api.store();
        let mut found = Vec::new();
        loop {
            // A store that was set back knows nothing of what was seen.
            let starts_anew = self.seen == 0 || self.seen > store.version();
            let news = if starts_anew { News::TooLate(0) } else { store.news(self.resource, self.seen) };
            match news {
                News::TooLate(_) => {
                    self.seen = store.version();
                    return store
                        .objects(self.resource, "", None)
                        .map(|(_, object)| object.clone())
                        .collect();
                }
                News::Changes(changes, seen) if changes.is_empty() => {
                    self.seen = seen;
                    return found;
                }
                News::Changes(changes, seen) => {
                    let present = changes.iter().filter(|change| change.kind != EventType::Deleted);
                    found.extend(present.map(|change| change.object.clone()));
                    self.seen = seen;
                }
            }
        }
    }
}
