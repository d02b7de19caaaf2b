//! What happens to a cluster.

use std::sync::Arc;

use serde_json::json;
use supercargo_engine::Engine;
use supercargo_model::{
    Cluster, Key, Name, Pod, Timestamp,
    object::{Kind, Object},
    testing::{Random, object},
};

use crate::{
    SHAPES, Scene,
    devices::device_event,
    objects::{node, nominated, owner, pod, preferences, storage},
};

/// More than what is remembered of changes.
const MORE_THAN_REMEMBERED: usize = 4_200;

/// Something happens to the cluster. Where little but pods changes, what is known is mended rather than made anew.
pub(crate) fn event(
    random: &mut Random,
    engine: &mut Engine,
    templates: &[Pod],
    serial: &mut usize,
    scene: &Scene,
) {
    if scene.nominations && random.chance(8) {
        let name: Name = format!("nominated-{}", random.below(3)).into();
        let node: Name = format!("n{}", random.below(scene.nodes)).into();
        let template = &templates[random.below(templates.len())];
        let pod = nominated(random, template, name);
        engine.nominations_mut().nominate(Arc::new(pod), node);
    }
    let cluster = engine.cluster_mut();
    if random.chance(6) {
        device_event(random, cluster, scene);
    }
    if scene.volumes && random.chance(6) {
        return cluster.put(storage(random, scene.nodes, SHAPES));
    }
    if scene.crowds && random.chance(60) {
        return crowd(random, cluster, templates, serial, scene);
    }
    let what = if scene.calm && !random.chance(30) { 5 + random.below(15) } else { random.below(23) };
    match what {
        22 => cluster.put(storage(random, scene.nodes, SHAPES)),
        20 | 21 => {
            // An operator's preferences change, or end; time goes on.
            cluster.set_now(Timestamp::from_second(random.below(4000) as i64).unwrap());
            if random.chance(4) {
                cluster.remove(Kind::ConfigMap, &Key::new("kube-system", "scores"));
            } else {
                cluster.put(preferences(random));
            }
        }
        0 | 1 => {
            let i = random.below(scene.nodes);
            cluster.put_node(node(random, scene, i));
        }
        2 => cluster.remove(Kind::Node, &Key::new("", format!("n{}", random.below(scene.nodes)))),
        3 => {
            let team = random.one(&["a", "b"]);
            let name = random.one(&["default", "other"]);
            cluster.put(
                object(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"team": team}}}))
                .object(),
            );
        }
        4 => owner_comes_or_goes(random, cluster),
        5..=8 => {
            if let Some(gone) = some_pod(random, cluster) {
                cluster.remove_pod(&gone.key());
            }
        }
        9 => {
            // A pod is relabelled, or its deletion is asked for.
            if let Some(old) = some_pod(random, cluster) {
                let mut new = pod(random, &old.name, scene.one_in_has_volumes());
                new.namespace = old.namespace.clone();
                new.node = old.node.clone();
                new.terminating = random.chance(2);
                cluster.put(Object::Pod(new));
            }
        }
        _ => {
            let template = &templates[random.below(templates.len())];
            comes(random, cluster, template, serial, scene);
        }
    }
}

fn some_pod(random: &mut Random, cluster: &Cluster) -> Option<Arc<Pod>> {
    let mut all: Vec<&Arc<Pod>> = cluster.pods().collect();
    all.sort_by_key(|pod| pod.name.clone());
    (!all.is_empty()).then(|| all[random.below(all.len())].clone())
}

/// A pod comes to a node; its key.
fn comes(
    random: &mut Random,
    cluster: &mut Cluster,
    template: &Pod,
    serial: &mut usize,
    scene: &Scene,
) -> Key {
    *serial += 1;
    let name: Name = format!("p{serial}").into();
    let node: Name = format!("n{}", random.below(scene.nodes)).into();
    let pod = Pod { name: name.clone(), uid: name, node: Some(node), ..template.clone() };
    let key = pod.key();
    cluster.put(Object::Pod(pod));
    key
}

/// More pods come and leave between two looks than anybody remembers; the last of them stays.
fn crowd(random: &mut Random, cluster: &mut Cluster, templates: &[Pod], serial: &mut usize, scene: &Scene) {
    let template = &templates[random.below(templates.len())];
    for _ in 0..MORE_THAN_REMEMBERED / 2 {
        let key = comes(random, cluster, template, serial, scene);
        cluster.remove_pod(&key);
    }
    comes(random, cluster, template, serial, scene);
}

fn owner_comes_or_goes(random: &mut Random, cluster: &mut Cluster) {
    if random.chance(3) {
        let kinds = [Kind::Service, Kind::ReplicaSet, Kind::StatefulSet, Kind::ReplicationController];
        let kind = kinds[random.below(kinds.len())];
        let name = if kind == Kind::Service { "web" } else { "owner" };
        cluster.remove(kind, &Key::new(random.one(&["default", "other"]), name));
    } else {
        cluster.put(owner(random));
    }
}
