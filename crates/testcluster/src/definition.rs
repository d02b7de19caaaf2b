//! CustomResourceDefinitions: what they define is served as soon as they are there.

use serde_json::{Value, json};

use crate::failure::{StatusCause, StatusError};
use crate::object::{as_map, at, items, name, text};
use crate::resource::{CUSTOM_RESOURCE_DEFINITIONS, Resource};

/// A version of a custom resource.
pub(crate) struct Defined<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) plural: &'a str,
    definition: &'a Value,
    has_status: bool,
}

/// The versions that a definition serves.
pub(crate) fn versions(definition: &Value) -> impl Iterator<Item = Defined<'_>> {
    let versions = items(definition, &["spec", "versions"]).iter();
    versions.filter(|version| version["served"] != false).map(|version| Defined {
        group: text(definition, &["spec", "group"]),
        version: text(version, &["name"]),
        plural: text(definition, &["spec", "names", "plural"]),
        definition,
        has_status: at(version, &["subresources", "status"]).is_some(),
    })
}

impl Defined<'_> {
    /// The resource, with its objects at a place of the store. It is kept for as long as the process runs, as those of the
    /// table are: definitions are few.
    pub(crate) fn resource(&self, slot: usize) -> &'static Resource {
        let short_names = items(self.definition, &["spec", "names", "shortNames"]).iter();
        Box::leak(Box::new(Resource {
            group: kept(self.group),
            version: kept(self.version),
            plural: kept(self.plural),
            kind: kept(text(self.definition, &["spec", "names", "kind"])),
            short_names: Vec::leak(short_names.filter_map(Value::as_str).map(kept).collect()),
            namespaced: text(self.definition, &["spec", "scope"]) == "Namespaced",
            subresources: if self.has_status { &["status"] } else { &[] },
            custom_slot: Some(slot),
        }))
    }
}

fn kept(text: &str) -> &'static str {
    String::leak(text.to_owned())
}

/// Refuses a definition that defines nothing, and says of any other that it is served.
pub(crate) fn admit(definition: &mut Value) -> Result<(), StatusError> {
    let named = name(definition).to_owned();
    for path in [["spec", "group"].as_slice(), &["spec", "names", "plural"], &["spec", "names", "kind"]] {
        if text(definition, path).is_empty() {
            let field = path.join(".");
            let cause = StatusCause::required(&field, "");
            return Err(StatusError::invalid(&CUSTOM_RESOURCE_DEFINITIONS, &named, cause));
        }
    }
    let expected = format!(
        "{}.{}",
        text(definition, &["spec", "names", "plural"]),
        text(definition, &["spec", "group"])
    );
    if named != expected {
        let why = "must be spec.names.plural+\".\"+spec.group";
        let cause = StatusCause::bad_value("metadata.name", &named, why);
        return Err(StatusError::invalid(&CUSTOM_RESOURCE_DEFINITIONS, &named, cause));
    }
    if items(definition, &["spec", "versions"]).is_empty() {
        let cause = StatusCause::required("spec.versions", "");
        return Err(StatusError::invalid(&CUSTOM_RESOURCE_DEFINITIONS, &named, cause));
    }
    let conditions = ["NamesAccepted", "Established"].map(|kind| json!({"type": kind, "status": "True"}));
    as_map(definition).insert("status".to_owned(), json!({"conditions": conditions}));
    Ok(())
}
