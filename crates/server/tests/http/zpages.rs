//! `/flagz`, `/statusz`, and what is said about profiles.

use serde_json::{Value, json};

use crate::{client::get, setup::Setup};

const ANN: &str = "Authorization: Bearer ann";

#[tokio::test]
async fn flags_are_shown_as_text_and_in_versions() {
    let server = Setup::default().start().await;
    let answer = get(server.address, "/flagz", &[ANN]).await;
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert!(answer.body.starts_with("\nkube-scheduler flagz\nWarning: This endpoint"), "{}", answer.body);
    assert!(answer.body.ends_with("\nv=2\n"), "{}", answer.body);

    let accept = "Accept: application/json;as=Flagz;g=config.k8s.io;v=v1beta1";
    let answer = get(server.address, "/flagz", &[ANN, accept]).await;
    let expected = json!({"kind": "Flagz", "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-scheduler"}, "flags": {"v": "2"}});
    assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap(), expected);
    assert_eq!(answer.header("warning"), "");

    let accept = "Accept: application/yaml;as=Flagz;g=config.k8s.io;v=v1alpha1";
    let answer = get(server.address, "/flagz", &[ANN, accept]).await;
    assert_eq!(answer.header("content-type"), "application/yaml");
    assert!(answer.body.contains("flags:\n  \"v\": \"2\"\n"), "{}", answer.body);
    assert!(answer.header("warning").contains("deprecated"), "{}", answer.head);
}

#[tokio::test]
async fn an_object_without_its_version_is_not_to_be_had() {
    let server = Setup::default().start().await;
    let answer = get(server.address, "/statusz", &[ANN, "Accept: application/json"]).await;
    let (code, reason, message) = answer.status();
    assert_eq!((code, &*reason), (406, "NotAcceptable"));
    assert!(message.contains("application/json, application/yaml, text/plain"), "{message}");
}

#[tokio::test]
async fn the_status_tells_versions_and_paths() {
    let server = Setup::default().start().await;
    let accept = "Accept: application/json;as=Statusz;g=config.k8s.io;v=v1beta1";
    let answer = get(server.address, "/statusz", &[ANN, accept]).await;
    let status: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(status["startTime"], "1970-01-01T00:00:00Z");
    assert_eq!((&status["binaryVersion"], &status["emulationVersion"]), (&json!("1.36.4"), &json!("1.36")));
    assert_eq!(status["paths"], json!(["/configz", "/metrics"]));
    assert!(status["uptimeSeconds"].as_i64().unwrap() > 1_700_000_000);
    assert_eq!(get(server.address, "/statusz", &[]).await.code, 403, "it is not for everybody");
}

#[tokio::test]
async fn who_asks_for_profiles_is_told_where_to_look() {
    let server = Setup::default().start().await;
    for path in ["/debug/pprof", "/debug/pprof/", "/debug/pprof/heap"] {
        let answer = get(server.address, path, &[ANN]).await;
        assert_eq!(answer.code, 501, "{path}");
        assert!(answer.body.contains("perf record"), "{}", answer.body);
    }
}
