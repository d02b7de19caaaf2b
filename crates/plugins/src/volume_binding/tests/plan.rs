//! Which volume each claim gets, and that the plan and the filter agree.

use super::*;

fn csi() -> Builder {
    class("csi", "csi.example.com")
}

fn of_csi(name: &str, size: &str) -> Builder {
    claim(name, size).set("/spec/storageClassName", "csi")
}

fn selected(claim: Builder, node: &str) -> Builder {
    claim.set("/metadata/annotations/volume.kubernetes.io~1selected-node", node)
}

fn meant_for(volume: Builder, claim: &str) -> Builder {
    volume.set("/spec/claimRef", json!({"namespace": "default", "name": claim}))
}

/// The plan for node a in a line: `volume>claim` for what is bound, `+claim` for what is made. Or the refusal.
fn planned(pod: &Builder, objects: impl IntoIterator<Item = Builder>) -> String {
    let cluster = cluster([node("a"), node("b")].into_iter().chain(objects));
    let pod = pod.clone().pod();
    for (node, said) in cluster_nodes(&cluster).zip(filter(&VolumeBinding::default(), &cluster, &pod)) {
        let message =
            super::plan(&cluster, &pod, node).map_or_else(|status| status.message(), |_| "ok".into());
        assert_eq!(message, said, "plan and filter, on {}", node.name());
    }
    match super::plan(&cluster, &pod, cluster.node("a").unwrap()) {
        Ok(plan) => told(&plan),
        Err(status) => status.message(),
    }
}

fn cluster_nodes(cluster: &Cluster) -> impl Iterator<Item = &NodeInfo> {
    supercargo_framework::testing::by_name(cluster).into_iter()
}

fn told(plan: &VolumePlan) -> String {
    let bind = plan.bind.iter().map(|(volume, claim)| format!("{volume}>{}", claim.key.name));
    let provision = plan.provision.iter().map(|claim| format!("+{}", claim.key.name));
    bind.chain(provision).collect::<Vec<_>>().join(" ")
}

#[test]
fn one_claim() {
    let many = |volume: Builder| volume.set("/spec/accessModes/-", "ReadWriteMany");
    // (name, claim, volumes, plan for node a)
    let cases = [
        (
            "the smallest that is large enough",
            claim("c", "2Gi"),
            vec![volume("u", "5Gi"), volume("v", "2Gi"), volume("w", "1Gi")],
            "v>c",
        ),
        ("the first of equal size", claim("c", "1Gi"), vec![volume("w", "2Gi"), volume("v", "2Gi")], "v>c"),
        ("none is large enough", claim("c", "2Gi"), vec![volume("v", "1Gi")], NOTHING_TO_BIND),
        (
            "of the right access mode",
            claim("c", "1Gi").set("/spec/accessModes/-", "ReadWriteMany"),
            vec![volume("v", "1Gi"), many(volume("w", "2Gi"))],
            "w>c",
        ),
        ("in reach", claim("c", "1Gi"), vec![volume_on("v", "1Gi", "b"), volume_on("w", "2Gi", "a")], "w>c"),
        (
            "prebound, though not the smallest",
            claim("c", "1Gi"),
            vec![volume("v", "1Gi"), meant_for(volume("w", "5Gi"), "c")],
            "w>c",
        ),
        (
            "prebound and out of reach",
            claim("c", "1Gi"),
            vec![volume("v", "1Gi"), meant_for(volume_on("w", "5Gi", "b"), "c")],
            NOTHING_TO_BIND,
        ),
        (
            "prebound to another",
            claim("c", "1Gi"),
            vec![meant_for(volume("v", "1Gi"), "d"), volume("w", "5Gi")],
            "w>c",
        ),
        ("bound already", bound("c", "v"), vec![volume("v", "1Gi")], ""),
        ("made there", of_csi("c", "1Gi"), vec![volume("v", "1Gi")], "+c"),
        (
            "an existing volume before a new one",
            of_csi("c", "1Gi"),
            vec![volume("v", "1Gi").set("/spec/storageClassName", "csi")],
            "v>c",
        ),
        (
            "on its way, so that no volume is looked for",
            selected(of_csi("c", "1Gi"), "a"),
            vec![volume("v", "1Gi").set("/spec/storageClassName", "csi")],
            "+c",
        ),
        ("on its way elsewhere", selected(of_csi("c", "1Gi"), "b"), vec![], NOTHING_TO_BIND),
    ];
    for (name, claim, volumes, expected) in cases {
        let objects = [local(), csi(), claim].into_iter().chain(volumes);
        assert_eq!(planned(&claims(&["c"]), objects), expected, "{name}");
    }
}

#[test]
fn several_claims() {
    let base = || vec![local(), csi()];
    // (name, objects, plan for node a)
    let cases = [
        (
            "from small to large",
            vec![claim("c", "5Gi"), claim("d", "1Gi"), volume("v", "5Gi"), volume("w", "2Gi")],
            "w>d v>c",
        ),
        (
            "equal claims in the pod's order, and no volume twice",
            vec![claim("c", "1Gi"), claim("d", "1Gi"), volume("v", "1Gi"), volume("w", "1Gi")],
            "v>c w>d",
        ),
        (
            "one volume for two",
            vec![claim("c", "1Gi"), claim("d", "1Gi"), volume("v", "1Gi")],
            NOTHING_TO_BIND,
        ),
        ("one bound, one made", vec![of_csi("c", "1Gi"), claim("d", "1Gi"), volume("v", "1Gi")], "v>d +c"),
        (
            "what is on its way comes first, whatever its size",
            vec![of_csi("c", "1Gi"), selected(of_csi("d", "9Gi"), "a")],
            "+d +c",
        ),
        (
            "only what is not bound",
            vec![bound("c", "v"), meant_for(volume("v", "1Gi"), "c"), claim("d", "1Gi"), volume("w", "1Gi")],
            "w>d",
        ),
        (
            "a prebound volume is for its claim alone",
            vec![
                claim("c", "1Gi"),
                claim("d", "1Gi"),
                meant_for(volume("v", "1Gi"), "d"),
                volume("w", "3Gi"),
            ],
            "w>c v>d",
        ),
    ];
    for (name, objects, expected) in cases {
        let objects = base().into_iter().chain(objects);
        assert_eq!(planned(&claims(&["c", "d"]), objects), expected, "{name}");
    }
}

#[test]
fn nothing_to_do_without_claims() {
    let cluster = cluster([node("a")]);
    let plan = super::plan(&cluster, &pod("p").pod(), cluster.node("a").unwrap()).unwrap();
    assert!(plan.is_empty());
}

#[test]
fn a_plan_knows_which_claim_of_the_name_it_means() {
    let claim = claim("c", "1Gi").set("/metadata/uid", "u-7");
    let cluster = cluster([node("a"), csi(), claim.set("/spec/storageClassName", "csi")]);
    let plan = super::plan(&cluster, &claims(&["c"]).pod(), cluster.node("a").unwrap()).unwrap();
    assert_eq!(&*plan.provision[0].uid, "u-7");
}
