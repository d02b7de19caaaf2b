//! What a Lease says about its holder, and how it is written.

use serde_json::{Value, json};

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

/// A Lease with another record; its metadata stays, and with it the version that the server compares.
pub(super) fn with_record(mut object: Value, record: &LeaderElectionRecord) -> Value {
    object["spec"] = record.spec();
    object
}
