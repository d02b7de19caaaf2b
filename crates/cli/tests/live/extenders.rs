//! Extenders: another process with a HTTP server that is good, hangs, dies and lies.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    draft::{Draft, node, pod},
    extender::ExtenderProcess,
    process::wait_until,
    stage::Stage,
};

const GPU: &str = "example.com/gpu";

/// A pod that is the business of extenders that manage gpus, which no node has.
fn gpu_pod(name: &str) -> Draft {
    let amounts = json!({GPU: "1"});
    pod(name)
        .with("/spec/containers/0/resources/requests", amounts.clone())
        .with("/spec/containers/0/resources/limits", amounts)
}

/// An extender that alone checks gpus.
fn of_gpus(url: &str, more: &str) -> String {
    format!(
        "extenders: [{{urlPrefix: '{url}', nodeCacheCapable: true, httpTimeout: 1s, \
         managedResources: [{{name: {GPU}, ignoredByScheduler: true}}], {more}}}]"
    )
}

#[test]
fn filters_and_scores_count_and_connections_are_kept() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make_all(["a", "b", "c"].map(node));
    let good = extender.url("good");
    let scheduler = stage.scheduler_with(
        &format!(
            "extenders: [{{urlPrefix: '{good}/', filterVerb: filter, prioritizeVerb: prioritize, weight: 5}}]"
        ),
        &[],
    );
    for i in 0..5 {
        stage.make(pod(&format!("p-{i}")));
        assert_eq!(stage.wait_until_bound(&format!("p-{i}")), "c");
    }
    assert_eq!(extender.count("/good/filter"), 5);
    // This one, and the one that asked before.
    assert_eq!(extender.count("connections") - 2, 1);
    let answered = |verb: &str| {
        let labels = format!("verb=\"{verb}\"");
        scheduler.metric("supercargo_extender_calls_total", &format!("result=\"answered\",{labels}"))
    };
    assert_eq!((answered("filter"), answered("prioritize")), (5.0, 5.0));
}

#[test]
fn names_are_enough_for_those_that_know_the_nodes_and_they_check_their_resources_alone() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make_all(["a", "b"].map(node));
    let _scheduler = stage.scheduler_with(&of_gpus(&extender.url("good"), "filterVerb: filter"), &[]);
    stage.make(gpu_pod("gpu"));
    assert_eq!(stage.wait_until_bound("gpu"), "b");
    stage.make(pod("plain"));
    stage.wait_until_bound("plain");
    assert_eq!(extender.count("/good/filter"), 1);
}

#[test]
fn a_pod_is_told_what_the_extender_does_not_like() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make_all(["a", "b"].map(node));
    let url = extender.url("refuses");
    let _scheduler =
        stage.scheduler_with(&format!("extenders: [{{urlPrefix: '{url}', filterVerb: filter}}]"), &[]);
    stage.make(pod("p"));
    let message = stage.wait_until_rejected("p");
    assert!(message.starts_with("0/2 nodes are available: 2 the extender does not like it."), "{message}");
    // Anything may help: a node that comes is asked about.
    stage.make(node("c"));
    wait_until("it is asked again", || extender.count("/refuses/filter") > 1);
}

#[test]
fn one_that_hangs_stalls_only_its_own_pods() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let scheduler = stage.scheduler_with(&of_gpus(&extender.url("hangs"), "filterVerb: filter"), &[]);
    stage.make(gpu_pod("gpu"));
    wait_until("it is asked", || extender.count("/hangs/filter") > 0);
    stage.make(pod("plain"));
    stage.wait_until_bound("plain");
    let event = stage.wait_for_event("gpu", "FailedScheduling");
    let note = event["note"].as_str().unwrap_or_default();
    assert!(note.ends_with("/hangs/filter has not answered for 1 s"), "{note}");
    assert!(scheduler.metric("supercargo_extender_calls_total", "result=\"timeout\"") >= 1.0);
}

#[test]
fn one_that_dies_in_the_middle_is_asked_again_when_it_is_back() {
    let mut extender = ExtenderProcess::start();
    let address = extender.address.clone();
    let stage = Stage::in_memory();
    stage.make(node("b"));
    let _scheduler = stage.scheduler_with(&of_gpus(&extender.url("exits"), "filterVerb: filter"), &[]);
    stage.make(gpu_pod("gpu"));
    let event = stage.wait_for_event("gpu", "FailedScheduling");
    let note = event["note"].as_str().unwrap_or_default();
    assert!(note.starts_with(&format!("extender \"http://{address}/exits\", filter: ")), "{note}");
    extender.kill();
    stage.make(pod("plain"));
    stage.wait_until_bound("plain");
    let back = ExtenderProcess::start_at(&address);
    wait_until("it is asked again", || back.count("connections") > 1);
}

#[test]
fn an_ignorable_one_that_is_dead_is_passed_over_and_then_left_alone() {
    let mut extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let more = "filterVerb: filter, prioritizeVerb: prioritize, weight: 1, ignorable: true";
    let scheduler = stage.scheduler_with(&of_gpus(&extender.url("good"), more), &[]);
    extender.kill();
    for i in 0..6 {
        stage.make(gpu_pod(&format!("gpu-{i}")));
    }
    (0..6).for_each(|i| drop(stage.wait_until_bound(&format!("gpu-{i}"))));
    assert_eq!(scheduler.metric("supercargo_extender_calls_total", "result=\"failed\""), 3.0);
    assert_eq!(scheduler.metric("supercargo_extender_skipped_total", ""), 3.0);
    assert_eq!(scheduler.metric("supercargo_extender_circuit_open", ""), 1.0);
}

#[test]
fn a_prioritizer_that_fails_is_left_out_with_a_metric() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make_all(["a", "b"].map(node));
    let url = extender.url("broken");
    let scheduler = stage
        .scheduler_with(&format!("extenders: [{{urlPrefix: '{url}', prioritizeVerb: p, weight: 1}}]"), &[]);
    stage.make(pod("p"));
    stage.wait_until_bound("p");
    assert_eq!(scheduler.metric("supercargo_extender_scores_left_out_total", ""), 1.0);
}

#[test]
fn scores_above_ten_count_as_they_are_with_a_metric() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    stage.make_all(["a", "b"].map(node));
    let verbs = "prioritizeVerb: prioritize, weight: 1";
    let scheduler = stage.scheduler_with(&of_gpus(&extender.url("lies"), verbs), &[]);
    stage.make(gpu_pod("gpu"));
    stage.wait_until_bound("gpu");
    let odd = scheduler.metric("supercargo_extender_score_anomalies_total", "anomaly=\"out_of_range\"");
    assert_eq!(odd, 2.0, "a score for each node");
}

#[test]
fn a_lie_is_told_with_its_extender_and_harms_nothing_else() {
    let extender = ExtenderProcess::start();
    // (way, verbs, flags, what is told)
    let cases: [(&str, &str, &[&str], &str); 3] = [
        (
            "lies",
            "filterVerb: filter",
            &[],
            "filter: it names the node \"nowhere\", which it was not asked about",
        ),
        (
            "lies",
            "prioritizeVerb: prioritize, weight: 1",
            &["--strict-extenders"],
            "prioritize: it gives 11 to the node ",
        ),
        ("endless", "filterVerb: filter", &[], "filter: the answer is longer than "),
    ];
    for (way, verbs, flags, told) in cases {
        let stage = Stage::in_memory();
        stage.make_all(["a", "b"].map(node));
        let scheduler = stage.scheduler_with(&of_gpus(&extender.url(way), verbs), flags);
        stage.make(gpu_pod("gpu"));
        let event = stage.wait_for_event("gpu", "FailedScheduling");
        let note = event["note"].as_str().unwrap_or_default();
        let named = format!("extender \"{}\", {told}", extender.url(way));
        assert!(note.starts_with(&named), "{note}");
        stage.make(pod("plain"));
        stage.wait_until_bound("plain");
        wait_until("it is tried again", || {
            scheduler.metric("supercargo_extender_calls_total", "result=\"invalid\"") > 1.0
        });
    }
}

/// What is said about twenty pods would be 300 MB, as often as it is kept: as the last failure, in the status, in a record.
#[test]
fn one_that_says_a_lot_then_little_of_it_is_kept_and_logged() {
    const PODS: usize = 20;
    const GROWS_KIB: u64 = 128 << 10;
    let extender = ExtenderProcess::start();
    // (way, pods, how much memory is taken at most)
    for (way, pods, most_kib) in [
        ("wordy", PODS, GROWS_KIB),
        ("wordy-and-broken", PODS, GROWS_KIB / 4),
        ("in-bytes", 1, GROWS_KIB / 2),
    ] {
        let stage = Stage::in_memory();
        stage.make(node("a"));
        let configuration = of_gpus(&extender.url(way), "filterVerb: filter").replace("1s", "30s");
        let scheduler = stage.scheduler_with(&configuration, &["--v=4"]);
        let before_kib = scheduler.peak_kib();
        stage.make_all((0..pods).map(|i| gpu_pod(&format!("gpu-{i}"))));
        for i in 0..pods {
            let mut told = String::new();
            wait_until("its status tells why", || {
                let pod = stage.pod(&format!("gpu-{i}")).expect("it is there");
                told = pod["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
                !told.is_empty()
            });
            assert!(told.len() < 2 << 10, "{way}: {} bytes", told.len());
        }
        let grown_kib = scheduler.peak_kib() - before_kib;
        assert!(grown_kib < most_kib, "{way}: {grown_kib} KiB more");
        let log = scheduler.log();
        let longest = log.lines().map(str::len).max();
        assert!(longest < Some(4 << 10) && log.len() < 1 << 20, "{way}: {longest:?} of {}", log.len());
    }
}

#[test]
fn an_extender_binds_in_the_place_of_the_plugins() {
    let stage = Stage::in_memory();
    let extender = ExtenderProcess::start_for(&stage.cluster().url());
    stage.make(node("a"));
    let scheduler = stage.scheduler_with(&of_gpus(&extender.url("good"), "bindVerb: bind"), &[]);
    stage.make(gpu_pod("gpu"));
    assert_eq!(stage.wait_until_bound("gpu"), "a");
    stage.wait_for_event("gpu", "Scheduled");
    stage.make(pod("plain"));
    stage.wait_until_bound("plain");
    assert_eq!(extender.count("/good/bind"), 1);
    assert_eq!(scheduler.metric("supercargo_extender_calls_total", "verb=\"bind\""), 1.0);
}

#[test]
fn room_is_made_where_the_extender_says() {
    for knows_nodes in [true, false] {
        let extender = ExtenderProcess::start();
        let stage = Stage::in_memory();
        stage.make_priority_classes();
        stage.make_all(["a", "b", "c"].map(|name| node(name).cpu("1")));
        let url = extender.url("good");
        let _scheduler = stage.scheduler_with(
            &format!(
                "extenders: [{{urlPrefix: '{url}', preemptVerb: preempt, nodeCacheCapable: {knows_nodes}}}]"
            ),
            &[],
        );
        for name in ["x", "y", "z"] {
            stage.make(pod(name).cpu("1").class("low"));
            stage.wait_until_bound(name);
        }
        stage.make(pod("high").cpu("1").class("high"));
        assert_eq!(stage.wait_until_bound("high"), "c");
        assert_eq!(extender.count("/good/preempt"), 1);
    }
}

/// Writes an authority, a server's and a client's certificate, and somebody else's.
fn write_certificates(folder: &std::path::Path) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
    let mut authority = CertificateParams::new(vec![]).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer =
        CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("an authority");
    write("ca.pem", &issuer.pem());
    for (name, host) in [("server", "extender.example"), ("client", "supercargo")] {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        write(&format!("{name}.pem"), &params.signed_by(&key, &issuer).expect("signed").pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
}

#[test]
fn tls_with_an_authority_a_server_name_and_a_client_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    write_certificates(folder.path());
    let at = folder.path().display();
    let extender = ExtenderProcess::start_with_tls(&at.to_string());
    let url = extender.url("all").replace("http:", "https:");
    let shows = format!(", certFile: {at}/client.pem, keyFile: {at}/client.key");
    // (TLS settings, is it let in?)
    let cases = [
        (format!("{{caFile: {at}/ca.pem, serverName: extender.example{shows}}}"), true),
        // Without a client certificate, and with a name that the server does not bear.
        (format!("{{caFile: {at}/ca.pem, serverName: extender.example}}"), false),
        (format!("{{caFile: {at}/ca.pem{shows}}}"), false),
        (format!("{{insecure: true{shows}}}"), true),
    ];
    for (tls, works) in cases {
        let stage = Stage::in_memory();
        stage.make(node("a"));
        let more = format!("enableHTTPS: true, filterVerb: filter, tlsConfig: {tls}");
        let _scheduler = stage.scheduler_with(&of_gpus(&url, &more), &[]);
        stage.make(gpu_pod("gpu"));
        if works {
            stage.wait_until_bound("gpu");
        } else {
            stage.wait_for_event("gpu", "FailedScheduling");
            assert_eq!(stage.node_of("gpu"), None);
        }
    }
}

fn supercargo(arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_supercargo")).args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    assert!(output.status.success(), "{}", text(output.stderr));
    (text(output.stdout), text(output.stderr))
}

#[test]
fn a_password_in_an_address_is_told_to_nobody() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let line = "extenders: [{urlPrefix: 'http://user:hunter2@127.0.0.1:1/x', filterVerb: f}]";
    let scheduler = stage.scheduler_with(line, &["--v=4"]);
    stage.make(pod("p"));
    let event = stage.wait_for_event("p", "FailedScheduling");
    let (_, page) = scheduler.get("/supercargo/v1/configuration").expect("a page");
    let (_, configz) = scheduler.get("/configz").expect("a page");
    let (_, metrics) = scheduler.get("/metrics").expect("metrics");
    let log = scheduler.log();
    assert!(log.contains("each call sends every node in full") && log.contains("filterVerb: f"), "{log}");
    assert!(page.contains("each call sends every node in full"), "{page}");
    for told in [log, page, configz, metrics, event.to_string()] {
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn simulate_and_explain_ask_extenders_and_show_their_say() {
    let extender = ExtenderProcess::start();
    let stage = Stage::in_memory();
    let objects = ["a", "b", "c"].map(|name| node(name).0).into_iter().chain([pod("p").0]);
    // Good extenders go by how the names end.
    let objects: Vec<Value> = objects
        .map(|mut object| {
            let name = format!("x-{}", object["metadata"]["name"].as_str().unwrap_or_default());
            object["metadata"]["name"] = name.into();
            object
        })
        .collect();
    let cluster = stage.file("cluster.json", &json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    let url = extender.url("good");
    let config = stage.file(
        "config.json",
        &json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5}]}),
    );
    let given = ["--cluster", &cluster, "--config", &config, "-o", "json"];
    let (explained, _) = supercargo(&[&["explain", "x-p"], &given[..]].concat());
    let explained: Value = serde_json::from_str(&explained).expect("JSON");
    assert_eq!(explained["placed"], "x-c");
    assert_eq!(explained["feasible"], json!(["x-b", "x-c"]));
    assert_eq!(explained["plugins"][&url], json!({"weight": 5, "scores": [10, 100]}));
    let raw = |place: usize| explained["nodes"][place]["plugins"][&url]["raw"].clone();
    assert_eq!([raw(0), raw(1)], [json!(10), json!(1)], "the best first");
    assert_eq!(explained["rejected"]["x-a"]["plugin"], *url);
    let (table, _) = supercargo(&["explain", "x-p", "--cluster", &cluster, "--config", &config]);
    assert!(table.contains("100×5=500") && table.contains("the extender does not like it"), "{table}");

    let (simulated, _) = supercargo(&[&["simulate"], &given[..]].concat());
    assert!(simulated.contains(r#""placed":"x-c""#), "{simulated}");
    let (without, told) = supercargo(&[&["simulate", "--no-extenders"], &given[..]].concat());
    assert!(!without.contains(&url) && told.contains("extenders are not called"), "{told}");
}
