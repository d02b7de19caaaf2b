//! How a controller follows the objects of a resource.

use std::sync::Arc;

use tokio::sync::watch::Receiver;

use crate::api::Api;
use crate::resource::Resource;
use crate::store::{EventType, News, Object};

/// Tells a controller what has changed since it last asked.
pub(super) struct Follower {
    resource: &'static Resource,
    news: Receiver<u64>,
    seen: u64,
}

impl Follower {
    /// The first answer is everything there is.
    pub(super) fn new(api: &Api, resource: &'static Resource) -> Self {
        let mut news = api.store().subscribe(resource);
        news.mark_changed();
        Self { resource, news, seen: 0 }
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            // The store is gone, and this task will go with it.
            std::future::pending::<()>().await;
        }
    }

    /// The objects that are new or changed. After a long pause that is everything there is.
    pub(super) fn read(&mut self, api: &Api) -> Vec<Arc<Object>> {
        let store = api.store();
        let mut found = Vec::new();
        loop {
            let news = if self.seen == 0 { News::TooLate(0) } else { store.news(self.resource, self.seen) };
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
