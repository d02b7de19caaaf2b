//! `supercargo run` before it runs: flags, configurations, and what is told about them.

use crate::invocation::{project, run, supercargo};

#[test]
fn a_flag_that_is_not_there_is_named_with_the_reason_if_there_is_one() {
    for (flag, why) in [
        ("--port=0", "hint: kube-scheduler has had no insecure port since 1.24"),
        ("--audit-log-path=x", "hint: audit flags are kube-apiserver's"),
        ("--policy-config-file=x", "supercargo config migrate"),
    ] {
        let ran = supercargo(&format!("run {flag}"));
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("unexpected argument") && ran.stderr.contains(why), "{ran}");
    }
    let ran = supercargo("run --no-such-flag");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--no-such-flag") && !ran.stderr.contains("hint: kube-scheduler"), "{ran}");
}

/// kubeadm's flags, and those of hardening guides. The configuration is written, so that it ends.
#[test]
fn what_others_start_kube_scheduler_with_starts_it() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf \
         --authorization-kubeconfig=/etc/kubernetes/scheduler.conf --bind-address=127.0.0.1 \
         --kubeconfig=/etc/kubernetes/scheduler.conf --leader-elect=true",
        "--profiling=false --contention-profiling=false --tls-min-version=VersionTLS12 \
         --tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 \
         --tls-curve-preferences=23,29 --disable-http2-serving --http2-max-streams-per-connection=100 -v=4",
        "--feature-gates=GangScheduling=true --feature-gates kube:AllBeta=true --vmodule=attempt=5,lease*=4 \
         --logging-format=text --log-flush-frequency=1s --emulated-version=kube=1.36",
        "--logging-format=json --logging_format=json --log-json-split-stream=true \
         --feature-gates=LoggingAlphaOptions=true --kube-api-content-type=application/json",
        "--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt --requestheader-allowed-names=a,b \
         --requestheader-username-headers=X-Remote-User --authentication-skip-lookup --permit-port-sharing=1 \
         --permit-address-sharing --tls-sni-cert-key=a.crt,a.key:*.example.com --tls-sni-cert-key=b.crt,b.key",
        "--show-hidden-metrics-for-version=1.35 --disabled-metrics=a,b --allow-metric-labels=a,b='c,d' \
         --pod-max-in-unschedulable-pods-duration=90s --min-compatibility-version=1.35 --leader-elect=f \
         --leader-elect-resource-lock=leases --authentication-token-webhook-cache-ttl=1m",
    ] {
        let ran = run(folder.path(), &format!("run --write-config-to out.yaml {flags}"), "");
        assert_eq!(ran.code, Some(0), "{flags}: {ran}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_a_hint() {
    for (flags, told) in [
        ("--feature-gates=GangSheduling=true", "did you mean GangScheduling?"),
        ("--emulated-version=1.35", "this is a scheduler of 1.36"),
        ("--leader-elect-resource-lock=endpoints", "the lock is a Lease"),
        ("--show-hidden-metrics-for-version=1.2", "say 1.35"),
        ("--tls-cipher-suites=TLS_NONSENSE", "there is no cipher suite"),
        ("--tls-curve-preferences=1", "there is no key exchange of number 1"),
        ("--log-text-split-stream", "add --feature-gates=LoggingAlphaOptions=true"),
        ("--vmodule=a=1 --logging-format=json", "only supported for the text log format"),
        ("--tls-min-version=TLS1.2", "VersionTLS12"),
        ("--tls-sni-cert-key=a.crt", "foo.crt,foo.key"),
        ("--profiling=perhaps", "neither true nor false"),
    ] {
        let ran = supercargo(&format!("run {flags}"));
        assert_eq!(ran.code, Some(2), "{flags}: {ran}");
        assert!(ran.stderr.contains(told), "{flags}: {ran}");
    }
}

#[test]
fn the_version_is_that_of_the_kube_scheduler_it_stands_in_for() {
    let ran = supercargo("run --version");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("Kubernetes v1.36.4+supercargo."), "{ran}");
}

#[test]
fn the_configuration_is_written_as_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "--leader-elect=false --leader-elect-lease-duration 20s --kube-api-qps 7";
    let ran = run(folder.path(), &format!("run --write-config-to out.yaml {flags}"), "");
    assert_eq!(ran.code, Some(0), "{ran}");
    let written = std::fs::read_to_string(folder.path().join("out.yaml")).unwrap();
    for part in ["leaderElect: false", "leaseDuration: 20s", "qps: 7", "schedulerName: default-scheduler"] {
        assert!(written.contains(part), "{part} is missing in\n{written}");
    }
    let checked = run(folder.path(), "config check out.yaml", "");
    assert_eq!(checked.code, Some(0), "{checked}");
}

#[test]
fn a_configuration_without_limit_is_written_and_read_again_without_limit() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for (flags, limit) in [("", "qps: -1"), ("--kube-api-qps 0", "qps: -1"), ("--kube-api-qps 7", "qps: 7")] {
        let ran = run(folder.path(), &format!("run --write-config-to once.yaml {flags}"), "");
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(read("once.yaml").contains(limit), "{flags}");
        let again = run(folder.path(), "run --config once.yaml --write-config-to twice.yaml", "");
        assert_eq!(again.code, Some(0), "{again}");
        assert_eq!(read("once.yaml"), read("twice.yaml"), "{flags}");
        let effective = run(folder.path(), "config effective once.yaml -o yaml", "");
        assert_eq!(effective.stdout, read("once.yaml"), "{flags}");
    }
}

#[test]
fn a_bad_flag_or_configuration_is_told_before_anything_starts() {
    let cases = [
        ("run --leader-elect-retry-period soon", "is not a duration such as 90s"),
        ("run --config no-such-file.yaml", "there is no such file"),
        ("run --config examples/pods.yaml", "error"),
        ("run --tls-cert-file tls.crt", "--tls-private-key-file"),
        ("run --kubeconfig no-such-kubeconfig", "no-such-kubeconfig"),
        ("run --master ftp://x", "the master's address makes no sense"),
    ];
    for (arguments, told) in cases {
        let ran = run(&project(), arguments, "");
        assert_eq!(ran.code, Some(2), "{arguments}: {ran}");
        assert!(ran.stderr.contains(told), "{arguments}: {ran}");
        assert_eq!(ran.stdout, "", "{arguments}");
    }
}

#[test]
fn extenders_that_cannot_be_called_are_told_before_anything_starts() {
    let header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let cases = [
        ("urlPrefix: 'ftp://x', filterVerb: f", "the extender's urlPrefix makes no sense: \"ftp://x\""),
        (
            "urlPrefix: 'https://x', filterVerb: f, tlsConfig: {caFile: /nowhere/ca.pem}",
            "extender https://x: caFile /nowhere/ca.pem cannot be read",
        ),
    ];
    for (extender, told) in cases {
        let text = format!("{header}extenders: [{{{extender}}}]\n");
        let ran = run(&project(), "run --master http://127.0.0.1:1 --config -", &text);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(told) && ran.stderr.contains("hint"), "{ran}");
    }
}

#[test]
fn in_the_clear_it_serves_this_machine_only() {
    let ran = supercargo("run --master http://127.0.0.1:1 --leader-elect=false --insecure-address 0.0.0.0:0");
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("loopback"), "{ran}");
}

#[test]
fn the_demo_ends_by_itself_and_breaks_no_rule() {
    let ran = supercargo("demo --nodes 30 --rate 40 --for 8s --port 0 --page-port 0");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("not a Kubernetes cluster"), "{ran}");
    assert!(ran.stdout.starts_with("the page:  http://127.0.0.1:"), "{ran}");
    // In a pipe there are plain lines, in the order in which things happen.
    let chapters = [
        "== The cluster fills.",
        "== A pod asks for 64 cores.",
        "== A rolling update: shop becomes shop:2.",
        "shop after the update: zone-a ",
        " fails, and ",
        " is back.",
        "== Training takes the ",
        "== 2 urgent pods want two GPUs each",
        "What was shown",
        "a cluster filling up: zone-a ",
        "a pod that waits: whale, because 0/30 nodes are available: ",
        "a rolling update: shop stays spread over the zones (zone-a 2, zone-b 2, zone-c 2)",
        "supercargo explain NAMESPACE/POD",
    ];
    let mut rest = &*ran.stdout;
    for chapter in chapters {
        let (_, after) = rest.split_once(chapter).unwrap_or_else(|| panic!("{chapter}: {ran}"));
        rest = after;
    }
    assert!(!ran.stdout.contains('\x1b'), "{ran}");
    assert!(ran.stdout.contains("preemptions, 0 invariant violations"), "{ran}");
    let (_, bound) = ran.stdout.rsplit_once("pods created, ").expect("counts");
    let bound: usize = bound.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default();
    assert!(bound > 10, "{ran}");
}
