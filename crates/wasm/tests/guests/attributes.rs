//! Every attribute arrives as the page says, in every form, and stays right while the cluster changes.

use supercargo_model::{
    Cluster, Key,
    object::Kind,
    testing::{Builder, cluster, node, pod},
};
use supercargo_scheduler::setup::ALL_NODES;

use crate::support::{EVERYWHERE, Stage, guest, guest_scores};

/// A guest whose raw score is an attribute: as a number; or 1 if it is the expected text, and 0 if not.
fn tells(whose: &str, attribute: &str, form: u32, expected: &str) -> Vec<u8> {
    let (width, is_node) = (if form == 2 { 4 } else { 8 }, whose == "node_column");
    let address = if is_node {
        format!(
            "(i32.add (i32.load (i32.load offset=12 (local.get $frame))) (i32.mul (local.get $row) (i32.const {width})))"
        )
    } else {
        "(i32.load offset=16 (local.get $frame))".to_owned()
    };
    let value = match form {
        0 => format!("(i64.load {address})"),
        // In thousandths, so that more than whole numbers can be seen.
        1 => format!("(i64.trunc_sat_f64_s (f64.mul (f64.load {address}) (f64.const 1000)))"),
        _ => format!("(i64.extend_i32_u (i32.eq (i32.load {address}) (global.get $expected)))"),
    };
    let fact_bytes = attribute.len();
    let escaped = expected.replace('"', "\\22");
    guest(&format!(
        r#"(data (i32.const 16) "{attribute}") (data (i32.const 512) "{escaped}")
           (global $expected (mut i32) (i32.const 0))
           (func (export "supercargo_init") (param i32 i32) (result i32)
             (drop (call ${whose} (i32.const 16) (i32.const {fact_bytes}) (i32.const {form})))
             (global.set $expected (call $intern (i32.const 512) (i32.const {})))
             (i32.const 0))
           (func (export "supercargo_score") (param $frame i32) (result i32)
             (local $row i32)
             (loop $next
               (if (i32.lt_u (local.get $row) (i32.load (local.get $frame)))
                 (then
                   (i64.store
                     (i32.add (i32.load offset=28 (local.get $frame)) (i32.shl (local.get $row) (i32.const 3)))
                     {value})
                   (local.set $row (i32.add (local.get $row) (i32.const 1)))
                   (br $next))))
             (i32.const 0))
           (func (export "supercargo_normalize") (param $frame i32) (result i32)
             (call $fill (local.get $frame) (i64.const 0)) (i32.const 0))"#,
        expected.len()
    ))
}

fn scene() -> Vec<Builder> {
    vec![
        node("a")
            .label("disk", "ssd")
            .label("rank", "12")
            .label("ratio", "0.25")
            .set("/metadata/annotations", serde_json::json!({"note": "new"}))
            .set("/metadata/creationTimestamp", "1970-01-01T00:01:00Z")
            .set("/status/conditions", serde_json::json!([{"type": "Ready", "status": "True"}]))
            .set("/status/nodeInfo", serde_json::json!({"architecture": "arm64"}))
            .allocatable("cpu", "4")
            .allocatable("memory", "8Ki")
            .allocatable("example.com/gpu", "3")
            .has_image("web:1", 700)
            .taint("soft", "x", "PreferNoSchedule"),
        pod("on-a").on("a").container(&[("cpu", "1500m"), ("memory", "1Ki"), ("example.com/gpu", "1")]),
    ]
}

fn subject() -> Builder {
    pod("p")
        .namespace("team")
        .label("app", "web")
        .priority(9)
        .owner("apps/v1", "ReplicaSet", "web-1")
        .container(&[("cpu", "250m"), ("memory", "2Ki")])
}

fn raw(whose: &str, attribute: &str, form: u32, expected: &str) -> i64 {
    let stage = Stage::with(tells(whose, attribute, form, expected));
    let mut engine = stage.engine(cluster(scene()));
    guest_scores(&engine.decide(&subject().pod()).unwrap())[0].1
}

const ABSENT: i64 = i64::MIN;

#[test]
fn facts_of_nodes() {
    let integer = |attribute: &str, expected: i64| {
        assert_eq!(raw("node_column", attribute, 0, ""), expected, "{attribute}")
    };
    integer("allocatable:cpu", 4000);
    integer("requested:cpu", 1500);
    integer("free:cpu", 2500);
    integer("allocatable:memory", 8192);
    integer("free:memory", 8192 - 1024);
    integer("allocatable:example.com/gpu", 3);
    integer("free:example.com/gpu", 2);
    integer("allocatable:example.com/none", 0);
    integer("allocatable:pods", 110);
    integer("requested:pods", 1);
    integer("free:pods", 109);
    integer("pods", 1);
    integer("unschedulable", 0);
    integer("created", 60);
    integer("image:web:1", 700);
    integer("image:db:1", 0);
    integer("label:rank", 12);
    integer("label:disk", ABSENT);
    integer("label:none", ABSENT);

    let real = |attribute: &str, thousandths: i64| {
        assert_eq!(raw("node_column", attribute, 1, ""), thousandths, "{attribute}")
    };
    real("free:cpu", 2_500_000);
    real("label:ratio", 250);
    // Not a number, and so nothing when it is made an integer.
    real("label:none", 0);

    let text = |attribute: &str, expected: &str| {
        assert_eq!(raw("node_column", attribute, 2, expected), 1, "{attribute}")
    };
    text("name", "a");
    text("label:disk", "ssd");
    text("annotation:note", "new");
    text("condition:Ready", "True");
    text("info:architecture", "arm64");
    text("pods", "1");
    text("taints", r#"[{"effect":"PreferNoSchedule","key":"soft","value":"x"}]"#);
    assert_eq!(raw("node_column", "label:disk", 2, "hdd"), 0);
    text(
        "json",
        r#"{"allocatable":{"cpu":4000,"example.com/gpu":3,"memory":8192,"pods":110},"annotations":{"note":"new"},"conditions":{"Ready":"True"},"images":[{"names":["web:1"],"sizeBytes":700}],"labels":{"disk":"ssd","kubernetes.io/hostname":"a","rank":"12","ratio":"0.25"},"name":"a","nodeInfo":{"architecture":"arm64"},"taints":[{"effect":"PreferNoSchedule","key":"soft","value":"x"}],"unschedulable":false}"#,
    );
}

#[test]
fn facts_of_the_pod() {
    let integer = |attribute: &str, expected: i64| {
        assert_eq!(raw("pod_fact", attribute, 0, ""), expected, "{attribute}")
    };
    integer("request:cpu", 250);
    integer("request:memory", 2048);
    integer("request:example.com/gpu", 0);
    integer("priority", 9);
    integer("label:app", ABSENT);
    assert_eq!(raw("pod_fact", "request:cpu", 1, ""), 250_000);

    let text = |attribute: &str, expected: &str| {
        assert_eq!(raw("pod_fact", attribute, 2, expected), 1, "{attribute}")
    };
    text("name", "p");
    text("namespace", "team");
    text("uid", "p");
    text("label:app", "web");
    text("scheduler", "default-scheduler");
    text("controllerKind", "ReplicaSet");
    text("controllerName", "web-1");
    text("tolerations", "[]");
    text(
        "json",
        r#"{"controller":{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1"},"hostPorts":[],"images":["image:latest"],"labels":{"app":"web"},"name":"p","namespace":"team","nodeSelector":{},"priority":9,"requests":{"cpu":250,"memory":2048},"schedulerName":"default-scheduler","tolerations":[],"uid":"p"}"#,
    );
}

/// The guest's raw scores, by node.
fn pods_by_node(engine: &mut supercargo_engine::Engine) -> Vec<(String, i64)> {
    let scores = guest_scores(&engine.decide(&pod("p").pod()).unwrap());
    scores.into_iter().map(|(node, raw, _)| (node, raw)).collect()
}

#[test]
fn columns_follow_the_cluster() {
    let stage = Stage::with(tells("node_column", "pods", 0, ""));
    let mut engine = stage.engine_of(Cluster::default(), EVERYWHERE, "{path: guest.wasm}", ALL_NODES);
    let expect = |engine: &mut supercargo_engine::Engine, expected: &[(&str, i64)]| {
        let expected: Vec<_> = expected.iter().map(|(node, pods)| ((*node).to_owned(), *pods)).collect();
        assert_eq!(pods_by_node(engine), expected);
    };
    engine.cluster_mut().put_node(node("a").node());
    expect(&mut engine, &[("a", 0)]);
    engine.cluster_mut().put_pod(pod("x").on("a").pod());
    expect(&mut engine, &[("a", 1)]);
    // More nodes than there was room for: the columns move.
    for i in 0..40 {
        engine.cluster_mut().put_node(node(&format!("b{i:02}")).node());
    }
    engine.cluster_mut().put_pod(pod("y").on("b07").pod());
    assert_eq!(pods_by_node(&mut engine).iter().map(|(_, pods)| pods).sum::<i64>(), 2);
    engine.cluster_mut().remove(Kind::Pod, &Key::new("default", "x"));
    assert_eq!(pods_by_node(&mut engine)[0], ("a".to_owned(), 0));
    // A row is given to another node.
    engine.cluster_mut().remove(Kind::Node, &Key::new("", "b07"));
    engine.cluster_mut().put_node(node("c").node());
    let scores = pods_by_node(&mut engine);
    assert!(scores.contains(&("c".to_owned(), 0)) && scores.iter().all(|(_, pods)| *pods == 0), "{scores:?}");
    // A copy of the cluster goes its own way.
    let mut copy = engine.cluster().clone();
    copy.put_pod(pod("z").on("a").pod());
    engine.cluster_mut().put_pod(pod("z").on("c").pod());
    let (c, other) = (engine.cluster().clone(), copy);
    *engine.cluster_mut() = other;
    assert_eq!(pods_by_node(&mut engine)[0], ("a".to_owned(), 1));
    *engine.cluster_mut() = c;
    assert_eq!(pods_by_node(&mut engine)[0], ("a".to_owned(), 0));
}

#[test]
fn a_node_that_is_relabelled_is_written_anew() {
    let stage = Stage::with(tells("node_column", "label:disk", 2, "ssd"));
    let mut engine = stage.engine(cluster([node("a").label("disk", "hdd"), node("b").label("disk", "ssd")]));
    let has_ssd = |engine: &mut supercargo_engine::Engine| {
        pods_by_node(engine).into_iter().filter(|(_, is)| *is == 1).map(|(node, _)| node).collect::<Vec<_>>()
    };
    assert_eq!(has_ssd(&mut engine), ["b"]);
    engine.cluster_mut().put_node(node("a").label("disk", "ssd").node());
    assert_eq!(has_ssd(&mut engine), ["a", "b"]);
    engine.cluster_mut().put_node(node("b").node());
    assert_eq!(has_ssd(&mut engine), ["a"]);
}

#[test]
fn several_threads_use_several_instances() {
    let stage = Stage::with(tells("node_column", "pods", 0, ""));
    let profile =
        stage.engine(cluster([node("a"), node("b")])).profiles().shared("default-scheduler").unwrap();
    let cluster = cluster([node("a"), node("b"), pod("x").on("b")]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let nodes: Vec<_> = cluster.nodes().collect();
                for i in 0..50 {
                    let pod = pod(&format!("p{i}")).pod();
                    let scores = profile.profile.score(&cluster, &pod, &nodes).unwrap();
                    let column = scores.columns.iter().find(|column| &*column.plugin == "Guest").unwrap();
                    assert_eq!(column.raw, [0, 1]);
                }
            });
        }
    });
}
