//! Claims, slices and classes of devices, as they are written and written back.

use serde_json::{Value, json};
use supercargo_manifest::Source;
use supercargo_model::{
    Kind,
    devices::{AllocationMode, ClaimAllocation, ResourceClaim, ResourceSlice},
    object::Object,
};

fn claim(written: Value) -> ResourceClaim {
    match Object::from_text(Kind::ResourceClaim, &[], &Source::new("test", written.to_string())) {
        Ok(Object::ResourceClaim(claim)) => claim,
        other => panic!("{other:?}"),
    }
}

fn slice(spec: Value) -> Result<ResourceSlice, String> {
    let written = json!({ "metadata": { "name": "s" }, "spec": spec });
    match Object::from_text(Kind::ResourceSlice, &[], &Source::new("test", written.to_string())) {
        Ok(Object::ResourceSlice(slice)) => Ok(slice),
        Ok(other) => panic!("{other:?}"),
        Err(problems) => Err(problems.to_string()),
    }
}

#[test]
fn an_allocation_is_written_back_as_it_was() {
    let allocation = json!({
        "devices": {
            "results": [{
                "request": "r/fast", "driver": "d", "pool": "p", "device": "x", "adminAccess": true,
                "tolerations": [{ "key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 60 }],
                "bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"], "shareID": "s",
                "consumedCapacity": { "memory": "5Gi" },
            }],
            "config": [{ "source": "FromClass", "requests": ["r"], "opaque": { "driver": "d", "parameters": { "a": [1] } } }],
        },
        "nodeSelector": { "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }, { "key": "gpu", "operator": "Exists" }],
            "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }],
        }] },
        "allocationTimestamp": "2099-01-01T00:00:00Z",
    });
    let read: ClaimAllocation = serde_json::from_value(allocation.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), allocation);
}

#[test]
fn what_a_claim_asks_for() {
    let claim = claim(json!({
        "metadata": { "name": "c", "namespace": "there", "uid": "u" },
        "spec": { "devices": { "requests": [
            { "name": "one", "exactly": { "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2 } },
            { "name": "two", "firstAvailable": [{ "name": "a", "deviceClassName": "nic", "allocationMode": "All" }] },
            { "name": "three", "exactly": { "deviceClassName": "x", "allocationMode": "Most",
                "capacity": { "requests": { "memory": "1Gi" } } } },
        ] } },
        "status": { "reservedFor": [{ "resource": "pods", "name": "p", "uid": "v" }] },
    }));
    assert_eq!(claim.key().to_string(), "there/c");
    let [one, two, three] = &claim.requests[..] else { panic!("{claim:?}") };
    assert_eq!(one.exactly.as_ref().unwrap().count, 2);
    assert_eq!(two.first_available[0].allocation_mode, AllocationMode::All);
    let three = three.exactly.as_ref().unwrap();
    assert_eq!(three.allocation_mode, AllocationMode::Unknown("Most".into()));
    assert_eq!(three.capacity_of("memory").unwrap().to_string(), "1Gi");
    assert_eq!(&*claim.reserved_for[0].uid, "v");
}

#[test]
fn a_quantity_that_is_none_is_told_with_its_place() {
    let with = |value: Value| {
        slice(json!({ "devices": [{ "name": "d", "capacity": { "memory": { "value": value } } }] }))
    };
    assert_eq!(with(json!("40Gi")).unwrap().devices[0].capacity["memory"].value.written(), "40Gi");
    assert_eq!(with(json!(7)).unwrap().devices[0].capacity["memory"].value.to_string(), "7");
    for wrong in [json!("lots"), json!([1]), json!(true)] {
        let told = with(wrong.clone()).unwrap_err();
        assert!(told.contains("spec.devices[0].capacity.memory.value"), "{wrong}: {told}");
    }
}
