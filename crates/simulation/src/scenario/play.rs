//! Plays a scenario.

use std::time::Duration;

use serde_json::{Map, Value, json};
use supercargo_model::ApiResource;

use super::{
    kind::{path_of, resource_of},
    observe::{MetricReadings, Observer, items},
    step::{BindStep, Delete, Patch, Scenario, Step},
};

/// How long it takes until a change of one kind has arrived everywhere: each kind has a watch of its own.
const BETWEEN_KINDS: Duration = Duration::from_millis(300);
/// How long nothing must change for things to have settled: longer than a pod is kept back after its first error, so that it
/// does not depend on the moment whether its next attempt is seen.
const QUIET: Duration = Duration::from_millis(2100);
/// How often it is looked whether something has changed.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is done with the scheduler's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessCommand {
    /// It starts, with the scenario's configuration, and is ready when this has been done.
    Start,
    /// It is asked to end, and has ended when this has been done.
    Stop,
    /// It stands still.
    Pause,
    /// It goes on.
    Resume,
}

/// Where a scenario is played: an API server, a scheduler, and time.
pub trait Stage {
    /// Sends a request to the API server; the status and the answer.
    fn request(&mut self, method: &str, path: &str, content_type: &str, body: Value) -> (u16, Value);

    /// Does something with the scheduler.
    fn order(&mut self, order: ProcessCommand) -> Result<(), String>;

    /// What the scheduler has counted, if that can be seen.
    fn metrics(&mut self) -> Option<MetricReadings>;

    /// Lets time pass.
    fn wait(&mut self, span: Duration);

    /// Time since some moment in the past.
    fn uptime(&mut self) -> Duration;
}

/// Plays a scenario on an empty stage. What was seen at its checkpoints, or the step that could not be done.
pub fn play(scenario: &Scenario, stage: &mut dyn Stage) -> Result<Map<String, Value>, String> {
    let namespace = scenario.namespace();
    let mut player = Player { scenario, stage, namespace, last_kind: None, paused: false };
    player.order(ProcessCommand::Start)?;
    player.create(&json!({"kind": "Namespace", "metadata": {"name": player.namespace}}))?;
    // Where the scenario's own objects begin.
    player.last_kind = None;
    let mut observer = Observer::since(player.stage.metrics().unwrap_or_default());
    let mut seen = Map::new();
    for (place, step) in scenario.steps.iter().enumerate() {
        if let Step::Checkpoint(label) = step {
            seen.insert(label.clone(), observer.checkpoint(scenario, player.stage));
            continue;
        }
        if let Step::Start(_) | Step::Restart(_) = step {
            observer.count_from(MetricReadings::default());
        }
        player.take(step).map_err(|why| format!("step {}: {why}", place + 1))?;
    }
    Ok(seen)
}

struct Player<'s> {
    scenario: &'s Scenario,
    stage: &'s mut dyn Stage,
    namespace: String,
    last_kind: Option<String>,
    paused: bool,
}

impl Player<'_> {
    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Create(object) => self.create(object),
            Step::Patch(patch) => self.patch(patch),
            Step::Delete(delete) => self.delete(delete),
            Step::Bind(bind) => self.bind(bind),
            Step::Wait(seconds) => {
                self.stage.wait(Duration::from_secs_f64(*seconds));
                Ok(())
            }
            Step::Settle(seconds) => {
                self.settle(Duration::from_secs_f64(*seconds));
                Ok(())
            }
            Step::Pause(_) => self.order(ProcessCommand::Pause),
            Step::Resume(_) => self.order(ProcessCommand::Resume),
            Step::Stop(_) => self.order(ProcessCommand::Stop),
            Step::Start(_) => self.order(ProcessCommand::Start),
            Step::Restart(_) => {
                self.order(ProcessCommand::Stop)?;
                self.order(ProcessCommand::Start)
            }
            Step::Checkpoint(_) => Ok(()),
        }
    }

    fn order(&mut self, order: ProcessCommand) -> Result<(), String> {
        self.paused = order == ProcessCommand::Pause;
        self.stage.order(order)
    }

    /// A change of another kind waits until those before have arrived.
    fn resource(&mut self, name: &str) -> Result<&'static ApiResource, String> {
        let resource = resource_of(name).ok_or_else(|| format!("there is no kind {name:?}"))?;
        let changed = self.last_kind.replace(name.to_owned()).is_some_and(|last| last != name);
        if changed && !self.paused {
            self.stage.wait(BETWEEN_KINDS);
        }
        Ok(resource)
    }

    fn place(&self, namespace: &Option<String>) -> String {
        namespace.clone().unwrap_or_else(|| self.namespace.clone())
    }

    fn request(&mut self, method: &str, path: &str, content_type: &str, body: Value) -> Result<(), String> {
        match self.stage.request(method, path, content_type, body) {
            (status, _) if status < 400 => Ok(()),
            (status, answer) => Err(format!("{method} {path}: {status}: {answer}")),
        }
    }

    fn create(&mut self, object: &Value) -> Result<(), String> {
        let resource = self.resource(object["kind"].as_str().unwrap_or_default())?;
        let mut object = object.clone();
        object["apiVersion"] = resource.api_version().into();
        let own = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let namespace = self.place(&own);
        if resource.namespaced {
            object["metadata"]["namespace"] = namespace.as_str().into();
        }
        self.request("POST", &resource.path(&namespace), "application/json", object)
    }

    fn patch(&mut self, patch: &Patch) -> Result<(), String> {
        let resource = self.resource(&patch.kind)?;
        let path = path_of(resource, &self.place(&patch.ns), &patch.name, patch.subresource.as_deref());
        self.request("PATCH", &path, patch.patch_type.content_type(), patch.body.clone())
    }

    fn delete(&mut self, delete: &Delete) -> Result<(), String> {
        let resource = self.resource(&delete.kind)?;
        let path = path_of(resource, &self.place(&delete.ns), &delete.name, None);
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let Some(seconds) = delete.grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        match self.stage.request("DELETE", &path, "application/json", options) {
            (404, _) if delete.maybe => Ok(()),
            (status, _) if status < 400 => Ok(()),
            (status, answer) => Err(format!("DELETE {path}: {status}: {answer}")),
        }
    }

    fn bind(&mut self, bind: &BindStep) -> Result<(), String> {
        let resource = self.resource("Pod")?;
        let namespace = self.place(&bind.ns);
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": bind.name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
        });
        let path = path_of(resource, &namespace, &bind.name, Some("binding"));
        self.request("POST", &path, "application/json", binding)
    }

    /// Waits until nothing changes any more.
    fn settle(&mut self, at_most: Duration) {
        let start = self.stage.uptime();
        let mut before = self.versions();
        let mut changed_at = start;
        loop {
            let now = self.stage.uptime();
            if now - start >= at_most {
                return;
            }
            self.stage.wait(LOOK_EVERY);
            let versions = self.versions();
            let now = self.stage.uptime();
            if versions != before {
                (before, changed_at) = (versions, now);
            } else if now - changed_at >= QUIET {
                return;
            }
        }
    }

    /// The versions of everything that can become quiet.
    fn versions(&mut self) -> Vec<Value> {
        let volumes: &[&str] =
            if self.scenario.volumes { &["PersistentVolumeClaim", "PersistentVolume"] } else { &[] };
        let mut versions = Vec::new();
        for kind in ["Pod", "Event"].iter().chain(volumes) {
            for mut object in items(self.stage, kind) {
                let metadata = &mut object["metadata"];
                versions.push(json!([
                    kind,
                    metadata["namespace"],
                    metadata["name"],
                    metadata["resourceVersion"]
                ]));
            }
        }
        versions
    }
}
