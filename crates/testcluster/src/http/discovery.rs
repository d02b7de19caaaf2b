//! What the server says about itself: version, health, groups and resources.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::body::ResponseBody;
use super::openapi;
use super::reply::{Reply, json_reply, raw};
use crate::resource::{Resource, Served};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn answer(path: &str, accept: &str, served: &Served) -> Option<Reply> {
    let wants_aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2;");
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let value = match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => {
            return Some(raw(StatusCode::OK, PLAIN_TEXT, ResponseBody::whole("ok")));
        }
        ["api"] if wants_aggregated => return Some(aggregated(served, |group| group.is_empty())),
        ["apis"] if wants_aggregated => return Some(aggregated(served, |group| !group.is_empty())),
        ["version"] => version(),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(served)}),
        ["apis", name] => {
            let mut group = groups(served).into_iter().find(|group| group["name"] == *name)?;
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }
        ["api", version] => resource_list(served, "", version)?,
        ["apis", group, version] => resource_list(served, group, version)?,
        ["openapi", "v3"] => openapi::index(served),
        ["openapi", "v3", "api", version] => openapi::document(served, "", version)?,
        ["openapi", "v3", "apis", group, version] => openapi::document(served, group, version)?,
        ["openapi", "v2"] if accept.contains("proto-openapi.spec.v2@v1.0") => {
            let document = openapi::old_document_as_protobuf(served);
            return Some(raw(StatusCode::OK, openapi::GNOSTIC, ResponseBody::whole(document)));
        }
        ["openapi", "v2"] => openapi::old_document(served),
        [] => {
            json!({"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]})
        }
        _ => return None,
    };
    Some(json_reply(StatusCode::OK, &value))
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.0+testcluster",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none: this is Rust",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn groups(served: &Served) -> Vec<Value> {
    let named = served.group_versions().into_iter().filter(|(group, _)| !group.is_empty());
    named
        .map(|(group, version)| {
            let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
            json!({"name": group, "versions": [version.clone()], "preferredVersion": version})
        })
        .collect()
}

fn resource_list(served: &Served, group: &str, version: &str) -> Option<Value> {
    let found: Vec<&Resource> = served.of_version(group, version).collect();
    let first = found.first()?;
    let mut resources = Vec::new();
    for resource in &found {
        resources.push(json!({
            "name": resource.plural,
            "singularName": resource.singular(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs(),
            "shortNames": resource.short_names,
            "categories": resource.categories(),
        }));
        for subresource in resource.subresources {
            let (group, version, kind) = subresource_kind(resource, subresource);
            resources.push(json!({
                "name": format!("{}/{subresource}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "group": group,
                "version": version,
                "kind": kind,
                "verbs": subresource_verbs(subresource),
            }));
        }
    }
    let group_version = first.api_version();
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
    )
}

fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "binding" | "eviction" => &["create"],
        "log" => &["get"],
        "exec" | "attach" | "portforward" => &["create", "get"],
        _ => &["get", "patch", "update"],
    }
}

fn subresource_kind(resource: &Resource, subresource: &str) -> (&'static str, &'static str, &'static str) {
    match subresource {
        "binding" => ("", "v1", "Binding"),
        "eviction" => ("policy", "v1", "Eviction"),
        "scale" => ("autoscaling", "v1", "Scale"),
        "exec" => ("", "v1", "PodExecOptions"),
        "attach" => ("", "v1", "PodAttachOptions"),
        "portforward" => ("", "v1", "PodPortForwardOptions"),
        _ => (resource.group, resource.version, resource.kind),
    }
}

fn aggregated(served: &Served, wanted: impl Fn(&str) -> bool) -> Reply {
    let versions = served.group_versions().into_iter().filter(|(group, _)| wanted(group));
    let items: Vec<Value> = versions
        .map(|(group, version)| {
            let resources: Vec<Value> = served.of_version(group, version).map(aggregated_resource).collect();
            let mut metadata = json!({"creationTimestamp": null});
            if !group.is_empty() {
                metadata["name"] = group.into();
            }
            json!({"metadata": metadata, "versions": [{"version": version, "resources": resources, "freshness": "Current"}]})
        })
        .collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    raw(StatusCode::OK, AGGREGATED, ResponseBody::whole(list.to_string()))
}

fn aggregated_resource(resource: &'static Resource) -> Value {
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|subresource| {
            let (group, version, kind) = subresource_kind(resource, subresource);
            json!({
                "subresource": subresource,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "verbs": subresource_verbs(subresource),
            })
        })
        .collect();
    json!({
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular(),
        "verbs": resource.verbs(),
        "shortNames": resource.short_names,
        "categories": resource.categories(),
        "subresources": subresources,
    })
}
