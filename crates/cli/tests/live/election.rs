//! Several instances, of which one works.

use serde_json::{Value, json};
use supercargo_testcluster::User;

use crate::{
    load::{PODS, all_is_well, loaded_stage, make_pods, slow_bindings, wait_for_bindings},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

/// An instance that takes part in an election with short terms. The server knows it by a name of its own.
fn instance(stage: &Stage, name: &str) -> SchedulerProcess {
    stage.cluster().access().add_token(name, User::named(name));
    let kubeconfig = stage.file(
        &format!("{name}.kubeconfig"),
        &json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": {"server": stage.cluster().url()}}],
            "users": [{"name": "e2e", "user": {"token": name}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        }),
    );
    let process = stage.start(
        "",
        &[
            "--kubeconfig",
            &kubeconfig,
            "--leader-elect=true",
            "--leader-elect-lease-duration=3s",
            "--leader-elect-renew-deadline=2s",
            "--leader-elect-retry-period=500ms",
            &format!("--leader-elect-resource-namespace={}", stage.name),
        ],
    );
    wait_until("it serves", || process.answers("/healthz", 200));
    process
}

fn wait_until_leading(process: &SchedulerProcess) {
    wait_until("it leads", || process.log().contains("became leader"));
}

fn holder(stage: &Stage) -> Value {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/kube-scheduler", stage.name);
    stage.client.get(&path).expect("the lease")["spec"]["holderIdentity"].clone()
}

fn bound_by(stage: &Stage, name: &str) -> usize {
    let by = format!("{name}/");
    stage.cluster().bindings().iter().filter(|binding| binding.by.starts_with(&by)).count()
}

#[test]
fn a_frozen_leader_then_the_other_takes_over_and_the_woken_one_binds_nothing_more_and_ends() {
    let stage = loaded_stage();
    slow_bindings(stage.cluster());
    let mut first = instance(&stage, "first");
    wait_until_leading(&first);
    let second = instance(&stage, "second");
    wait_for_bindings(&stage, PODS / 4);
    first.signal("STOP");
    wait_until_leading(&second);
    all_is_well(&stage, &second, PODS);
    let before = bound_by(&stage, "first");
    assert!(before >= PODS / 4 && bound_by(&stage, "second") > 0);
    // Room and work for whoever believes to lead.
    let (_, node) =
        stage.placed(crate::draft::node("new").cpu("8").with("/status/allocatable/pods", "20".into()));
    stage.cluster().create(node).expect("a node");
    first.signal("CONT");
    make_pods(&stage, "later", 20);
    assert_eq!(first.wait_for_end().code(), Some(1), "it ends because it lost the lease");
    all_is_well(&stage, &second, PODS + 20);
    assert_eq!(bound_by(&stage, "first"), before);
}

#[test]
fn asked_to_stop_under_load_then_the_lease_is_given_back_and_another_goes_on_at_once() {
    let stage = loaded_stage();
    slow_bindings(stage.cluster());
    let mut first = instance(&stage, "first");
    wait_until_leading(&first);
    let second = instance(&stage, "second");
    wait_for_bindings(&stage, PODS / 4);
    first.signal("TERM");
    assert_eq!(first.wait_for_end().code(), Some(0));
    assert!(first.log().contains("released lease"));
    all_is_well(&stage, &second, PODS);
    let mut second = second;
    second.signal("TERM");
    assert_eq!(second.wait_for_end().code(), Some(0));
    assert_eq!(holder(&stage).as_str().unwrap_or_default(), "");
}
