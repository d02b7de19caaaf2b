//! Objects from the YAML that people write.

use std::sync::Arc;

use supercargo_manifest::Source;
use supercargo_model::{
    Cluster, Node, Pod,
    object::{Object, Reader},
};

/// The objects of a stream.
pub(crate) fn objects(text: &str) -> Vec<Object> {
    let mut reader = Reader::default();
    reader.read(&Source::new("test.yaml", text));
    let read = reader.finish().unwrap_or_else(|problems| panic!("{problems}"));
    assert!(read.skipped.is_empty(), "{:?}", read.skipped);
    read.objects
}

/// A pod by its name, its spec and the rest of its fields.
pub(crate) fn pod(name: &str, rest: &str) -> Arc<Pod> {
    let text = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: '{name}'}}, {rest}}}");
    match objects(&text).pop() {
        Some(Object::Pod(pod)) => Arc::new(pod),
        other => panic!("{other:?}"),
    }
}

/// A node by its name, its labels and the rest of its fields.
pub(crate) fn node(name: &str, labels: &str, rest: &str) -> Node {
    let text =
        format!("{{apiVersion: v1, kind: Node, metadata: {{name: '{name}', labels: {{{labels}}}}}, {rest}}}");
    match objects(&text).pop() {
        Some(Object::Node(node)) => node,
        other => panic!("{other:?}"),
    }
}

/// The names of a cluster's nodes in the order in which they are tried.
pub(crate) fn order(cluster: &Cluster) -> String {
    let names: Vec<&str> = cluster.nodes().map(|node| &**node.name()).collect();
    names.join(" ")
}
