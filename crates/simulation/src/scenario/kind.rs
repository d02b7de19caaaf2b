//! Where the objects of each kind are on an API server.

use supercargo_model::{ApiResource, Kind};

const fn devices(plural: &'static str, kind: &'static str, namespaced: bool) -> ApiResource {
    ApiResource { group: "resource.k8s.io", version: "v1", plural, kind, namespaced }
}

/// Kinds that scenarios have and schedulers do not read, or not yet.
const OTHERS: [ApiResource; 6] = [
    ApiResource {
        group: "scheduling.k8s.io",
        version: "v1",
        plural: "priorityclasses",
        kind: "PriorityClass",
        namespaced: false,
    },
    ApiResource { group: "events.k8s.io", version: "v1", plural: "events", kind: "Event", namespaced: true },
    devices("resourceclaims", "ResourceClaim", true),
    devices("resourceclaimtemplates", "ResourceClaimTemplate", true),
    devices("deviceclasses", "DeviceClass", false),
    devices("resourceslices", "ResourceSlice", false),
];

/// The resource of the objects of this kind.
pub(super) fn resource_of(kind: &str) -> Option<&'static ApiResource> {
    Kind::named(kind).map(Kind::api).or_else(|| OTHERS.iter().find(|other| other.kind == kind))
}

/// One object, or a subresource of it.
pub(super) fn path_of(
    resource: &ApiResource,
    namespace: &str,
    name: &str,
    subresource: Option<&str>,
) -> String {
    let object = format!("{}/{name}", resource.path(namespace));
    subresource.map_or(object.clone(), |subresource| format!("{object}/{subresource}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place() {
        let path = |kind, namespace, name| resource_of(kind).map(|api| path_of(api, namespace, name, None));
        assert_eq!(path("Pod", "a", "p").as_deref(), Some("/api/v1/namespaces/a/pods/p"));
        assert_eq!(path("Node", "a", "n").as_deref(), Some("/api/v1/nodes/n"));
        assert_eq!(
            path("ResourceClaim", "a", "c").as_deref(),
            Some("/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c")
        );
        assert_eq!(resource_of("ReplicaSet").map(ApiResource::api_version).as_deref(), Some("apps/v1"));
        assert!(resource_of("Boat").is_none());
    }
}
