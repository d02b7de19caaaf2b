//! What stands behind the question mark.

use std::collections::HashMap;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::api::{Caller, ListOptions};
use crate::failure::StatusError;
use crate::resource::Resource;
use crate::selector::Selector;

pub(super) struct Query(HashMap<String, String>);

impl Query {
    pub(super) fn read(text: Option<&str>) -> Self {
        let decoded = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(pairs.map(|(key, value)| (decoded(key), decoded(value))).collect())
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        matches!(self.text(key), "true" | "1")
    }

    fn number(&self, key: &str) -> Result<Option<u64>, StatusError> {
        match self.text(key) {
            "" => Ok(None),
            given => {
                let wrong =
                    || StatusError::bad_request(format!("{key}: Invalid value: {given:?}: must be a number"));
                given.parse().map(Some).map_err(|_| wrong())
            }
        }
    }

    pub(super) fn version(&self) -> Result<Option<u64>, StatusError> {
        self.number("resourceVersion")
    }

    pub(super) fn timeout(&self) -> Result<Option<Duration>, StatusError> {
        Ok(self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    pub(super) fn grace_period_seconds(&self) -> Option<i64> {
        self.text("gracePeriodSeconds").parse().ok()
    }

    pub(super) fn selector(&self, resource: &Resource) -> Result<Selector, StatusError> {
        Selector::parse(resource, self.text("labelSelector"), self.text("fieldSelector"))
    }

    pub(super) fn list_options(&self, resource: &Resource) -> Result<ListOptions, StatusError> {
        let limit = self.number("limit")?.unwrap_or(0);
        Ok(ListOptions {
            selector: self.selector(resource)?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            continues: self.text("continue").to_owned(),
            version: self.version()?,
            exactly: self.text("resourceVersionMatch") == "Exact",
        })
    }

    pub(super) fn caller(&self, who: String) -> Caller {
        Caller {
            who,
            trusted: false,
            dry_run: self.text("dryRun") == "All",
            field_manager: self.text("fieldManager").to_owned(),
            denied_claim_bindings: false,
            strict: self.text("fieldValidation") == "Strict",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = Query::read(Some("labelSelector=a%3Db%2Cc+in+(d)&watch=true&limit=x&"));
        assert_eq!(query.text("labelSelector"), "a=b,c in (d)");
        assert!(query.is_true("watch") && !query.is_true("allowWatchBookmarks"));
        assert_eq!(query.number("limit").expect_err("not a number").code(), 400);
        assert_eq!(Query::read(None).text("x"), "");
    }
}
