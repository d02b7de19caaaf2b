//! A device driver, pretended: nodes that ask for devices by a label get a slice, and what was allocated becomes ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::follow::ChangeFollower;
use super::workloads::all;
use crate::StatusError;
use crate::api::{Api, Caller, DeleteOptions, ObjectAddress};
use crate::object::{at, items, map_at, name, namespace, text, uid};
use crate::options::{BindingAnswer, DeviceDriver};
use crate::resource::{NODES, RESOURCE_CLAIMS, RESOURCE_SLICES};

/// The label by which a node asks for so many devices.
const DEVICES: &str = "testcluster/devices";
/// No node gets more: an API server takes no more in one slice.
const DEVICES_LIMIT: u64 = 128;

pub(super) async fn run(api: Arc<Api>, driver: DeviceDriver) {
    let mut nodes = ChangeFollower::new(&api, &NODES);
    let mut claims = ChangeFollower::new(&api, &RESOURCE_CLAIMS);
    loop {
        tokio::select! {
            biased;
            () = nodes.changed() => {}
            () = claims.changed() => {}
        }
        api.time.sleep(driver.delay).await;
        for node in nodes.read(&api) {
            if let Err(failure) = publish(&api, &driver, &node.value) {
                tracing::debug!(%failure, node = name(&node.value), "devices could not be published");
            }
        }
        withdraw(&api, &driver);
        for claim in claims.read(&api) {
            if let Err(failure) = answer(&api, &driver, &claim.value) {
                // The claim has changed meanwhile, or is gone: that wakes this loop again.
                tracing::debug!(%failure, claim = name(&claim.value), "a claim could not be answered");
            }
        }
    }
}

/// A slice for a node that asks for devices and has none.
fn publish(api: &Api, driver: &DeviceDriver, node: &Value) -> Result<(), StatusError> {
    let Ok(count) = text(node, &["metadata", "labels", DEVICES]).parse::<u64>() else { return Ok(()) };
    let slice_name = format!("{}-{}", name(node), driver.name);
    if api.get(ObjectAddress::new(&RESOURCE_SLICES, "", &slice_name)).is_ok() {
        return Ok(());
    }
    let devices: Vec<Value> = (0..count.min(DEVICES_LIMIT)).map(|index| device(driver, index)).collect();
    let slice = json!({
        "metadata": {
            "name": slice_name,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name(node), "uid": uid(node), "controller": true}],
        },
        "spec": {
            "driver": driver.name,
            "pool": {"name": name(node), "generation": 1, "resourceSliceCount": 1},
            "nodeName": name(node),
            "devices": devices,
        },
    });
    api.create(&RESOURCE_SLICES, "", slice, &Caller::controller(&driver.name)).map(drop)
}

/// Two devices for each root of the bus.
fn device(driver: &DeviceDriver, index: u64) -> Value {
    let mut device = json!({
        "name": format!("device-{index}"),
        "attributes": {
            "index": {"int": index},
            "model": {"string": driver.model},
            "resource.kubernetes.io/pcieRoot": {"string": format!("pci0000:{:02x}", index / 2)},
        },
        "capacity": {"memory": {"value": driver.memory}},
    });
    if let Some(condition) = &driver.binding_condition {
        device["bindsToNode"] = true.into();
        device["bindingConditions"] = json!([condition]);
        device["bindingFailureConditions"] = json!([format!("{condition}-failed")]);
    }
    device
}

/// The slices of nodes that are gone.
fn withdraw(api: &Api, driver: &DeviceDriver) {
    for slice in all(api, &RESOURCE_SLICES) {
        let node = text(&slice.value, &["spec", "nodeName"]);
        let is_own = text(&slice.value, &["spec", "driver"]) == driver.name && !node.is_empty();
        if is_own && api.get(ObjectAddress::new(&NODES, "", node)).is_err() {
            let place = ObjectAddress::new(&RESOURCE_SLICES, "", name(&slice.value));
            if let Err(failure) =
                api.delete(place, &DeleteOptions::default(), &Caller::controller(&driver.name))
            {
                tracing::debug!(%failure, slice = place.name, "a slice could not be withdrawn");
            }
        }
    }
}

/// Says of the devices of a claim that they are ready, or that they failed.
fn answer(api: &Api, driver: &DeviceDriver, claim: &Value) -> Result<(), StatusError> {
    let results = items(claim, &["status", "allocation", "devices", "results"]);
    let waited_for = results.iter().filter(|result| {
        text(result, &["driver"]) == driver.name && !items(result, &["bindingConditions"]).is_empty()
    });
    let mut answers: BTreeMap<String, Value> = BTreeMap::new();
    for result in waited_for {
        let conditions = match driver.answer {
            BindingAnswer::Ready => items(result, &["bindingConditions"]),
            BindingAnswer::Failed => items(result, &["bindingFailureConditions"]),
            BindingAnswer::Never => return Ok(()),
        };
        let now = api.time.now();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|kind| json!({"type": kind, "status": "True", "reason": "Pretended", "lastTransitionTime": now}))
            .collect();
        let mut status = json!({"conditions": conditions});
        for key in ["driver", "pool", "device", "shareID"] {
            if let Some(known) = result.get(key) {
                status[key] = known.clone();
            }
        }
        answers.insert(format!("{}/{}", text(result, &["pool"]), text(result, &["device"])), status);
    }
    if answers.is_empty() || at(claim, &["status", "devices"]).is_some() {
        return Ok(());
    }
    let mut claim = claim.clone();
    let devices: Vec<Value> = answers.into_values().collect();
    map_at(&mut claim, "status").insert("devices".to_owned(), devices.into());
    let (claim_namespace, claim_name) = (namespace(&claim).to_owned(), name(&claim).to_owned());
    let place = ObjectAddress::new(&RESOURCE_CLAIMS, &claim_namespace, &claim_name);
    api.update(place, "status", claim, &Caller::controller(&driver.name)).map(drop)
}
