//! Objects as rows of a table, with the columns that kubectl prints.

mod columns;

use serde_json::{Value, json};

use crate::object::{as_map, at};
use crate::resource::Resource;
use crate::store::StoredObject;

/// A column: its name, whether it is shown only in wide tables, and what stands in it.
pub(super) struct Column {
    name: &'static str,
    wide: bool,
    cell: fn(&Value) -> Value,
}

/// A table of objects. A watch has the columns only in its first line.
pub(super) fn of<'a>(
    resource: &Resource,
    objects: impl Iterator<Item = &'a StoredObject>,
    whole_objects: bool,
    with_columns: bool,
) -> Value {
    let columns = columns::of(resource);
    let kind = whole_objects.then_some(resource);
    let rows: Vec<Value> = objects.map(|object| row(&columns, &object.value, kind)).collect();
    let definitions: Vec<Value> = columns.iter().filter(|_| with_columns).map(definition).collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": definitions, "rows": rows})
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": "string",
        "format": if column.name == "Name" { "name" } else { "" },
        "description": "",
        "priority": i32::from(column.wide),
    })
}

/// A row carries the object's metadata, or the whole object where its resource is given.
fn row(columns: &[Column], value: &Value, whole: Option<&Resource>) -> Value {
    let cells: Vec<Value> = columns.iter().map(|column| (column.cell)(value)).collect();
    let mut object = match whole {
        Some(_) => value.clone(),
        None => json!({"metadata": at(value, &["metadata"])}),
    };
    let (kind, api_version) = match whole {
        Some(resource) => (resource.kind, resource.api_version()),
        None => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
    };
    let map = as_map(&mut object);
    map.insert("kind".to_owned(), kind.into());
    map.insert("apiVersion".to_owned(), api_version.into());
    json!({"cells": cells, "object": object})
}
