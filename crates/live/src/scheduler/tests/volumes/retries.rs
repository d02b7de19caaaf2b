//! Writes that fail, are half done, or whose outcome is unknown.

use supercargo_plugins::volume_binding::plan;

use super::*;

fn is_write_of(request: &Request, path: &str) -> bool {
    request.method == Method::Put && request.path == path
}

/// Fails the first write of an object: does it or not, and answers as told.
fn fail_first_write(server: &SharedServer, path: &'static str, done: bool, answer: fn() -> Answer) {
    let mut first = true;
    faulty(server, move |request, server| {
        if !is_write_of(request, path) || !std::mem::take(&mut first) {
            return None;
        }
        if done {
            server.do_as_asked(request);
        }
        Some(answer())
    });
}

/// The plan for the pod on the node, by these versions of volume v and claim c, and by the server's of everything else.
fn planned(server: &SharedServer, volume: &Value, claim: &Value) -> VolumePlan {
    let class = |name: &str, provisioner: &str| {
        json!({
            "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        })
    };
    let volume_of = |claim: &str| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    let spec = json!({"containers": [], "volumes": [volume_of("c"), volume_of("d")]});
    let pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "p"}, "spec": spec});
    let mut cluster = Cluster::default();
    for (kind, object) in [
        (Kind::Node, &object(server, NODE)),
        (Kind::StorageClass, &class("c", "kubernetes.io/no-provisioner")),
        (Kind::StorageClass, &class("d", "csi.example.com")),
        (Kind::PersistentVolume, volume),
        (Kind::PersistentVolumeClaim, claim),
        (Kind::PersistentVolumeClaim, &object(server, OTHER)),
    ] {
        cluster.put(read(kind, object));
    }
    let Object::Pod(pod) = read(Kind::Pod, &pod) else { panic!("a pod") };
    plan(&cluster, &pod, cluster.node("n").unwrap()).unwrap()
}

fn read(kind: Kind, object: &Value) -> Object {
    Object::from_text(kind, &[], &Source::new("test", object.to_string())).unwrap()
}

#[test]
fn the_second_of_two_writes_meets_a_conflict_and_a_later_attempt_finds_its_way() {
    // Whether the scheduler has been told of the volume and of the claim when it tries again, and what it plans then.
    let cases = [
        (false, false, order(true, true)),
        (true, false, order(true, true)),
        (false, true, order(false, true)),
        (true, true, order(false, true)),
    ];
    for (volume_told, claim_told, expected) in cases {
        let server = Server::start();
        let before = (object(&server, VOLUME), object(&server, CLAIM));
        let first =
            VolumeBindingRequest { plan: planned(&server, &before.0, &before.1), ..order(true, true) };
        assert_eq!(first, order(true, true));
        let conflict = || Answer::json(409, json!({"message": "the object has been modified"}));
        fail_first_write(&server, OTHER, false, conflict);
        let binding = Binding::start(&server, first);
        assert_eq!(binding.end(), (0, Err("the object has been modified".to_owned())));
        assert_eq!(binding.writes(), ["v", "d"]);

        server.lock().unwrap().complete(CLAIM, "v");
        let volume = if volume_told { object(&server, VOLUME) } else { before.0 };
        let claim = if claim_told { object(&server, CLAIM) } else { before.1 };
        let second = VolumeBindingRequest { plan: planned(&server, &volume, &claim), ..order(true, true) };
        assert_eq!(second, expected);
        later(&server, 2, |server| server.complete(OTHER, "v"));
        let binding = Binding::start(&server, second);
        assert_eq!(binding.end(), (2, Ok(())));
        // The volume is the claim's by now, and is not written again.
        assert_eq!(binding.writes(), ["d"]);
    }
}

#[test]
fn an_unknown_outcome_is_not_a_failure() {
    type Fault = (bool, fn() -> Answer, &'static [&'static str]);
    // (whether it was done, the answer, what is written)
    let unknown = || Answer::Unanswered(Unanswered::OutcomeUnknown("reset".to_owned()));
    let broken = || Answer::json(500, json!({"message": "etcdserver: request timed out"}));
    let cases: [Fault; 5] = [
        (true, unknown, &["v"]),
        (false, unknown, &["v", "v"]),
        (true, broken, &["v"]),
        (false, broken, &["v", "v"]),
        (true, || Answer::Hang, &["v"]),
    ];
    for (done, answer, written) in cases {
        let server = Server::start();
        fail_first_write(&server, VOLUME, done, answer);
        later(&server, 33, |server| server.complete(CLAIM, "v"));
        let binding = Binding::start(&server, order(true, false));
        assert_eq!(binding.end().1, Ok(()));
        assert_eq!(binding.writes(), written);
    }
}

#[test]
fn a_write_that_arrives_late_is_our_own() {
    let server = Server::start();
    let mut delayed = None;
    faulty(&server, move |request, server| {
        if !is_write_of(request, VOLUME) {
            return None;
        }
        match delayed.take() {
            None => {
                delayed = Some(request.clone());
                Some(Answer::Unanswered(Unanswered::OutcomeUnknown("reset".to_owned())))
            }
            Some(first) => {
                // The first write overtakes the second, which is refused for it.
                server.do_as_asked(&first);
                None
            }
        }
    });
    later(&server, 2, |server| server.complete(CLAIM, "v"));
    let binding = Binding::start(&server, order(true, false));
    assert_eq!(binding.end().1, Ok(()));
    assert_eq!(binding.writes(), ["v", "v"]);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = Server::start();
    faulty(&server, |request, _| {
        (request.method == Method::Put)
            .then(|| Answer::Unanswered(Unanswered::NotSent("connection refused".to_owned())))
    });
    let binding = Binding::start(&server, order(true, false));
    let message = "PUT /api/v1/persistentvolumes/v: not sent: connection refused";
    assert_eq!(binding.end(), (4, Err(message.to_owned())));
    assert_eq!(binding.writes().len(), 4);
}

#[test]
fn a_busy_server_is_given_the_time_that_it_asks_for() {
    let server = Server::start();
    let mut busy = true;
    faulty(&server, move |request, _| {
        (request.method == Method::Put && std::mem::take(&mut busy)).then(|| {
            let mut reply = crate::world::Reply::new(429, r#"{"message": "slow down"}"#);
            reply.retry_after = Some(Duration::from_secs(7));
            Answer::Reply(reply)
        })
    });
    later(&server, 1, |server| server.complete(CLAIM, "v"));
    assert_eq!(Binding::start(&server, order(true, false)).end(), (8, Ok(())));
}
