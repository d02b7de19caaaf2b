//! Events come in two shapes, core/v1 and events.k8s.io/v1: they are stored in the first and shown in either.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::object::{as_map, at};
use crate::resource::{NEW_EVENTS, Resource};
use crate::selector::Selector;

/// A field's name in events.k8s.io/v1, and its name in core/v1.
const RENAMED: [(&str, &str); 7] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
];

fn rename(map: &mut Map<String, Value>, names: impl Iterator<Item = (&'static str, &'static str)>) {
    for (from, to) in names {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}

/// Brings an object that came in by this resource into the shape in which it is stored.
pub(crate) fn store_form(resource: &Resource, value: &mut Value) {
    if resource.is(&NEW_EVENTS) {
        rename(as_map(value), RENAMED.into_iter());
    }
}

/// A stored object as this resource shows it.
pub(crate) fn shown<'a>(resource: &Resource, value: &'a Value) -> Cow<'a, Value> {
    if !resource.is(&NEW_EVENTS) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    rename(as_map(&mut value), RENAMED.into_iter().map(|(new, old)| (old, new)));
    Cow::Owned(value)
}

/// Whether a selector of this resource selects a stored object.
pub(crate) fn selects(resource: &Resource, selector: &Selector, value: &Value) -> bool {
    selector.is_everything() || selector.matches(&shown(resource, value))
}

/// When an event was last seen, whichever way it was written.
pub(crate) fn last_seen(event: &Value) -> &str {
    let paths: [&[&str]; 5] = [
        &["series", "lastObservedTime"],
        &["lastTimestamp"],
        &["eventTime"],
        &["firstTimestamp"],
        &["metadata", "creationTimestamp"],
    ];
    paths.iter().find_map(|path| at(event, path).and_then(Value::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_the_same_whichever_way_it_is_read() {
        let new = json!({"note": "n", "regarding": {"name": "p"}, "reportingController": "c", "deprecatedCount": 2, "type": "Normal"});
        let old = json!({"message": "n", "involvedObject": {"name": "p"}, "reportingComponent": "c", "count": 2, "type": "Normal"});
        let mut stored = new.clone();
        store_form(&NEW_EVENTS, &mut stored);
        assert_eq!(stored, old);
        assert_eq!(*shown(&NEW_EVENTS, &stored), new);
        assert_eq!(*shown(&crate::resource::EVENTS, &stored), old);
    }
}
