//! Reading what `kubectl get` prints, and what is said when it cannot be read.

use supercargo_manifest::{Problems, Source};
use supercargo_model::object::{Kind, Object, Objects, Reader};

fn read(texts: &[&str]) -> Result<Objects, Problems> {
    let mut reader = Reader::default();
    for (i, text) in texts.iter().enumerate() {
        reader.read(&Source::new(format!("{i}.yaml"), *text));
    }
    reader.finish()
}

fn kinds(objects: &Objects) -> Vec<&'static str> {
    objects.objects.iter().map(|object| object.kind().name()).collect()
}

const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: node}}";
const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: p}}";

#[test]
fn single_objects_streams_and_lists() {
    let stream = format!("{NODE}\n---\n# nothing\n---\n{POD}\n");
    let list = format!("{{apiVersion: v1, kind: List, items: [{NODE}, {POD}]}}");
    let nested = format!(
        "{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: List, items: [{NODE}]}}, {POD}]}}"
    );
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]}"#;
    for texts in [&[NODE, POD][..], &[&stream], &[&list], &[&nested], &[json]] {
        assert_eq!(kinds(&read(texts).unwrap()), ["Node", "Pod"], "{texts:?}");
    }
}

#[test]
fn items_of_a_typed_list_need_not_repeat_their_kind() {
    let pods = "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}";
    assert_eq!(kinds(&read(&[pods]).unwrap()), ["Pod", "Pod"]);
    let sets = "{apiVersion: apps/v1, kind: ReplicaSetList, items: [{metadata: {name: a}}]}";
    assert_eq!(kinds(&read(&[sets]).unwrap()), ["ReplicaSet"]);
    for empty in ["items: []", "items: null"] {
        let list = format!("{{apiVersion: v1, kind: PodList, {empty}}}");
        assert_eq!(read(&[&list]).unwrap().objects.len(), 0, "{empty}");
    }
}

#[test]
fn what_a_scheduler_does_not_read_is_counted() {
    let texts = [
        "{apiVersion: v1, kind: Endpoints, metadata: {name: a}}",
        "{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}",
        // Other people's kinds may have the same name.
        "{apiVersion: metrics.k8s.io/v1beta1, kind: Node, metadata: {name: node}}",
        "{apiVersion: apps.example.com/v1, kind: ReplicaSet, spec: nonsense}",
        NODE,
    ];
    let objects = read(&texts).unwrap();
    assert_eq!(kinds(&objects), ["Node"]);
    let skipped: Vec<(&str, usize)> = objects.skipped.iter().map(|(k, n)| (&**k, *n)).collect();
    assert_eq!(
        skipped,
        [
            ("Deployment.apps", 1),
            ("Endpoints", 1),
            ("Node.metrics.k8s.io", 1),
            ("ReplicaSet.apps.example.com", 1),
            ("Secret", 2),
        ]
    );
}

/// Where and what is wrong, and the hint.
fn told(texts: &[&str]) -> Vec<(u32, String, String, Option<String>)> {
    let problems = read(texts).expect_err("a problem");
    let tell = |p: supercargo_manifest::Problem| {
        let line = p.at.map_or(0, |at| at.line);
        (line, p.path, p.message, p.hint)
    };
    problems.into_iter().map(tell).collect()
}

#[test]
fn objects_without_a_name() {
    let cases = [
        ("{apiVersion: v1, kind: Pod}", "metadata.name", None),
        ("{apiVersion: v1, kind: Pod, metadata: {name: ''}}", "metadata.name", None),
        (
            "{apiVersion: v1, kind: Pod, metadata: {generateName: web-}}",
            "metadata.name",
            Some("generateName is filled in by the API server; give a name here".to_owned()),
        ),
        ("{apiVersion: v1, kind: PodList, items: [{}]}", "items[0].metadata.name", None),
    ];
    for (text, path, hint) in cases {
        let expected = (1, path.to_owned(), "a Pod needs a name".to_owned(), hint);
        assert_eq!(told(&[text]), [expected], "{text}");
    }
}

#[test]
fn an_object_that_is_there_twice_in_a_text() {
    let twice = format!("{POD}\n---\n\n{POD}");
    assert_eq!(
        told(&[&twice]),
        [(
            4,
            "metadata.name".to_owned(),
            "Pod default/p is defined twice".to_owned(),
            Some("the first one is at 0.yaml:1".to_owned())
        )]
    );
    // The namespace `default` need not be written, and objects without namespaces have none.
    let spelled_out = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}}";
    assert_eq!(told(&[&format!("{POD}\n---\n{spelled_out}")])[0].2, "Pod default/p is defined twice");
    let odd = "{apiVersion: v1, kind: Node, metadata: {name: node, namespace: somewhere}}";
    assert_eq!(told(&[&format!("{NODE}\n---\n{odd}")])[0].2, "Node node is defined twice");
    // Another namespace or another kind is another object.
    let elsewhere = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: elsewhere}}";
    let service = "{apiVersion: v1, kind: Service, metadata: {name: p}}";
    let different = [POD, elsewhere, service].join("\n---\n");
    assert_eq!(kinds(&read(&[&different]).unwrap()), ["Pod", "Pod", "Service"]);
}

#[test]
fn an_object_of_a_later_text_takes_the_place_of_an_earlier_one() {
    let pod = |priority: i32| {
        format!("{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{priority: {priority}}}}}")
    };
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"priority": 3}}"#;
    for (texts, priority) in [([&*pod(1), NODE, &pod(2)], 2), ([&*pod(1), NODE, json], 3)] {
        let objects = read(&texts).unwrap();
        assert_eq!((kinds(&objects), objects.replaced), (vec!["Pod", "Node"], 1));
        let Object::Pod(pod) = &objects.objects[0] else { panic!("a pod") };
        assert_eq!(pod.spec.priority, priority);
    }
}

#[test]
fn what_an_api_server_says_is_no_cluster() {
    let refusal = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "nodes is forbidden", "reason": "Forbidden", "code": 403}"#;
    let list = r#"{"kind": "List", "apiVersion": "v1", "items": [
        {"kind": "Status", "apiVersion": "v1", "message": "nodes is forbidden"}]}"#;
    for text in [refusal, list] {
        let told = told(&[text]);
        assert_eq!(told.len(), 1);
        assert!(told[0].2.ends_with("nodes is forbidden") && told[0].3.is_some(), "{told:?}");
    }
}

/// Where something is worth a look, what is said of it, and the hint.
fn warned(text: &str) -> Vec<(u32, String, Option<String>)> {
    let warnings = read(&[text]).unwrap().warnings;
    warnings.into_iter().map(|w| (w.at.map_or(0, |at| at.line), w.path, w.hint)).collect()
}

#[test]
fn fields_that_no_pod_has_and_amounts_that_make_no_sense_are_told() {
    let yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelectr: {disk: ssd}\n  containers:\n  - name: c\n    \
                resources:\n      request: {cpu: 1}\n      requests:\n        cpu: -1\n        memory: \"-1Gi\"\n";
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "nodeSelectr": {"disk": "ssd"}}}"#;
    let meant = |name: &str| Some(format!("did you mean {name}?"));
    assert_eq!(
        warned(yaml),
        [
            (5, "spec.nodeSelectr".to_owned(), meant("nodeSelector")),
            (9, "spec.containers[0].resources.request".to_owned(), meant("requests")),
            (11, "spec.containers[0].resources.requests.cpu".to_owned(), None),
            (12, "spec.containers[0].resources.requests.memory".to_owned(), None),
        ]
    );
    assert_eq!(warned(json), [(2, "spec.nodeSelectr".to_owned(), meant("nodeSelector"))]);
}

#[test]
fn what_a_server_has_stored_is_not_doubted() {
    // A newer one may have fields that nobody here knows.
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, resourceVersion: '7'}, spec: {novelty: 1}}";
    assert_eq!(warned(pod), []);
}

#[test]
fn objects_that_make_pods_are_set_aside_where_they_are_new() {
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {nodeNam: x}}}}";
    let mut reader = Reader::default();
    reader.expect_new(&[("apps", "Deployment")], Some("shop"));
    for (i, text) in [deployment, POD, NODE].iter().enumerate() {
        reader.read(&Source::new(format!("{i}.yaml"), *text));
    }
    let objects = reader.finish().unwrap();
    assert_eq!((kinds(&objects), objects.skipped.len()), (vec!["Pod", "Node"], 0));
    assert_eq!(objects.objects[0].key().to_string(), "shop/p");
    assert_eq!(objects.set_aside.len(), 1);
    assert_eq!(objects.warnings.0[0].path, "spec.template.spec.nodeNam");
}

#[test]
fn objects_that_are_none() {
    let lacks = |field: &str| format!("an object needs a field `{field}`, and there is none");
    let cases = [
        ("{metadata: {name: p}}", "", lacks("kind")),
        ("{kind: Pod}", "", lacks("apiVersion")),
        ("{apiVersion: v1, kind: 7}", "kind", "expected a string, found a number".to_owned()),
        ("{apiVersion: v1, kind: List, items: {a: 1}}", "items", "expected a list, found a map".to_owned()),
        ("{apiVersion: v1, kind: List, items: [{kind: Pod}]}", "items[0]", lacks("apiVersion")),
        ("just text", "", lacks("kind")),
    ];
    for (text, path, message) in cases {
        let told = told(&[text]);
        assert_eq!(told.len(), 1, "{text}");
        assert_eq!((&*told[0].1, &*told[0].2), (path, &*message), "{text}");
    }
}

#[test]
fn all_problems_are_told_at_once_and_nothing_is_half_done() {
    let bad_quantity =
        "apiVersion: v1\nkind: Node\nmetadata: {name: node}\nstatus:\n  allocatable:\n    cpu: lots\n";
    let bad_operator = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  topologySpreadConstraints:\n  - maxSkew: 1\n    \
                        topologyKey: zone\n    whenUnsatisfiable: DoNotSchedule\n    labelSelector:\n      \
                        matchExpressions: [{key: a, operator: Like, values: [b]}]\n";
    let told = told(&[bad_quantity, POD, bad_operator, "{apiVersion: v1, kind: Pod}"]);
    let places: Vec<(u32, &str)> = told.iter().map(|t| (t.0, &*t.1)).collect();
    assert_eq!(
        places,
        [
            (6, "status.allocatable.cpu"),
            (10, "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator"),
            (1, "metadata.name"),
        ]
    );
}

#[test]
fn every_kind_is_read_under_its_group() {
    let groups = [
        ("v1", "Node Pod Namespace Service ReplicationController PersistentVolume PersistentVolumeClaim"),
        ("apps/v1", "ReplicaSet StatefulSet"),
        ("storage.k8s.io/v1", "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment"),
        ("policy/v1", "PodDisruptionBudget"),
    ];
    for (api_version, names) in groups {
        for name in names.split(' ') {
            assert_eq!(Kind::named(name).map(Kind::name), Some(name));
            // What a kind must have besides its name.
            let more = match name {
                "StorageClass" => ", provisioner: x",
                "CSIStorageCapacity" => ", storageClassName: x",
                "VolumeAttachment" => {
                    ", spec: {attacher: x, nodeName: node, source: {persistentVolumeName: v}}"
                }
                _ => "",
            };
            let text = format!("{{apiVersion: {api_version}, kind: {name}, metadata: {{name: x}}{more}}}");
            let read = read(&[&text]).unwrap_or_else(|problems| panic!("{problems}"));
            assert_eq!(kinds(&read), [name]);
        }
    }
    assert_eq!(Kind::named("Deployment"), None);
}

#[test]
fn unknown_fields_are_passed_over() {
    let text = "{apiVersion: v1, kind: Pod, metadata: {name: p, managedFields: [{}]}, spec: {novelty: 1, priority: 5}}";
    let objects = read(&[text]).unwrap();
    let [Object::Pod(pod)] = &objects.objects[..] else {
        panic!("a pod");
    };
    assert_eq!(pod.spec.priority, 5);
}

#[test]
fn what_a_node_says_of_itself_is_read_without_what_is_no_text() {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: node}, status: {nodeInfo: {
        kernelVersion: 5.4.0-34, machineID: m, kubeProxyVersion: '', swap: {capacity: 1024}}}}";
    let read = read(&[node]).unwrap().objects;
    let [Object::Node(node)] = &read[..] else { panic!("{read:?}") };
    let info: Vec<(&str, &str)> =
        node.system_info.iter().map(|(field, value)| (&**field, &**value)).collect();
    assert_eq!(info, [("kernelVersion", "5.4.0-34"), ("kubeProxyVersion", ""), ("machineID", "m")]);
}

/// What comes of a text: the objects, what was skipped, and every problem in words.
fn outcome(mut reader: Reader, text: &str) -> String {
    reader.read(&Source::new("a.json", r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"earlier"}}"#));
    reader.read(&Source::new("b.json", text));
    match reader.finish() {
        Ok(Objects { objects, skipped, .. }) => format!("{objects:#?} {skipped:?}"),
        Err(problems) => problems.to_string(),
    }
}

/// The quick way and the located one, which is taken where texts are kept, come to the same.
fn read_alike(text: &str) {
    let quick = outcome(Reader::default(), text);
    let located = outcome(Reader::default().keeping([Kind::ConfigMap]), text);
    assert_eq!(quick, located, "{text}");
}

#[test]
fn what_is_read_quickly_is_read_alike() {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "\u0062\n"}},
        "spec": {"priority": 5, "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": 5}}}],
                 "nodeSelector": null}, "status": {"x": [1, -2.5e3, true, false, null, {}, []]}}"#;
    let node = r#"{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}"#;
    let secret = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}"#;
    let list = |items: &str| format!(r#"{{"apiVersion": "v1", "items": [{items}], "kind": "List"}}"#);
    let deep = |depth: usize| {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"x":{nested}}}"#)
    };
    let many: Vec<String> = (0..40).map(|i| format!(r#""k{}":"v""#, i % 39)).collect();
    let labels = |keys: &[String]| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n","labels":{{{}}}}}}}"#,
            keys.join(",")
        )
    };
    let texts = [
        pod.to_owned(),
        format!("\u{feff} {pod}\n{node}\n\n{secret}"),
        list(&[pod, node, secret].join(",\n")),
        list(&list(node)),
        list(""),
        r#"{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#.into(),
        r#"{"apiVersion":"v1","kind":"PodList","items":null}"#.into(),
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"items":[1]}"#.into(),
        // Names that are there twice, in this text or in an earlier one.
        list(&[pod, node, pod].join(",")),
        list(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"earlier","namespace":"default"}}"#),
        // Keys that are written twice, where a scheduler reads and where it does not.
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"x":1,"x":2}}"#.into(),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","n\u0061me":"q"}}"#.into(),
        labels(&many[..39]),
        labels(&many),
        // Escapes of pairs, and of half a pair.
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","x":"\ud83d\ude00"}}"#.into(),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","x":"\ud83d"}}"#.into(),
        deep(126),
        deep(127),
        deep(128),
        "[]".into(),
        "{a: flow, of: YAML}".into(),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"priority":"high"}}"#.into(),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"priority":01}}"#.into(),
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"p"},"data":nonsense}"#.into(),
    ];
    for text in &texts {
        read_alike(text);
    }
}

#[test]
fn a_broken_text_is_told_alike_wherever_it_is_broken() {
    let text = r#"{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"\u0062"}},
"spec":{"priority":5}},{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}],"kind":"List"}"#;
    for at in 0..text.len() {
        read_alike(&text[..at]);
        for with in ["", "\"", "}", ",", "x", "\\", "1"] {
            read_alike(&format!("{}{with}{}", &text[..at], &text[at + 1..]));
        }
    }
}
