//! Takes a licence for a pod before it is bound, from whoever gives them out: an async PreBind that writes an object of a
//! custom kind, and waits for its status.

use std::sync::Arc;

use serde_json::json;
use supercargo::{
    framework::{
        Status, Verdict,
        handle::{ApiFailure, Dependency, Effect, HandleRef},
        points::PreBind,
        registry::{Args, Definition, define},
    },
    manifest::Problems,
    model::{ApiResource, Cluster, Key, Name, Pod, object::Kind},
};

/// The custom kind. `licences.yaml` has its definition.
pub static LICENCE_CLAIMS: ApiResource = ApiResource {
    group: "example.com",
    version: "v1",
    plural: "licenceclaims",
    kind: "LicenceClaim",
    namespaced: true,
};

/// The label of pods that need a licence: its value is the product.
const PRODUCT: &str = "example.com/licence";

/// The plugin.
pub struct Licences {
    handle: HandleRef,
}

/// Its name, how it is made, what it serves, and what it reads and writes. Its effect gives way while it waits.
pub fn definition() -> Definition<Licences> {
    define("Licences", Licences::new).pre_bind().gives_way().reads(&LICENCE_CLAIMS).writes(&LICENCE_CLAIMS)
}

impl Licences {
    fn new(args: &Args<'_>) -> Result<Self, Problems> {
        Ok(Self { handle: args.handle() })
    }

    /// Asks for a licence. If an earlier attempt has asked already, that stands.
    async fn ask(&self, key: &Key, pod: &Pod, product: &Name, node: &Name) -> Verdict {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": &*pod.name, "uid": &*pod.uid});
        let claim = json!({
            "apiVersion": "example.com/v1",
            "kind": "LicenceClaim",
            "metadata": {"name": &*key.name, "namespace": &*key.namespace, "ownerReferences": [owner]},
            "spec": {"product": &**product, "node": &**node},
        });
        match self.handle.create(&LICENCE_CLAIMS, key, claim).await {
            Err(error) if error.failure != ApiFailure::Conflict => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// What the status of a claim says; `None` as long as it says nothing.
fn answer(cluster: &Cluster, key: &Key) -> Option<Verdict> {
    let phase: Option<String> = cluster.custom(&LICENCE_CLAIMS, key)?.read("/status/phase").ok()?;
    match phase.as_deref() {
        Some("Granted") => Some(Ok(())),
        Some("Denied") => Some(Err(Status::unschedulable("no licence was granted"))),
        _ => None,
    }
}

impl PreBind for Licences {
    /// While a pod waits here, its status names the node.
    fn is_needed(&self, pod: &Pod, _: &str) -> bool {
        pod.spec.labels.has(PRODUCT)
    }

    /// Nobody else waits meanwhile. The wait ends with the pod, if nothing else ends it.
    fn pre_bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, Verdict> {
        Box::pin(async move {
            let Some(product) = pod.spec.labels.get(PRODUCT) else { return Ok(()) };
            let key = pod.key();
            self.ask(&key, pod, product, node).await?;
            let claim = Dependency::Object(Kind::Custom(&LICENCE_CLAIMS), key.clone());
            self.handle.until(move |view| answer(view.cluster, &key).ok_or(vec![claim.clone()])).await?
        })
    }
}

#[cfg(test)]
mod tests {
    use supercargo::{
        framework::offline::OfflineHandle,
        model::testing::{cluster, object, pod},
    };

    use super::*;

    #[test]
    fn the_status_decides() {
        let denied = Err(Status::unschedulable("no licence was granted"));
        for (phase, expected) in [("Granted", Ok(())), ("Denied", denied)] {
            let handle = OfflineHandle::default();
            let mut nodes = cluster([]);
            let claim = json!({"metadata": {"name": "p"}, "status": {"phase": phase}});
            nodes.put(object(claim).custom(&LICENCE_CLAIMS));
            handle.show(nodes);
            let plugin = Licences { handle: handle.connected() };
            let pod = Arc::new(pod("p").label(PRODUCT, "cad").pod());
            assert_eq!(handle.run(plugin.pre_bind(&pod, &"n".into())), Some(expected), "{phase}");
            let path = "/apis/example.com/v1/namespaces/default/licenceclaims/p";
            assert_eq!(handle.object(path).unwrap()["spec"], json!({"product": "cad", "node": "n"}));
        }
    }

    #[test]
    fn others_need_none() {
        let plugin = Licences { handle: HandleRef::default() };
        assert!(!plugin.is_needed(&pod("p").pod(), "n"));
    }
}
