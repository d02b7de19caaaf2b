//! A JSON Schema of the configuration, for editors. Fields and types are those that are read; nothing is
//! listed twice.

mod descriptions;

use serde_json::{Map, Value, json};
use supercargo_framework::registry::{ArgsSchema, Field, Point, Registry, shape_of};

use crate::{
    document::Document,
    header::{API_VERSION, KIND},
};
use descriptions::DESCRIPTIONS;

/// The schema (draft 7, which editors know best) of a configuration for the plugins that exist.
pub fn schema(registry: &Registry) -> String {
    let mut root = of(&shape_of::<Document>());
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!(KIND);
    root["properties"]["apiVersion"] = json!({ "const": API_VERSION });
    root["properties"]["kind"] = json!({ "const": KIND });
    root["required"] = json!(["apiVersion", "kind"]);
    let profile = &mut root["properties"]["profiles"]["items"]["properties"];
    name_plugins(&mut profile["plugins"]["properties"], registry);
    type_arguments(&mut profile["pluginConfig"]["items"], registry);
    // A tree of texts and numbers cannot fail to be written.
    serde_json::to_string_pretty(&root).unwrap_or_default()
}

/// At each point only the plugins that serve it can be enabled; and any other name, where plugins can be loaded.
fn name_plugins(points: &mut Value, registry: &Registry) {
    let enable = |points: &mut Value, point: &str, names: Vec<&str>| {
        let name = &mut points[point]["properties"]["enabled"]["items"]["properties"]["name"];
        if registry.loader().is_some() {
            // The names are still there to be offered.
            name["anyOf"] = json!([{ "enum": names }, { "type": "string" }]);
        } else {
            name["enum"] = json!(names);
        }
    };
    for point in Point::ALL {
        let serving = registry.iter().filter(|plugin| plugin.points().contains(&point));
        enable(points, point.name(), serving.map(|plugin| plugin.name()).collect());
    }
    enable(points, "multiPoint", registry.iter().map(|plugin| plugin.name()).collect());
}

/// The arguments depend on the plugin's name.
fn type_arguments(config: &mut Value, registry: &Registry) {
    let typed = registry.iter().filter_map(|plugin| {
        let mut args = of(&plugin.args_shape()?);
        if let Some(properties) = args.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
            properties.insert("kind".to_owned(), json!({ "const": format!("{}Args", plugin.name()) }));
        }
        Some(json!({
            "if": { "properties": { "name": { "const": plugin.name() } } },
            "then": { "properties": { "args": args } },
        }))
    });
    let typed: Vec<Value> = typed.collect();
    config["allOf"] = json!(typed);
}

fn of(shape: &ArgsSchema) -> Value {
    match shape {
        ArgsSchema::Any => json!({}),
        ArgsSchema::Bool => json!({ "type": "boolean" }),
        ArgsSchema::Integer(least, most) => integer(*least, *most),
        ArgsSchema::Number => json!({ "type": "number" }),
        ArgsSchema::Text => json!({ "type": "string" }),
        ArgsSchema::Names(names) => json!({ "type": "string", "enum": names }),
        ArgsSchema::List(item) => json!({ "type": "array", "items": of(item) }),
        ArgsSchema::Map(item) => json!({ "type": "object", "additionalProperties": of(item) }),
        ArgsSchema::Fields(fields) => object(fields),
    }
}

/// Bounds beyond what every JSON reader can hold say nothing.
fn integer(least: i128, most: i128) -> Value {
    let mut schema = json!({ "type": "integer" });
    if let Ok(least) = i32::try_from(least) {
        schema["minimum"] = json!(least);
    }
    if let Ok(most) = u32::try_from(most) {
        schema["maximum"] = json!(most);
    }
    schema
}

fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), described(field))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn described(field: &Field) -> Value {
    let mut schema = of(&field.shape);
    if let Some((_, description)) = DESCRIPTIONS.iter().find(|(name, _)| *name == field.name) {
        schema["description"] = json!(description);
    }
    schema
}
