//! Creation, updates and deletion.

use hyper::Method;
use serde_json::{Value, json};

use crate::client::{CONFIG_MAPS, PODS, cluster, config_map, node, pod};

#[tokio::test]
async fn a_new_object_gets_what_an_api_server_gives() {
    let (_cluster, client) = cluster();
    let created = client.post(PODS, pod("web")).await;
    assert_eq!(created.code, 201);
    let value = &created.value;
    assert_eq!((&value["kind"], &value["apiVersion"]), (&json!("Pod"), &json!("v1")));
    for key in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(value["metadata"][key].as_str().is_some_and(|given| !given.is_empty()), "{key}");
    }
    assert_eq!(value["metadata"]["namespace"], "default");
    assert_eq!(value["metadata"]["generation"], 1);
    for (key, expected) in [
        ("schedulerName", json!("default-scheduler")),
        ("priority", json!(0)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("restartPolicy", json!("Always")),
    ] {
        assert_eq!(value["spec"][key], expected, "{key}");
    }
    assert_eq!(value["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(client.get(&format!("{PODS}/web")).await.value, *value);
}

#[tokio::test]
async fn names_are_generated_and_taken_ones_refused() {
    let (_cluster, client) = cluster();
    let mut nameless = pod("");
    nameless["metadata"] = json!({"generateName": "web-"});
    let (one, other) = (client.post(PODS, nameless.clone()).await, client.post(PODS, nameless).await);
    let name = |reply: &Value| reply["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(name(&one.value).len(), "web-".len() + 5);
    assert_ne!(name(&one.value), name(&other.value));

    client.post(PODS, pod("web")).await;
    let again = client.post(PODS, pod("web")).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "pods \"web\" already exists", "reason": "AlreadyExists",
        "details": {"name": "web", "kind": "pods"}, "code": 409,
    });
    assert_eq!(again.value, expected);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let (_cluster, client) = cluster();
    let cases = [
        (PODS, json!({"kind": "Pod", "metadata": {}, "spec": {}}), 422, "Invalid"),
        (PODS, pod("Web"), 422, "Invalid"),
        (PODS, json!({"metadata": {"name": "x"}, "spec": {}}), 422, "Invalid"),
        (PODS, node("x"), 400, "BadRequest"),
        (PODS, json!([]), 400, "BadRequest"),
        (PODS, json!({"metadata": 3}), 400, "BadRequest"),
        ("/api/v1/namespaces/nowhere/pods", pod("x"), 404, "NotFound"),
        ("/api/v1/namespaces/default/boats", pod("x"), 404, "NotFound"),
        ("/api/v1/namespaces/default/pods/x", pod("x"), 405, "MethodNotAllowed"),
    ];
    for (path, body, code, reason) in cases {
        let reply = client.post(path, body.clone()).await;
        assert_eq!(reply.refusal(), (code, reason), "{path} {body}");
        assert_eq!(reply.value["kind"], "Status");
    }
    let broken = client.send(Method::POST, PODS, "application/json", "{\"a\":".to_owned()).await;
    assert_eq!(broken.refusal(), (400, "BadRequest"));
    assert!(broken.message().contains("json parse error: EOF"), "{}", broken.message());
    let binary =
        client.send(Method::POST, PODS, "application/vnd.kubernetes.protobuf", "k8s".to_owned()).await;
    assert_eq!(binary.refusal(), (400, "BadRequest"));
    assert!(binary.message().contains("does not start as Kubernetes' protobuf does"), "{}", binary.message());
    let unknown = client.send(Method::POST, PODS, "application/cbor", "{}".to_owned()).await;
    assert_eq!(unknown.refusal(), (415, "UnsupportedMediaType"));
    let large = client.send(Method::POST, PODS, "application/json", " ".repeat(4 << 20)).await;
    assert_eq!(large.code, 413);
    assert_eq!(client.get(&format!("{PODS}/web")).await.message(), "pods \"web\" not found");
}

#[tokio::test]
async fn protobuf_is_read_and_json_answered() {
    let (_cluster, client) = cluster();
    let body = "k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x0f\n\x05\n\x03cfg\x12\x06\n\x01a\x12\x01b";
    let client = client.header("accept", "application/vnd.kubernetes.protobuf,application/json");
    let created =
        client.send(Method::POST, CONFIG_MAPS, "application/vnd.kubernetes.protobuf", body.to_owned()).await;
    assert_eq!((created.code, &created.value["data"]), (201, &json!({"a": "b"})), "{:?}", created.value);
    assert_eq!(created.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_strict_caller_is_told_of_unknown_fields() {
    let (_cluster, client) = cluster();
    let mut odd = pod("odd");
    odd["spec"]["nodename"] = "n".into();
    let refused = client.post(&format!("{PODS}?fieldValidation=Strict"), odd.clone()).await;
    assert_eq!(refused.refusal(), (400, "BadRequest"));
    assert_eq!(
        refused.message(),
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.nodename\""
    );
    assert_eq!(client.post(PODS, odd).await.code, 201, "others are not");
    // What was there before is not the fault of whoever changes something else.
    let path = format!("{PODS}/odd?fieldValidation=Strict");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(client.patch(&path, "merge", labels).await.code, 200);
    let wrong = json!({"metadata": {"labels": {"a": 1}}});
    assert!(client.patch(&path, "merge", wrong).await.message().contains("wants a text, not a number"));
}

#[tokio::test]
async fn pods_have_no_logs_and_say_why() {
    let (_cluster, client) = cluster();
    client.post(PODS, pod("web")).await;
    for subresource in ["log", "exec", "attach", "portforward"] {
        let refused = client.get(&format!("{PODS}/web/{subresource}")).await;
        assert_eq!(refused.refusal(), (400, "BadRequest"), "{subresource}");
        assert!(refused.message().contains("in this test cluster nothing runs"), "{}", refused.message());
    }
    assert_eq!(client.get(&format!("{PODS}/gone/log")).await.refusal(), (404, "NotFound"));
}

#[tokio::test]
async fn yaml_is_read_too() {
    let (_cluster, client) = cluster();
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\ndata:\n  a: \"1\"\n";
    let created = client.send(Method::POST, CONFIG_MAPS, "application/yaml", text.to_owned()).await;
    assert_eq!((created.code, &created.value["data"]), (201, &json!({"a": "1"})));
}

#[tokio::test]
async fn a_priority_comes_from_its_class() {
    let (_cluster, client) = cluster();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    client
        .post(classes, json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}))
        .await;
    let mut high = pod("high");
    high["spec"]["priorityClassName"] = "high".into();
    let created = client.post(PODS, high).await;
    assert_eq!(created.value["spec"]["priority"], 1000);
    assert_eq!(created.value["spec"]["preemptionPolicy"], "Never");

    let mut unknown = pod("unknown");
    unknown["spec"]["priorityClassName"] = "boat".into();
    let refused = client.post(PODS, unknown).await;
    assert_eq!(refused.refusal(), (403, "Forbidden"));
    assert_eq!(refused.message(), "pods \"unknown\" is forbidden: no PriorityClass with name boat was found");
    let mut own = pod("own");
    own["spec"]["priority"] = 7.into();
    assert_eq!(client.post(PODS, own).await.code, 403);
}

#[tokio::test]
async fn an_update_of_an_old_version_is_a_conflict() {
    let (_cluster, client) = cluster();
    let path = format!("{CONFIG_MAPS}/c");
    let first = client.post(CONFIG_MAPS, config_map("c", json!({"a": "1"}))).await.value;
    let mut second = first.clone();
    second["data"]["a"] = "2".into();
    let updated = client.put(&path, second.clone()).await;
    assert_eq!(updated.code, 200);
    assert_ne!(updated.value["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(updated.value["metadata"]["uid"], first["metadata"]["uid"]);

    let late = client.put(&path, second.clone()).await;
    assert_eq!(late.refusal(), (409, "Conflict"));
    assert_eq!(
        late.message(),
        "Operation cannot be fulfilled on configmaps \"c\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
    second["metadata"].as_object_mut().expect("a map").remove("resourceVersion");
    assert_eq!(client.put(&path, second.clone()).await.code, 200, "without a version it is unconditional");
    second["metadata"]["uid"] = "another".into();
    assert_eq!(client.put(&path, second).await.code, 409);
}

#[tokio::test]
async fn an_update_that_changes_nothing_makes_no_new_version() {
    let (cluster, client) = cluster();
    let created = client.post(CONFIG_MAPS, config_map("c", json!({"a": "1"}))).await.value;
    let version = cluster.resource_version();
    let updated = client.put(&format!("{CONFIG_MAPS}/c"), created.clone()).await;
    assert_eq!(updated.value, created);
    assert_eq!(cluster.resource_version(), version);
}

#[tokio::test]
async fn a_status_is_written_apart_from_the_rest() {
    let (_cluster, client) = cluster();
    let created = client.post(PODS, pod("web")).await.value;
    let mut changed = created.clone();
    changed["status"]["phase"] = "Running".into();
    changed["metadata"]["labels"] = json!({"a": "b"});
    let updated = client.put(&format!("{PODS}/web"), changed.clone()).await.value;
    assert_eq!(updated["status"]["phase"], "Pending", "the status is left alone");
    assert_eq!(updated["metadata"]["labels"], json!({"a": "b"}));

    changed["metadata"]["resourceVersion"] = updated["metadata"]["resourceVersion"].clone();
    changed["spec"]["nodeName"] = "n".into();
    let updated = client.put(&format!("{PODS}/web/status"), changed).await.value;
    assert_eq!(updated["status"]["phase"], "Running");
    assert_eq!(updated["spec"].get("nodeName"), None, "the specification is left alone");
}

#[tokio::test]
async fn most_of_a_pods_specification_is_fixed() {
    let (_cluster, client) = cluster();
    let mut gated = pod("web");
    gated["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
    let created = client.post(PODS, gated).await.value;
    let condition = &created["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("PodScheduled"), &json!("SchedulingGated"))
    );
    let path = format!("{PODS}/web");
    for (patch, code) in [
        (json!({"spec": {"nodeName": "n"}}), 422),
        (json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}}), 200),
        (json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}), 422),
        (json!({"spec": {"schedulingGates": [{"name": "another"}]}}), 422),
        (json!({"spec": {"nodeSelector": {"a": "b"}}}), 200),
        (json!({"spec": {"schedulingGates": [{"name": "wait", "$patch": "delete"}]}}), 200),
        (json!({"spec": {"nodeSelector": {"a": "c"}}}), 422),
    ] {
        let reply = client.patch(&path, "strategic-merge", patch.clone()).await;
        assert_eq!(reply.code, code, "{patch}: {}", reply.message());
    }
    assert_eq!(
        client.get(&path).await.value["metadata"]["generation"],
        4,
        "three changes of the specification"
    );
}

#[tokio::test]
async fn a_deletion_may_insist() {
    let (_cluster, client) = cluster();
    let path = format!("{CONFIG_MAPS}/c");
    let created = client.post(CONFIG_MAPS, config_map("c", json!({}))).await.value;
    let refused = client.delete(&path, json!({"preconditions": {"uid": "another"}})).await;
    assert_eq!(refused.refusal(), (409, "Conflict"));
    assert!(
        refused.message().contains("the UID in the precondition (another) does not match"),
        "{}",
        refused.message()
    );
    assert_eq!(client.delete(&path, json!({"preconditions": {"resourceVersion": "1"}})).await.code, 409);
    let version = &created["metadata"]["resourceVersion"];
    let deleted = client.delete(&path, json!({"preconditions": {"resourceVersion": version}})).await;
    assert_eq!((deleted.code, &deleted.value["status"]), (200, &json!("Success")));
    assert_eq!(deleted.value["details"]["uid"], created["metadata"]["uid"]);
    assert_eq!(client.delete(&path, json!({})).await.code, 404);
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let (_cluster, client) = cluster();
    let mut held = config_map("c", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    client.post(CONFIG_MAPS, held).await;
    let path = format!("{CONFIG_MAPS}/c");
    let deleted = client.delete(&path, json!({})).await;
    assert!(deleted.value["metadata"]["deletionTimestamp"].is_string());
    let let_go = json!({"metadata": {"finalizers": null}});
    assert_eq!(client.patch(&path, "merge", let_go).await.code, 200);
    assert_eq!(client.get(&path).await.code, 404);
}

#[tokio::test]
async fn a_bound_pod_is_given_time_and_an_unbound_one_is_not() {
    let (cluster, client) = cluster();
    for name in ["bound", "free"] {
        client.post(PODS, pod(name)).await;
    }
    cluster.bind("default", "bound", "n").expect("it is bound");
    client.delete(&format!("{PODS}/free"), json!({})).await;
    assert_eq!(client.get(&format!("{PODS}/free")).await.code, 404);

    let path = format!("{PODS}/bound");
    let deleted = client.delete(&path, json!({})).await;
    assert_eq!(deleted.value["metadata"]["deletionGracePeriodSeconds"], 30);
    let shortened = client.delete(&format!("{path}?gracePeriodSeconds=5"), json!({})).await;
    assert_eq!(shortened.value["metadata"]["deletionGracePeriodSeconds"], 5);
    let longer = client.delete(&path, json!({"gracePeriodSeconds": 60})).await;
    assert_eq!(longer.value["metadata"]["deletionGracePeriodSeconds"], 5);
    client.delete(&path, json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(client.get(&path).await.code, 404);
}

#[tokio::test]
async fn a_collection_is_deleted_by_label() {
    let (_cluster, client) = cluster();
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut labelled = config_map(name, json!({}));
        labelled["metadata"]["labels"] = json!({"l": label});
        client.post(CONFIG_MAPS, labelled).await;
    }
    let deleted = client.delete(&format!("{CONFIG_MAPS}?labelSelector=l%3Dx"), json!({})).await;
    assert_eq!(deleted.names(), ["a", "b"]);
    assert_eq!(client.get(CONFIG_MAPS).await.names(), ["c"]);
}

#[tokio::test]
async fn a_namespace_takes_along_what_is_in_it() {
    let (_cluster, client) = cluster();
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let created = client.get("/api/v1/namespaces/a").await.value;
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "a");
    client.post("/api/v1/namespaces/a/pods", pod("x")).await;
    client.delete("/api/v1/namespaces/a", json!({})).await;
    assert_eq!(client.get("/api/v1/namespaces/a/pods/x").await.code, 404);
}

#[tokio::test]
async fn a_rehearsal_stores_nothing() {
    let (cluster, client) = cluster();
    let version = cluster.resource_version();
    assert_eq!(client.post(&format!("{PODS}?dryRun=All"), pod("x")).await.code, 201);
    assert_eq!(cluster.resource_version(), version);
    assert_eq!(client.get(&format!("{PODS}/x")).await.code, 404);
    client.post(PODS, pod("x")).await;
    assert_eq!(client.delete(&format!("{PODS}/x"), json!({"dryRun": ["All"]})).await.code, 200);
    assert_eq!(client.get(&format!("{PODS}/x")).await.code, 200);
}

#[tokio::test]
async fn a_test_writes_both_halves_of_an_object_at_once() {
    let (cluster, client) = cluster();
    let mut created = cluster.create(node("n")).expect("it is created");
    let version = cluster.resource_version();
    created["spec"] = json!({"unschedulable": true});
    created["status"]["allocatable"]["cpu"] = "1".into();
    let updated = cluster.update(created.clone()).expect("it is updated");
    assert_eq!((&updated["spec"], &updated["status"]), (&created["spec"], &created["status"]));
    assert_eq!(cluster.resource_version(), version + 1, "one change");
    assert_eq!(client.get("/api/v1/nodes/n").await.value, updated);
    assert_eq!(cluster.update(created).map_err(|refusal| refusal.code()), Err(409));
}

#[tokio::test]
async fn events_are_read_either_way() {
    let (_cluster, client) = cluster();
    let event = json!({
        "metadata": {"name": "e"}, "note": "hello", "regarding": {"kind": "Pod", "name": "p"},
        "reportingController": "me", "reason": "Tested", "type": "Normal", "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(client.post(new, event).await.value["note"], "hello");
    let old = client.get("/api/v1/namespaces/default/events/e").await.value;
    assert_eq!((&old["message"], &old["involvedObject"]["name"]), (&json!("hello"), &json!("p")));
    assert_eq!((&old["apiVersion"], &old["reportingComponent"]), (&json!("v1"), &json!("me")));
    let patched =
        client.patch(&format!("{new}/e"), "merge", json!({"series": {"count": 2}, "note": "again"})).await;
    assert_eq!((&patched.value["note"], &patched.value["series"]["count"]), (&json!("again"), &json!(2)));
    assert_eq!(client.get(&format!("{new}?fieldSelector=regarding.name%3Dp")).await.names(), ["e"]);
    let about = "/api/v1/events?fieldSelector=involvedObject.name%3Dq";
    assert!(client.get(about).await.names().is_empty());
}

#[tokio::test]
async fn leases_are_never_updated_blindly() {
    let (_cluster, client) = cluster();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let created = client.post(leases, lease.clone()).await.value;
    assert_eq!(client.put(&format!("{leases}/l"), lease).await.refusal(), (422, "Invalid"));
    assert_eq!(client.put(&format!("{leases}/l"), created).await.code, 200);
}
