//! What ends a binding without success.

use super::*;

fn ends(server: &SharedServer, order: VolumeBindingRequest) -> (u64, String) {
    let (at, outcome) = Binding::start(server, order).end();
    (at, outcome.unwrap_err())
}

#[test]
fn others_do_not_do_their_part() {
    let timed_out = "binding volumes: context deadline exceeded".to_owned();
    assert_eq!(ends(&Server::start(), order(true, true)), (600, timed_out.clone()));
    let server = Server::start();
    let impatient = VolumeBindingRequest { bind_timeout: Duration::ZERO, ..order(true, true) };
    assert_eq!(ends(&server, impatient), (0, timed_out));
    // Everything is written, so that a later attempt finds it.
    assert_eq!(object(&server, VOLUME)["spec"]["claimRef"]["uid"], "c");
    assert_eq!(object(&server, OTHER)["metadata"]["annotations"][SELECTED_NODE], "n");
}

#[test]
fn what_was_written_comes_to_nothing() {
    type Happens = fn(&mut Server);
    // (name, whether volumes are bound or made, what happens after 2 s, message)
    let cases: [(&str, bool, Happens, &str); 9] = [
        (
            "the provisioner refuses",
            false,
            |server| server.change(OTHER, &["metadata", "annotations"], json!({"mine": "1"})),
            "provisioning failed for PVC \"d\"",
        ),
        (
            "all annotations are gone",
            false,
            |server| server.change(OTHER, &["metadata", "annotations"], json!({})),
            "selectedNode annotation reset for PVC \"d\"",
        ),
        (
            "the claim is deleted",
            false,
            |server| drop(server.objects.remove(OTHER)),
            "failed to check provisioning pvc: persistentvolumeclaims \"ns/d\" not found",
        ),
        (
            "the claim is made anew",
            false,
            |server| server.change(OTHER, &["metadata", "uid"], "anew".into()),
            "failed to check provisioning pvc: persistentvolumeclaims \"ns/d\" not found",
        ),
        (
            "the claim that gets a volume is deleted",
            true,
            |server| drop(server.objects.remove(CLAIM)),
            "failed to check binding: persistentvolumeclaims \"ns/c\" not found",
        ),
        (
            "the volume is deleted",
            true,
            |server| drop(server.objects.remove(VOLUME)),
            "failed to check binding: persistentvolumes \"v\" not found",
        ),
        (
            "the controller takes the volume back",
            true,
            |server| server.change(VOLUME, &["spec", "claimRef"], Value::Null),
            "ClaimRef got reset for pv \"v\"",
        ),
        (
            "the node suits no more",
            true,
            |server| server.change(NODE, &["metadata", "labels"], json!({})),
            "pv \"v\" node affinity doesn't match node \"n\": no matching NodeSelectorTerms",
        ),
        (
            "the node is gone",
            false,
            |server| drop(server.objects.remove(NODE)),
            "failed to get node \"n\": node \"n\" not found",
        ),
    ];
    for (name, bind, deed, message) in cases {
        let server = Server::start();
        later(&server, 2, deed);
        let expected = (2, format!("binding volumes: {message}"));
        assert_eq!(ends(&server, order(bind, !bind)), expected, "{name}");
    }
}

#[test]
fn the_plan_no_longer_holds() {
    type Happens = fn(&mut Server);
    // (name, what has happened since the plan was made, message)
    let cases: [(&str, Happens, &str); 6] = [
        (
            "the volume is taken",
            |server| server.change(VOLUME, &["spec", "claimRef"], json!({"namespace": "ns", "name": "x"})),
            "persistentvolume \"v\" is bound to another claim already",
        ),
        (
            "the volume is meant for an earlier claim of the name",
            |server| {
                let earlier = json!({"namespace": "ns", "name": "c", "uid": "old"});
                server.change(VOLUME, &["spec", "claimRef"], earlier);
            },
            "persistentvolume \"v\" is bound to another claim already",
        ),
        (
            "the claim has another volume",
            |server| server.change(CLAIM, &["spec", "volumeName"], "w".into()),
            "persistentvolumeclaim \"c\" has been bound to persistentvolume \"w\"",
        ),
        (
            "the claim is another",
            |server| server.change(CLAIM, &["metadata", "uid"], "anew".into()),
            "persistentvolumeclaim \"c\" has been made anew",
        ),
        (
            "the claim is being deleted",
            |server| server.change(CLAIM, &["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into()),
            "persistentvolumeclaim \"c\" is being deleted",
        ),
        (
            "what the server has is nonsense",
            |server| server.change(VOLUME, &["spec"], json!([1])),
            "what the server sent is no PersistentVolume",
        ),
    ];
    for (name, deed, message) in cases {
        let server = Server::start();
        deed(&mut server.lock().unwrap());
        let binding = Binding::start(&server, order(true, true));
        assert_eq!(binding.end(), (0, Err(message.to_owned())), "{name}");
        assert!(binding.writes().is_empty(), "{name}");
    }
}

#[test]
fn a_claim_that_another_has_sent_elsewhere() {
    let server = Server::start();
    server.lock().unwrap().change(OTHER, &["metadata", "annotations", SELECTED_NODE], "m".into());
    let message = "persistentvolumeclaim \"d\" has been given to node \"m\"";
    assert_eq!(ends(&server, order(false, true)), (0, message.to_owned()));
}

#[test]
fn nothing_is_written_without_the_lease() {
    let binding = Binding::start_if(&Server::start(), order(true, true), false);
    assert_eq!(binding.end().1, Err("another scheduler leads".to_owned()));
    assert!(binding.writes().is_empty());
}

#[test]
fn a_refusal_is_told_as_the_server_says_it() {
    let server = Server::start();
    faulty(&server, |request, _| {
        (request.method == Method::Put).then(|| Answer::json(403, json!({"message": "forbidden"})))
    });
    assert_eq!(ends(&server, order(true, false)), (0, "forbidden".to_owned()));
}
