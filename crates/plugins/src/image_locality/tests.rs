use supercargo_framework::Prepared;
use supercargo_model::{
    Cluster, Pod,
    testing::{cluster, node, pod},
};

use super::*;
use supercargo_framework::testing::by_name;

fn scores(formula: Formula, cluster: &Cluster, pod: &Pod) -> Vec<i64> {
    let nodes = by_name(cluster);
    let mut column = vec![0; nodes.len()];
    let input = ScoreInput { prepared: &Prepared::nothing(), cluster, pod, nodes: &nodes };
    ImageLocality { formula }.score(input, &mut column).unwrap();
    column
}

#[test]
fn spread_scaled_between_the_thresholds() {
    let cluster = cluster([
        node("a").has_image("registry.local/web:1", 500 * MIB),
        node("b").has_image("registry.local/web:1", 500 * MIB),
        node("c").has_image("registry.local/other:1", 500 * MIB),
        node("d"),
    ]);
    // a and b: 500 MiB × 2/4 = 250 MiB; 100 × (250 − 23) / (1000 − 23) = 23.2
    let one = pod("p").image("registry.local/web:1").pod();
    assert_eq!(scores(Formula::SpreadScaled, &cluster, &one), [23, 23, 0, 0]);
    // Two containers: the upper threshold is 2000 MiB. a: 100 × (250 − 23) / (2000 − 23) = 11.4
    // c: 500 MiB × 1/4 = 125 MiB; 100 × (125 − 23) / 1977 = 5.1
    let two = pod("p").image("registry.local/web:1").image("registry.local/other:1").pod();
    assert_eq!(scores(Formula::SpreadScaled, &cluster, &two), [11, 11, 5, 0]);
}

#[test]
fn small_images_count_for_nothing_and_large_ones_not_for_more_than_full() {
    let cluster = cluster([node("a").has_image("small:1", 23 * MIB).has_image("large:1", 4000 * MIB)]);
    let score = |image: &str| scores(Formula::SpreadScaled, &cluster, &pod("p").image(image).pod());
    assert_eq!(score("small:1"), [0]);
    assert_eq!(score("large:1"), [100]);
}

#[test]
fn names_without_a_tag_mean_latest() {
    // (image of the pod, image of the node, same)
    let cases = [
        ("busybox", "busybox:latest", true),
        ("registry.local:5000/tool", "registry.local:5000/tool:latest", true),
        ("registry.local:5000/tool:1", "registry.local:5000/tool:1", true),
        ("busybox", "busybox", false),
        ("busybox:1", "busybox:latest", false),
    ];
    for (wanted, there, same) in cases {
        let cluster = cluster([node("a").has_image(there, 1000 * MIB)]);
        let score = scores(Formula::SpreadScaled, &cluster, &pod("p").image(wanted).pod());
        assert_eq!(score, [if same { 100 } else { 0 }], "{wanted} {there}");
    }
}

#[test]
fn image_volumes_and_init_containers_count() {
    let cluster = cluster([node("a").has_image("data:1", 1000 * MIB)]);
    let by_volume = pod("p")
        .image("x:1")
        .set("/spec/volumes/-", serde_json::json!({"name": "v", "image": {"reference": "data:1"}}));
    // 1000 MiB, one container: full
    assert_eq!(scores(Formula::SpreadScaled, &cluster, &by_volume.pod()), [100]);
    let by_init = pod("p")
        .image("x:1")
        .set("/spec/initContainers/-", serde_json::json!({"name": "i", "image": "data:1"}));
    // 1000 MiB, two containers: 100 × (1000 − 23) / (2000 − 23) = 49.4
    assert_eq!(scores(Formula::SpreadScaled, &cluster, &by_init.pod()), [49]);
}

#[test]
fn a_pod_without_containers_scores_nothing() {
    let cluster = cluster([node("a")]);
    assert_eq!(scores(Formula::SpreadScaled, &cluster, &pod("p").pod()), [0]);
    assert_eq!(scores(Formula::CachedBytes, &cluster, &pod("p").pod()), [0]);
}

#[test]
fn cached_bytes_in_proportion_to_ten_mib_an_image() {
    let cluster = cluster([
        node("a").has_image("web:1", 5 * MIB),
        node("b").has_image("web:1", 5 * MIB).has_image("db:1", 9 * MIB),
        node("c").has_image("web:1", 5 * MIB).has_image("db:1", 90 * MIB),
    ]);
    // A node's own size of an image is the first node's that has it: web 5 MiB, db 9 MiB.
    let pod = pod("p").image("web:1").image("db:1").pod();
    // 5 × 100 / (10 × 2) = 25; (5 + 9) × 100 / 20 = 70
    assert_eq!(scores(Formula::CachedBytes, &cluster, &pod), [25, 70, 70]);
    let large = pod_with("db:1");
    // 9 × 100 / 10 = 90
    assert_eq!(scores(Formula::CachedBytes, &cluster, &large), [0, 90, 90]);
}

fn pod_with(image: &str) -> std::sync::Arc<Pod> {
    pod("p").image(image).pod()
}
