//! A running scheduler that is asked why: its API, the command that asks it, its decision log, events and logs.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

use serde_json::{Value, json};
use supercargo_testcluster::{Rule, User};

use crate::{
    draft::{node, pod},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

fn supercargo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supercargo"));
    command.args(arguments).env("COLUMNS", "200").output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn answer(scheduler: &SchedulerProcess, path: &str) -> (u16, Value) {
    let (status, text) = scheduler.get(path).expect("an answer");
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")))
}

#[test]
fn decisions_when_they_were_made_then_they_are_told_and_explained() {
    let stage = Stage::in_memory();
    stage.make_all([node("a").cpu("4"), node("b").cpu("2")]);
    let scheduler = stage.scheduler();
    stage.make(pod("p").cpu("1"));
    let bound_to = stage.node_name(&stage.wait_until_bound("p"));
    stage.make(pod("large").cpu("8"));
    stage.wait_until_rejected("large");
    let (p, large) = (format!("{}/p", stage.name), format!("{}/large", stage.name));

    let (_, all) = answer(&scheduler, "/supercargo/v1/decisions");
    let decisions = all["decisions"].as_array().expect("a list");
    assert_eq!(decisions[0]["pod"], large, "the newest first: {all}");
    assert!(
        decisions[0]["message"].as_str().is_some_and(|message| message.contains("2 Insufficient cpu")),
        "{all}"
    );
    let (_, of_p) = answer(&scheduler, &format!("/supercargo/v1/decisions?pod={p}&limit=1"));
    let decision = &of_p["decisions"][0];
    assert_eq!((&decision["result"], &decision["node"]), (&json!("Scheduled"), &json!(bound_to)), "{of_p}");
    assert_eq!((&decision["feasible"], &decision["attempt"]), (&json!(2), &json!(1)), "{of_p}");
    assert!(decision["total"].is_i64() && decision["time"].is_string(), "{of_p}");

    let (_, queue) = answer(&scheduler, "/supercargo/v1/queue");
    assert_eq!((&queue["count"], &queue["pods"][0]["pod"]), (&json!(1), &json!(large)), "{queue}");
    assert_eq!(queue["pods"][0]["refusedBy"], json!(["NodeResourcesFit"]), "{queue}");

    let node_a = stage.node_name("a");
    let (_, explained) = answer(&scheduler, &format!("/supercargo/v1/explain?pod={large}&node={node_a}"));
    assert_eq!((&explained["basis"], &explained["result"]), (&json!("what-if"), &json!("Unschedulable")));
    let detail = explained["whyNot"][0]["objections"][0]["details"][0]["text"].as_str().expect("a text");
    assert!(detail.starts_with("needs 8 cpu, "), "{detail}");

    for (path, status) in [("?pod=none", 404), ("", 400), ("?pod=a/b/c", 400)] {
        let (answered, told) = answer(&scheduler, &format!("/supercargo/v1/explain{path}"));
        assert!(answered == status && told["message"].is_string(), "{path}: {answered} {told}");
    }
}

#[test]
fn the_command_asks_a_running_scheduler() {
    let stage = Stage::in_memory();
    stage.make_all([node("a").cpu("4"), node("b").cpu("2")]);
    let scheduler = stage.scheduler();
    stage.make(pod("p").cpu("1"));
    let bound_to = stage.node_name(&stage.wait_until_bound("p"));
    let url = format!("http://{}", scheduler.address().expect("it serves"));
    let (node_b, namespace) = (stage.node_name("b"), stage.name.as_str());
    let ran = supercargo(&["explain", "pod/p", "-n", namespace, "--server", &url, "--node", &node_b]);
    let table = text(&ran.stdout);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    // Decided without itself it comes to the same, and nobody is disturbed by the question.
    assert!(
        table.starts_with(&format!("{namespace}/p runs on {bound_to}, and would go there now\n")),
        "{table}"
    );
    assert!(table.contains(&format!("Why not {node_b}")), "{table}");
    assert_eq!(stage.node_of("p").map(|node| stage.node_name(&node)), Some(bound_to));
    let unknown = supercargo(&["explain", "q", "--server", &url]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("there is no pod default/q"), "{}", text(&unknown.stderr));
}

#[test]
fn only_those_are_answered_who_may_ask() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let mut access = stage.cluster().access();
    access.add_token("anns-token", User::named("ann"));
    access.add_token("bobs-token", User::named("bob"));
    let explain = Rule {
        verbs: vec!["get".into()],
        non_resource_urls: vec!["/supercargo/v1/explain".into()],
        ..Rule::default()
    };
    access.grant("ann", explain);
    // What system:discovery grants to everybody whom a cluster knows.
    let discovery = Rule {
        verbs: vec!["get".into()],
        non_resource_urls: ["/api", "/api/*", "/apis", "/apis/*"].map(Into::into).into(),
        ..Rule::default()
    };
    access.grant("bob", discovery);
    drop(access);
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let profiles = format!("profiles: [{{schedulerName: {}}}]", stage.name);
    let flags = ["--bind-address=127.0.0.1", &format!("--secure-port={port}")];
    let scheduler = stage.start_secure(&profiles, &flags);
    stage.make(pod("p"));
    stage.wait_until_bound("p");
    let url = format!("https://127.0.0.1:{port}");
    let ask = |more: &[&str]| {
        let given = ["explain", "p", "-n", &stage.name, "--server", &url];
        let ran = supercargo(&[&given[..], more].concat());
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let unchecked = "--insecure-skip-tls-verify";
    wait_until("it serves", || ask(&[unchecked, "--token", "anns-token"]).0 == Some(0));
    let file = stage.file("token", &json!("nobodys-token"));
    for (flags, told) in [
        (
            vec![unchecked, "--token", "bobs-token"],
            "--token that may get the non-resource URL /supercargo/v1/explain",
        ),
        (vec![unchecked, "--token-file", &file], "refuses"),
        (vec![unchecked], "refuses"),
        (vec!["--token", "anns-token"], "does not answer"),
    ] {
        let (code, _, stderr) = ask(&flags);
        assert!(code == Some(2) && stderr.contains(told), "{flags:?}: {stderr}{}", scheduler.log());
    }
}

#[test]
fn full_decisions_go_to_a_file_and_events_say_why() {
    let stage = Stage::in_memory();
    stage.make_all([node("a").cpu("4"), node("b").cpu("2")]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("decisions.jsonl");
    let log = format!("--decision-log={}", file.display());
    let flags = [log.as_str(), "--decision-log-max-size=3k", "--decision-log-files=3", "--explain-in-events"];
    let mut scheduler = stage.scheduler_with("", &flags);
    for i in 0..6 {
        let name = format!("p-{i}");
        stage.make(pod(&name).cpu("500m"));
        stage.wait_until_bound(&name);
    }
    let note = stage.wait_for_event("p-0", "Scheduled")["note"].as_str().expect("a note").to_owned();
    assert!(note.starts_with(&format!("Successfully assigned {}/p-0 to ", stage.name)), "{note}");
    assert!(note.contains(": highest total, ") && note.contains(" of 2 feasible nodes"), "{note}");
    scheduler.signal("TERM");
    scheduler.wait_for_end();
    let written = std::fs::read_to_string(&file).expect("the log");
    let line = written.lines().last().expect("a line");
    let decision: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!((&decision["result"], &decision["attempt"]), (&json!("Scheduled"), &json!(1)), "{line}");
    assert_eq!(decision["feasible"].as_array().map(Vec::len), Some(2), "{line}");
    assert!(decision["plugins"]["NodeResourcesFit"]["scores"].is_array(), "{line}");
    // Each line has some 900 bytes, so that three fit into a file of 3 kB.
    let files = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert!((2..=3).contains(&files), "{files} files of {} bytes a line", line.len());
}

#[test]
fn logs_tell_the_times_of_extension_points_and_who_refused_which_node() {
    let stage = Stage::in_memory();
    stage.make_all([node("a").cpu("4"), node("c").cpu("4"), node("b").cordoned()]);
    let scheduler = stage.scheduler_with("", &["--v=10"]);
    stage.make(pod("p").cpu("1"));
    stage.wait_until_bound("p");
    let log = scheduler.log();
    for point in ["filter", "score", "reserve"] {
        let told =
            |line: &&str| line.contains("extension point") && line.contains(point) && line.contains("took");
        assert!(log.lines().any(|line| told(&line)), "{point} is missing in\n{log}");
    }
    let refused = |line: &&str| line.contains("node refused") && line.contains("NodeUnschedulable");
    assert!(log.lines().any(|line| refused(&line)), "{log}");
    let ran = |point: &str, plugin: &str| {
        let labels = format!("extension_point=\"{point}\",plugin=\"{plugin}\"");
        scheduler.metric("scheduler_plugin_execution_duration_seconds_count", &labels)
    };
    assert_eq!(ran("Score", "TaintToleration"), 1.0);
    assert_eq!(ran("ScoreExtensionNormalize", "TaintToleration"), 1.0);
    assert_eq!(ran("ScoreExtensionNormalize", "NodeResourcesFit"), 0.0, "it does not normalize");
}

#[test]
fn the_page_reads_and_changes_nothing() {
    let stage = Stage::in_memory();
    stage.make_all([node("a").cpu("4"), node("b").cpu("2")]);
    let scheduler = stage.scheduler();
    stage.make(pod("p").cpu("1"));
    let bound_to = stage.node_name(&stage.wait_until_bound("p"));
    stage.make(pod("large").cpu("8"));
    stage.wait_until_rejected("large");
    let pods = || stage.cluster().list("pods", &stage.name).expect("pods");
    let writes = || {
        let all = stage.cluster().requests();
        let writes = all.iter().filter(|(group, _)| {
            ["create", "update", "patch", "delete"].contains(&&*group.verb)
                && !["leases", "events"].contains(&&*group.resource)
        });
        writes.map(|(_, count)| count).sum::<u64>()
    };
    let (before, written) = (pods(), writes());
    let p = format!("{}/p", stage.name);

    let (status, page) = scheduler.get("/ui/").expect("an answer");
    assert!(status == 200 && page.contains("<title>Supercargo</title>"), "{status} {page}");
    let (_, about) = answer(&scheduler, "/supercargo/v1/about");
    assert_eq!((&about["kind"], &about["live"]), (&json!("live"), &json!(true)), "{about}");
    let (_, cluster) = answer(&scheduler, "/supercargo/v1/cluster");
    assert_eq!(cluster["nodes"]["names"], json!([stage.node_name("a"), stage.node_name("b")]), "{cluster}");
    let place =
        cluster["nodes"]["names"].as_array().expect("names").iter().position(|name| *name == json!(bound_to));
    assert_eq!(cluster["used"][0][place.expect("a node")], json!(1000), "the pod's cpu: {cluster}");
    let known = cluster["generation"].as_str().expect("a text");
    let (_, load) = answer(&scheduler, &format!("/supercargo/v1/cluster?known={known}"));
    assert_eq!((&load["nodes"], &load["used"]), (&Value::Null, &cluster["used"]), "only the load: {load}");
    let (_, on_node) = answer(&scheduler, &format!("/supercargo/v1/node?name={bound_to}"));
    assert_eq!(on_node["pods"][0]["pod"], json!(p), "{on_node}");
    let (_, queue) = answer(&scheduler, "/supercargo/v1/queue");
    assert!(
        queue["pods"][0]["message"].as_str().is_some_and(|why| why.contains("2 Insufficient cpu")),
        "{queue}"
    );
    assert!(
        queue["events"]["NodeResourcesFit"]
            .as_array()
            .is_some_and(|events| events.contains(&json!("NodeAdd"))),
        "{queue}"
    );
    let (_, now) = answer(&scheduler, "/supercargo/v1/now");
    assert_eq!((&now["attempts"]["scheduled"], &now["live"]), (&json!(1.0), &json!(true)), "{now}");
    let (_, configuration) = answer(&scheduler, "/supercargo/v1/configuration");
    assert_eq!(configuration["profiles"][0]["name"], json!(stage.name), "{configuration}");

    // The columns are the explanation's scores, and sum up to its totals.
    let (_, whole) = answer(&scheduler, &format!("/supercargo/v1/explain?pod={p}"));
    let (_, columns) = answer(&scheduler, &format!("/supercargo/v1/explain?pod={p}&form=columns"));
    let table = &columns["table"];
    for (place, node) in whole["nodes"].as_array().expect("nodes").iter().enumerate() {
        assert_eq!((&table["nodes"][place], &table["totals"][place]), (&node["name"], &node["total"]));
        let points = table["plugins"].as_array().expect("plugins").iter().map(|plugin| {
            assert_eq!(
                plugin["normalized"][place],
                node["plugins"][plugin["name"].as_str().unwrap()]["normalized"]
            );
            plugin["normalized"][place].as_i64().unwrap() * plugin["weight"].as_i64().unwrap()
        });
        assert_eq!(json!(points.sum::<i64>()), node["total"]);
    }
    assert_eq!((pods(), writes()), (before, written));
}

#[test]
fn the_page_can_be_left_out() {
    let stage = Stage::in_memory();
    let scheduler = stage.scheduler_with("", &["--no-ui"]);
    assert!(scheduler.answers("/ui/", 404) && scheduler.answers("/supercargo/v1/queue", 200));
}
