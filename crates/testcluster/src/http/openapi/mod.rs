//! OpenAPI, as kubectl asks for it: which objects can be patched and with which parameters, and the fields of built-in
//! kinds, for `explain` and for the validation of older kubectls. Descriptions are left out.

mod gnostic;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::resource::{Resource, Served};
use crate::schema::{Field, Message, Shape, ValueType};

/// The media type of the older document as protobuf. kubectl asks for it with an `@`, which no media type may have.
pub(super) const GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

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

fn info() -> Value {
    json!({"title": "Supercargo test cluster", "version": "v1.36.0+testcluster"})
}

fn kind_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn object_path(resource: &Resource) -> String {
    let middle = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
    format!("/{}/{middle}{}/{{name}}", location(resource.group, resource.version), resource.plural)
}

/// What can be done with an object, with parameters in the form of the document's version.
fn operations(resource: &Resource, parameter: fn(&str) -> Value) -> Value {
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter).into();
    let operation = |action: &str| {
        json!({
            "operationId": format!("{action}{}", resource.kind),
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind_of(resource),
        })
    };
    json!({"get": operation("get"), "patch": operation("patch"), "put": operation("put")})
}

/// The document of a group and version.
pub(super) fn document(served: &Served, group: &str, version: &str) -> Option<Value> {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let resources: Vec<&Resource> = served.of_version(group, version).collect();
    if resources.is_empty() {
        return None;
    }
    let paths = resources.iter().map(|resource| (object_path(resource), operations(resource, parameter)));
    Some(json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": Value::Object(paths.collect()),
        "components": {"schemas": Schemas { references: "#/components/schemas/" }.of(&resources)},
    }))
}

/// The older form of the document, all in one.
pub(super) fn old_document(served: &Served) -> Value {
    let parameter = |name: &str| json!({"name": name, "in": "query", "type": "string", "uniqueItems": true});
    let resources: Vec<&Resource> = served.iter().collect();
    let paths = resources.iter().map(|resource| (object_path(resource), operations(resource, parameter)));
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": Value::Object(paths.collect()),
        "definitions": Schemas { references: "#/definitions/" }.of(&resources),
    })
}

/// The older form as the protobuf that kubectl reads.
pub(super) fn old_document_as_protobuf(served: &Served) -> Vec<u8> {
    gnostic::document(&old_document(served))
}

/// The name of a built-in kind's message, as Kubernetes' own documents have it.
fn full_name(message: &Message) -> String {
    let home = if message.name.starts_with("meta.") { "apimachinery.pkg.apis" } else { "api" };
    format!("io.k8s.{home}.{}", message.name)
}

/// Schemas, and where documents of a version keep them.
struct Schemas {
    references: &'static str,
}

impl Schemas {
    /// Those of the resources, and of all that they are made of.
    fn of(&self, resources: &[&Resource]) -> Map<String, Value> {
        let mut schemas = Map::new();
        let mut told = BTreeSet::new();
        let mut next = Vec::new();
        for resource in resources {
            let message = resource.schema();
            let name = message.map_or_else(|| custom_name(resource), full_name);
            let mut schema = message.map_or_else(|| unknown_schema(resource), |message| self.object(message));
            schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
            if let Some(message) = message {
                let properties =
                    [("apiVersion", json!({"type": "string"})), ("kind", json!({"type": "string"}))];
                for (name, property) in properties {
                    schema["properties"][name] = property;
                }
                told.insert(message.name);
                next.push(message);
            }
            schemas.insert(name, schema);
        }
        while let Some(message) = next.pop() {
            for part in message.json_fields().iter().filter_map(|field| field.value.message()) {
                if told.insert(part.name) {
                    schemas.insert(full_name(part), self.object(part));
                    next.push(part);
                }
            }
        }
        schemas
    }

    fn object(&self, message: &'static Message) -> Value {
        let fields = message.json_fields();
        let properties = fields.iter().map(|field| (field.name.to_owned(), self.property(field)));
        json!({"type": "object", "properties": properties.collect::<Map<_, _>>()})
    }

    fn property(&self, field: &Field) -> Value {
        let value = self.value(field.value);
        match field.shape {
            Shape::Plain | Shape::Optional => value,
            Shape::List => json!({"type": "array", "items": value}),
            Shape::Map => json!({"type": "object", "additionalProperties": value}),
        }
    }

    fn value(&self, value: ValueType) -> Value {
        match value {
            ValueType::Text | ValueType::Quantity => json!({"type": "string"}),
            ValueType::Bool => json!({"type": "boolean"}),
            ValueType::Integer => json!({"type": "integer", "format": "int64"}),
            ValueType::Bytes => json!({"type": "string", "format": "byte"}),
            ValueType::Time | ValueType::MicroTime => json!({"type": "string", "format": "date-time"}),
            ValueType::IntOrText => json!({"type": "string", "format": "int-or-string"}),
            ValueType::Texts => json!({"type": "array", "items": {"type": "string"}}),
            ValueType::Json => json!({"type": "object"}),
            ValueType::Message(_) => {
                let name = value.message().map(full_name).unwrap_or_default();
                json!({"$ref": format!("{}{name}", self.references)})
            }
        }
    }
}

fn custom_name(resource: &Resource) -> String {
    format!("io.k8s.testcluster.{}.{}", resource.version, resource.kind)
}

/// Of a custom resource the test cluster knows no schema.
fn unknown_schema(resource: &Resource) -> Value {
    json!({
        "type": "object",
        "description": format!("{}: the test cluster knows no schema.", resource.kind),
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_is_told_in_the_same_document() {
        let served = Served::default();
        for (group, version) in served.group_versions() {
            let document = document(&served, group, version).expect("it is served");
            let schemas = document["components"]["schemas"].as_object().expect("there are schemas");
            let text = document.to_string();
            for reference in text.split("\"#/components/schemas/").skip(1) {
                let name = reference.split('"').next().expect("a name");
                assert!(schemas.contains_key(name), "{group}/{version}: {name}");
            }
        }
    }

    #[test]
    fn names_are_those_of_kubernetes() {
        let pod = crate::resource::PODS.schema().expect("pods have fields");
        let metadata = pod.fields[0].value.message().expect("the first is the metadata");
        assert_eq!(full_name(pod), "io.k8s.api.core.v1.Pod");
        assert_eq!(full_name(metadata), "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    }
}
