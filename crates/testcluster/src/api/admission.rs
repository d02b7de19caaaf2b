//! What an object must be to be let in.

use serde_json::{Map, Value, json};

use super::create::keeps_status;
use super::{Caller, ObjectAddress, defaults};
use crate::definition;
use crate::failure::{StatusCause, StatusError};
use crate::object::{self, as_map, at, items, map_at, set_condition, text};
use crate::resource::{
    CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, PRIORITY_CLASSES,
    Resource, STORAGE_CLASSES,
};
use crate::schema::faults;
use crate::store::Store;

/// The object says what it is, and that is what is asked for.
pub(super) fn is_of_kind(resource: &Resource, value: &Value) -> Result<(), StatusError> {
    if !value.is_object() || !at(value, &["metadata"]).is_none_or(Value::is_object) {
        return Err(StatusError::bad_request(format!("{} must be an object with metadata", resource.kind)));
    }
    let (api_version, kind) = (text(value, &["apiVersion"]), text(value, &["kind"]));
    let expected = resource.api_version();
    if !api_version.is_empty() && api_version != expected {
        let why = format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        );
        return Err(StatusError::bad_request(why));
    }
    if !kind.is_empty() && kind != resource.kind {
        let why = format!("{kind} in version {expected:?} cannot be handled as a {}", resource.kind);
        return Err(StatusError::bad_request(why));
    }
    Ok(())
}

/// A strict caller is told of fields that the kind does not have, and of values of another type; what the object had
/// before is not the caller's fault.
pub(super) fn fields_are_known(
    resource: &Resource,
    old: Option<&Value>,
    new: &Value,
    caller: &Caller,
) -> Result<(), StatusError> {
    let (true, Some(schema)) = (caller.strict, resource.schema()) else { return Ok(()) };
    let known = old.map(|old| faults(schema, old)).unwrap_or_default();
    let found: Vec<String> = faults(schema, new).into_iter().filter(|fault| !known.contains(fault)).collect();
    if found.is_empty() {
        return Ok(());
    }
    let (kind, version) = (resource.kind, resource.api_version());
    let why = format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
        found.join(", ")
    );
    Err(StatusError::bad_request(why))
}

pub(super) fn namespace_exists(store: &Store, place: ObjectAddress<'_>) -> Result<(), StatusError> {
    if !place.resource.namespaced {
        return Ok(());
    }
    let namespace = ObjectAddress::new(&NAMESPACES, "", place.namespace).find(store)?;
    if object::is_terminating(&namespace.value) {
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            place.namespace
        );
        return Err(StatusError::forbidden(place.resource, place.name, why));
    }
    Ok(())
}

const NAME_LETTERS_LIMIT: usize = 253;

/// A lowercase DNS subdomain, which is what nearly all resources ask of their names.
pub(super) fn name_is_valid(resource: &Resource, name: &str) -> Result<(), StatusError> {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let part_is_valid = |part: &str| {
        part.starts_with(inner)
            && part.ends_with(inner)
            && part.chars().all(|letter| inner(letter) || letter == '-')
    };
    if name.len() <= NAME_LETTERS_LIMIT && name.split('.').all(part_is_valid) {
        return Ok(());
    }
    let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
               and must start and end with an alphanumeric character";
    Err(StatusError::invalid(resource, name, StatusCause::bad_value("metadata.name", name, why)))
}

/// Resources whose specification is counted.
pub(super) fn has_generation(resource: &Resource) -> bool {
    resource.has("status")
        && !matches!(
            resource.kind,
            "Namespace"
                | "Node"
                | "Service"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "VolumeAttachment"
                | "ResourceClaim"
        )
}

pub(super) fn reset_status(resource: &Resource, value: &mut Value) {
    if !keeps_status(resource) {
        as_map(value).remove("status");
    }
}

/// What depends on other objects: priorities, classes; and what a pod may not be.
pub(super) fn admit(
    store: &Store,
    resource: &'static Resource,
    value: &mut Value,
    caller: &Caller,
    now: &str,
) -> Result<(), StatusError> {
    if resource.is(&CUSTOM_RESOURCE_DEFINITIONS) {
        definition::admit(value)?;
    } else if resource.is(&PODS) {
        admit_pod(store, value, caller, now)?;
    } else if resource.is(&PERSISTENT_VOLUME_CLAIMS) {
        set_default_class(store, value);
    } else if resource.is(&NODES) && !at(value, &["spec"]).is_none_or(Value::is_object) {
        return Err(StatusError::bad_request("a node's spec must be an object"));
    }
    Ok(())
}

fn admit_pod(store: &Store, pod: &mut Value, caller: &Caller, now: &str) -> Result<(), StatusError> {
    let name = object::name(pod).to_owned();
    if !caller.trusted && items(pod, &["spec", "containers"]).is_empty() {
        return Err(StatusError::invalid(&PODS, &name, StatusCause::required("spec.containers", "")));
    }
    let gated = !items(pod, &["spec", "schedulingGates"]).is_empty();
    if gated && !text(pod, &["spec", "nodeName"]).is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        return Err(StatusError::invalid(&PODS, &name, StatusCause::forbidden("spec.nodeName", why)));
    }
    set_priority(store, pod, caller)?;
    defaults::fill_pod_status(pod);
    if gated {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set_condition(pod, condition, now);
    }
    Ok(())
}

fn set_priority(store: &Store, pod: &mut Value, caller: &Caller) -> Result<(), StatusError> {
    let class_name = text(pod, &["spec", "priorityClassName"]);
    let class = if class_name.is_empty() {
        let mut classes = store.objects(&PRIORITY_CLASSES, "", None).map(|(_, class)| class);
        classes.find(|class| class.value.get("globalDefault") == Some(&Value::Bool(true)))
    } else {
        let class = store.get(&PRIORITY_CLASSES, "", class_name);
        if class.is_none() {
            let why = format!("no PriorityClass with name {class_name} was found");
            return Err(StatusError::forbidden(&PODS, object::name(pod), why));
        }
        class
    };
    let number = class.and_then(|class| class.value.get("value")).and_then(Value::as_i64).unwrap_or(0);
    let policy = class.map_or("", |class| text(&class.value, &["preemptionPolicy"]));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    let given = at(pod, &["spec", "priority"]).and_then(Value::as_i64);
    if given.is_some_and(|given| given != number) && !caller.trusted {
        let why = format!(
            "the integer value of priority ({}) must not be provided in pod spec; \
             priority admission controller computed {number} from the given PriorityClass name",
            given.unwrap_or_default()
        );
        return Err(StatusError::forbidden(&PODS, object::name(pod), why));
    }
    let class_name = class.map(|class| object::name(&class.value).to_owned());
    let policy = policy.to_owned();
    let spec = map_at(pod, "spec");
    spec.entry("priority").or_insert(number.into());
    spec.entry("preemptionPolicy").or_insert(policy.into());
    if let Some(class_name) = class_name {
        spec.insert("priorityClassName".to_owned(), class_name.into());
    }
    Ok(())
}

fn set_default_class(store: &Store, claim: &mut Value) {
    const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
    if at(claim, &["spec", "storageClassName"]).is_some() {
        return;
    }
    let mut classes = store.objects(&STORAGE_CLASSES, "", None).map(|(_, class)| &class.value);
    if let Some(class) = classes.find(|class| text(class, &["metadata", "annotations", IS_DEFAULT]) == "true")
    {
        map_at(claim, "spec").insert("storageClassName".to_owned(), object::name(class).into());
    }
}

/// What an update of a pod may change: everything else in its specification is fixed.
pub(super) fn pod_update_is_valid(old: &Value, new: &Value) -> Result<(), StatusError> {
    let name = object::name(old);
    let gates = |pod: &Value| items(pod, &["spec", "schedulingGates"]).to_vec();
    let (old_gates, new_gates) = (gates(old), gates(new));
    if new_gates.iter().any(|gate| !old_gates.contains(gate)) {
        let why = "only deletion is allowed, but found new scheduling gate";
        return Err(StatusError::invalid(&PODS, name, StatusCause::forbidden("spec.schedulingGates", why)));
    }
    if fixed_part(old, !old_gates.is_empty()) != fixed_part(new, !old_gates.is_empty()) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                   to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        return Err(StatusError::invalid(&PODS, name, StatusCause::forbidden("spec", why)));
    }
    Ok(())
}

/// What a resize may change: how much processor and memory the containers ask for, and nothing else.
pub(super) fn resize_is_valid(old: &Value, new: &Value) -> Result<(), StatusError> {
    let name = object::name(old);
    let refuse = |why| Err(StatusError::invalid(&PODS, name, StatusCause::forbidden("spec", why)));
    if without_resizable(old) != without_resizable(new) {
        return refuse("only cpu and memory resources are mutable");
    }
    if defaults::quality_of_service(old) != defaults::quality_of_service(new) {
        return refuse("Pod QOS Class may not change as a result of resizing");
    }
    Ok(())
}

fn without_resizable(pod: &Value) -> Option<Value> {
    let mut spec = at(pod, &["spec"])?.clone();
    for containers in ["containers", "initContainers"] {
        let list = as_map(&mut spec).get_mut(containers).and_then(Value::as_array_mut);
        for container in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("resizePolicy");
            let resources = container.get_mut("resources").and_then(Value::as_object_mut);
            for amounts in resources.into_iter().flat_map(|resources| resources.values_mut()) {
                if let Some(amounts) = amounts.as_object_mut() {
                    amounts.remove("cpu");
                    amounts.remove("memory");
                }
            }
        }
    }
    Some(spec)
}

fn fixed_part(pod: &Value, gated: bool) -> Map<String, Value> {
    let mut spec = at(pod, &["spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for free in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"] {
        spec.remove(free);
    }
    if gated {
        spec.remove("nodeSelector");
        spec.remove("affinity");
    }
    for containers in ["containers", "initContainers"] {
        let list = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("image");
        }
    }
    spec
}
