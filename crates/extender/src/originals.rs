//! Objects as they were written. The scheduler reads little of an object, and an extender may read any of it.

use std::collections::HashMap;

use bytes::Bytes;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use supercargo_config::Extender;
use supercargo_model::{
    Name,
    object::{Kind, Object},
};

/// Which objects' texts extenders need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedOriginals {
    everything: bool,
    nodes: bool,
    all_pods: bool,
    /// Those that wait and name one of these resources; `None` for all that wait.
    pending: Option<Vec<Name>>,
}

impl WantedOriginals {
    /// What these extenders need.
    pub fn by(extenders: &[Extender]) -> Self {
        let reads_nodes = |extender: &&Extender| extender.is_in_hot_path() && !extender.node_cache_capable;
        let reads_victims = |e: &&Extender| !e.preempt_verb.is_empty() && !e.node_cache_capable;
        let sees_pods = |e: &&Extender| e.is_in_hot_path() || !e.preempt_verb.is_empty();
        let mut pending = Some(Vec::new());
        for extender in extenders.iter().filter(sees_pods) {
            if extender.managed_resources.is_empty() {
                pending = None;
            } else if let Some(names) = &mut pending {
                names.extend(extender.managed_resources.iter().map(|resource| Name::from(&*resource.name)));
            }
        }
        Self {
            everything: false,
            nodes: extenders.iter().any(|extender| reads_nodes(&extender)),
            all_pods: extenders.iter().any(|extender| reads_victims(&extender)),
            pending,
        }
    }

    /// The texts of all objects, for a recording.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Whether anything of a kind may be needed.
    pub fn any(&self, kind: Kind) -> bool {
        match kind {
            _ if self.everything => true,
            Kind::Node => self.nodes,
            Kind::Pod => self.all_pods || self.pending.as_ref().is_none_or(|names| !names.is_empty()),
            _ => false,
        }
    }

    /// Whether an object's text is needed.
    pub fn wants(&self, object: &Object) -> bool {
        match object {
            _ if self.everything => true,
            Object::Node(_) => self.nodes,
            Object::Pod(pod) if self.all_pods => !pod.finished,
            Object::Pod(pod) => {
                let named = |names: &Vec<Name>| pod.spec.extended_resources.iter().any(|r| names.contains(r));
                pod.node.is_none() && self.pending.as_ref().is_none_or(named)
            }
            _ => false,
        }
    }
}

/// The texts of objects, ready to be sent.
#[derive(Debug, Default)]
pub struct Originals {
    nodes: HashMap<Name, Bytes>,
    /// By uid.
    pods: HashMap<Name, Bytes>,
}

impl Originals {
    /// Of how many objects a text is kept.
    pub fn len(&self) -> usize {
        self.nodes.len() + self.pods.len()
    }

    /// Whether no text is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the [prepared](prepared) text of an object, or forgets it if it is needed no more.
    pub fn put(&mut self, object: &Object, text: Option<Bytes>) {
        let (texts, name) = match object {
            Object::Node(node) => (&mut self.nodes, &node.name),
            Object::Pod(pod) => (&mut self.pods, &pod.uid),
            _ => return,
        };
        match text {
            Some(text) => drop(texts.insert(name.clone(), text)),
            None => drop(texts.remove(name)),
        }
    }

    /// Forgets a node.
    pub fn forget_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Forgets a pod.
    pub fn forget_pod(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// A node's text, after a comma.
    pub(crate) fn node(&self, name: &str) -> Option<&Bytes> {
        self.nodes.get(name)
    }

    /// A pod's text, after a comma.
    pub fn pod(&self, uid: &str) -> Option<&Bytes> {
        self.pods.get(uid)
    }
}

/// An object's text as it is sent, after a comma: most stand in lists. As kube-scheduler sends it, it goes without its
/// kind, which the place says, and without `managedFields`, which is half of it and of no use. `None` if it is no object.
pub fn prepared(text: &str) -> Option<Bytes> {
    let mut prepared = String::with_capacity(text.len());
    prepared.push(',');
    copy(text, &["kind", "apiVersion"], &mut prepared, |key, value, out| {
        if key != "metadata" {
            out.push_str(value);
            return true;
        }
        copy(value, &["managedFields"], out, |_, value, out| {
            out.push_str(value);
            true
        })
    })
    .then(|| Bytes::from(prepared))
}

/// Copies an object without some of its fields; false if it is none.
fn copy(
    text: &str,
    without: &[&str],
    out: &mut String,
    value: impl Fn(&str, &str, &mut String) -> bool,
) -> bool {
    let Ok(Fields(fields)) = serde_json::from_str::<Fields<'_>>(text) else {
        return false;
    };
    out.push('{');
    let mut is_first = true;
    for (key, raw) in fields {
        if without.contains(&&*key) {
            continue;
        }
        if !std::mem::replace(&mut is_first, false) {
            out.push(',');
        }
        out.push_str(&serde_json::Value::from(&*key).to_string());
        out.push(':');
        if !value(&key, raw.get(), out) {
            return false;
        }
    }
    out.push('}');
    true
}

/// An object's fields in their order, unread.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_without_kind_and_managed_fields_and_is_otherwise_as_it_was() {
        let text = r#"{"kind":"Node", "apiVersion":"v1","metadata":{"name":"a\"b","managedFields":[{"manager":"x"}],
            "labels": {"kind":"kept","managedFields":"kept"}},"spec":{"n":1.50}}"#;
        let expected = r#",{"metadata":{"name":"a\"b","labels":{"kind":"kept","managedFields":"kept"}},"spec":{"n":1.50}}"#;
        let prepared = prepared(text).unwrap();
        assert_eq!(String::from_utf8_lossy(&prepared).replace(": {", ":{"), expected);
    }

    #[test]
    fn what_is_no_object_is_not_prepared() {
        for text in ["", "7", "[]", r#"{"metadata":7}"#, "{"] {
            assert_eq!(prepared(text), None, "{text}");
        }
    }

    #[test]
    fn texts_are_kept_only_where_an_extender_reads_them() {
        let manages = |name: &str| {
            vec![supercargo_config::ManagedResource { name: name.to_owned(), ignored_by_scheduler: false }]
        };
        let extender = |f: &dyn Fn(&mut Extender)| {
            let mut extender = Extender::default();
            f(&mut extender);
            extender
        };
        // (extenders; are texts wanted of: nodes, pods that wait, pods that wait for a gpu, pods that run)
        let cases: [(Vec<Extender>, [bool; 4]); 6] = [
            (vec![], [false, false, false, false]),
            (vec![extender(&|e| e.filter_verb = "f".into())], [true, true, true, false]),
            (
                vec![extender(&|e| (e.filter_verb, e.node_cache_capable) = ("f".into(), true))],
                [false, true, true, false],
            ),
            (
                vec![extender(&|e| {
                    (e.prioritize_verb, e.managed_resources) = ("p".into(), manages("e.com/gpu"))
                })],
                [true, false, true, false],
            ),
            (vec![extender(&|e| e.preempt_verb = "p".into())], [false, true, true, true]),
            (vec![extender(&|e| e.bind_verb = "b".into())], [false, false, false, false]),
        ];
        use supercargo_model::testing::{node, pod};
        let gpu = || pod("p").container(&[("e.com/gpu", "1")]);
        for (i, (extenders, expected)) in cases.into_iter().enumerate() {
            let wanted = WantedOriginals::by(&extenders);
            let found = [
                wanted.wants(&node("n").object()),
                wanted.wants(&pod("p").object()),
                wanted.wants(&gpu().object()),
                wanted.wants(&pod("p").on("n").object()),
            ];
            assert_eq!(found, expected, "case {i}");
        }
    }
}
