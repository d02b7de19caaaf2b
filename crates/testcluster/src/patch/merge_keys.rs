//! Which lists are merged item by item, and by which key; all others are replaced as a whole.

use serde_json::Value;

/// How a list of an object is merged with one of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListMerge {
    /// Items are maps, told apart by this key.
    ByKey(&'static str),
    /// Items are plain values, each of which is there or not.
    Set,
    /// The patch's list replaces the object's.
    Replace,
}

/// How the list in a field is merged. Two lists of ports have the same name: their items tell which.
pub(super) fn list_merge(field: &str, items: &[Value]) -> ListMerge {
    let by = ListMerge::ByKey;
    match field {
        "conditions" | "addresses" => by("type"),
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "secrets" => by("name"),
        "volumeMounts" => by("mountPath"),
        "volumeDevices" => by("devicePath"),
        "hostAliases" | "podIPs" | "hostIPs" => by("ip"),
        "topologySpreadConstraints" => by("topologyKey"),
        "ownerReferences" | "reservedFor" => by("uid"),
        "ports" if items.iter().any(|item| item.get("containerPort").is_some()) => by("containerPort"),
        "ports" => by("port"),
        "finalizers" | "podCIDRs" => ListMerge::Set,
        _ => ListMerge::Replace,
    }
}
