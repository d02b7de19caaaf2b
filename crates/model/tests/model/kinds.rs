//! Every kind, from its text into the cluster and out of it again.

use supercargo_manifest::Source;
use supercargo_model::{
    ApiResource, Cluster, Declared, Key, Kind,
    kind::Invalidates,
    object::{Object, Reader, read_declared_object, read_object},
};

/// An object of a kind that says as much as it must, and something that can change.
fn text(kind: Kind, label: &str) -> String {
    let api = kind.api();
    let namespace = if api.namespaced { ", namespace: there" } else { "" };
    let rest = match kind {
        Kind::Pod => ", spec: {nodeName: some, containers: []}",
        Kind::VolumeAttachment => ", spec: {attacher: a, nodeName: some}",
        Kind::StorageClass => ", provisioner: p",
        Kind::DeviceClass => &format!(", spec: {{extendedResourceName: example.com/{label}}}"),
        Kind::ConfigMap => &format!(", data: {{a: {label}}}"),
        Kind::Service | Kind::ReplicationController => &format!(", spec: {{selector: {{a: {label}}}}}"),
        Kind::ReplicaSet | Kind::StatefulSet => {
            &format!(", spec: {{selector: {{matchLabels: {{a: {label}}}}}}}")
        }
        _ => "",
    };
    let (version, kind) = (api.api_version(), api.kind);
    format!(
        "{{apiVersion: {version}, kind: {kind}, metadata: {{name: one{namespace}, labels: {{a: {label}}}}}{rest}}}"
    )
}

fn read(kind: Kind, label: &str) -> Object {
    let source = Source::new("test", text(kind, label));
    Object::from_text(kind, &[], &source).unwrap_or_else(|problems| panic!("{kind:?}: {problems}"))
}

#[test]
fn every_kind_is_read_kept_found_and_removed() {
    for &kind in Kind::ALL {
        let mut reader = Reader::default();
        reader.read(&Source::new("test", text(kind, "red")));
        let object = read(kind, "red");
        assert_eq!(reader.finish().unwrap().objects, std::slice::from_ref(&object), "{kind:?}");
        let json = supercargo_manifest::read(&Source::new("test", text(kind, "red"))).unwrap();
        let quickly =
            Object::deserialize(kind, &[], &mut serde_json::Deserializer::from_str(&json[0].to_json()))
                .unwrap();
        assert_eq!(quickly, object, "{kind:?}");
        assert_eq!(read_object(&Source::new("test", ""), &json[0], "").unwrap(), Some(object.clone()));

        let key = Key::new(if kind.is_namespaced() { "there" } else { "" }, "one");
        assert_eq!((object.kind(), object.key()), (kind, key.clone()));
        let mut cluster = Cluster::default();
        assert_eq!(cluster.object(kind, &key), None);
        cluster.put(object.clone());
        assert_eq!(cluster.object(kind, &key), Some(object), "{kind:?}");
        cluster.remove(kind, &key);
        assert_eq!(cluster.object(kind, &key), None, "{kind:?}");
    }
}

#[test]
fn a_change_invalidates_what_the_table_says() {
    for &kind in Kind::ALL {
        let mut cluster = Cluster::default();
        let key = read(kind, "red").key();
        let mut invalidates = |change: &dyn Fn(&mut Cluster)| {
            let before = cluster.changes().now();
            change(&mut cluster);
            cluster.changes().since(before).is_none()
        };
        let put = |label| move |cluster: &mut Cluster| cluster.put(read(kind, label));
        let told = [
            invalidates(&put("red")),
            invalidates(&put("red")),
            invalidates(&put("blue")),
            invalidates(&|cluster| cluster.remove(kind, &key)),
            invalidates(&|cluster| cluster.remove(kind, &key)),
        ];
        let expected = match kind.invalidates() {
            Invalidates::Everything => [true, false, true, true, false],
            Invalidates::Storage | Invalidates::Nothing => [false; 5],
            // Nodes are not logged one by one, pods are.
            Invalidates::Touched if kind == Kind::Node => [true, false, true, true, false],
            Invalidates::Touched => [false; 5],
        };
        assert_eq!(told, expected, "{kind:?}");
        let is_storage = kind.invalidates() == Invalidates::Storage;
        assert_eq!(cluster.storage_revision() > 0, is_storage, "{kind:?}");
    }
}

#[test]
fn no_two_kinds_have_the_same_place() {
    let mut paths: Vec<String> = Kind::ALL.iter().map(|kind| kind.api().path("")).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), Kind::ALL.len());
    for &kind in Kind::ALL {
        assert_eq!(Kind::named(kind.name()), Some(kind));
        assert_eq!(Kind::of_group(kind.api().group, kind.name()), Some(kind));
    }
}

#[test]
fn paths_are_those_of_an_api_server() {
    let pods = Kind::Pod.api();
    assert_eq!((&*pods.path(""), &*pods.path("a")), ("/api/v1/pods", "/api/v1/namespaces/a/pods"));
    let sets = Kind::ReplicaSet.api();
    assert_eq!((&*sets.path(""), &*sets.api_version()), ("/apis/apps/v1/replicasets", "apps/v1"));
    assert_eq!(Kind::Node.api().path("ignored"), "/api/v1/nodes");
}

static BOATS: ApiResource =
    ApiResource { group: "example.com", version: "v1", plural: "boats", kind: "Boat", namespaced: true };

const BOAT: &str = "{apiVersion: example.com/v1, kind: Boat, metadata: {name: ark, uid: u, resourceVersion: '7', \
                    labels: {sea: red}, managedFields: [{manager: noah}]}, spec: {beasts: 2}}";

fn declared(kinds: &[&'static ApiResource], annotations: &[&str]) -> Declared {
    Declared { kinds: kinds.to_vec(), annotations: annotations.iter().map(|key| (*key).into()).collect() }
}

fn read_declared(declared: Declared, text: &str) -> (Vec<Object>, usize) {
    let mut reader = Reader::new(declared);
    reader.read(&Source::new("test", text));
    let read = reader.finish().unwrap();
    (read.objects, read.skipped.values().sum())
}

#[test]
fn a_custom_kind_is_kept_as_it_is_where_it_is_declared() {
    assert_eq!(read_declared(Declared::default(), BOAT), (Vec::new(), 1));
    let (mut objects, 0) = read_declared(declared(&[&BOATS], &[]), BOAT) else { panic!("skipped") };
    let json = supercargo_manifest::read(&Source::new("test", BOAT)).unwrap()[0].to_json();
    assert_eq!(read_declared(declared(&[&BOATS], &[]), &json), (objects.clone(), 0), "the quick way");
    let Some(Object::Custom(boat)) = objects.pop() else { panic!("no boat") };
    assert_eq!((&*boat.uid, &*boat.version.0), ("u", "7"));
    assert_eq!(boat.labels.get("sea").map(|sea| &**sea), Some("red"));
    assert_eq!(boat.read::<u8>("/spec/beasts").unwrap(), 2);
    assert!(boat.read::<String>("/spec/name").is_err());
    assert_eq!(boat.content.pointer("/metadata/managedFields"), None);

    let (kind, key) = (Kind::Custom(&BOATS), Key::new("default", "ark"));
    let object = Object::Custom(boat);
    assert_eq!((object.kind(), object.key()), (kind, key.clone()));
    let mut cluster = Cluster::default();
    cluster.put(object.clone());
    assert_eq!(cluster.object(kind, &key), Some(object));
    assert_eq!(cluster.custom(&BOATS, &key).map(|boat| &*boat.name), Some("ark"));
    assert_eq!(cluster.custom_objects(&BOATS).count(), 1);
    let before = cluster.changes().now();
    let newer = BOAT.replace("'7'", "'8'");
    cluster.put(read_declared(declared(&[&BOATS], &[]), &newer).0.remove(0));
    assert!(cluster.changes().since(before).is_some(), "it says the same");
    assert_eq!(&*cluster.custom(&BOATS, &key).unwrap().version.0, "8");
    cluster.remove(kind, &key);
    assert!(cluster.changes().since(before).is_none());
    assert_eq!(cluster.custom_objects(&BOATS).count(), 0);
}

#[test]
fn a_custom_kind_is_told_from_those_that_are_alike_in_part() {
    static OTHER_BOATS: ApiResource = ApiResource { group: "other.com", ..BOATS };
    static HARBOURS: ApiResource = ApiResource { plural: "harbours", kind: "Harbour", ..BOATS };
    // (group and version, kind, as what it is read)
    let cases = [
        ("example.com/v1", "Boat", Some(&BOATS)),
        ("example.com/v2", "Boat", Some(&BOATS)),
        ("other.com/v1", "Boat", Some(&OTHER_BOATS)),
        ("example.com/v1", "Harbour", Some(&HARBOURS)),
        ("other.com/v1", "Harbour", None),
        ("v1", "Boat", None),
        ("third.com/v1", "Raft", None),
    ];
    let declared = declared(&[&OTHER_BOATS, &HARBOURS, &BOATS], &[]);
    for (version, kind, expected) in cases {
        let source =
            Source::new("test", format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}}}"));
        let values = supercargo_manifest::read(&source).unwrap();
        let expected = expected.map(Kind::Custom);
        let read = read_declared_object(&source, &values[0], "", &declared).unwrap();
        assert_eq!(read.map(|object| object.kind()), expected, "{version} {kind}");
        for text in [values[0].to_json(), source.text.to_string()] {
            let (objects, skipped) = read_declared(declared.clone(), &text);
            assert_eq!(objects.first().map(Object::kind), expected, "{text}");
            assert_eq!(objects.len() + skipped, 1, "{text}");
        }
    }
}

#[test]
fn numbers_are_the_nearest_to_what_is_written_whoever_reads_them() {
    // Seconds with more digits than are kept; as JSON prints the first, and the end of what can be counted.
    for digits in
        ["1763495741.006999881", "1763495741.0069999", "122.416294033786585", "21474836471700000000"]
    {
        let boat =
            format!("{{apiVersion: example.com/v1, kind: Boat, metadata: {{name: ark}}, speed: {digits}}}");
        let json = r#"{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"ark"},"speed":"#;
        for text in [boat, format!("{json}{digits}}}")] {
            let (objects, _) = read_declared(declared(&[&BOATS], &[]), &text);
            let [Object::Custom(boat)] = &objects[..] else { panic!("{objects:?}") };
            assert_eq!(boat.read::<f64>("/speed").unwrap(), digits.parse::<f64>().unwrap(), "{text}");
        }
    }
}

#[test]
fn of_a_pods_annotations_the_declared_ones_are_kept() {
    let text = "{apiVersion: v1, kind: Pod, metadata: {name: one, annotations: {a: '1', b: '2'}}}";
    let kept = |keys: &[&str]| {
        let (objects, _) = read_declared(declared(&[], keys), text);
        let [Object::Pod(pod)] = &objects[..] else { panic!("{objects:?}") };
        let kept = pod.spec.annotations.iter().map(|(key, value)| format!("{key}={value}"));
        (kept.collect::<Vec<_>>().join(" "), pod.spec.bytes)
    };
    let (none, least) = kept(&[]);
    assert_eq!(none, "");
    assert_eq!(kept(&["b", "c"]).0, "b=2");
    assert!(kept(&["a", "b"]).1 > kept(&["b"]).1 && kept(&["b"]).1 > least);
}
