//! Lists: selected, in pages, with the version to watch from.

use std::sync::Arc;

use super::Api;
use crate::events;
use crate::failure::StatusError;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::store::StoredObject;

/// How a list is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) selector: Selector,
    /// At most so many; 0 is all.
    pub(crate) limit: usize,
    /// Where the page before ended.
    pub(crate) continues: String,
    /// The version that the list must not be older than, or must be.
    pub(crate) version: Option<u64>,
    pub(crate) exactly: bool,
}

/// A list, or a page of one.
pub(crate) struct Listing {
    pub(crate) objects: Vec<Arc<StoredObject>>,
    pub(crate) version: u64,
    /// Where the next page begins; empty when there is none.
    pub(crate) continues: String,
}

impl Api {
    pub(crate) fn list(
        &self,
        resource: &'static Resource,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Listing, StatusError> {
        let store = self.store();
        let newest = store.version();
        if let Some(asked) = options.version.filter(|_| options.continues.is_empty()) {
            if asked > newest {
                return Err(StatusError::version_too_large(asked, newest));
            }
            if options.exactly && asked != newest {
                return Err(StatusError::expired(asked, newest));
            }
        }
        let (version, after) = match options.continues.as_str() {
            "" => (newest, None),
            token => {
                let (version, key) = read_token(token)?;
                if version < store.forgotten(resource) {
                    return Err(StatusError::continue_expired());
                }
                (version, Some(key))
            }
        };
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let namespace = if resource.namespaced { namespace } else { "" };
        let mut objects = Vec::new();
        let mut continues = String::new();
        let mut last_key: Option<&String> = None;
        for (key, object) in store.objects(resource, namespace, after) {
            if !events::selects(resource, &options.selector, &object.value) {
                continue;
            }
            if objects.len() == limit {
                // The version of the first page: a watch from it tells what has changed between pages.
                continues = last_key.map(|last| format!("{version}:{last}")).unwrap_or_default();
                break;
            }
            objects.push(object.clone());
            last_key = Some(key);
        }
        Ok(Listing { objects, version, continues })
    }
}

fn read_token(token: &str) -> Result<(u64, &str), StatusError> {
    let parts = token.split_once(':');
    parts
        .and_then(|(version, key)| Some((version.parse().ok()?, key)))
        .ok_or_else(|| StatusError::bad_request("continue key is not valid"))
}
