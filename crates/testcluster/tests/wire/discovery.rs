//! What the server says about itself.

use serde_json::{Value, json};

use crate::client::cluster;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(|one| one["name"].as_str()).collect()
}

#[tokio::test]
async fn groups_and_resources_are_told() {
    let (_cluster, client) = cluster();
    assert_eq!(client.get("/version").await.value["gitVersion"], "v1.36.0+testcluster");
    assert_eq!(client.get("/api").await.value["versions"], json!(["v1"]));
    let groups = client.get("/apis").await.value;
    assert!(names(&groups["groups"]).contains(&"resource.k8s.io"));
    let core = client.get("/api/v1").await.value;
    assert_eq!((&core["kind"], &core["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    for expected in ["pods", "pods/binding", "nodes/status"] {
        assert!(names(&core["resources"]).contains(&expected), "{expected}");
    }
    assert_eq!(client.get("/apis/apps").await.value["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(client.get("/apis/boats/v1").await.code, 404);
    for path in ["/healthz", "/livez", "/readyz", "/readyz/etcd"] {
        assert_eq!(client.get(path).await.value, "ok", "{path}");
    }
}

#[tokio::test]
async fn discovery_is_aggregated_for_those_who_ask() {
    let (_cluster, client) = cluster();
    let wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let client = client.header("accept", &format!("{wanted},application/json"));
    let reply = client.get("/apis").await;
    assert_eq!(reply.headers["content-type"], wanted.replace('@', ".").as_str());
    let group = reply.value["items"]
        .as_array()
        .and_then(|items| items.iter().find(|item| item["metadata"]["name"] == "policy"));
    let budgets = &group.expect("policy is told")["versions"][0]["resources"][0];
    assert_eq!(
        (&budgets["resource"], &budgets["scope"]),
        (&json!("poddisruptionbudgets"), &json!("Namespaced"))
    );
    assert_eq!(budgets["subresources"][0]["subresource"], "status");
}

#[tokio::test]
async fn kubectl_learns_that_fields_are_validated_here() {
    let (_cluster, client) = cluster();
    let index = client.get("/openapi/v3").await.value;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("it is listed").to_owned();
    let document = client.get(&url).await.value;
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    assert!(names(&patch["parameters"]).contains(&"fieldValidation"));
    let old = client.get("/openapi/v2").await.value;
    assert_eq!(old["swagger"], "2.0");
    assert_eq!(
        old["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"],
        "#/definitions/io.k8s.api.core.v1.PodSpec"
    );
    let wanted = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let reply = client.clone().header("accept", wanted).get("/openapi/v2").await;
    assert_eq!(reply.code, 200);
    assert_eq!(reply.headers["content-type"], wanted.replace('@', ".").as_str());
}
