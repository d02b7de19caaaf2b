use serde_json::{Value, json};

use super::*;
use crate::testing::object;

fn volume(labels: Value, spec: Value) -> PersistentVolume {
    object(json!({"metadata": {"name": "pv", "labels": labels}, "spec": spec})).build()
}

/// `driver/handle` of a persistent volume, `-` for none, or why not.
fn handle(labels: Value, spec: Value) -> String {
    match volume(labels, spec).csi_volume() {
        Ok(None) => "-".to_owned(),
        Ok(Some(csi)) => format!("{}/{}", csi.driver, csi.volume_handle.unwrap_or_default()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn handles() {
    let gce = || json!({"gcePersistentDisk": {"pdName": "d"}});
    let aws = |id: &str| json!({"awsElasticBlockStore": {"volumeID": id}});
    let cases = [
        (json!({}), gce(), "pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        (
            json!({ZONE: "us-east1-b"}),
            gce(),
            "pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/us-east1-b/disks/d",
        ),
        (
            json!({ZONE: "us-east1-b", OLD_ZONE: "us-east1-c"}),
            gce(),
            "pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/us-east1-c/disks/d",
        ),
        (
            json!({ZONE: "us-east1-b__us-east1-c"}),
            gce(),
            "pd.csi.storage.gke.io/projects/UNSPECIFIED/regions/us-east1/disks/d",
        ),
        (
            json!({ZONE: "us-east1-b__eu-west1-c"}),
            gce(),
            "failed to get region from zones: multiple or no regions gotten from zones, got: map[eu-west1:{} us-east1:{}]",
        ),
        (
            json!({ZONE: "a__b"}),
            gce(),
            "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
        ),
        (json!({}), aws("vol-1"), "ebs.csi.aws.com/vol-1"),
        (json!({}), aws("anything"), "ebs.csi.aws.com/anything"),
        (json!({}), aws("aws://us-east-1a/vol-1"), "ebs.csi.aws.com/vol-1"),
        (json!({}), aws("aws:///vol-1"), "ebs.csi.aws.com/vol-1"),
        (
            json!({}),
            aws("aws://us-east-1a/disk-1"),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://us-east-1a/disk-1)",
        ),
        (json!({}), json!({"azureDisk": {"diskName": "d", "diskURI": "/uri"}}), "disk.csi.azure.com//uri"),
        (
            json!({}),
            json!({"azureDisk": {"diskName": "d", "diskURI": "/uri", "kind": "Dedicated"}}),
            "kind(Dedicated) is not supported in csi migration",
        ),
        (
            json!({}),
            json!({"azureDisk": {"diskName": "d", "diskURI": "/uri", "kind": "managed"}}),
            "disk.csi.azure.com//uri",
        ),
        (json!({}), json!({"cinder": {"volumeID": "c"}}), "cinder.csi.openstack.org/c"),
        (json!({}), json!({"portworxVolume": {"volumeID": "p"}}), "pxd.portworx.com/p"),
        (json!({}), json!({"csi": {"driver": "csi.example.com", "volumeHandle": "h"}}), "csi.example.com/h"),
        // Neither of these is handed over, as far as a scheduler is concerned.
        (json!({}), json!({"vsphereVolume": {"volumePath": "v"}}), "-"),
        (json!({}), json!({"azureFile": {"shareName": "s", "secretName": "x"}}), "-"),
        (json!({}), json!({"hostPath": {"path": "/x"}}), "-"),
    ];
    for (labels, spec, expected) in cases {
        assert_eq!(handle(labels.clone(), spec.clone()), expected, "{labels} {spec}");
    }
}

#[test]
fn drivers_of_provisioners() {
    assert_eq!(migrated_driver("kubernetes.io/aws-ebs"), Some(Some("ebs.csi.aws.com")));
    assert_eq!(migrated_driver("kubernetes.io/vsphere-volume"), Some(None));
    assert_eq!(migrated_driver("csi.example.com"), None);
}

/// The keys and values of each term where the disk is handed over.
fn zones(labels: Value, terms: &Value) -> Vec<Vec<String>> {
    zones_of(json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}), labels, terms)
}

fn zones_of(mut disk: Value, labels: Value, terms: &Value) -> Vec<Vec<String>> {
    let required = if terms.is_null() { Value::Null } else { json!({"nodeSelectorTerms": terms}) };
    disk["nodeAffinity"] = json!({"required": required});
    let volume = volume(labels, disk);
    let affinity = volume.migrated_node_affinity().unwrap();
    let terms = affinity.map_or_else(Vec::new, |affinity| affinity.node_selector_terms.clone());
    let shown = |e: &Requirement| format!("{}={}", e.key, e.values.join("|"));
    terms.iter().map(|term| term.match_expressions.iter().map(shown).collect()).collect()
}

#[test]
fn zones_go_by_the_drivers_label() {
    let is_in = |key: &str, values: &[&str]| json!({"key": key, "operator": "In", "values": values});
    let one = |expressions: &[Value]| json!([{"matchExpressions": expressions}]);
    let key = "topology.ebs.csi.aws.com/zone";
    assert_eq!(zones(json!({}), &Value::Null), [[""; 0]; 0]);
    assert_eq!(zones(json!({ZONE: "b__a__"}), &Value::Null), [[format!("{key}=a|b")]]);
    assert_eq!(zones(json!({ZONE: "__"}), &Value::Null), [[""; 0]; 0]);
    assert_eq!(zones(json!({}), &one(&[is_in(ZONE, &["a"])])), [[format!("{key}=a")]]);
    // The selector comes before the labels; a stable name before an old one.
    assert_eq!(zones(json!({ZONE: "b"}), &one(&[is_in(OLD_ZONE, &["a"])])), [[format!("{key}=a")]]);
    assert_eq!(
        zones(json!({}), &one(&[is_in(OLD_ZONE, &["a"]), is_in(ZONE, &["b"])])),
        [[format!("{OLD_ZONE}=a"), format!("{key}=b")]]
    );
    // Old names of regions become stable ones, but only along with old names of zones.
    assert_eq!(
        zones(json!({}), &one(&[is_in(OLD_ZONE, &["a"]), is_in(OLD_REGION, &["r"])])),
        [[format!("{key}=a"), format!("{REGION}=r")]]
    );
    assert_eq!(
        zones(json!({}), &one(&[is_in(ZONE, &["a"]), is_in(OLD_REGION, &["r"])])),
        [[format!("{key}=a"), format!("{OLD_REGION}=r")]]
    );
    // Labels narrow every term.
    assert_eq!(
        zones(json!({OLD_ZONE: "a"}), &json!([{"matchExpressions": [is_in("disk", &["ssd"])]}, {}])),
        [vec!["disk=ssd".to_owned(), format!("{key}=a")], vec![format!("{key}=a")]]
    );
    // Zones that are none are renamed to none: the label is read, and the expression stays.
    assert_eq!(
        zones(json!({ZONE: "b"}), &one(&[json!({"key": ZONE, "operator": "Exists"})])),
        [[format!("{ZONE}="), format!("{key}=b")]]
    );
    // A stable label comes before an old one.
    assert_eq!(zones(json!({ZONE: "b", OLD_ZONE: "a"}), &Value::Null), [[format!("{key}=b")]]);
}

#[test]
fn each_driver_has_a_label_of_its_own_for_zones() {
    let cases = [
        (json!({"gcePersistentDisk": {"pdName": "d"}}), "topology.gke.io/zone=us-east1-b"),
        (json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}), "topology.ebs.csi.aws.com/zone=us-east1-b"),
        (json!({"cinder": {"volumeID": "c"}}), "topology.cinder.csi.openstack.org/zone=us-east1-b"),
    ];
    for (disk, expected) in cases {
        assert_eq!(zones_of(disk.clone(), json!({ZONE: "us-east1-b"}), &Value::Null), [[expected]], "{disk}");
    }
    // No driver's label is known for others: they keep the selector that they have.
    let azure = json!({"azureDisk": {"diskName": "d", "diskURI": "/uri"}});
    assert_eq!(zones_of(azure, json!({ZONE: "us-east1-b"}), &Value::Null), [[""; 0]; 0]);
}
