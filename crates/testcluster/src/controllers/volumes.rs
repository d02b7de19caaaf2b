//! The volume controller, pretended: claims are bound to volumes that fit, or that are made for them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use supercargo_model::{
    quantity::Quantity,
    storage::annotations::{BIND_COMPLETED, SELECTED_NODE},
};

use super::follow::ChangeFollower;
use crate::StatusError;
use crate::api::{Api, Caller, ObjectAddress};
use crate::object::{self, as_map, at, items, map_at, name, namespace, text, uid};
use crate::resource::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES};
use crate::store::StoredObject;

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const CONTROLLER: &str = "persistentvolume-controller";

pub(super) async fn run(api: Arc<Api>, delay: Duration) {
    let mut claims = ChangeFollower::new(&api, &PERSISTENT_VOLUME_CLAIMS);
    let mut volumes = ChangeFollower::new(&api, &PERSISTENT_VOLUMES);
    loop {
        tokio::select! {
            biased;
            () = claims.changed() => {}
            () = volumes.changed() => {}
        }
        api.time.sleep(delay).await;
        let pending: Vec<Arc<StoredObject>> = {
            let store = api.store();
            let claims = store.objects(&PERSISTENT_VOLUME_CLAIMS, "", None).map(|(_, claim)| claim.clone());
            claims.filter(|claim| text(&claim.value, &["status", "phase"]) != "Bound").collect()
        };
        offer_volumes(&api);
        for claim in pending {
            if let Err(failure) = reconcile(&api, &claim.value) {
                tracing::debug!(%failure, claim = name(&claim.value), "a claim could not be bound");
            }
        }
    }
}

/// Volumes that are new and for nobody become available.
fn offer_volumes(api: &Api) {
    let new: Vec<Arc<StoredObject>> = {
        let store = api.store();
        let volumes = store.objects(&PERSISTENT_VOLUMES, "", None).map(|(_, volume)| volume.clone());
        let is_new = |volume: &Arc<StoredObject>| text(&volume.value, &["status", "phase"]) == "Pending";
        volumes.filter(is_new).filter(|volume| at(&volume.value, &["spec", "claimRef"]).is_none()).collect()
    };
    for volume in new {
        let mut volume = volume.value.clone();
        map_at(&mut volume, "status").insert("phase".to_owned(), "Available".into());
        let volume_name = name(&volume).to_owned();
        let place = ObjectAddress::new(&PERSISTENT_VOLUMES, "", &volume_name);
        if let Err(failure) = api.update(place, "status", volume, &Caller::controller(CONTROLLER)) {
            tracing::debug!(%failure, volume = volume_name, "a volume could not be offered");
        }
    }
}

fn reconcile(api: &Api, claim: &Value) -> Result<(), StatusError> {
    let chosen = text(claim, &["spec", "volumeName"]);
    if !chosen.is_empty() {
        let volume = api.get(ObjectAddress::new(&PERSISTENT_VOLUMES, "", chosen))?;
        return bind(api, claim, &volume.value);
    }
    let volumes: Vec<Arc<StoredObject>> =
        api.store().objects(&PERSISTENT_VOLUMES, "", None).map(|(_, volume)| volume.clone()).collect();
    // A scheduler that has chosen a volume writes the claim into the volume, and leaves the rest to us.
    if let Some(volume) = volumes.iter().find(|volume| is_for(&volume.value, claim)) {
        return bind(api, claim, &volume.value);
    }
    let class = text(claim, &["spec", "storageClassName"]);
    let class = api.get(ObjectAddress::new(&STORAGE_CLASSES, "", class)).ok();
    let waits = class
        .as_ref()
        .is_some_and(|class| text(&class.value, &["volumeBindingMode"]) == "WaitForFirstConsumer");
    let selected = text(claim, &["metadata", "annotations", SELECTED_NODE]);
    if waits && selected.is_empty() {
        return Ok(());
    }
    let fitting = volumes.iter().filter(|volume| !waits && fits(&volume.value, claim));
    if let Some(volume) =
        fitting.min_by_key(|volume| size(at(&volume.value, &["spec", "capacity", "storage"])))
    {
        return bind(api, claim, &volume.value);
    }
    match class {
        Some(class) if !matches!(text(&class.value, &["provisioner"]), "" | NO_PROVISIONER) => {
            let volume = provision(api, claim, &class.value)?;
            bind(api, claim, &volume.value)
        }
        _ => Ok(()),
    }
}

fn is_for(volume: &Value, claim: &Value) -> bool {
    let Some(reference) = at(volume, &["spec", "claimRef"]) else { return false };
    let known = text(reference, &["uid"]);
    text(reference, &["name"]) == name(claim)
        && text(reference, &["namespace"]) == namespace(claim)
        && (known.is_empty() || known == uid(claim))
}

fn size(amount: Option<&Value>) -> i64 {
    let amount = amount.and_then(Value::as_str).and_then(|text| text.parse::<Quantity>().ok());
    amount.unwrap_or_default().value()
}

fn fits(volume: &Value, claim: &Value) -> bool {
    let modes = items(volume, &["spec", "accessModes"]);
    at(volume, &["spec", "claimRef"]).is_none()
        && text(volume, &["spec", "storageClassName"]) == text(claim, &["spec", "storageClassName"])
        && items(claim, &["spec", "accessModes"]).iter().all(|mode| modes.contains(mode))
        && size(at(volume, &["spec", "capacity", "storage"]))
            >= size(at(claim, &["spec", "resources", "requests", "storage"]))
}

fn provision(api: &Api, claim: &Value, class: &Value) -> Result<Arc<StoredObject>, StatusError> {
    let volume_name = format!("pvc-{}", uid(claim));
    let volume = json!({
        "metadata": {
            "name": volume_name,
            "annotations": {"pv.kubernetes.io/provisioned-by": text(class, &["provisioner"])},
        },
        "spec": {
            "capacity": {"storage": at(claim, &["spec", "resources", "requests", "storage"])},
            "accessModes": at(claim, &["spec", "accessModes"]),
            "storageClassName": name(class),
            "persistentVolumeReclaimPolicy": text(class, &["reclaimPolicy"]),
            "csi": {"driver": text(class, &["provisioner"]), "volumeHandle": volume_name},
        },
    });
    api.create(&PERSISTENT_VOLUMES, "", volume, &Caller::controller(CONTROLLER))
}

/// Writes both halves of a binding: the claim's name into the volume, and the volume's into the claim.
fn bind(api: &Api, claim: &Value, volume: &Value) -> Result<(), StatusError> {
    let caller = Caller::controller(CONTROLLER);
    let mut volume = volume.clone();
    let reference = json!({
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": namespace(claim),
        "name": name(claim),
        "uid": uid(claim),
    });
    map_at(&mut volume, "spec").insert("claimRef".to_owned(), reference);
    let volume_name = name(&volume).to_owned();
    let place = ObjectAddress::new(&PERSISTENT_VOLUMES, "", &volume_name);
    let stored = api.update(place, "", volume, &caller)?;
    let mut volume = stored.value.clone();
    map_at(&mut volume, "status").insert("phase".to_owned(), "Bound".into());
    api.update(place, "status", volume, &caller)?;

    let mut claim = claim.clone();
    map_at(&mut claim, "spec").insert("volumeName".to_owned(), volume_name.as_str().into());
    let annotations = map_at(&mut claim, "metadata").entry("annotations").or_insert(Value::Null);
    as_map(annotations).insert(BIND_COMPLETED.to_owned(), "yes".into());
    let (claim_namespace, claim_name) = (namespace(&claim).to_owned(), name(&claim).to_owned());
    let place = ObjectAddress::new(&PERSISTENT_VOLUME_CLAIMS, &claim_namespace, &claim_name);
    let stored = api.update(place, "", claim, &caller)?;
    let mut claim = stored.value.clone();
    let status = object::map_at(&mut claim, "status");
    status.insert("phase".to_owned(), "Bound".into());
    status.insert(
        "capacity".to_owned(),
        json!({"storage": at(&stored.value, &["spec", "resources", "requests", "storage"])}),
    );
    status.insert("accessModes".to_owned(), json!(items(&stored.value, &["spec", "accessModes"])));
    api.update(place, "status", claim, &caller).map(drop)
}
