//! Pods that are alike but for the names of their claims, as those of a StatefulSet: what does not look at claims is compiled
//! once for all of them, and sees none; what does is compiled for each.

use std::sync::{Arc, Mutex};

use serde_json::json;
use supercargo_engine::{Engine, Settings};
use supercargo_framework::{
    Prepared, Verdict,
    fast::{Compiled, FastFilter, FilterPart},
    points::Filter,
    registry::define,
};
use supercargo_model::{
    Cluster, Name, NodeInfo, Pod,
    testing::{cluster, node, pod},
};

use crate::support::profile_of;

/// The names of the claims that a plugin was compiled for, in the order of time.
type Seen = Arc<Mutex<Vec<Name>>>;

/// Lets every node pass, and remembers whom it was compiled for.
struct Recorder {
    seen: Seen,
    reads_claims: bool,
}

impl Filter for Recorder {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, _: &NodeInfo) -> Verdict {
        Ok(())
    }
}

impl FastFilter for Recorder {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let claims = pod.spec.volumes.iter().filter_map(|volume| volume.claim_name(&pod.name));
        self.seen.lock().unwrap().extend(claims);
        Compiled::Idle
    }

    fn reads_claims(&self) -> bool {
        self.reads_claims
    }
}

#[test]
fn what_does_not_look_at_claims_is_compiled_once_for_all_siblings() {
    let (blind, reader) = (Seen::default(), Seen::default());
    let mut registry = supercargo_plugins::registry();
    for (name, seen, reads_claims) in [("Blind", &blind, false), ("Reader", &reader, true)] {
        let seen = seen.clone();
        registry.add(
            define(name, move |_| Ok(Recorder { seen: seen.clone(), reads_claims })).filter().fast_filter(),
        );
    }
    let profile = profile_of(
        &registry,
        "default-scheduler",
        &[("PrioritySort", 0), ("Blind", 0), ("Reader", 0), ("NodeResourcesFit", 1), ("DefaultBinder", 0)],
        &[],
    );
    let mut engine = Engine::new(cluster([node("a"), node("b")]), [profile], Settings::default());
    for i in 0..5 {
        let volume =
            json!([{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-db-{i}")}}]);
        let pod = engine.admit(pod(&format!("db-{i}")).set("/spec/volumes", volume).pod());
        let node = engine.place(&pod).unwrap().node().unwrap().clone();
        engine.assume(&pod, node);
    }
    // The first pod may be the only one of its kind; with the second, a signature is made for all that follow.
    assert_eq!(*blind.lock().unwrap(), ["data-db-0", ""].map(Name::from));
    assert_eq!(*reader.lock().unwrap(), [0, 1, 2, 3, 4].map(|i| Name::from(format!("data-db-{i}"))));
}
