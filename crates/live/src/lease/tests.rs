//! Elections on virtual time: one Lease, some candidates.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::*;
use crate::testing::{Answer, FakeWorld};

/// A server with one Lease and optimistic concurrency.
#[derive(Default)]
struct Server {
    lease: Option<Value>,
    version: u64,
    /// Requests by this identity, or all, get no answer.
    silent_to: Option<String>,
    /// The next writes are done, and their answers lost.
    lose_answers: usize,
    events: Vec<Value>,
}

type SharedServer = Arc<Mutex<Server>>;

impl Server {
    fn answer(&mut self, request: &Request) -> Answer {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if self.silent_to.as_deref().is_some_and(|who| who == "all" || body["spec"]["holderIdentity"] == who)
        {
            return Answer::Hang;
        }
        match request.method {
            Method::Get => match &self.lease {
                Some(lease) => Answer::json(200, lease),
                None => Answer::json(404, json!({"message": "not found"})),
            },
            Method::Post if request.path.ends_with("/events") => {
                self.events.push(body);
                Answer::json(201, json!({}))
            }
            Method::Post if self.lease.is_some() => Answer::json(409, json!({"message": "exists"})),
            Method::Post => self.write(body, 201),
            _ if body["metadata"]["resourceVersion"].as_str() != Some(&self.version.to_string()) => {
                Answer::json(409, json!({"message": "the object has been modified"}))
            }
            _ => self.write(body, 200),
        }
    }

    fn write(&mut self, mut lease: Value, status: u16) -> Answer {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(lease.clone());
        if self.lose_answers > 0 {
            self.lose_answers -= 1;
            return Answer::Hang;
        }
        Answer::json(status, lease)
    }

    fn spec(&self) -> Value {
        self.lease.as_ref().unwrap()["spec"].clone()
    }
}

fn world_of(server: &SharedServer) -> Arc<FakeWorld> {
    let server = server.clone();
    FakeWorld::new(move |request, _| server.lock().unwrap().answer(request))
}

fn candidate(world: &Arc<FakeWorld>, identity: &str) -> Lease {
    let shared: SharedWorld = world.clone();
    campaign(&shared, Terms::usual(identity))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_first_makes_the_lease_and_renews_it() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let a = candidate(&world, "a");
    world.run_for(seconds(1));
    assert!(a.is_held());
    let first = server.lock().unwrap().spec();
    assert_eq!(first["holderIdentity"], "a");
    assert_eq!(first["leaseDurationSeconds"], 15);
    assert_eq!(first["leaseTransitions"], 0);
    world.run_for(seconds(60));
    assert!(a.is_held());
    let later = server.lock().unwrap().spec();
    assert_eq!(later["acquireTime"], first["acquireTime"]);
    assert_ne!(later["renewTime"], first["renewTime"]);
    let puts = world.requests().iter().filter(|(_, r)| r.method == Method::Put).count();
    assert_eq!(puts, 30, "every two seconds, without reading it first");
}

#[test]
fn a_lease_for_ever_is_waited_for_as_long_as_any_other() {
    for seconds_told in [u64::MAX, 1 << 40, 1 << 31] {
        let server = SharedServer::default();
        let foreign = json!({"metadata": {"resourceVersion": "1"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": seconds_told, "renewTime": "2026-01-01T00:00:00Z"}});
        *server.lock().unwrap() = Server { lease: Some(foreign), version: 1, ..Server::default() };
        let world = world_of(&server);
        let a = candidate(&world, "a");
        world.run_for(seconds(10));
        assert!(!a.is_held(), "{seconds_told}");
        world.run_for(seconds(15));
        assert!(a.is_held(), "{seconds_told}");
    }
}

#[test]
fn who_stands_by_asks_for_nothing_until_it_campaigns() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let shared: SharedWorld = world.clone();
    let (a, b) = (stand_by(&shared, Terms::usual("a")), stand_by(&shared, Terms::usual("b")));
    world.run_for(seconds(60));
    assert!(world.requests().is_empty());
    assert_eq!(a.state(), LeadershipState::Waiting);
    a.campaign();
    world.run_for(seconds(1));
    assert!(a.is_held());
    // One that never campaigned can leave.
    let leaving = b.clone();
    shared.spawn(Box::pin(async move { leaving.release(Some(SeenVersions::new())).await }));
    world.run_for(seconds(1));
    assert_eq!(b.state(), LeadershipState::Released);
}

#[test]
fn who_becomes_the_leader_says_so_in_an_event() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (_a, _b) = (candidate(&world, "a"), candidate(&world, "b"));
    world.run_for(seconds(60));
    let events = server.lock().unwrap().events.clone();
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event["reason"], "LeaderElection");
    assert_eq!(event["message"], "a became leader");
    assert_eq!(event["source"]["component"], "default-scheduler");
    let involved = &event["involvedObject"];
    assert_eq!((&involved["kind"], &involved["name"]), (&json!("Lease"), &json!("kube-scheduler")));
    assert_eq!(involved["resourceVersion"], "1");
}

#[test]
fn of_two_exactly_one_leads() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (a, b) = (candidate(&world, "a"), candidate(&world, "b"));
    for _ in 0..600 {
        world.run_for(Duration::from_millis(100));
        assert!(a.is_held() && !b.is_held());
    }
    assert_eq!(b.holder(), "a");
}

#[test]
fn a_leader_that_is_cut_off_stops_before_the_next_begins() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (a, b) = (candidate(&world, "a"), candidate(&world, "b"));
    world.run_for(seconds(10));
    server.lock().unwrap().silent_to = Some("a".to_owned());
    let mut gap = 0;
    for _ in 0..300 {
        world.run_for(Duration::from_millis(100));
        assert!(!(a.is_held() && b.is_held()), "two leaders");
        gap += u32::from(!a.is_held() && !b.is_held());
    }
    assert!(b.is_held());
    assert_eq!(a.state(), LeadershipState::Lost);
    assert!(gap < 120, "nobody led for {gap} tenths of a second");
    assert_eq!(server.lock().unwrap().spec()["leaseTransitions"], 1);
}

#[test]
fn a_frozen_leader_knows_at_once_that_its_time_is_over() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let a = candidate(&world, "a");
    world.run_for(seconds(10));
    assert!(a.is_held());
    world.freeze_for(seconds(11));
    assert!(!a.is_held(), "asked before any task of it has run");
}

#[test]
fn a_frozen_leader_finds_another_in_its_place_or_that_another_has_been_there() {
    for holder in ["b", ""] {
        let server = SharedServer::default();
        let world = world_of(&server);
        let a = candidate(&world, "a");
        world.run_for(seconds(10));
        world.freeze_for(seconds(60));
        {
            let mut server = server.lock().unwrap();
            let mut lease = server.lease.clone().unwrap();
            lease["spec"]["holderIdentity"] = holder.into();
            server.write(lease, 200);
        }
        for _ in 0..50 {
            world.run_for(Duration::from_millis(100));
            assert!(!a.is_held());
        }
        assert_eq!(a.state(), LeadershipState::Lost);
    }
}

#[test]
fn jumps_of_the_wall_clock_change_nothing() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (a, b) = (candidate(&world, "a"), candidate(&world, "b"));
    world.run_for(seconds(5));
    for jump in [3600, -7200, 86400] {
        world.jump_wall_clock(jump);
        for _ in 0..200 {
            world.run_for(Duration::from_millis(100));
            assert!(a.is_held() && !b.is_held());
        }
    }
}

#[test]
fn a_foreign_holder_is_given_its_time_whatever_its_clock_says() {
    let server = SharedServer::default();
    server.lock().unwrap().write(
        json!({"metadata": {}, "spec": {"holderIdentity": "old", "leaseDurationSeconds": 15,
            "renewTime": "1990-01-01T00:00:00.000000Z", "leaseTransitions": 7}}),
        200,
    );
    let world = world_of(&server);
    let a = candidate(&world, "a");
    world.run_for(seconds(14));
    assert!(!a.is_held());
    world.run_for(seconds(7));
    assert!(a.is_held());
    assert_eq!(server.lock().unwrap().spec()["leaseTransitions"], 8);
}

#[test]
fn a_lost_answer_and_a_conflict_are_mended_by_reading() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let a = candidate(&world, "a");
    world.run_for(seconds(5));
    server.lock().unwrap().lose_answers = 1;
    world.run_for(seconds(30));
    assert!(a.is_held());
    server.lock().unwrap().version += 1;
    let version = server.lock().unwrap().version.to_string();
    server.lock().unwrap().lease.as_mut().unwrap()["metadata"]["resourceVersion"] = version.into();
    world.run_for(seconds(5));
    assert!(a.is_held());
    assert_eq!(server.lock().unwrap().spec()["leaseTransitions"], 0);
}

#[test]
fn a_lease_that_is_given_back_is_taken_soon() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (a, b) = (candidate(&world, "a"), candidate(&world, "b"));
    world.run_for(seconds(10));
    let leaving = a.clone();
    world.spawn(Box::pin(async move { leaving.release(Some(SeenVersions::new())).await }));
    world.run_for(Duration::from_millis(1));
    assert_eq!(a.state(), LeadershipState::Released);
    let given_back = server.lock().unwrap().spec();
    assert_eq!(given_back["holderIdentity"], "");
    assert_eq!(given_back["leaseDurationSeconds"], 1);
    world.run_for(seconds(5));
    assert!(b.is_held());
}

#[test]
fn the_next_leader_is_told_what_the_last_one_had_seen() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (a, b) = (candidate(&world, "a"), candidate(&world, "b"));
    world.run_for(seconds(10));
    assert_eq!(a.handed_over().0, SeenVersions::new(), "nobody led before");
    let seen = SeenVersions::from([("pods".to_owned(), 17)]);
    let (leaving, told) = (a.clone(), seen.clone());
    world.spawn(Box::pin(async move { leaving.release(Some(told)).await }));
    world.run_for(seconds(5));
    assert!(b.is_held());
    assert_eq!(b.handed_over().0, seen);
    // That was about one hand-over. Whoever takes over after b has died is told nothing.
    let lease = server.lock().unwrap().lease.clone().unwrap();
    assert_eq!(lease["metadata"]["annotations"], json!({}));
}

#[test]
fn a_lease_under_which_something_is_still_on_its_way_is_left_to_run_out() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let (a, b) = (candidate(&world, "a"), candidate(&world, "b"));
    world.run_for(seconds(10));
    let leaving = a.clone();
    world.spawn(Box::pin(async move { leaving.release(None).await }));
    world.run_for(seconds(10));
    assert_eq!(a.state(), LeadershipState::Released);
    assert_eq!(server.lock().unwrap().spec()["holderIdentity"], "a");
    assert!(!a.is_held() && !b.is_held());
    // b looks every 2 s × (1 to 2.2): the last renewal is 4.4 s old at most when it is seen, 15 s later the lease has run out,
    // and that is seen 4.4 s later at most. 10 s of these have passed.
    world.run_for(seconds(15));
    assert!(b.is_held());
}

#[test]
fn a_server_that_hangs_costs_the_lease_in_time() {
    let server = SharedServer::default();
    let world = world_of(&server);
    let a = candidate(&world, "a");
    world.run_for(seconds(5));
    server.lock().unwrap().silent_to = Some("all".to_owned());
    world.run_for(seconds(10));
    assert!(!a.is_held());
    world.run_for(seconds(5));
    assert_eq!(a.state(), LeadershipState::Lost);
}

#[test]
fn an_identity_is_host_and_uuid() {
    let world = FakeWorld::new(|_, _| Answer::Hang);
    let name = identity(&*world, "host");
    let uuid = name.strip_prefix("host_").unwrap();
    assert_eq!(uuid.len(), 36);
    assert_eq!(&uuid[14..15], "4");
    assert!("89ab".contains(&uuid[19..20]));
}
