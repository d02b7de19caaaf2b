//! Builders of objects for tests, in one place. What a builder lacks can be set by path: `.set("/spec/priority", 5)`.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub use crate::random::Random;
use crate::{ApiResource, Cluster, Kind, Node, Pod, object::Object};

/// An object on its way.
#[derive(Clone, Debug)]
pub struct Builder(Value);

/// A pod with one container that asks for nothing.
pub fn pod(name: &str) -> Builder {
    Builder(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {}},
        "spec": {"containers": []},
        "status": {},
    }))
}

/// A node with room for 110 pods and its host name as label.
pub fn node(name: &str) -> Builder {
    Builder(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"pods": "110"}},
    }))
}

/// Any other object, written as JSON.
pub fn object(value: Value) -> Builder {
    Builder(value)
}

impl Builder {
    /// Sets a field by its JSON pointer; maps on the way are made, and `-` at the end appends to a list.
    #[must_use]
    pub fn set(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        let mut at = &mut self.0;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/");
            at = if step == "-" {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut().expect("an array");
                list.push(Value::Null);
                list.last_mut().expect("just pushed")
            } else if at.is_array() {
                &mut at[step.parse::<usize>().expect("an index")]
            } else {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                &mut at[step.as_str()]
            };
        }
        *at = value.into();
        self
    }

    /// Changes a field by its JSON pointer, if it is there.
    #[must_use]
    pub fn map(mut self, pointer: &str, change: impl FnOnce(&Value) -> Value) -> Self {
        if let Some(field) = self.0.pointer_mut(pointer) {
            *field = change(field);
        }
        self
    }

    fn set_key(self, map: &str, key: &str, value: impl Into<Value>) -> Self {
        self.set(&format!("{map}/{}", key.replace('/', "~1")), value)
    }

    /// Adds a label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.set_key("/metadata/labels", key, value)
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.set_key("/metadata/annotations", key, value)
    }

    /// In a namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.set("/metadata/namespace", namespace)
    }

    /// Managed by a controller of this API version, kind and name.
    #[must_use]
    pub fn owner(self, api_version: &str, kind: &str, name: &str) -> Self {
        self.set(
            "/metadata/ownerReferences/-",
            json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": true}),
        )
    }

    // Pods.

    /// A container that asks for these resources.
    #[must_use]
    pub fn container(self, requests: &[(&str, &str)]) -> Self {
        self.set("/spec/containers/-", container(requests))
    }

    /// A container with this image.
    #[must_use]
    pub fn image(self, image: &str) -> Self {
        self.set("/spec/containers/-", json!({"name": "c", "image": image}))
    }

    /// An init container that asks for these resources.
    #[must_use]
    pub fn init_container(self, requests: &[(&str, &str)]) -> Self {
        self.set("/spec/initContainers/-", container(requests))
    }

    /// A sidecar that asks for these resources.
    #[must_use]
    pub fn sidecar(self, requests: &[(&str, &str)]) -> Self {
        let mut sidecar = container(requests);
        sidecar["restartPolicy"] = "Always".into();
        self.set("/spec/initContainers/-", sidecar)
    }

    /// Bound to a node.
    #[must_use]
    pub fn on(self, node: &str) -> Self {
        self.set("/spec/nodeName", node)
    }

    /// Of this priority.
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        self.set("/spec/priority", priority)
    }

    /// Started at this moment.
    #[must_use]
    pub fn started(self, at: &str) -> Self {
        self.set("/status/startTime", at)
    }

    /// Tolerates a taint, written as JSON.
    #[must_use]
    pub fn toleration(self, toleration: Value) -> Self {
        self.set("/spec/tolerations/-", toleration)
    }

    /// A volume from a claim.
    #[must_use]
    pub fn claim(self, claim: &str) -> Self {
        self.set("/spec/volumes/-", json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
    }

    // Nodes.

    /// Has so much of a resource.
    #[must_use]
    pub fn allocatable(self, resource: &str, amount: &str) -> Self {
        self.set_key("/status/allocatable", resource, amount)
    }

    /// Has a taint.
    #[must_use]
    pub fn taint(self, key: &str, value: &str, effect: &str) -> Self {
        self.set("/spec/taints/-", json!({"key": key, "value": value, "effect": effect}))
    }

    /// Has an image of this size.
    #[must_use]
    pub fn has_image(self, name: &str, size_bytes: i64) -> Self {
        self.set("/status/images/-", json!({"names": [name], "sizeBytes": size_bytes}))
    }

    /// The object itself.
    ///
    /// # Panics
    /// If it cannot be read as such.
    pub fn build<T: DeserializeOwned>(self) -> T {
        let text = self.0.to_string();
        serde_json::from_value(self.0).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The pod.
    pub fn pod(self) -> Arc<Pod> {
        Arc::new(self.build())
    }

    /// The node.
    pub fn node(self) -> Node {
        self.build()
    }

    /// An object of a custom kind.
    ///
    /// # Panics
    /// If it cannot be read as such.
    pub fn custom(self, api: &'static ApiResource) -> Object {
        Object::deserialize(Kind::Custom(api), &[], self.0).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Whatever kind it says it is.
    ///
    /// # Panics
    /// If it cannot be read as such, or a scheduler does not read such objects.
    pub fn object(self) -> Object {
        use supercargo_manifest::{Source, read};
        let source = Source::new("test", self.0.to_string());
        let documents = read(&source).unwrap_or_else(|problems| panic!("{problems}"));
        crate::object::read_object(&source, &documents[0], "")
            .unwrap_or_else(|problems| panic!("{problems}"))
            .expect("an object that a scheduler reads")
    }
}

fn container(requests: &[(&str, &str)]) -> Value {
    let requests: Map<String, Value> =
        (requests.iter()).map(|(name, amount)| ((*name).to_owned(), (*amount).into())).collect();
    json!({"name": "c", "image": "image", "resources": {"requests": requests}})
}

/// A cluster of these objects.
pub fn cluster(objects: impl IntoIterator<Item = Builder>) -> Cluster {
    let mut cluster = Cluster::default();
    for builder in objects {
        cluster.put(builder.object());
    }
    cluster
}

impl Random {
    /// One of some.
    pub fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Yes, once in so many times.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}
