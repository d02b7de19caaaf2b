//! A deployment has one replica set for its template; those of older templates are emptied at once.

use serde_json::{Value, json};

use super::{CONTROLLER, all, by_controller, owner_reference, replicas, write_status};
use crate::StatusError;
use crate::api::{Api, Caller, ObjectAddress};
use crate::object::{self, as_map, at, map_at, name, namespace, uid};
use crate::resource::{DEPLOYMENTS, REPLICA_SETS};
use crate::store::StoredObject;

const TEMPLATE_HASH: &str = "pod-template-hash";

pub(super) fn reconcile(api: &Api) -> Result<(), StatusError> {
    let (deployments, sets) = (all(api, &DEPLOYMENTS), all(api, &REPLICA_SETS));
    let owned = by_controller(&sets);
    for deployment in deployments.iter().filter(|deployment| !object::is_terminating(&deployment.value)) {
        let sets = owned.get(uid(&deployment.value)).map_or(&[][..], Vec::as_slice);
        reconcile_one(api, &deployment.value, sets)?;
    }
    Ok(())
}

fn reconcile_one(
    api: &Api,
    deployment: &Value,
    sets: &[&std::sync::Arc<StoredObject>],
) -> Result<(), StatusError> {
    let set_name = format!("{}-{}", name(deployment), template_hash(deployment));
    let wanted = replicas(deployment, "spec", "replicas");
    if !sets.iter().any(|set| name(&set.value) == set_name) {
        let set = replica_set(deployment, &set_name, wanted);
        api.create(&REPLICA_SETS, namespace(deployment), set, &Caller::controller(CONTROLLER))?;
    }
    for set in sets {
        let is_current = name(&set.value) == set_name;
        scale(api, &set.value, if is_current { wanted } else { 0 })?;
    }
    let sum =
        |key: &str| sets.iter().map(|set| replicas(&set.value, "status", key)).fold(0, u64::saturating_add);
    let current = sets.iter().find(|set| name(&set.value) == set_name);
    let ready = sum("readyReplicas");
    write_status(
        api,
        &DEPLOYMENTS,
        deployment,
        &[
            ("replicas", sum("replicas")),
            ("readyReplicas", ready),
            ("availableReplicas", ready),
            ("updatedReplicas", current.map_or(0, |set| replicas(&set.value, "status", "replicas"))),
        ],
    )
}

fn scale(api: &Api, set: &Value, wanted: u64) -> Result<(), StatusError> {
    if replicas(set, "spec", "replicas") == wanted {
        return Ok(());
    }
    let mut value = set.clone();
    map_at(&mut value, "spec").insert("replicas".to_owned(), wanted.into());
    let place = ObjectAddress::new(&REPLICA_SETS, namespace(set), name(set));
    api.update(place, "", value, &Caller::controller(CONTROLLER)).map(drop)
}

/// Ten digits that follow from the template.
fn template_hash(deployment: &Value) -> String {
    let template = at(deployment, &["spec", "template"]).map(Value::to_string).unwrap_or_default();
    // FNV-1a: any function will do that gives the same for the same text in every run.
    let hash = template.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:010x}", hash & 0xff_ffff_ffff)
}

fn replica_set(deployment: &Value, set_name: &str, wanted: u64) -> Value {
    let hash = template_hash(deployment);
    let mut template = at(deployment, &["spec", "template"]).cloned().unwrap_or_default();
    let mut selector = at(deployment, &["spec", "selector"]).cloned().unwrap_or_default();
    for labels in [
        map_at(&mut template, "metadata").entry("labels").or_insert(Value::Null),
        as_map(&mut selector).entry("matchLabels").or_insert(Value::Null),
    ] {
        as_map(labels).insert(TEMPLATE_HASH.to_owned(), hash.as_str().into());
    }
    json!({
        "metadata": {
            "name": set_name,
            "labels": at(&template, &["metadata", "labels"]),
            "ownerReferences": [owner_reference(&DEPLOYMENTS, deployment)],
        },
        "spec": {"replicas": wanted, "selector": selector, "template": template},
    })
}
