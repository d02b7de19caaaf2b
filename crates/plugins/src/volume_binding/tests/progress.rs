//! How far the binding of volumes has come, after it was written.

use supercargo_model::{Key, ResourceVersion};

use super::super::{
    plan::ClaimId,
    progress::{Unbound, WrittenPlan, check_bound},
};
use super::*;

fn version(text: &str) -> ResourceVersion {
    ResourceVersion(text.into())
}

fn id(name: &str) -> ClaimId {
    ClaimId { key: Key::new("default", name), uid: name.into() }
}

/// The volume v for the claim c, and a volume that is to be made for the claim m, on the node a.
fn written() -> WrittenPlan {
    WrittenPlan {
        pod: Key::new("default", "p"),
        node: "a".into(),
        bound: vec![("v".into(), id("c"), version("10"))],
        provisioned: vec![(id("m"), version("10"))],
    }
}

fn given(volume: Builder, version: &str) -> Builder {
    let claim = json!({"namespace": "default", "name": "c", "uid": "c"});
    volume.set("/spec/claimRef", claim).set("/metadata/resourceVersion", version)
}

/// A claim that was sent to a node, and has a volume since.
fn made(node: &str, volume: &str) -> Builder {
    bound("m", volume)
        .set("/metadata/annotations/volume.kubernetes.io~1selected-node", node)
        .set("/metadata/resourceVersion", "10")
}

/// As long as nothing else is said: all is done.
fn done() -> [Builder; 5] {
    [node("a"), given(volume("v", "1Gi"), "10"), bound("c", "v"), volume("w", "1Gi"), made("a", "w")]
}

#[track_caller]
fn check(objects: impl IntoIterator<Item = Builder>, expected: Result<(), Unbound>) {
    assert_eq!(check_bound(&cluster(objects), &written(), true), expected);
}

fn never(why: &str) -> Result<(), Unbound> {
    Err(Unbound::Never(why.to_owned()))
}

/// All is done, but for one object; `None` if that is not there.
fn but(place: usize, other: Option<Builder>) -> Vec<Builder> {
    let mut objects: Vec<Option<Builder>> = done().into_iter().map(Some).collect();
    objects[place] = other;
    objects.into_iter().flatten().collect()
}

const NODE: usize = 0;
const VOLUME: usize = 1;
const CLAIM: usize = 2;
const MADE_VOLUME: usize = 3;
const MADE_CLAIM: usize = 4;

#[test]
fn all_is_bound() {
    check(done(), Ok(()));
    // What is no number is not compared.
    check(but(VOLUME, Some(given(volume("v", "1Gi"), "x"))), Ok(()));
}

#[test]
fn what_is_missing_is_not_waited_for() {
    check(but(NODE, None), never(r#"failed to get node "a": node "a" not found"#));
    let gone = check_bound(&cluster(done()), &written(), false);
    assert_eq!(gone, never(r#"pod does not exist any more: pod "p" not found"#));
    check(but(VOLUME, None), never(r#"failed to check binding: persistentvolumes "v" not found"#));
    let claim_gone = r#"failed to check binding: persistentvolumeclaims "default/c" not found"#;
    check(but(CLAIM, None), never(claim_gone));
    check(but(CLAIM, Some(bound("c", "v").set("/metadata/uid", "anew"))), never(claim_gone));
    check(
        but(MADE_CLAIM, None),
        never(r#"failed to check provisioning pvc: persistentvolumeclaims "default/m" not found"#),
    );
}

#[test]
fn what_others_have_still_to_do_is_waited_for() {
    let not_yet = || Err(Unbound::NotYet);
    // The watch is behind: the volume is not given yet, as far as can be seen.
    check(but(VOLUME, Some(volume("v", "1Gi").set("/metadata/resourceVersion", "9"))), not_yet());
    check(but(CLAIM, Some(claim("c", "1Gi"))), not_yet());
    // It names its volume, and the controller has still to complete it.
    check(but(CLAIM, Some(claim("c", "1Gi").set("/spec/volumeName", "v"))), not_yet());
    check(but(MADE_CLAIM, Some(claim("m", "1Gi").set("/metadata/resourceVersion", "9"))), not_yet());
    check(but(MADE_VOLUME, None), not_yet());
    let selected = claim("m", "1Gi")
        .set("/metadata/annotations/volume.kubernetes.io~1selected-node", "a")
        .set("/metadata/resourceVersion", "10");
    check(but(MADE_CLAIM, Some(selected)), not_yet());
}

#[test]
fn what_has_come_to_nothing_is_given_up() {
    let reset = volume("v", "1Gi").set("/metadata/resourceVersion", "11");
    check(but(VOLUME, Some(reset)), never(r#"ClaimRef got reset for pv "v""#));
    check(
        but(VOLUME, Some(given(volume_on("v", "1Gi", "b"), "10"))),
        never(r#"pv "v" node affinity doesn't match node "a": no matching NodeSelectorTerms"#),
    );
    check(
        but(MADE_VOLUME, Some(volume_on("w", "1Gi", "b"))),
        never(r#"pv "w" node affinity doesn't match node "a": no matching NodeSelectorTerms"#),
    );
    check(but(MADE_CLAIM, Some(made("b", "w"))), never(r#"provisioning failed for PVC "m""#));
    let reset = claim("m", "1Gi").set("/metadata/resourceVersion", "11");
    check(but(MADE_CLAIM, Some(reset)), never(r#"selectedNode annotation reset for PVC "m""#));
}
