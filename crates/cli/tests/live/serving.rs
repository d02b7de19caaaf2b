//! What is served while the scheduler runs, to whom, and that nothing holds it up.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use supercargo_extender::TrustsAnybody;
use supercargo_testcluster::{Rule, TestCluster, User};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, StreamOwned, crypto::ring, pki_types::ServerName,
};

use crate::{
    draft::{node, pod},
    guests::Guest,
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

const A_SECOND: Duration = Duration::from_secs(1);

/// Asks for a path and says how long that took.
fn timed(scheduler: &SchedulerProcess, path: &str) -> (Option<u16>, Duration) {
    let began = Instant::now();
    let status = scheduler.get(path).map(|(status, _)| status);
    (status, began.elapsed())
}

#[test]
fn hundreds_of_idle_connections_then_health_is_still_told() {
    let stage = Stage::in_memory();
    let scheduler = stage.scheduler();
    let address = scheduler.address().expect("it serves");
    let idle: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(&address).expect("a connection")).collect();
    for path in ["/livez", "/healthz", "/readyz"] {
        let (status, took) = timed(&scheduler, path);
        assert_eq!(status, Some(200), "{path}");
        assert!(took < A_SECOND, "{path} took {took:?}");
    }
    drop(idle);
}

#[test]
fn a_decision_of_seconds_holds_up_neither_health_nor_the_lease() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    // A single node would be taken without being scored.
    stage.make(node("b"));
    let guest = Guest::new(&crate::guests::prefers("red", "(loop $for_ever (br $for_ever))"));
    // The decision lasts for as long as anybody here looks on, however slow the machine is.
    let profile = format!(
        "profiles: [{{schedulerName: {}, plugins: {{score: {{enabled: [{{name: Colour}}]}}}}, pluginConfig: \
         [{{name: Colour, args: {{guestURL: 'file://{}', fuel: 1000000000000000, timeout: 10m}}}}]}}]",
        stage.name,
        guest.path()
    );
    let namespace = format!("--leader-elect-resource-namespace={}", stage.name);
    let terms = ["--leader-elect=true", "--leader-elect-retry-period=500ms", &namespace];
    let scheduler = stage.start_with(&profile, &terms);
    scheduler.wait_until_ready();
    wait_until("it leads", || scheduler.log().contains("became leader"));
    stage.make(pod("p"));
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/kube-scheduler", stage.name);
    let mut renewals = Vec::new();
    wait_until("the lease is renewed again and again", || {
        assert_eq!(scheduler.get("/livez").map(|(status, _)| status), Some(200));
        assert_eq!(scheduler.get("/metrics").map(|(status, _)| status), Some(200));
        let renewed = stage.client.get(&path).expect("the lease")["spec"]["renewTime"].clone();
        if renewals.last() != Some(&renewed) {
            renewals.push(renewed);
        }
        renewals.len() > 6
    });
    // Three seconds after the pod came, with two empty nodes: it is being decided about.
    assert_eq!(scheduler.metric("scheduler_scheduling_algorithm_duration_seconds_count", ""), 0.0);
    assert_eq!(stage.cluster().bindings(), []);
    assert!(!scheduler.log().contains("the lease is lost"));
}

#[test]
fn the_pages_of_kube_scheduler_are_there() {
    let stage = Stage::in_memory();
    stage.make(node("a").cpu("4"));
    let scheduler = stage
        .scheduler_with("", &["--v=3", "--leader_elect=false", "--disabled-metrics=scheduler_goroutines"]);
    let limited = json!([{"name": "c", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]);
    stage.make(pod("p").with("/spec/containers", limited));
    stage.make(pod("large").cpu("8"));
    stage.wait_until_bound("p");
    stage.wait_until_rejected("large");

    let series = |name: &str, pod: &str, node: &str, resource: &str, unit: &str, value: &str| {
        let (namespace, scheduler) = (&stage.name, &stage.name);
        format!(
            "{name}{{namespace=\"{namespace}\",node=\"{node}\",pod=\"{pod}\",priority=\"0\",\
             resource=\"{resource}\",scheduler=\"{scheduler}\",unit=\"{unit}\"}} {value}\n"
        )
    };
    let node_name = stage.node_name("a");
    let (status, text) = scheduler.get("/metrics/resources").expect("an answer");
    assert_eq!(status, 200);
    for expected in [
        series("kube_pod_resource_request", "p", &node_name, "cpu", "cores", "0.5"),
        series("kube_pod_resource_limit", "p", &node_name, "cpu", "cores", "1"),
        series("kube_pod_resource_limit", "p", &node_name, "memory", "bytes", "1073741824"),
        series("kube_pod_resource_request", "large", "", "cpu", "cores", "8"),
    ] {
        assert!(text.contains(&expected), "{expected} is missing in\n{text}");
    }

    let (status, text) = scheduler.get("/flagz").expect("an answer");
    assert_eq!(status, 200);
    for line in ["kube-scheduler flagz", "v=3", "leader-elect=false", "secure-port=10259"] {
        assert!(text.contains(&format!("\n{line}\n")), "{line} is missing in\n{text}");
    }
    let (status, text) = scheduler.get("/statusz").expect("an answer");
    assert_eq!(status, 200);
    assert!(text.contains("\nPaths: /configz /flagz /healthz /livez /metrics /readyz\n"), "{text}");
    assert_eq!(scheduler.get("/debug/pprof/profile").expect("an answer").0, 501);
    let (_, metrics) = scheduler.get("/metrics").expect("an answer");
    assert!(!metrics.contains("scheduler_goroutines"));
    assert!(metrics.contains("kubernetes_feature_enabled{name=\"ComponentStatusz\",stage=\"BETA\"} 1\n"));
    assert_eq!(scheduler.get("/livez?verbose").expect("an answer").1, "[+]ping ok\nlivez check passed\n");
}

#[test]
fn gates_and_flags_take_pages_away() {
    let stage = Stage::in_memory();
    let gates = "--feature-gates=ComponentFlagz=false,ComponentStatusz=false,SchedulerAsyncPreemption=false";
    let scheduler = stage.scheduler_with("", &[gates, "--profiling=false"]);
    for path in ["/flagz", "/statusz", "/debug/pprof/"] {
        assert_eq!(scheduler.get(path).expect("an answer").0, 404, "{path}");
    }
    assert!(
        scheduler.log().contains("SchedulerAsyncPreemption=false is not honoured"),
        "{}",
        scheduler.log()
    );
}

#[test]
fn what_really_ran_is_measured() {
    let stage = Stage::in_memory();
    stage.make(node("a").cpu("2"));
    let scheduler = stage.scheduler();
    for i in 0..3 {
        let name = format!("p-{i}");
        stage.make(pod(&name).cpu("500m"));
        stage.wait_until_bound(&name);
    }
    stage.make(pod("large").cpu("1500m"));
    stage.wait_until_rejected("large");
    stage.client.delete(&stage.pod_path("p-0"));
    stage.client.delete(&stage.pod_path("p-1"));
    stage.wait_until_bound("large");

    let point = |point: &str| {
        let labels = format!("extension_point=\"{point}\"");
        scheduler.metric("scheduler_framework_extension_point_duration_seconds_count", &labels)
    };
    wait_until("all bindings are counted", || point("PostBind") == 4.0);
    // Four pods were bound; one of them was refused before, and may have been tried once in between.
    for name in ["Score", "Reserve", "Permit", "PreBind", "Bind"] {
        assert_eq!(point(name), 4.0, "{name}");
    }
    assert!(point("Filter") >= 5.0, "{}", point("Filter"));
    assert!(point("PreFilter") >= 1.0);
    let binds =
        scheduler.metric("scheduler_plugin_execution_duration_seconds_count", "plugin=\"DefaultBinder\"");
    assert_eq!(binds, 4.0);
    let bound = |what: &str| {
        let labels = "extension_point=\"Bind\"";
        scheduler.metric(&format!("scheduler_framework_extension_point_duration_seconds_{what}"), labels)
    };
    assert!(bound("sum") > 0.0);
    // A binding is a body that is sent, and a status that comes back.
    for size in ["request", "response"] {
        let sizes =
            |what: &str| scheduler.metric(&format!("rest_client_{size}_size_bytes_{what}"), "verb=\"POST\"");
        assert!(
            sizes("count") >= 4.0 && sizes("sum") > 100.0,
            "{size}: {} in {}",
            sizes("sum"),
            sizes("count")
        );
    }
    let handled = |event: &str| {
        let labels = format!("event=\"{event}\"");
        scheduler.metric("scheduler_event_handling_duration_seconds_count", &labels)
    };
    for (event, at_least) in
        [("NodeAdd", 1.0), ("UnschedulablePodAdd", 4.0), ("AssignedPodAdd", 3.0), ("AssignedPodDelete", 2.0)]
    {
        assert!(handled(event) >= at_least, "{event}: {}", handled(event));
    }
    let hints = "scheduler_queueing_hint_execution_duration_seconds_count";
    assert!(scheduler.metric(hints, "plugin=\"NodeResourcesFit\"") >= 1.0);
    assert!(scheduler.metric("scheduler_preemption_attempts_total", "") >= 1.0);
    assert_eq!(scheduler.metric("scheduler_preemption_victims_count", ""), 0.0);
    wait_until("nothing is in flight", || {
        scheduler.metric("scheduler_inflight_events", "event=\"PodPopped\"") == 0.0
    });
    assert_eq!(scheduler.metric("scheduler_goroutines", "operation=\"binding\""), 0.0);
}

/// A port that nobody listens at.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address").port()
}

/// The status of a page that is asked for with a token, over TLS; `None` while nobody listens.
pub(crate) fn status_with_token(port: u16, path: &str, token: &str) -> Option<u16> {
    let config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustsAnybody(ring::default_provider().into())))
        .with_no_client_auth();
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(config.into(), name).expect("a session");
    let mut stream = StreamOwned::new(session, stream);
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // It may be cut without a farewell.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split_whitespace().nth(1)?.parse().ok()
}

fn kubeconfig(stage: &Stage, name: &str, cluster: &TestCluster) -> String {
    let config: Value = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": cluster.url()}}],
        "users": [{"name": "x", "user": {"token": "admin"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    });
    stage.file(name, &config)
}

#[test]
fn those_are_asked_about_callers_whom_the_flags_name() {
    let stage = Stage::in_memory();
    let who = TestCluster::start(supercargo_testcluster::TestClusterOptions::default()).expect("a free port");
    let may = TestCluster::start(supercargo_testcluster::TestClusterOptions::default()).expect("a free port");
    who.access().add_token("anns-token", User::named("ann"));
    let metrics =
        Rule { verbs: vec!["get".into()], non_resource_urls: vec!["/metrics".into()], ..Rule::default() };
    may.access().grant("ann", metrics);
    let port = free_port();
    let (authentication, authorization) = (kubeconfig(&stage, "who", &who), kubeconfig(&stage, "may", &may));
    let scheduler = stage.start_secure(
        "",
        &[
            "--authentication-kubeconfig",
            &authentication,
            "--authorization-kubeconfig",
            &authorization,
            "--bind-address=127.0.0.1",
            &format!("--secure-port={port}"),
            "--tls-min-version=VersionTLS13",
            "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "--logging-format=json",
            "--profiling=false",
        ],
    );
    wait_until("it serves", || status_with_token(port, "/livez", "") == Some(200));
    let asked = |path, token| status_with_token(port, path, token).expect("an answer");
    assert_eq!(asked("/metrics", "anns-token"), 200, "{}", scheduler.log());
    assert_eq!(asked("/configz", "anns-token"), 403);
    assert_eq!(asked("/metrics", "nobodys-token"), 401);
    // The page is no more open than that, nor is what it asks for.
    for path in ["/ui/", "/ui/main.js", "/supercargo/v1/cluster", "/supercargo/v1/now"] {
        assert_eq!(
            (asked(path, "anns-token"), asked(path, "nobodys-token"), asked(path, "")),
            (403, 401, 403),
            "{path}"
        );
    }
}
