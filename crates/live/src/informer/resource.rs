//! The resources that are followed, and where they are.

use std::sync::Arc;

use supercargo_extender::WantedOriginals;
use supercargo_model::{
    Key, Name,
    kind::{Kind, Watched},
};

use super::paths::escaped;

/// A resource of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind of its objects.
    pub kind: Kind,
    /// Its path, for all namespaces or for one.
    pub path: String,
    /// Which of its objects are read, as a field selector ready for a query; empty for all.
    pub field_selector: String,
    /// Every API server serves it. The others may be missing.
    pub required: bool,
    /// Which annotations are kept, where it is pods.
    pub annotations: Arc<[Name]>,
    /// Which of its objects' texts are told besides; `None` for none.
    pub texts: Option<Arc<WantedOriginals>>,
}

impl Resource {
    /// The same resource, with the texts that extenders want.
    #[must_use]
    pub fn with_texts(self, wanted: &Arc<WantedOriginals>) -> Self {
        let texts = wanted.any(self.kind).then(|| wanted.clone());
        Self { texts, ..self }
    }

    /// All objects of a kind that are watched; `None` if only those are that a configuration names.
    pub fn of(kind: Kind) -> Option<Self> {
        let field_selector = match kind.watched() {
            Watched::All => String::new(),
            Watched::Matching(selector) => escaped(selector),
            Watched::Named => return None,
        };
        let (path, required) = (kind.api().path(""), kind.is_required());
        Some(Self { kind, path, field_selector, required, annotations: Arc::default(), texts: None })
    }

    /// One ConfigMap. The server is only asked for that one, so that a permission for that one is enough.
    pub fn config_map(key: &Key) -> Self {
        Self {
            kind: Kind::ConfigMap,
            path: Kind::ConfigMap.api().path(&key.namespace),
            field_selector: escaped(&format!("metadata.name={}", key.name)),
            required: Kind::ConfigMap.is_required(),
            annotations: Arc::default(),
            texts: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use supercargo_model::{ApiResource, Declared};

    use super::*;

    #[test]
    fn every_kind_is_watched_but_those_that_are_named_one_by_one() {
        static BOATS: ApiResource = ApiResource {
            group: "example.com",
            version: "v1",
            plural: "boats",
            kind: "Boat",
            namespaced: true,
        };
        let map = Key::new("kube-system", "scores");
        let declared = Declared { kinds: vec![&BOATS], ..Declared::default() };
        let resources = super::super::resources_and(&declared, [&map]);
        let mut told: Vec<(Kind, &str)> = resources.iter().map(|r| (r.kind, &*r.path)).collect();
        let maps = (Kind::ConfigMap, "/api/v1/namespaces/kube-system/configmaps");
        assert_eq!(told.pop(), Some(maps));
        assert_eq!(told.pop(), Some((Kind::Custom(&BOATS), "/apis/example.com/v1/boats")));
        let kinds = Kind::ALL.iter().copied().filter(|kind| *kind != Kind::ConfigMap);
        let places: Vec<(Kind, String)> = kinds.map(|kind| (kind, kind.api().path(""))).collect();
        assert_eq!(told, places.iter().map(|(kind, path)| (*kind, &**path)).collect::<Vec<_>>());
    }
}
