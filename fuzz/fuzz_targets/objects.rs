//! A stream of objects becomes a cluster, its pending pods are scheduled, and everything is removed again.
//!
//! A stream that begins with a configuration is scheduled by it, all others by the defaults.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use supercargo_config::Configuration;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Source;
use supercargo_model::{
    Cluster,
    object::{Kind, Object, Objects, Reader},
};
use supercargo_plugins::registry;
use supercargo_scheduler::setup::{self, Overrides};
use supercargo_sim::simulate::{self, Input};

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);
static DEFAULTS: LazyLock<Configuration> =
    LazyLock::new(|| supercargo_config::default_configuration(&REGISTRY).expect("the defaults hold"));

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz.yaml", text);
    let mut reader = Reader::default();
    reader.read(&source);
    match reader.finish() {
        Ok(Objects { objects, .. }) => {
            fill_and_empty(&objects);
            schedule(objects, &source);
        }
        Err(problems) => {
            let _ = problems.to_string();
        }
    }
});

fn fill_and_empty(objects: &[Object]) {
    let mut cluster = Cluster::default();
    let nodes = objects.iter().filter(|object| object.kind() == Kind::Node).count();
    // Twice: the second time, everything replaces itself.
    for object in objects.iter().chain(objects) {
        cluster.put(object.clone());
    }
    assert_eq!(cluster.order().len(), nodes);
    for object in objects {
        cluster.remove(object.kind(), &object.key());
    }
    assert_eq!((cluster.order().len(), cluster.pods().len()), (0, 0), "an emptied cluster is empty");
}

fn schedule(objects: Vec<Object>, source: &Source) {
    let written = supercargo_config::load(source, &REGISTRY).map(|loaded| loaded.configuration);
    let configuration = written.as_ref().unwrap_or(&DEFAULTS);
    let Input { cluster, pending } = Input::new(objects);
    let engine = setup::engine(cluster, configuration, &REGISTRY, Overrides::default())
        .expect("what loads can be built");
    simulate::run(engine, setup::queue_settings(configuration), pending, |_| {});
}
