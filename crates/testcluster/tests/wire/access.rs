//! Reviews, and who may do what here.

use serde_json::{Value, json};
use supercargo_testcluster::{ADMIN_TOKEN, Rule, User};

use crate::client::{PODS, cluster, pod};

const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const OWN_ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

fn rule(verb: &str, resource: &str) -> Rule {
    Rule {
        verbs: vec![verb.to_owned()],
        api_groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        ..Rule::default()
    }
}

#[tokio::test]
async fn a_token_is_reviewed() {
    let (cluster, client) = cluster();
    let review = |token: &str| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let known = client.post(TOKENS, review(ADMIN_TOKEN)).await;
    assert_eq!((known.code, &known.value["status"]["authenticated"]), (201, &json!(true)));
    assert_eq!(known.value["status"]["user"]["groups"], json!(["system:masters"]));
    let unknown = client.post(TOKENS, review("boat")).await;
    assert_ne!(unknown.value["status"]["authenticated"], true);
    cluster.access().add_token("boat", User::named("captain"));
    assert_eq!(client.post(TOKENS, review("boat")).await.value["status"]["user"]["username"], "captain");
    assert_eq!(client.get(TOKENS).await.code, 405);
}

#[tokio::test]
async fn access_is_reviewed() {
    let (cluster, client) = cluster();
    cluster.access().add_token("boat", User::named("captain"));
    cluster.access().grant("captain", rule("get", "pods"));
    let attributes = |verb: &str| json!({"verb": verb, "resource": "pods", "namespace": "default"});
    let allowed = |reply: &Value| reply["status"]["allowed"] == true;
    for (verb, expected) in [("get", true), ("delete", false)] {
        let review = json!({"spec": {"user": "captain", "resourceAttributes": attributes(verb)}});
        assert_eq!(allowed(&client.post(ACCESS, review).await.value), expected, "{verb}");
        let own = json!({"spec": {"resourceAttributes": attributes(verb)}});
        let captain = client.clone().header("authorization", "Bearer boat");
        assert_eq!(allowed(&captain.post(OWN_ACCESS, own).await.value), expected, "{verb}");
    }
    let own = json!({"spec": {"resourceAttributes": attributes("delete")}});
    assert!(allowed(&client.post(OWN_ACCESS, own).await.value), "who has no name may do everything");
    let captain = client.clone().header("authorization", "Bearer boat");
    let who = captain.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await;
    assert_eq!(who.value["status"]["userInfo"]["username"], "captain");
    let rules = json!({"spec": {"namespace": "default"}});
    let rules = captain.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules).await;
    assert_eq!(
        rules.value["status"]["resourceRules"],
        json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])
    );
    let metrics =
        json!({"spec": {"user": "captain", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}});
    assert!(!allowed(&client.post(ACCESS, metrics).await.value));
}

#[tokio::test]
async fn rules_hold_for_the_server_itself_when_they_are_enforced() {
    let (cluster, client) = cluster();
    {
        let mut access = cluster.access();
        access.add_token("boat", User::named("captain"));
        access.grant("captain", rule("list", "pods"));
        access.enforce(true);
    }
    let captain = client.clone().header("authorization", "Bearer boat");
    assert_eq!(captain.get("/api/v1/pods").await.code, 200);
    let refused = captain.post(PODS, pod("x")).await;
    assert_eq!(refused.refusal(), (403, "Forbidden"));
    assert!(refused.message().contains("User \"captain\" cannot create resource \"pods\" in API group \"\""));
    assert_eq!(client.get("/api/v1/pods").await.refusal(), (403, "Forbidden"));
    let stranger = client.clone().header("authorization", "Bearer nobody");
    assert_eq!(stranger.get("/api/v1/pods").await.refusal(), (401, "Unauthorized"));
    let admin = client.clone().header("authorization", "Bearer admin");
    assert_eq!(admin.post(PODS, pod("x")).await.code, 201);
}
