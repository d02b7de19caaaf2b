//! The requests that list and watch a resource.

use std::time::Duration;

use super::Resource;
use crate::world::Request;

/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;

/// The list and the watch in one: every object first, then a bookmark that says so, then every change.
pub(super) fn streaming_list(resource: &Resource, lifetime: Duration) -> Request {
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    Request::get(with_selector(
        resource,
        format!("{}?{query}&timeoutSeconds={}", resource.path, lifetime.as_secs()),
    ))
}

/// Every change after a version.
pub(super) fn watch(resource: &Resource, version: &str, lifetime: Duration) -> Request {
    let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    Request::get(with_selector(
        resource,
        format!("{}?{query}&timeoutSeconds={}", resource.path, lifetime.as_secs()),
    ))
}

/// A page of the list, the first one without a mark to continue from.
pub(super) fn page(resource: &Resource, continue_from: Option<&str>, paged: bool) -> Request {
    let mut path = resource.path.clone();
    let mut separator = '?';
    if paged {
        path.push_str(&format!("?limit={PAGE_OBJECTS}"));
        separator = '&';
    }
    if let Some(mark) = continue_from {
        path.push_str(&format!("{separator}continue={}", escaped(mark)));
        separator = '&';
    }
    if !resource.field_selector.is_empty() {
        path.push_str(&format!("{separator}fieldSelector={}", resource.field_selector));
    }
    Request::get(path)
}

/// The smallest request that tells the server's present version.
pub(super) fn present_version(resource: &Resource) -> Request {
    Request::get(with_selector(resource, format!("{}?limit=1", resource.path)))
}

fn with_selector(resource: &Resource, mut path: String) -> String {
    if !resource.field_selector.is_empty() {
        path.push_str("&fieldSelector=");
        path.push_str(&resource.field_selector);
    }
    path
}

/// A text as part of a query.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte as char),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use supercargo_model::{Key, Kind};

    use super::*;

    #[test]
    fn pods_that_have_ended_are_never_asked_for() {
        let pods = &Resource::of(Kind::Pod).unwrap();
        let selector = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
        assert_eq!(
            watch(pods, "7", Duration::from_secs(300)).path,
            format!(
                "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300&{selector}"
            )
        );
        assert_eq!(page(pods, None, true).path, format!("/api/v1/pods?limit=500&{selector}"));
        assert_eq!(
            page(pods, Some("a/b=="), true).path,
            format!("/api/v1/pods?limit=500&continue=a%2Fb%3D%3D&{selector}")
        );
        assert_eq!(page(pods, None, false).path, format!("/api/v1/pods?{selector}"));
    }

    #[test]
    fn no_other_config_map_is_ever_asked_for() {
        let map = Resource::config_map(&Key::new("kube-system", "scores"));
        let path = "/api/v1/namespaces/kube-system/configmaps";
        let requests = [
            streaming_list(&map, Duration::from_secs(300)),
            watch(&map, "7", Duration::from_secs(300)),
            page(&map, None, true),
            page(&map, None, false),
            present_version(&map),
        ];
        for Request { path: asked, .. } in requests {
            assert!(
                asked.starts_with(path) && asked.ends_with("fieldSelector=metadata.name%3Dscores"),
                "{asked}"
            );
        }
    }
}
