//! Kubelets that pretend: bound pods run after a while, deleted ones go, nodes report.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::follow::ChangeFollower;
use crate::api::{Api, Caller, DeleteOptions, ObjectAddress};
use crate::object::{self, at, items, list_at, map_at, name, namespace, set_condition, set_meta, text, uid};
use crate::options::Kubelets;
use crate::resource::{LEASES, NODES, PODS};

/// What a kubelet does to a pod next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Start,
    Stop,
}

/// A step, and the pod as it was when the step was planned: another with the same name is none of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Task {
    namespace: String,
    name: String,
    uid: String,
    step: Step,
}

const LATER: Duration = Duration::from_secs(3600);

pub(super) async fn run(api: Arc<Api>, kubelets: Kubelets) {
    let mut pods = ChangeFollower::new(&api, &PODS);
    let mut due: BinaryHeap<Reverse<(Duration, Task)>> = BinaryHeap::new();
    let mut planned: HashSet<Task> = HashSet::new();
    let mut addresses = 0_u32;
    loop {
        let next = due.peek().map_or_else(|| api.time.uptime() + LATER, |Reverse((when, _))| *when);
        tokio::select! {
            biased;
            () = pods.changed() => {
                for pod in pods.read(&api) {
                    if let Some((delay, task)) = plan(&pod.value, &kubelets)
                        && planned.insert(task.clone())
                    {
                        due.push(Reverse((api.time.uptime() + delay, task)));
                    }
                }
            }
            () = api.time.sleep_until(next) => {}
        }
        while let Some(Reverse((when, _))) = due.peek() {
            if *when > api.time.uptime() {
                break;
            }
            let Some(Reverse((_, task))) = due.pop() else { break };
            planned.remove(&task);
            perform(&api, &task, &mut addresses);
        }
    }
}

fn plan(pod: &Value, kubelets: &Kubelets) -> Option<(Duration, Task)> {
    if text(pod, &["spec", "nodeName"]).is_empty() {
        return None;
    }
    let (delay, step) = if object::is_terminating(pod) {
        let grace = at(pod, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_u64).unwrap_or(0);
        let grace = Duration::from_secs(grace.min(LATER.as_secs()));
        (kubelets.stop_delay.map_or(grace, |delay| delay.min(grace)), Step::Stop)
    } else if text(pod, &["status", "phase"]) == "Pending" {
        (kubelets.start_delay, Step::Start)
    } else {
        return None;
    };
    let own = str::to_owned;
    Some((delay, Task { namespace: own(namespace(pod)), name: own(name(pod)), uid: own(uid(pod)), step }))
}

fn perform(api: &Api, task: &Task, addresses: &mut u32) {
    let place = ObjectAddress::new(&PODS, &task.namespace, &task.name);
    let kubelet = Caller::controller("kubelet");
    let result = match task.step {
        Step::Start => start(api, place, task, addresses, &kubelet),
        Step::Stop => {
            let now = DeleteOptions {
                grace_period_seconds: Some(0),
                uid: Some(task.uid.clone()),
                ..DeleteOptions::default()
            };
            api.delete(place, &now, &kubelet).map(drop)
        }
    };
    if let Err(failure) = result {
        // The pod was removed, or changed and will be planned again.
        tracing::debug!(%failure, ?task, "a kubelet came too late");
    }
}

fn start(
    api: &Api,
    place: ObjectAddress<'_>,
    task: &Task,
    addresses: &mut u32,
    kubelet: &Caller,
) -> Result<(), crate::StatusError> {
    let pod = api.get(place)?;
    let node = text(&pod.value, &["spec", "nodeName"]);
    let wanted = uid(&pod.value) == task.uid
        && !object::is_terminating(&pod.value)
        && text(&pod.value, &["status", "phase"]) == "Pending";
    // Where there is no node, there is no kubelet.
    if !wanted || api.get(ObjectAddress::new(&NODES, "", node)).is_err() {
        return Ok(());
    }
    *addresses = addresses.wrapping_add(1);
    api.update(place, "status", running(&pod.value, *addresses, api.time.now()), kubelet).map(drop)
}

fn running(pod: &Value, number: u32, now: String) -> Value {
    let mut pod = pod.clone();
    let containers: Vec<Value> = items(&pod, &["spec", "containers"])
        .iter()
        .map(|container| {
            json!({
                "name": text(container, &["name"]),
                "image": text(container, &["image"]),
                "imageID": "",
                "ready": true,
                "started": true,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    let address = format!("10.{}.{}.{}", 128 + ((number >> 16) & 0x7f), (number >> 8) & 0xff, number & 0xff);
    let status = map_at(&mut pod, "status");
    for (key, value) in [
        ("phase", json!("Running")),
        ("podIP", json!(address)),
        ("podIPs", json!([{"ip": address}])),
        ("hostIP", json!("127.0.0.1")),
        ("startTime", json!(now)),
        ("containerStatuses", json!(containers)),
    ] {
        status.insert(key.to_owned(), value);
    }
    for condition in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
        set_condition(&mut pod, json!({"type": condition, "status": "True", "lastProbeTime": null}), &now);
    }
    pod
}

/// Lets every node report, again and again.
pub(super) async fn beat(api: Arc<Api>, every: Duration) {
    let kubelet = Caller::controller("kubelet");
    loop {
        let nodes: Vec<String> =
            api.store().objects(&NODES, "", None).map(|(_, node)| name(&node.value).to_owned()).collect();
        for node in nodes {
            if let Err(failure) = report(&api, &node, &kubelet).and_then(|()| renew(&api, &node, &kubelet)) {
                tracing::debug!(%failure, node, "a node could not report");
            }
            tokio::task::yield_now().await;
        }
        api.time.sleep(every.max(Duration::from_millis(1))).await;
    }
}

fn report(api: &Api, node: &str, kubelet: &Caller) -> Result<(), crate::StatusError> {
    let place = ObjectAddress::new(&NODES, "", node);
    let mut value = api.get(place)?.value.clone();
    let now = api.time.now();
    let conditions = list_at(map_at(&mut value, "status"), "conditions");
    match conditions.iter_mut().find(|condition| text(condition, &["type"]) == "Ready") {
        Some(ready) => object::as_map(ready).insert("lastHeartbeatTime".to_owned(), now.into()),
        None => {
            conditions.push(json!({
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }));
            None
        }
    };
    api.update(place, "status", value, kubelet).map(drop)
}

fn renew(api: &Api, node: &str, kubelet: &Caller) -> Result<(), crate::StatusError> {
    const NAMESPACE: &str = "kube-node-lease";
    let spec =
        json!({"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": api.time.now_micros()});
    let place = ObjectAddress::new(&LEASES, NAMESPACE, node);
    match api.get(place) {
        Ok(known) => {
            let mut lease = known.value.clone();
            map_at(&mut lease, "spec").insert("renewTime".to_owned(), spec["renewTime"].clone());
            api.update(place, "", lease, kubelet).map(drop)
        }
        Err(_) => {
            let mut lease = json!({"spec": spec});
            set_meta(&mut lease, "name", node);
            api.create(&LEASES, NAMESPACE, lease, kubelet).map(drop)
        }
    }
}
