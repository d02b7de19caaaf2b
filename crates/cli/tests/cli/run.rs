//! `supercargo run` before it runs: flags, configurations, and what is told about them.

use crate::invocation::{project, run, supercargo};

#[test]
fn a_flag_that_is_not_there_is_named_with_the_reason() {
    let ran = supercargo("run --tls-cipher-suites=TLS_AES_128_GCM_SHA256");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("unexpected argument '--tls-cipher-suites'"), "{ran}");
    assert!(ran.stderr.contains("hint: kube-scheduler has this flag, supercargo has not"), "{ran}");
    let ran = supercargo("run --no-such-flag");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--no-such-flag") && !ran.stderr.contains("kube-scheduler has"), "{ran}");
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
    let ran = supercargo("demo --nodes 30 --rate 40 --for 3s --port 0");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("not a Kubernetes cluster"), "{ran}");
    assert!(ran.stdout.contains("bound, 0 rules broken"), "{ran}");
    let bound: usize = ran.stdout.split(' ').nth(3).and_then(|word| word.parse().ok()).unwrap_or_default();
    assert!(bound > 10, "{ran}");
}
