//! Devices: claims get theirs before their pods are bound, nobody gets another's, and what is wrong with one costs its pod.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_testcluster::{BindingAnswer, DeviceDriver, Fault, FaultRule, TestClusterOptions};

use crate::{
    draft::{Draft, node, pod},
    process::wait_until,
    stage::Stage,
};

const DRIVER: &str = "gpu.example.com";

/// A stage with a claim controller and a driver, and the class of its devices.
fn stage_with(driver: DeviceDriver) -> Stage {
    let stage = Stage::with(TestClusterOptions {
        claims: true,
        driver: Some(driver),
        ..TestClusterOptions::default()
    });
    create(
        &stage,
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": format!("device.driver == {DRIVER:?}")}}]},
        }),
    );
    stage
}

fn stage() -> Stage {
    stage_with(DeviceDriver { delay: Duration::from_millis(5), ..DeviceDriver::default() })
}

fn create(stage: &Stage, object: Value) {
    stage.cluster().create(object).expect("an object");
}

/// A node that its driver publishes so many devices for.
fn make_node_with(stage: &Stage, name: &str, devices: usize) {
    let mut object = stage.placed(node(name)).1;
    object["metadata"]["labels"]["testcluster/devices"] = devices.to_string().into();
    create(stage, object);
}

fn one_gpu(selector: &str) -> Value {
    let mut asked = json!({"deviceClassName": "gpu"});
    if !selector.is_empty() {
        asked["selectors"] = json!([{"cel": {"expression": selector}}]);
    }
    json!({"devices": {"requests": [{"name": "gpu", "exactly": asked}]}})
}

fn claim(stage: &Stage, name: &str, spec: Value) {
    create(
        stage,
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": stage.name}, "spec": spec,
        }),
    );
}

fn template(stage: &Stage, name: &str, spec: Value) {
    create(
        stage,
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": stage.name}, "spec": {"spec": spec},
        }),
    );
}

fn with_claim(name: &str, claim: &str) -> Draft {
    pod(name).with("/spec/resourceClaims", json!([{"name": "gpu", "resourceClaimName": claim}]))
}

fn with_template(name: &str, template: &str) -> Draft {
    pod(name).with("/spec/resourceClaims", json!([{"name": "gpu", "resourceClaimTemplateName": template}]))
}

fn get_claim(stage: &Stage, name: &str) -> Value {
    stage.cluster().get("resourceclaims", &stage.name, name).expect("the claim")
}

/// What the scheduler says about a pod, in an event.
fn told(stage: &Stage, pod: &str) -> String {
    stage.wait_for_event(pod, "FailedScheduling")["note"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn two_devices_when_three_pods_claim_one_each_then_two_are_bound_and_the_third_when_one_ends() {
    let stage = stage();
    template(&stage, "one", one_gpu(""));
    make_node_with(&stage, "a", 2);
    let _scheduler = stage.scheduler();
    stage.make_all([with_template("p", "one"), with_template("q", "one")]);
    for pod in ["p", "q"] {
        assert_eq!(stage.wait_until_bound(pod), "a");
    }
    stage.make(with_template("r", "one"));
    let message = stage.wait_until_rejected("r");
    assert!(message.contains("cannot allocate all claims"), "{message}");
    let pod = stage.pod("p").expect("the pod");
    let name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"].as_str().expect("a claim");
    let claim = get_claim(&stage, name);
    assert_eq!(claim["metadata"]["finalizers"], json!(["resource.kubernetes.io/delete-protection"]));
    assert_eq!(claim["status"]["reservedFor"][0]["name"], "p");
    assert_eq!(claim["status"]["allocation"]["devices"]["results"][0]["driver"], DRIVER);

    stage.client.delete(&stage.pod_path("p"));
    assert_eq!(stage.wait_until_bound("r"), "a");
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_claim_of_its_own_when_two_pods_share_it_then_both_run_where_its_device_is() {
    let stage = stage();
    claim(&stage, "shared", one_gpu(""));
    make_node_with(&stage, "a", 1);
    stage.make(node("b"));
    let _scheduler = stage.scheduler();
    stage.make_all([with_claim("p", "shared"), with_claim("q", "shared")]);
    for pod in ["p", "q"] {
        assert_eq!(stage.wait_until_bound(pod), "a");
    }
    let users = get_claim(&stage, "shared")["status"]["reservedFor"].as_array().map(Vec::len);
    assert_eq!(users, Some(2));
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_device_that_has_to_be_attached_first_when_it_is_then_its_pod_is_bound() {
    let stage = stage_with(DeviceDriver {
        delay: Duration::from_millis(50),
        binding_condition: Some("attached".to_owned()),
        ..DeviceDriver::default()
    });
    claim(&stage, "c", one_gpu(""));
    make_node_with(&stage, "a", 1);
    let _scheduler = stage.scheduler();
    stage.make(with_claim("p", "c"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    assert_eq!(get_claim(&stage, "c")["status"]["devices"][0]["conditions"][0]["type"], "attached");
}

/// Whatever is wrong, it costs the pod `bad`, which is told what and where; `good` gets its device.
#[track_caller]
fn costs_only_its_pod(stage: &Stage, bad: Draft, expected: &[&str]) {
    make_node_with(stage, "a", 2);
    claim(stage, "well", one_gpu(""));
    let _scheduler = stage.scheduler();
    stage.make(bad);
    let note = told(stage, "bad");
    for part in expected {
        assert!(note.contains(part), "{part:?} in {note}");
    }
    stage.make(with_claim("good", "well"));
    assert_eq!(stage.wait_until_bound("good"), "a");
    assert_eq!(stage.node_of("bad"), None);
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_selector_that_does_not_compile() {
    let stage = stage();
    claim(&stage, "broken", one_gpu("device.attributes["));
    let name = format!("{}/broken", stage.name);
    costs_only_its_pod(&stage, with_claim("bad", "broken"), &[&name, "selector #0", "CEL compile error"]);
}

#[test]
fn a_selector_that_fails_on_a_device() {
    let stage = stage();
    claim(&stage, "broken", one_gpu("device.attributes[\"gpu.example.com\"].nothing == 1"));
    let name = format!("{}/broken", stage.name);
    costs_only_its_pod(&stage, with_claim("bad", "broken"), &[&name, "selector #0", "no such key"]);
}

#[test]
fn a_selector_that_takes_too_long() {
    let stage = stage();
    let list = (0..60).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let loops =
        format!("[{list}].all(a, [{list}].all(b, [{list}].all(c, [{list}].all(d, a + b + c + d >= 0))))");
    claim(&stage, "endless", one_gpu(&loops));
    let name = format!("{}/endless", stage.name);
    costs_only_its_pod(&stage, with_claim("bad", "endless"), &[&name, "selector #0", "cost limit"]);
}

#[test]
fn a_class_that_is_gone() {
    let stage = stage();
    let asked = json!({"deviceClassName": "gone"});
    claim(&stage, "classless", json!({"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}));
    costs_only_its_pod(
        &stage,
        with_claim("bad", "classless"),
        &["request gpu", "device class gone does not exist"],
    );
}

#[test]
fn a_slice_with_the_same_device_twice() {
    let stage = stage();
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "twice"},
        "spec": {"driver": "other.example.com", "allNodes": true, "devices": [{"name": "x"}, {"name": "x"}],
                 "pool": {"name": "twice", "generation": 1, "resourceSliceCount": 1}},
    });
    create(&stage, slice);
    let asked = json!({"deviceClassName": "gpu", "allocationMode": "All"});
    claim(&stage, "all", json!({"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}));
    costs_only_its_pod(
        &stage,
        with_claim("bad", "all"),
        &["resource pool other.example.com/twice is currently invalid"],
    );
}

#[test]
fn a_server_that_forbids_the_write() {
    let stage = stage();
    make_node_with(&stage, "a", 1);
    claim(&stage, "c", one_gpu(""));
    let rule = FaultRule {
        verbs: vec!["update".to_owned()],
        resource: Some("resourceclaims".to_owned()),
        subresource: Some("status".to_owned()),
        ..FaultRule::new(Fault::Answer { code: 403, retry_after_seconds: 0 })
    };
    stage.cluster().faults().add(rule);
    let _scheduler = stage.scheduler();
    stage.make(with_claim("bad", "c"));
    let note = told(&stage, "bad");
    assert!(note.contains("DynamicResources") && note.contains("c"), "{note}");
    stage.make(pod("good"));
    assert_eq!(stage.wait_until_bound("good"), "a");
    stage.cluster().faults().clear();
    assert_eq!(stage.wait_until_bound("bad"), "a");
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_driver_that_never_answers() {
    let stage = stage_with(DeviceDriver {
        delay: Duration::from_millis(5),
        binding_condition: Some("attached".to_owned()),
        answer: BindingAnswer::Never,
        ..DeviceDriver::default()
    });
    make_node_with(&stage, "a", 1);
    claim(&stage, "c", one_gpu(""));
    let args = "profiles:\n- schedulerName: NAME\n  pluginConfig:\n  - name: DynamicResources\n    args: {bindingTimeout: 1s}\n";
    let _scheduler = stage.scheduler_of(&args.replace("NAME", &stage.name));
    stage.make(with_claim("bad", "c"));
    stage.make(pod("good"));
    assert_eq!(stage.wait_until_bound("good"), "a", "others do not wait for it");
    let note = told(&stage, "bad");
    assert!(note.contains("binding"), "{note}");
}

#[test]
fn a_claim_that_goes_while_its_pod_waits_for_a_device() {
    let stage = stage();
    stage.make(node("b"));
    claim(&stage, "c", one_gpu(""));
    let _scheduler = stage.scheduler();
    stage.make(with_claim("bad", "c"));
    stage.wait_until_rejected("bad");
    stage.cluster().delete("resourceclaims", &stage.name, "c").expect("it is deleted");
    make_node_with(&stage, "a", 1);
    claim(&stage, "well", one_gpu(""));
    stage.make(with_claim("good", "well"));
    assert_eq!(stage.wait_until_bound("good"), "a");
    assert_eq!(stage.node_of("bad"), None);
    claim(&stage, "c", one_gpu(""));
    stage.client.delete(&stage.pod_path("good"));
    wait_until("the device is given back and taken again", || stage.node_of("bad").is_some());
    assert_eq!(stage.cluster().violations(), []);
}
