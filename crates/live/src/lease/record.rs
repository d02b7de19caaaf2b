//! What a Lease says about its holder, and how it is written.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::SeenVersions;

/// Where whoever gives a lease back writes what it had seen by then.
const SEEN: &str = "supercargo.dev/seen-versions";

/// Who holds a lease, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeaderElectionRecord {
    /// Empty for nobody.
    pub(super) holder: String,
    pub(super) lease_seconds: u64,
    /// By the holder's wall clock: written, compared for equality, never computed with.
    pub(super) acquired: String,
    pub(super) renewed: String,
    /// How often the lease has changed hands.
    pub(super) transitions: u64,
}

impl LeaderElectionRecord {
    /// The record of a Lease; what is absent is empty.
    pub(super) fn of(object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        Self {
            holder: text("holderIdentity"),
            lease_seconds: spec["leaseDurationSeconds"].as_u64().unwrap_or(0),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
            transitions: spec["leaseTransitions"].as_u64().unwrap_or(0),
        }
    }

    fn spec(&self) -> Value {
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.lease_seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        })
    }
}

/// A Lease that is not there yet.
pub(super) fn new_object(namespace: &str, name: &str, record: &LeaderElectionRecord) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": record.spec(),
    })
}

/// A Lease with another record; its metadata stays, and with it the version that the server compares. What a holder before
/// had seen is no longer told.
pub(super) fn with_record(mut object: Value, record: &LeaderElectionRecord) -> Value {
    object["spec"] = record.spec();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(SEEN);
    }
    object
}

/// A Lease that tells what its last holder had seen.
pub(super) fn with_seen(mut object: Value, seen: &SeenVersions) -> Value {
    let versions: Map<String, Value> =
        seen.iter().map(|(resource, version)| (resource.clone(), version.to_string().into())).collect();
    object["metadata"]["annotations"][SEEN] = Value::Object(versions).to_string().into();
    object
}

/// What the last holder of a Lease had seen, as far as it says so.
pub(super) fn seen(object: &Value) -> SeenVersions {
    let told = object["metadata"]["annotations"][SEEN].as_str().unwrap_or_default();
    let versions: BTreeMap<String, String> = serde_json::from_str(told).unwrap_or_default();
    versions.into_iter().filter_map(|(resource, version)| Some((resource, version.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_told_until_somebody_leads() {
        let versions = SeenVersions::from([("pods".to_owned(), 17), ("nodes".to_owned(), 4)]);
        let lease = json!({"metadata": {"name": "x", "annotations": {"other": "kept"}}});
        let released = with_seen(lease, &versions);
        assert_eq!(seen(&released), versions);
        let taken = with_record(released, &LeaderElectionRecord::default());
        assert_eq!(seen(&taken), SeenVersions::new());
        assert_eq!(taken["metadata"]["annotations"]["other"], "kept");
        assert_eq!(
            with_seen(json!({}), &versions)["metadata"]["annotations"].as_object().map(Map::len),
            Some(1)
        );
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        for told in ["", "pods", "[]", r#"{"pods": 7}"#, r#"{"pods": "many"}"#] {
            let lease = json!({"metadata": {"annotations": {SEEN: told}}});
            assert_eq!(seen(&lease), SeenVersions::new(), "{told}");
        }
        assert_eq!(seen(&json!({"metadata": {"annotations": 7}})), SeenVersions::new());
    }
}
