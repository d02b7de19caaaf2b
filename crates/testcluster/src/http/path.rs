//! What a path asks for.

use percent_encoding::percent_decode_str;

use crate::resource::{Resource, Served};

/// A path of the API.
#[derive(Debug)]
pub(super) enum Target {
    Resource(ResourcePath),
    /// Something else, such as `/version`: for discovery.
    Other,
}

/// A resource, one of its objects, or a subresource of that.
#[derive(Debug)]
pub(super) struct ResourcePath {
    pub(super) resource: &'static Resource,
    pub(super) namespace: String,
    /// Empty is the collection.
    pub(super) name: String,
    pub(super) subresource: String,
}

/// Reads a path; `None` is a resource that does not exist.
pub(super) fn read(path: &str, served: &Served) -> Option<Target> {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned());
    let parts: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(decoded).collect::<Option<_>>()?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Some(Target::Other),
    };
    let found = |plural: &str| served.find(group, version, plural);
    let (namespace, plural, rest) = match rest {
        // A namespace is an object as well as a place.
        ["namespaces", namespace, plural, rest @ ..] if found(plural).is_some() => {
            (*namespace, *plural, rest)
        }
        [plural, rest @ ..] => ("", *plural, rest),
        [] => return None,
    };
    let resource = found(plural)?;
    let (name, subresource) = match rest {
        [] => ("", ""),
        [name] => (*name, ""),
        [name, subresource] if resource.has(subresource) => (*name, *subresource),
        _ => return None,
    };
    if resource.namespaced == namespace.is_empty() && !name.is_empty() {
        return None;
    }
    let own = str::to_owned;
    Some(Target::Resource(ResourcePath {
        resource,
        namespace: own(namespace),
        name: own(name),
        subresource: own(subresource),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_resources() {
        for (path, expected) in [
            ("/api/v1/pods", Some("pods '' '' ''")),
            ("/api/v1/namespaces", Some("namespaces '' '' ''")),
            ("/api/v1/namespaces/a", Some("namespaces '' 'a' ''")),
            ("/api/v1/namespaces/a/status", Some("namespaces '' 'a' 'status'")),
            ("/api/v1/namespaces/a/pods", Some("pods 'a' '' ''")),
            ("/api/v1/namespaces/a/pods/x%2ey/binding", Some("pods 'a' 'x.y' 'binding'")),
            ("/apis/apps/v1/namespaces/a/deployments/d/scale", Some("deployments 'a' 'd' 'scale'")),
            ("/api/v1/nodes/n/binding", None),
            ("/api/v1/boats", None),
            ("/api/v1/pods/x", None),
            ("/apis/apps/v2/deployments", None),
            ("/version", Some("other")),
            ("/apis/apps/v1", Some("other")),
            ("/", Some("other")),
        ] {
            let found = read(path, &Served::default()).map(|target| match target {
                Target::Other => "other".to_owned(),
                Target::Resource(found) => {
                    let plural = found.resource.plural;
                    format!("{plural} '{}' '{}' '{}'", found.namespace, found.name, found.subresource)
                }
            });
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }
}
