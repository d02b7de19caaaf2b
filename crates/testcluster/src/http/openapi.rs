//! As much OpenAPI as kubectl asks for: which objects can be patched, and with which parameters.
//!
//! There are no schemas: objects are checked by their fields' use, not by their types.

use serde_json::{Map, Value, json};

use crate::resource::{Resource, Served};

fn location(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The list of documents, one for each group and version.
pub(super) fn index(served: &Served) -> Value {
    let paths = served.group_versions().into_iter().map(|(group, version)| {
        let location = location(group, version);
        let url = format!("/openapi/v3/{location}?hash=testcluster");
        (location, json!({"serverRelativeURL": url}))
    });
    json!({"paths": Value::Object(paths.collect())})
}

fn kind_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn query_parameter(name: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
}

fn object_path(resource: &Resource) -> String {
    let middle = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
    format!("/{}/{middle}{}/{{name}}", location(resource.group, resource.version), resource.plural)
}

/// The document of a group and version.
pub(super) fn document(served: &Served, group: &str, version: &str) -> Option<Value> {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in served.of_version(group, version) {
        let parameters: Vec<Value> =
            ["dryRun", "fieldManager", "fieldValidation", "force"].map(query_parameter).into();
        let operation = |action: &str| {
            json!({
                "operationId": format!("{action}{}", resource.kind),
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": kind_of(resource),
            })
        };
        paths.insert(
            object_path(resource),
            json!({"get": operation("get"), "patch": operation("patch"), "put": operation("put")}),
        );
        let name = format!("io.k8s.testcluster.{}.{}", resource.version, resource.kind);
        schemas.insert(name, schema(resource));
    }
    if paths.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Supercargo test cluster", "version": "v1.36.0+testcluster"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn schema(resource: &Resource) -> Value {
    json!({
        "type": "object",
        "description": format!("{}: the test cluster knows no schema.", resource.kind),
        "x-kubernetes-group-version-kind": [kind_of(resource)],
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The older form of the document, all in one.
pub(super) fn old_document(served: &Served) -> Value {
    let named = |resource: &Resource| format!("io.k8s.testcluster.{}.{}", resource.version, resource.kind);
    let definitions: Map<String, Value> =
        served.iter().map(|resource| (named(resource), schema(resource))).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Supercargo test cluster", "version": "v1.36.0+testcluster"},
        "paths": {},
        "definitions": definitions,
    })
}
