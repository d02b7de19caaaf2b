//! The attributes about nodes and pods that a guest can ask for, by name: `label:disk`, `allocatable:cpu`.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use supercargo_manifest::nearest;
use supercargo_model::{Labels, Name, Node, NodeInfo, Pod, Resources, resources::PODS};

/// How an attribute is written into a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A whole number of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Real,
    /// The id of a text.
    Text,
}

/// Stands for a number that there is none of, or that cannot be read.
pub(crate) const NO_INTEGER: i64 = i64::MIN;
/// The id that stands for no text.
pub(crate) const NO_TEXT: u32 = 0;

impl Form {
    pub(crate) fn from_code(code: u32) -> Result<Self, String> {
        match code {
            0 => Ok(Self::Integer),
            1 => Ok(Self::Real),
            2 => Ok(Self::Text),
            other => Err(format!("{other} is no form of an attribute: 0 is i64, 1 is f64, 2 is text")),
        }
    }

    /// How many bytes a row takes in a column.
    pub(crate) fn width(self) -> u32 {
        match self {
            Self::Integer | Self::Real => 8,
            Self::Text => 4,
        }
    }
}

/// An attribute as it is known, before it takes a form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attribute<'a> {
    Number(i64),
    Text(Cow<'a, str>),
    Absent,
}

impl<'a> Attribute<'a> {
    fn text(text: Option<&'a Name>) -> Self {
        text.map_or(Self::Absent, |text| Self::Text(Cow::Borrowed(text)))
    }

    fn json(value: &Value) -> Self {
        Self::Text(Cow::Owned(value.to_string()))
    }

    /// The bits of its form; texts get their ids from whoever keeps them.
    pub(crate) fn bits(&self, form: Form, id: impl FnOnce(&str) -> u32) -> u64 {
        match (form, self) {
            (Form::Integer, Self::Number(number)) => *number as u64,
            (Form::Integer, Self::Text(text)) => text.parse().unwrap_or(NO_INTEGER) as u64,
            (Form::Integer, Self::Absent) => NO_INTEGER as u64,
            (Form::Real, Self::Number(number)) => (*number as f64).to_bits(),
            (Form::Real, Self::Text(text)) => text.parse().unwrap_or(f64::NAN).to_bits(),
            (Form::Real, Self::Absent) => f64::NAN.to_bits(),
            (Form::Text, Self::Number(number)) => u64::from(id(&number.to_string())),
            (Form::Text, Self::Text(text)) => u64::from(id(text)),
            (Form::Text, Self::Absent) => u64::from(NO_TEXT),
        }
    }
}

/// Splits `label:disk` into its name and its key, and sees to it that a key is there where one is needed.
fn split<'t>(text: &'t str, whose: &str, plain: &[&str], keyed: &[&str]) -> Result<(&'t str, Name), String> {
    let (name, key) = text.split_once(':').map_or((text, None), |(name, key)| (name, Some(key)));
    match key {
        None if plain.contains(&name) => Ok((name, "".into())),
        Some(key) if keyed.contains(&name) && !key.is_empty() => Ok((name, key.into())),
        _ if keyed.contains(&name) => Err(format!("the {whose} attribute {name} needs a key: {name}:<key>")),
        Some(_) if plain.contains(&name) => Err(format!("the {whose} attribute {name} takes no key")),
        _ => {
            let all = plain.iter().chain(keyed).copied();
            let near = nearest(name, all.clone()).map(|near| format!("; did you mean {near}?"));
            let all: Vec<&str> = all.collect();
            let rest = near.unwrap_or_else(|| format!("; there are {}", all.join(", ")));
            Err(format!("there is no {whose} attribute {name:?}{rest}"))
        }
    }
}

/// Something about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeAttribute {
    Name,
    Label(Name),
    Annotation(Name),
    Condition(Name),
    Info(Name),
    Image(Name),
    Taints,
    Unschedulable,
    Created,
    Json,
    Allocatable(Name),
    Requested(Name),
    Free(Name),
    Pods,
}

impl NodeAttribute {
    const PLAIN: [&'static str; 6] = ["name", "taints", "unschedulable", "created", "json", "pods"];
    const KEYED: [&'static str; 8] =
        ["label", "annotation", "condition", "info", "image", "allocatable", "requested", "free"];

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, key) = split(text, "node", &Self::PLAIN, &Self::KEYED)?;
        Ok(match name {
            "name" => Self::Name,
            "taints" => Self::Taints,
            "unschedulable" => Self::Unschedulable,
            "created" => Self::Created,
            "json" => Self::Json,
            "pods" => Self::Pods,
            "label" => Self::Label(key),
            "annotation" => Self::Annotation(key),
            "condition" => Self::Condition(key),
            "info" => Self::Info(key),
            "image" => Self::Image(key),
            "allocatable" => Self::Allocatable(key),
            "requested" => Self::Requested(key),
            _ => Self::Free(key),
        })
    }

    /// Whether it changes with the pods on the node; all else changes with the node itself.
    pub(crate) fn reads_load(&self) -> bool {
        matches!(self, Self::Requested(_) | Self::Free(_) | Self::Pods)
    }

    pub(crate) fn of<'n>(&self, info: &'n NodeInfo) -> Attribute<'n> {
        let node = &*info.node;
        match self {
            Self::Name => Attribute::Text(Cow::Borrowed(&node.name)),
            Self::Label(key) => Attribute::text(node.labels.get(key)),
            Self::Annotation(key) => Attribute::text(node.annotations.get(key)),
            Self::Condition(kind) => Attribute::text(node.conditions.get(kind)),
            Self::Info(field) => Attribute::text(node.system_info.get(field)),
            Self::Image(name) => Attribute::Number(image_bytes(node, name)),
            Self::Taints => Attribute::json(&taints(node)),
            Self::Unschedulable => Attribute::Number(node.unschedulable.into()),
            Self::Created => {
                node.created.map_or(Attribute::Absent, |created| Attribute::Number(created.as_second()))
            }
            Self::Json => Attribute::json(&node_json(node)),
            Self::Allocatable(resource) => Attribute::Number(node.allocatable.get(resource)),
            Self::Requested(resource) => Attribute::Number(requested(info, resource)),
            Self::Free(resource) => {
                Attribute::Number(node.allocatable.get(resource).saturating_sub(requested(info, resource)))
            }
            Self::Pods => Attribute::Number(info.pods.len() as i64),
        }
    }
}

fn requested(info: &NodeInfo, resource: &str) -> i64 {
    if resource == PODS { info.pods.len() as i64 } else { info.requested.get(resource) }
}

fn image_bytes(node: &Node, name: &str) -> i64 {
    let image = node.images.iter().find(|image| image.names.iter().any(|other| &**other == name));
    image.map_or(0, |image| image.size_bytes)
}

/// Something about the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodAttribute {
    Name,
    Namespace,
    Uid,
    Label(Name),
    NodeSelector(Name),
    Request(Name),
    Priority,
    Scheduler,
    ControllerKind,
    ControllerName,
    Tolerations,
    Json,
}

impl PodAttribute {
    const PLAIN: [&'static str; 9] = [
        "name",
        "namespace",
        "uid",
        "priority",
        "scheduler",
        "controllerKind",
        "controllerName",
        "tolerations",
        "json",
    ];
    const KEYED: [&'static str; 3] = ["label", "nodeSelector", "request"];

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, key) = split(text, "pod", &Self::PLAIN, &Self::KEYED)?;
        Ok(match name {
            "name" => Self::Name,
            "namespace" => Self::Namespace,
            "uid" => Self::Uid,
            "priority" => Self::Priority,
            "scheduler" => Self::Scheduler,
            "controllerKind" => Self::ControllerKind,
            "controllerName" => Self::ControllerName,
            "tolerations" => Self::Tolerations,
            "json" => Self::Json,
            "label" => Self::Label(key),
            "nodeSelector" => Self::NodeSelector(key),
            _ => Self::Request(key),
        })
    }

    pub(crate) fn of<'p>(&self, pod: &'p Pod) -> Attribute<'p> {
        let controller = pod.spec.controller.as_ref();
        match self {
            Self::Name => Attribute::Text(Cow::Borrowed(&pod.name)),
            Self::Namespace => Attribute::Text(Cow::Borrowed(&pod.namespace)),
            Self::Uid => Attribute::Text(Cow::Borrowed(&pod.uid)),
            Self::Label(key) => Attribute::text(pod.spec.labels.get(key)),
            Self::NodeSelector(key) => Attribute::text(pod.spec.node_selector.get(key)),
            Self::Request(resource) => Attribute::Number(pod.spec.requests.held.get(resource)),
            Self::Priority => Attribute::Number(pod.spec.priority.into()),
            Self::Scheduler => Attribute::Text(Cow::Borrowed(&pod.spec.scheduler_name)),
            Self::ControllerKind => Attribute::text(controller.map(|owner| &owner.kind)),
            Self::ControllerName => Attribute::text(controller.map(|owner| &owner.name)),
            Self::Tolerations => Attribute::json(&tolerations(pod)),
            Self::Json => Attribute::json(&pod_json(pod)),
        }
    }
}

fn map(labels: &Labels) -> Value {
    labels.iter().map(|(key, value)| (key.to_string(), json!(&**value))).collect::<Map<_, _>>().into()
}

fn names(names: &[Name]) -> Value {
    names.iter().map(|name| json!(&**name)).collect()
}

/// cpu in thousandths, memory and disk in bytes; what there is none of is left out.
fn amounts(resources: &Resources) -> Value {
    let known = [
        ("cpu", resources.milli_cpu),
        ("memory", resources.memory),
        ("ephemeral-storage", resources.ephemeral_storage),
        (PODS, resources.pods),
    ];
    let others = resources.scalars.iter().map(|(name, amount)| (&**name, *amount));
    let some = known.into_iter().chain(others).filter(|(_, amount)| *amount != 0);
    some.map(|(name, amount)| (name.to_owned(), json!(amount))).collect::<Map<_, _>>().into()
}

fn taints(node: &Node) -> Value {
    let taint = |taint: &supercargo_model::taint::Taint| json!({"key": &*taint.key, "value": &*taint.value, "effect": format!("{:?}", taint.effect)});
    node.taints.iter().map(taint).collect()
}

fn tolerations(pod: &Pod) -> Value {
    let toleration = |toleration: &supercargo_model::taint::Toleration| {
        json!({
            "key": &*toleration.key,
            "operator": format!("{:?}", toleration.operator),
            "value": &*toleration.value,
            "effect": toleration.effect.map_or_else(String::new, |effect| format!("{effect:?}")),
        })
    };
    pod.spec.tolerations.iter().map(toleration).collect()
}

fn node_json(node: &Node) -> Value {
    let image = |image: &supercargo_model::node::Image| json!({"names": names(&image.names), "sizeBytes": image.size_bytes});
    json!({
        "name": &*node.name,
        "labels": map(&node.labels),
        "annotations": map(&node.annotations),
        "conditions": map(&node.conditions),
        "nodeInfo": map(&node.system_info),
        "unschedulable": node.unschedulable,
        "taints": taints(node),
        "allocatable": amounts(&node.allocatable),
        "images": node.images.iter().map(image).collect::<Value>(),
    })
}

fn pod_json(pod: &Pod) -> Value {
    let spec = &*pod.spec;
    let port = |port: &supercargo_model::ports::HostPort| json!({"address": &*port.address, "protocol": format!("{:?}", port.protocol), "port": port.port});
    let owner = |owner: &supercargo_model::meta::Owner| json!({"apiVersion": &*owner.api_version, "kind": &*owner.kind, "name": &*owner.name});
    json!({
        "namespace": &*pod.namespace,
        "name": &*pod.name,
        "uid": &*pod.uid,
        "labels": map(&spec.labels),
        "priority": spec.priority,
        "schedulerName": &*spec.scheduler_name,
        "controller": spec.controller.as_ref().map(owner),
        "nodeSelector": map(&spec.node_selector),
        "tolerations": tolerations(pod),
        "requests": amounts(&spec.requests.held),
        "images": names(&spec.images),
        "hostPorts": spec.host_ports.iter().map(port).collect::<Value>(),
    })
}
