//! How many requests came, by verb, resource and user agent.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::api::locked;
use crate::faults::RequestKind;

/// Requests that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestGroup {
    /// Such as `list` or `create`.
    pub verb: String,
    /// Such as `pods` or `pods/binding`.
    pub resource: String,
    /// Who asked.
    pub user_agent: String,
}

/// Beyond so many groups, requests are counted under the user agent `other`.
const GROUPS_LIMIT: usize = 10_000;

#[derive(Default)]
pub(crate) struct Requests(Mutex<BTreeMap<RequestGroup, u64>>);

impl Requests {
    pub(crate) fn count(&self, request: &RequestKind<'_>) {
        let resource = match request.subresource {
            "" => request.resource.to_owned(),
            subresource => format!("{}/{subresource}", request.resource),
        };
        let mut group = RequestGroup {
            verb: request.verb.to_owned(),
            resource,
            user_agent: request.user_agent.to_owned(),
        };
        let mut counts = locked(&self.0);
        if counts.len() >= GROUPS_LIMIT && !counts.contains_key(&group) {
            group.user_agent = "other".to_owned();
        }
        *counts.entry(group).or_default() += 1;
    }

    pub(crate) fn all(&self) -> BTreeMap<RequestGroup, u64> {
        locked(&self.0).clone()
    }
}
