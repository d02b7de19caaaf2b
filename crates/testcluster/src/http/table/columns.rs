//! The columns of each resource.

use serde_json::{Value, json};

use super::Column;
use crate::clock;
use crate::events::last_seen;
use crate::object::{at, is_terminating, items, name, text};
use crate::resource::Resource;

fn shown(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, wide: false, cell }
}

fn wide(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, wide: true, cell }
}

pub(super) fn of(resource: &Resource) -> Vec<Column> {
    let named = || shown("Name", |object| name(object).into());
    let aged = || shown("Age", |object| age(text(object, &["metadata", "creationTimestamp"])));
    let mut columns = vec![named()];
    match resource.kind {
        "Pod" => columns.extend(pod_columns(aged())),
        "Node" => columns.extend(node_columns(aged())),
        "Service" => columns.extend(service_columns(aged())),
        "Event" => return event_columns(),
        "Namespace" => {
            columns.extend([shown("Status", |object| or_none(text(object, &["status", "phase"]))), aged()])
        }
        "Lease" => {
            columns.extend([shown("Holder", |lease| text(lease, &["spec", "holderIdentity"]).into()), aged()])
        }
        "PodDisruptionBudget" => columns.extend(budget_columns(aged())),
        "PersistentVolume" => columns.extend(volume_columns(aged())),
        "PersistentVolumeClaim" => columns.extend(claim_columns(aged())),
        "Deployment" => columns.extend(deployment_columns(aged())),
        "ReplicaSet" | "ReplicationController" => columns.extend(replica_columns(aged())),
        "PriorityClass" => columns.extend([
            shown("Value", |class| class.get("value").cloned().unwrap_or_default()),
            shown("Global-Default", |class| json!(class.get("globalDefault") == Some(&Value::Bool(true)))),
            aged(),
        ]),
        "StorageClass" => columns.extend([
            shown("Provisioner", |class| text(class, &["provisioner"]).into()),
            shown("ReclaimPolicy", |class| text(class, &["reclaimPolicy"]).into()),
            shown("VolumeBindingMode", |class| text(class, &["volumeBindingMode"]).into()),
            aged(),
        ]),
        "ConfigMap" | "Secret" => columns.extend([
            shown("Data", |object| {
                at(object, &["data"]).and_then(Value::as_object).map_or(0, |data| data.len()).into()
            }),
            aged(),
        ]),
        _ => columns.push(aged()),
    }
    columns
}

fn or_none(value: &str) -> Value {
    if value.is_empty() { "<none>".into() } else { value.into() }
}

/// How long ago something was, as briefly as kubectl says it.
fn age(since: &str) -> Value {
    let Some(seconds) = clock::seconds_since(since) else { return "<unknown>".into() };
    brief(seconds).into()
}

fn brief(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match seconds.max(0) {
        seconds if seconds < 2 * MINUTE => format!("{seconds}s"),
        seconds if seconds < 10 * MINUTE && seconds % MINUTE != 0 => {
            format!("{}m{}s", seconds / MINUTE, seconds % MINUTE)
        }
        seconds if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        seconds if seconds < 8 * HOUR && seconds % HOUR >= MINUTE => {
            format!("{}h{}m", seconds / HOUR, seconds % HOUR / MINUTE)
        }
        seconds if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        seconds if seconds < 8 * DAY && seconds % DAY >= HOUR => {
            format!("{}d{}h", seconds / DAY, seconds % DAY / HOUR)
        }
        seconds => format!("{}d", seconds / DAY),
    }
}

fn condition_is(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = items(object, &["status", "conditions"]);
    conditions.iter().any(|one| text(one, &["type"]) == kind && text(one, &["status"]) == status)
}

fn pod_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Ready", |pod| {
            let ready = items(pod, &["status", "containerStatuses"])
                .iter()
                .filter(|one| one["ready"] == true)
                .count();
            format!("{ready}/{}", items(pod, &["spec", "containers"]).len()).into()
        }),
        shown("Status", |pod| pod_status(pod).into()),
        shown("Restarts", |pod| {
            let counts = items(pod, &["status", "containerStatuses"]).iter();
            counts
                .filter_map(|one| one["restartCount"].as_u64())
                .fold(0, u64::saturating_add)
                .to_string()
                .into()
        }),
        aged,
        wide("IP", |pod| or_none(text(pod, &["status", "podIP"]))),
        wide("Node", |pod| or_none(text(pod, &["spec", "nodeName"]))),
        wide("Nominated Node", |pod| or_none(text(pod, &["status", "nominatedNodeName"]))),
        wide("Readiness Gates", |_| "<none>".into()),
    ]
}

fn pod_status(pod: &Value) -> &str {
    let reason = text(pod, &["status", "reason"]);
    if is_terminating(pod) {
        return if reason == "NodeLost" { "Unknown" } else { "Terminating" };
    }
    let gated =
        items(pod, &["status", "conditions"]).iter().any(|one| text(one, &["reason"]) == "SchedulingGated");
    match (reason, text(pod, &["status", "phase"])) {
        ("", "Pending") if gated && text(pod, &["spec", "nodeName"]).is_empty() => "SchedulingGated",
        ("", "Pending") if !text(pod, &["spec", "nodeName"]).is_empty() => "ContainerCreating",
        ("", "Succeeded") => "Completed",
        ("", "Failed") => "Error",
        ("", phase) => phase,
        (reason, _) => reason,
    }
}

fn node_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Status", |node| {
            let ready = match (condition_is(node, "Ready", "True"), condition_is(node, "Ready", "False")) {
                (true, _) => "Ready",
                (false, true) => "NotReady",
                (false, false) => "Unknown",
            };
            let cordoned = at(node, &["spec", "unschedulable"]) == Some(&Value::Bool(true));
            if cordoned { format!("{ready},SchedulingDisabled").into() } else { ready.into() }
        }),
        shown("Roles", |node| {
            const PREFIX: &str = "node-role.kubernetes.io/";
            let labels = at(node, &["metadata", "labels"]).and_then(Value::as_object);
            let roles = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(PREFIX));
            or_none(&roles.collect::<Vec<_>>().join(","))
        }),
        aged,
        shown("Version", |node| text(node, &["status", "nodeInfo", "kubeletVersion"]).into()),
        wide("Internal-IP", |node| {
            let mut addresses = items(node, &["status", "addresses"]).iter();
            or_none(
                addresses
                    .find(|one| text(one, &["type"]) == "InternalIP")
                    .map_or("", |one| text(one, &["address"])),
            )
        }),
        wide("External-IP", |_| "<none>".into()),
        wide("OS-Image", |node| or_none(text(node, &["status", "nodeInfo", "osImage"]))),
        wide("Kernel-Version", |node| or_none(text(node, &["status", "nodeInfo", "kernelVersion"]))),
        wide("Container-Runtime", |node| {
            or_none(text(node, &["status", "nodeInfo", "containerRuntimeVersion"]))
        }),
    ]
}

fn labels_text(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object);
    let pairs = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

fn service_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Type", |service| text(service, &["spec", "type"]).into()),
        shown("Cluster-IP", |service| or_none(text(service, &["spec", "clusterIP"]))),
        shown("External-IP", |_| "<none>".into()),
        shown("Port(s)", |service| {
            let ports = items(service, &["spec", "ports"]).iter();
            let ports = ports.map(|port| format!("{}/{}", port["port"], text(port, &["protocol"])));
            or_none(&ports.collect::<Vec<_>>().join(","))
        }),
        aged,
        wide("Selector", |service| or_none(&labels_text(at(service, &["spec", "selector"])))),
    ]
}

fn event_columns() -> Vec<Column> {
    vec![
        shown("Last Seen", |event| age(last_seen(event))),
        shown("Type", |event| text(event, &["type"]).into()),
        shown("Reason", |event| text(event, &["reason"]).into()),
        shown("Object", |event| {
            let kind = text(event, &["involvedObject", "kind"]).to_lowercase();
            format!("{kind}/{}", text(event, &["involvedObject", "name"])).into()
        }),
        wide("Subobject", |event| text(event, &["involvedObject", "fieldPath"]).into()),
        wide("Source", |event| match text(event, &["source", "component"]) {
            "" => text(event, &["reportingComponent"]).into(),
            component => component.into(),
        }),
        shown("Message", |event| text(event, &["message"]).trim().into()),
        wide("First Seen", |event| match text(event, &["firstTimestamp"]) {
            "" => age(text(event, &["eventTime"])),
            first => age(first),
        }),
        wide("Count", |event| {
            let count = at(event, &["series", "count"]).or_else(|| event.get("count"));
            count.and_then(Value::as_u64).unwrap_or(1).into()
        }),
        wide("Name", |event| name(event).into()),
    ]
}

fn budget_columns(aged: Column) -> Vec<Column> {
    fn amount(value: Option<&Value>) -> Value {
        match value {
            Some(Value::String(given)) => given.as_str().into(),
            Some(Value::Number(given)) => given.to_string().into(),
            _ => "N/A".into(),
        }
    }
    vec![
        shown("Min Available", |budget| amount(at(budget, &["spec", "minAvailable"]))),
        shown("Max Unavailable", |budget| amount(at(budget, &["spec", "maxUnavailable"]))),
        shown("Allowed Disruptions", |budget| {
            at(budget, &["status", "disruptionsAllowed"]).and_then(Value::as_i64).unwrap_or(0).into()
        }),
        aged,
    ]
}

fn access_modes(object: &Value) -> Value {
    let modes = items(object, &["spec", "accessModes"]).iter().filter_map(Value::as_str);
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO".to_owned(),
        "ReadOnlyMany" => "ROX".to_owned(),
        "ReadWriteMany" => "RWX".to_owned(),
        "ReadWriteOncePod" => "RWOP".to_owned(),
        other => other.to_owned(),
    };
    modes.map(short).collect::<Vec<_>>().join(",").into()
}

fn volume_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Capacity", |volume| text(volume, &["spec", "capacity", "storage"]).into()),
        shown("Access Modes", access_modes),
        shown("Reclaim Policy", |volume| text(volume, &["spec", "persistentVolumeReclaimPolicy"]).into()),
        shown("Status", |volume| text(volume, &["status", "phase"]).into()),
        shown("Claim", |volume| match at(volume, &["spec", "claimRef"]) {
            Some(claim) => format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"])).into(),
            None => "".into(),
        }),
        shown("StorageClass", |volume| text(volume, &["spec", "storageClassName"]).into()),
        shown("VolumeAttributesClass", |_| "<unset>".into()),
        shown("Reason", |volume| text(volume, &["status", "reason"]).into()),
        aged,
        wide("VolumeMode", |volume| text(volume, &["spec", "volumeMode"]).into()),
    ]
}

fn claim_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Status", |claim| text(claim, &["status", "phase"]).into()),
        shown("Volume", |claim| text(claim, &["spec", "volumeName"]).into()),
        shown("Capacity", |claim| text(claim, &["status", "capacity", "storage"]).into()),
        shown("Access Modes", |claim| {
            if text(claim, &["spec", "volumeName"]).is_empty() { "".into() } else { access_modes(claim) }
        }),
        shown("StorageClass", |claim| text(claim, &["spec", "storageClassName"]).into()),
        shown("VolumeAttributesClass", |_| "<unset>".into()),
        aged,
        wide("VolumeMode", |claim| text(claim, &["spec", "volumeMode"]).into()),
    ]
}

fn number(object: &Value, path: &[&str]) -> u64 {
    at(object, path).and_then(Value::as_u64).unwrap_or(0)
}

fn deployment_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Ready", |deployment| {
            let ready = number(deployment, &["status", "readyReplicas"]);
            format!("{ready}/{}", number(deployment, &["spec", "replicas"])).into()
        }),
        shown("Up-to-date", |deployment| number(deployment, &["status", "updatedReplicas"]).into()),
        shown("Available", |deployment| number(deployment, &["status", "availableReplicas"]).into()),
        aged,
        wide("Selector", |deployment| {
            labels_text(at(deployment, &["spec", "selector", "matchLabels"])).into()
        }),
    ]
}

fn replica_columns(aged: Column) -> Vec<Column> {
    vec![
        shown("Desired", |set| number(set, &["spec", "replicas"]).into()),
        shown("Current", |set| number(set, &["status", "replicas"]).into()),
        shown("Ready", |set| number(set, &["status", "readyReplicas"]).into()),
        aged,
        wide("Selector", |set| labels_text(at(set, &["spec", "selector", "matchLabels"])).into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_brief() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (121, "2m1s"),
            (180, "3m"),
            (601, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (49 * 3600, "2d1h"),
            (9 * 86400, "9d"),
            (-5, "0s"),
        ] {
            assert_eq!(brief(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn no_object_breaks_a_table() {
        for resource in crate::resource::ALL {
            for odd in [
                json!({}),
                json!({"spec": 1, "status": [], "metadata": "x"}),
                json!({"status": {"conditions": [3]}, "spec": {"ports": [{}, 1]}}),
            ] {
                for column in of(resource) {
                    (column.cell)(&odd);
                }
            }
        }
    }
}
