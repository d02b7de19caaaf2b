//! How objects look on the wire: as JSON with `apiVersion` and `kind`, or as rows of a table.

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::table;
use crate::api::Listing;
use crate::events;
use crate::failure::StatusError;
use crate::resource::{NEW_EVENTS, Resource};
use crate::store::{EventType, StoreEvent, StoredObject};

/// What the caller wants to see.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) resource: &'static Resource,
    as_table: bool,
    /// Rows of a table carry whole objects, not only their metadata.
    whole_objects: bool,
}

impl View {
    pub(super) fn new(resource: &'static Resource, accept: &str, whole_objects: bool) -> Self {
        // Clients name what they want in order, so that the first they can have counts.
        let wanted =
            accept.split(',').map(str::trim).find(|one| one.starts_with("application/json") || *one == "*/*");
        let as_table = wanted.is_some_and(|one| one.contains("as=Table"));
        Self { resource, as_table, whole_objects }
    }

    fn is_stored_form(self) -> bool {
        !self.as_table && !self.resource.is(&NEW_EVENTS)
    }

    /// The object without `apiVersion` and `kind`.
    fn item(self, object: &StoredObject) -> Bytes {
        if self.resource.is(&NEW_EVENTS) {
            events::shown(self.resource, &object.value).to_string().into()
        } else {
            object.json().clone()
        }
    }

    pub(super) fn object(self, object: &StoredObject) -> Bytes {
        if self.as_table {
            return self.table(std::iter::once(object), object.version, "", true).to_string().into();
        }
        let mut text = self.head();
        // The item's own opening brace is replaced by the head.
        text.extend_from_slice(&self.item(object)[1..]);
        text.into()
    }

    fn table<'a>(
        self,
        objects: impl Iterator<Item = &'a StoredObject>,
        version: u64,
        continues: &str,
        with_columns: bool,
    ) -> Value {
        let mut table = table::of(self.resource, objects, self.whole_objects, with_columns);
        table["metadata"] = json!({"resourceVersion": version.to_string()});
        if !continues.is_empty() {
            table["metadata"]["continue"] = continues.into();
        }
        table
    }

    fn head(self) -> Vec<u8> {
        let (api_version, kind) = (self.resource.api_version(), self.resource.kind);
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",").into_bytes()
    }

    pub(super) fn list(self, listing: &Listing) -> Bytes {
        let version = listing.version.to_string();
        if self.as_table {
            let rows = listing.objects.iter().map(Arc::as_ref);
            return self.table(rows, listing.version, &listing.continues, true).to_string().into();
        }
        let (api_version, kind) = (self.resource.api_version(), self.resource.kind);
        let continues = match listing.continues.as_str() {
            "" => String::new(),
            token => format!(",\"continue\":{}", json!(token)),
        };
        let mut head = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            head,
            "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{api_version}\",\
             \"metadata\":{{\"resourceVersion\":\"{version}\"{continues}}},\"items\":["
        );
        let mut text = head.into_bytes();
        for (place, object) in listing.objects.iter().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.item(object));
        }
        text.extend_from_slice(b"]}");
        text.into()
    }

    /// A line of a watch.
    pub(super) fn line(self, kind: EventType, object: &StoredObject, first: bool) -> Bytes {
        let mut text = format!("{{\"type\":\"{}\",\"object\":", kind.as_str()).into_bytes();
        if self.as_table {
            let table = self.table(std::iter::once(object), object.version, "", first);
            text.extend_from_slice(table.to_string().as_bytes());
        } else {
            text.extend_from_slice(&self.object(object));
        }
        text.extend_from_slice(b"}\n");
        text.into()
    }

    /// The line of a change that is seen as it happened: all watches share it.
    pub(super) fn change_line(self, change: &StoreEvent) -> Bytes {
        if self.is_stored_form() {
            change.line(|| self.line(change.kind, &change.object, false))
        } else {
            self.line(change.kind, &change.object, false)
        }
    }

    /// The line for an object that is no longer selected: as it was, with the version of the change.
    pub(super) fn left_line(self, previous: &StoredObject, version: u64) -> Bytes {
        self.line(EventType::Deleted, &previous.at_version(version), false)
    }

    pub(super) fn bookmark(self, version: u64, ends_initial_events: bool) -> Bytes {
        if !self.as_table && !ends_initial_events {
            // Most of what a quiet cluster tells.
            let (api_version, kind) = (self.resource.api_version(), self.resource.kind);
            let line = format!(
                "{{\"object\":{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",\"metadata\":\
                 {{\"creationTimestamp\":null,\"resourceVersion\":\"{version}\"}}}},\"type\":\"BOOKMARK\"}}\n"
            );
            return line.into();
        }
        let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = if self.as_table {
            json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": [],
                   "rows": [{"cells": [], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}]})
        } else {
            json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata})
        };
        line_of("BOOKMARK", object)
    }
}

pub(super) fn error_line(failure: &StatusError) -> Bytes {
    line_of("ERROR", failure.status())
}

fn line_of(kind: &str, object: Value) -> Bytes {
    format!("{}\n", json!({"type": kind, "object": object})).into()
}
