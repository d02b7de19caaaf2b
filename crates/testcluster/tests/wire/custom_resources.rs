//! Custom resources: served from their definition on, and gone with it.

use serde_json::{Value, json};
use supercargo_testcluster::PatchKind;

use crate::client::cluster;

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "shortNames": ["bt"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}}],
        },
    })
}

#[tokio::test]
async fn a_definition_is_served_with_its_status_until_it_is_gone() {
    let (cluster, client) = cluster();
    let boat = json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ark"}, "spec": {"beasts": 2}});
    assert!(cluster.create(boat.clone()).is_err(), "nobody knows boats yet");
    assert_eq!(client.get("/apis/example.com/v1").await.code, 404);
    cluster.create(definition()).unwrap();

    let discovered = client.get("/apis/example.com/v1").await.value;
    assert_eq!(
        (&discovered["resources"][0]["name"], &discovered["resources"][1]["name"]),
        (&json!("boats"), &json!("boats/status"))
    );
    let made = cluster.create(boat.clone()).unwrap();
    assert_eq!((&made["kind"], &made["metadata"]["generation"]), (&json!("Boat"), &json!(1)));
    let status = json!({"status": {"afloat": true}, "spec": {"beasts": 9}});
    cluster.patch("boats/status", "default", "ark", PatchKind::Merge, status).unwrap();
    for name in ["boats", "boat", "bt", "Boat", "boats.example.com"] {
        let found = cluster.get(name, "default", "ark").unwrap();
        assert_eq!(
            (&found["status"]["afloat"], &found["spec"]["beasts"]),
            (&json!(true), &json!(2)),
            "{name}"
        );
    }

    assert_eq!(client.get("/apis/example.com/v1/boats").await.names(), ["ark"]);

    cluster.delete("crd", "", "boats.example.com").unwrap();
    assert!(cluster.get("boats", "default", "ark").is_err());
    assert_eq!(client.get("/apis/example.com/v1/boats").await.code, 404);
    cluster.create(definition()).unwrap();
    assert_eq!(cluster.count("boats").unwrap(), 0, "its objects went with it");
}

#[tokio::test]
async fn definitions_that_define_nothing_are_refused() {
    let (cluster, _) = cluster();
    for (path, value) in [
        ("/spec/group", json!("")),
        ("/spec/names/plural", json!("ships")),
        ("/spec/names/kind", Value::Null),
        ("/spec/versions", json!([])),
    ] {
        let mut wrong = definition();
        *wrong.pointer_mut(path).unwrap() = value;
        assert!(cluster.create(wrong).is_err(), "{path}");
    }
}
