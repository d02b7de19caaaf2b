//! What a pod asks for, and what else is read from it.

use supercargo_model::{
    Pod, images,
    ports::{HostPort, Protocol},
};

use crate::support::pod;

/// What must be free for the pod, what it holds where it sits, what scoring assumes of it: cpu in thousandths.
fn cpu(pod: &Pod) -> [i64; 4] {
    let requests = &pod.spec.requests;
    [
        requests.fit.milli_cpu,
        requests.held.milli_cpu,
        requests.held_or_default_milli_cpu,
        requests.score.milli_cpu,
    ]
}

fn container(cpu: &str) -> String {
    format!("{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}")
}

fn sidecar(cpu: &str) -> String {
    format!("{{name: s, restartPolicy: Always, resources: {{requests: {{cpu: {cpu}}}}}}}")
}

#[test]
fn requests() {
    let spec = |init: &[&str], containers: &[&str], more: &str| {
        let (init, containers) = (init.join(", "), containers.join(", "));
        format!("spec: {{initContainers: [{init}], containers: [{containers}], {more}}}")
    };
    let (one, two, five) = (container("1"), container("2"), container("5"));
    let empty = "{name: c}".to_owned();
    // (name, spec, [must be free, held, held with defaults, scored])
    let cases = [
        ("no containers", spec(&[], &[], ""), [0; 4]),
        ("one", spec(&[], &[&two], ""), [2000; 4]),
        ("containers run together", spec(&[], &[&one, &two], ""), [3000; 4]),
        (
            "each one without a request counts 100m where there are defaults",
            spec(&[], &[&one, &empty, &empty], ""),
            [1000, 1000, 1200, 1200],
        ),
        ("an init container runs alone before", spec(&[&five], &[&one, &two], ""), [5000; 4]),
        ("init containers one after another", spec(&[&two, &five, &one], &[], ""), [5000; 4]),
        ("a small one changes nothing", spec(&[&one], &[&one, &two], ""), [3000; 4]),
        ("a sidecar stays", spec(&[&sidecar("1")], &[&two], ""), [3000; 4]),
        // max(2 + 1, 1 + 5)
        ("beside what starts after it", spec(&[&sidecar("1"), &five], &[&two], ""), [6000; 4]),
        // max(2 + 1, 5)
        ("but not before it", spec(&[&five, &sidecar("1")], &[&two], ""), [5000; 4]),
        // max(1 + 2 + 3, 2 + 5, 2 + 3)
        (
            "two sidecars with an init container between",
            spec(&[&sidecar("2"), &five, &sidecar("3")], &[&one], ""),
            [7000; 4],
        ),
        ("overhead is added", spec(&[&five], &[&one], "overhead: {cpu: 250m}"), [5250; 4]),
        (
            "the pod as a whole; scoring looks at its containers",
            spec(&[], &[&one], "resources: {requests: {cpu: 3}}"),
            [3000, 3000, 3000, 1000],
        ),
        (
            "the pod as a whole, with overhead",
            spec(&[], &[&empty], "resources: {requests: {cpu: 3}}, overhead: {cpu: 1}"),
            [4000, 4000, 4000, 1100],
        ),
        (
            "the pod as a whole names another resource",
            spec(&[], &[&empty], "resources: {requests: {memory: 1Gi}}"),
            [0, 0, 100, 100],
        ),
        ("what is below zero is no demand", spec(&[], &[&container("-1")], ""), [0, 0, 0, 0]),
    ];
    for (name, spec, expected) in cases {
        assert_eq!(cpu(&pod("p", &spec)), expected, "{name}");
    }
}

#[test]
fn all_resources_are_summed_by_name() {
    let pod = pod(
        "p",
        "spec: {containers: [
           {name: a, resources: {requests: {cpu: 100m, memory: 1Ki, example.com/gpu: 1, hugepages-2Mi: 2Mi, bananas: 3}}},
           {name: b, resources: {requests: {memory: 1Ki, ephemeral-storage: 5, example.com/gpu: 2, pods: 7}}}]}",
    );
    let fit = &pod.spec.requests.fit;
    assert_eq!((fit.milli_cpu, fit.memory, fit.ephemeral_storage, fit.pods), (100, 2048, 5, 0));
    let scalars: Vec<(&str, i64)> = fit.scalars.iter().map(|(name, n)| (&**name, *n)).collect();
    // A name that is neither known nor has a domain is not counted.
    assert_eq!(scalars, [("example.com/gpu", 3), ("hugepages-2Mi", 2 << 20)]);
    assert_eq!((fit.get("cpu"), fit.get("example.com/gpu"), fit.get("bananas")), (100, 3, 0));
}

#[test]
fn amounts_are_rounded_up_once_summed() {
    // 0.5m + 0.5m = 1m, not 2m; 0.3 + 0.3 = 0.6 bytes are 1 byte.
    let half = "resources: {requests: {cpu: 500u, memory: 300m}}";
    let pod = pod("p", &format!("spec: {{containers: [{{name: a, {half}}}, {{name: b, {half}}}]}}"));
    assert_eq!((pod.spec.requests.fit.milli_cpu, pod.spec.requests.fit.memory), (1, 1));
}

#[test]
fn while_a_pod_is_resized_it_holds_the_most_of_what_is_asked_promised_and_given() {
    let resized = |asked: &str, promised: &str, given: &str, conditions: &str| {
        let status = format!(
            "{{name: c, allocatedResources: {{cpu: {promised}}}, resources: {{requests: {{cpu: {given}}}}}}}"
        );
        let rest = format!(
            "spec: {{containers: [{}]}}, status: {{containerStatuses: [{status}], conditions: [{conditions}]}}",
            container(asked)
        );
        let requests = pod("p", &rest).spec.requests.clone();
        [requests.fit.milli_cpu, requests.held.milli_cpu]
    };
    // [must be free: only what is asked; held]
    assert_eq!(resized("1", "1", "1", ""), [1000, 1000]);
    assert_eq!(resized("3", "1", "1", ""), [3000, 3000]);
    assert_eq!(resized("1", "3", "1", ""), [1000, 3000]);
    assert_eq!(resized("1", "2", "3", ""), [1000, 3000]);
    // A resize that will never fit is not held.
    let infeasible = "{type: PodResizePending, status: 'True', reason: Infeasible}";
    assert_eq!(resized("3", "1", "1", infeasible), [3000, 1000]);
    let deferred = "{type: PodResizePending, status: 'True', reason: Deferred}";
    assert_eq!(resized("3", "1", "1", deferred), [3000, 3000]);
}

#[test]
fn the_same_goes_for_what_is_asked_for_a_pod_as_a_whole() {
    let resized = |asked: &str, promised: &str, given: &str| {
        let status =
            format!("{{allocatedResources: {{cpu: {promised}}}, resources: {{requests: {{cpu: {given}}}}}}}");
        let rest = format!(
            "spec: {{resources: {{requests: {{cpu: {asked}}}}}, containers: [{}]}}, status: {status}",
            container("500m")
        );
        let requests = pod("p", &rest).spec.requests.clone();
        [requests.fit.milli_cpu, requests.held.milli_cpu]
    };
    // [must be free: only what is asked; held]
    assert_eq!(resized("1", "1", "1"), [1000, 1000]);
    assert_eq!(resized("3", "1", "1"), [3000, 3000]);
    assert_eq!(resized("1", "3", "1"), [1000, 3000]);
    assert_eq!(resized("1", "2", "3"), [1000, 3000]);
}

#[test]
fn host_ports() {
    let pod = pod(
        "p",
        "spec: {
          initContainers: [
            {name: i, ports: [{hostPort: 1}]},
            {name: s, restartPolicy: Always, ports: [{hostPort: 2, protocol: UDP}]}],
          containers: [
            {name: a, ports: [{containerPort: 80}, {hostPort: 80, hostIP: 127.0.0.1}, {hostPort: 0}]},
            {name: b, ports: [{hostPort: 81, hostIP: '', protocol: SCTP}]}]}",
    );
    let ports: Vec<(&str, Protocol, i32)> =
        (pod.spec.host_ports.iter()).map(|p| (&*p.address, p.protocol, p.port)).collect();
    // Init containers are done by the time others come.
    assert_eq!(
        ports,
        [("0.0.0.0", Protocol::UDP, 2), ("127.0.0.1", Protocol::TCP, 80), ("0.0.0.0", Protocol::SCTP, 81)]
    );
}

#[test]
fn ports_conflict_by_number_protocol_and_address() {
    let port = |address: &str, protocol, port| HostPort { address: address.into(), protocol, port };
    let (any, local, other) = ("0.0.0.0", "127.0.0.1", "10.0.0.1");
    // (one, other, conflict)
    let cases = [
        (port(any, Protocol::TCP, 80), port(any, Protocol::TCP, 80), true),
        (port(any, Protocol::TCP, 80), port(local, Protocol::TCP, 80), true),
        (port(local, Protocol::TCP, 80), port(local, Protocol::TCP, 80), true),
        (port(local, Protocol::TCP, 80), port(other, Protocol::TCP, 80), false),
        (port(any, Protocol::TCP, 80), port(any, Protocol::UDP, 80), false),
        (port(any, Protocol::TCP, 80), port(any, Protocol::TCP, 81), false),
    ];
    for (one, other, expected) in cases {
        assert_eq!(one.conflicts(&other), expected, "{one:?} {other:?}");
        assert_eq!(other.conflicts(&one), expected, "{other:?} {one:?}");
    }
}

#[test]
fn image_names_without_a_tag_mean_latest() {
    let cases = [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("registry:5000/web", "registry:5000/web:latest"),
        ("registry:5000/web:1", "registry:5000/web:1"),
        ("a/b/c", "a/b/c:latest"),
        // The last colon is that of the digest, and counts as a tag.
        ("web@sha256:0f", "web@sha256:0f"),
        ("", ":latest"),
    ];
    for (name, expected) in cases {
        assert_eq!(&*images::normalized(name), expected, "{name}");
    }
}

#[test]
fn defaults_of_what_is_not_written() {
    let bare = pod("p", "spec: {}");
    assert_eq!((&*bare.namespace, &*bare.uid), ("default", "default/p"));
    assert_eq!((&*bare.spec.scheduler_name, bare.spec.priority), ("default-scheduler", 0));
    assert_eq!(
        (&bare.node, &bare.nominated_node, bare.terminating, bare.finished),
        (&None, &None, false, false)
    );
    // Empty is as good as absent, and so is null.
    let empty = pod(
        "p",
        "spec: {schedulerName: '', nodeName: '', containers: null, tolerations: null, priority: null}",
    );
    assert_eq!((&empty.spec, &empty.node), (&bare.spec, &None));
    let ended = |phase: &str| pod("p", &format!("status: {{phase: {phase}}}")).finished;
    assert!(ended("Succeeded") && ended("Failed"));
    assert!(!ended("Running") && !ended("Pending"));
}

#[test]
fn only_a_condition_that_holds_says_that_a_pod_was_preempted() {
    // (type, status, reason, whether it was preempted)
    let cases = [
        ("DisruptionTarget", "\"True\"", "PreemptionByScheduler", true),
        ("DisruptionTarget", "\"False\"", "PreemptionByScheduler", false),
        ("DisruptionTarget", "\"True\"", "EvictionByEvictionAPI", false),
        ("Ready", "\"True\"", "PreemptionByScheduler", false),
    ];
    for (kind, status, reason, expected) in cases {
        let ready = "{type: Initialized, status: \"True\", reason: Whatever}";
        let condition = format!("{{type: {kind}, status: {status}, reason: {reason}}}");
        let pod = pod("p", &format!("status: {{conditions: [{ready}, {condition}]}}"));
        assert_eq!(pod.preempted, expected, "{condition}");
    }
    assert!(!pod("p", "status: {conditions: []}").preempted);
}

#[test]
fn a_null_selector_is_an_absent_one() {
    let with = |selector: &str| {
        let constraint =
            format!("{{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule{selector}}}");
        pod("p", &format!("spec: {{topologySpreadConstraints: [{constraint}]}}"))
            .spec
            .spread_constraints
            .clone()
    };
    assert_eq!(with(", labelSelector: null"), with(""));
    assert_ne!(with(", labelSelector: {}"), with(""));
}

#[test]
fn limits() {
    let limited = |cpu: &str| format!("{{name: c, resources: {{limits: {{cpu: {cpu}}}}}}}");
    let sidecar = "{name: s, restartPolicy: Always, resources: {limits: {cpu: 1}}}";
    let spec = |init: &[&str], containers: &[&str], more: &str| {
        let (init, containers) = (init.join(", "), containers.join(", "));
        format!("spec: {{initContainers: [{init}], containers: [{containers}], {more}}}")
    };
    let (one, two, five) = (limited("1"), limited("2"), limited("5"));
    let cases = [
        ("nothing is limited", spec(&[], &["{name: c}"], "overhead: {cpu: 1}"), None),
        ("containers run together", spec(&[], &[&one, &two], ""), Some(3000)),
        ("an init container runs alone", spec(&[&five], &[&one, &two], ""), Some(5000)),
        // max(2 + 1, 1 + 5)
        ("a sidecar stays", spec(&[sidecar, &five], &[&two], ""), Some(6000)),
        ("what is limited has its overhead", spec(&[], &[&one], "overhead: {cpu: 250m}"), Some(1250)),
        ("the pod as a whole", spec(&[], &[&one], "resources: {limits: {cpu: 4}}"), Some(4000)),
    ];
    for (name, spec, expected) in cases {
        assert_eq!(pod("p", &spec).limits.as_ref().map(|limits| limits.milli_cpu), expected, "{name}");
    }
}

#[test]
fn claims_to_devices() {
    let named = pod(
        "p",
        "spec: {containers: [], resourceClaims: [{name: a, resourceClaimName: mine}, {name: b, \
         resourceClaimTemplateName: t}]}, status: {resourceClaimStatuses: [{name: b, resourceClaimName: made}], \
         extendedResourceClaimStatus: {resourceClaimName: x, requestMappings: [{containerName: c, resourceName: r, \
         requestName: q}]}}",
    );
    let names: Vec<_> = named
        .spec
        .resource_claims
        .iter()
        .map(|claim| (&*claim.name, claim.resource_claim_name.as_deref()))
        .collect();
    assert_eq!(names, [("a", Some("mine")), ("b", None)]);
    let made = named.claims.clone().unwrap();
    assert_eq!(made.generated[0].resource_claim_name.as_deref(), Some("made"));
    assert_eq!(&*made.extended.as_ref().unwrap().request_mappings[0].resource_name, "r");
    assert_eq!(pod("p", "spec: {containers: []}").claims, None);
}

#[test]
fn features_of_the_kubelet_that_a_pod_needs() {
    let rule = |action: &str| format!("[{{name: c, restartPolicyRules: [{{action: {action}}}]}}]");
    let (all, one) = (rule("RestartAllContainers"), rule("Restart"));
    let (restart, users) = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport");
    // (spec, features)
    let cases: [(&str, &[&str]); 10] = [
        ("containers: []", &[]),
        ("containers: [], hostNetwork: true", &[]),
        ("containers: [], hostUsers: false", &[]),
        ("containers: [], hostNetwork: true, hostUsers: true", &[]),
        ("containers: [], hostNetwork: false, hostUsers: false", &[]),
        ("containers: [], hostNetwork: true, hostUsers: false", &[users]),
        (&format!("containers: {one}"), &[]),
        (&format!("containers: {all}"), &[restart]),
        (&format!("initContainers: {all}, containers: {one}"), &[restart]),
        (&format!("containers: {all}, hostNetwork: true, hostUsers: false"), &[restart, users]),
    ];
    for (spec, expected) in cases {
        let pod = pod("p", &format!("spec: {{{spec}}}"));
        assert!(
            pod.spec.required_features.iter().map(|feature| &**feature).eq(expected.iter().copied()),
            "{spec}"
        );
    }
}
