//! A pod template, and what controllers add to it.

use serde_json::{Value as Json, json};
use supercargo_model::Name;

/// Letters and digits that cannot be mistaken for each other and make no words.
const HASH_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// What daemons tolerate whatever their template says: conditions of nodes that keep other pods away.
const DAEMONS_TOLERATE: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The same for daemons in the host's network.
const HOST_NETWORK_TOLERATES: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Who manages the pods.
#[derive(Clone)]
pub(super) struct Owner(Json);

impl Owner {
    pub(super) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        let api_version = match kind {
            "Job" => "batch/v1",
            "ReplicationController" => "v1",
            _ => "apps/v1",
        };
        let uid = format!("{kind}/{namespace}/{name}").to_lowercase();
        Self(json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}))
    }
}

/// A pod without a name.
#[derive(Clone)]
pub(super) struct PodTemplate(Json);

impl PodTemplate {
    pub(super) fn new(template: &Json, namespace: &str, owner: Owner) -> Self {
        let metadata = &template["metadata"];
        Self(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": namespace, "ownerReferences": [owner.0],
                "labels": object(&metadata["labels"]), "annotations": object(&metadata["annotations"]),
            },
            "spec": object(&template["spec"]),
            "status": {"phase": "Pending"},
        }))
    }

    pub(super) fn labelled(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["labels"][key] = value.into();
        self
    }

    /// With what daemons tolerate besides.
    pub(super) fn tolerating_as_daemon(mut self) -> Self {
        let host_network = self.0["spec"]["hostNetwork"] == true;
        let more = DAEMONS_TOLERATE.into_iter().chain(Some(HOST_NETWORK_TOLERATES).filter(|_| host_network));
        let more = more.map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}));
        let mut tolerations = self.0["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        tolerations.extend(more);
        self.0["spec"]["tolerations"] = tolerations.into();
        self
    }

    /// What it requires of nodes is that it is this one.
    pub(super) fn only_on(mut self, node: &Name) -> Self {
        let affinity = &mut self.0["spec"]["affinity"];
        *affinity = object(affinity);
        affinity["nodeAffinity"] = object(&affinity["nodeAffinity"]);
        affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [&**node]}]}
            ],
        });
        self
    }

    /// Whether every pod gets claims of its own.
    pub(super) fn has_own_claims(&self) -> bool {
        let volumes = self.0["spec"]["volumes"].as_array();
        volumes.is_some_and(|volumes| volumes.iter().any(|volume| !volume["ephemeral"].is_null()))
    }

    pub(super) fn pod(&self, name: &str) -> Json {
        let mut pod = self.0.clone();
        pod["metadata"]["name"] = name.into();
        pod
    }
}

/// A pod of a stateful set, with a volume for each of the set's claims.
pub(super) fn with_claims(mut pod: Json, claims: &[Json], pod_name: &str) -> Json {
    let names: Vec<&str> = claims.iter().filter_map(|claim| claim["metadata"]["name"].as_str()).collect();
    if names.is_empty() {
        return pod;
    }
    let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    volumes.retain(|volume| !names.iter().any(|name| volume["name"] == **name));
    volumes.extend(names.iter().map(
        |name| json!({"name": name, "persistentVolumeClaim": {"claimName": format!("{name}-{pod_name}")}}),
    ));
    pod["spec"]["volumes"] = volumes.into();
    pod
}

/// A short text that differs for templates that differ.
pub(super) fn hash(template: &Json) -> String {
    // FNV-1a: any hash will do, as long as it is the same tomorrow.
    let mut hash = template.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::new();
    for _ in 0..9 {
        text.push(char::from(HASH_LETTERS[(hash % HASH_LETTERS.len() as u64) as usize]));
        hash /= HASH_LETTERS.len() as u64;
    }
    text
}

fn object(value: &Json) -> Json {
    if value.is_object() { value.clone() } else { json!({}) }
}
