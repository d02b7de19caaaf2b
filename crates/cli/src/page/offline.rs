//! The page's answers for a cluster of files: its pending pods are scheduled once, and then nothing changes any more.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use supercargo_config::Configuration;
use supercargo_engine::Placement;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, Key, Timestamp, object::Object};
use supercargo_scheduler::{
    offline::{Attempt, OfflineScheduler},
    setup::{self, Overrides},
};
use supercargo_server::{Query, QueryAnswer};
use supercargo_sim::simulate::{self, Input};

use super::{
    ABOUT_PATH, CLUSTER_PATH, CONFIGURATION_PATH, ClusterColumns, ClusterLook, DECISIONS_PATH, EXPLAIN_PATH,
    HelpfulEvents, NODE_PATH, NOW_PATH, NodeDetail, PendingEntry, QUEUE_PATH, ShownConfiguration, about,
    asked_limit, asked_pod, asked_to_explain, explained, helpful_events, json_answer,
};
use crate::explain::ReadCluster;

/// How much of what was answered about pods is kept: sliders ask for the same pods again.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// What was read, by what rules it is scheduled, and what it is called.
pub(crate) struct OfflineCluster<'r> {
    pub(crate) title: String,
    pub(crate) objects: Vec<Object>,
    pub(crate) configuration: Configuration,
    pub(crate) warnings: Problems,
    pub(crate) registry: &'r Registry,
    pub(crate) seed: u64,
    pub(crate) now: Timestamp,
}

/// Answers the page.
pub(crate) struct OfflineAnswers<'r> {
    given: OfflineCluster<'r>,
    /// The cluster as it was read, and as it is when nothing more can happen.
    before: Cluster,
    after: Cluster,
    columns: [ClusterColumns; 2],
    /// The last first.
    decisions: Vec<(Key, Value)>,
    queue: Vec<Value>,
    events: HelpfulEvents,
    configuration: ShownConfiguration,
    summary: Value,
    kept: VecDeque<(String, Bytes)>,
}

impl<'r> OfflineAnswers<'r> {
    /// Schedules the pending pods.
    pub(crate) fn new(given: OfflineCluster<'r>) -> Result<Self, Problems> {
        let mut input = Input::new(given.objects.iter().cloned());
        input.cluster.set_now(given.now);
        let before = input.cluster.clone();
        let overrides = Overrides { seed: given.seed, ..Overrides::default() };
        let engine = setup::engine(input.cluster, &given.configuration, given.registry, overrides)?;
        let mut decisions = Vec::new();
        let mut messages: HashMap<Key, String> = HashMap::new();
        let settings = setup::queue_settings(&given.configuration);
        let scheduler = simulate::run(engine, settings, input.pending, |attempt| {
            let brief = brief(attempt);
            if let Some(message) = brief["message"].as_str() {
                messages.insert(attempt.pod.key(), message.to_owned());
            }
            decisions.push((attempt.pod.key(), brief));
        });
        decisions.reverse();
        let queue = waiting(&scheduler, &messages);
        let after = scheduler.engine().cluster().clone();
        let scheduled = decisions.iter().filter(|(_, brief)| brief["result"] == "Scheduled").count();
        Ok(Self {
            columns: [&before, &after].map(|cluster| ClusterColumns::new(ClusterLook::new(cluster))),
            summary: json!({
                "decisions": decisions.len(), "scheduled": scheduled, "waiting": queue.len(),
                "nodes": after.node_count(), "pods": after.pods().len(),
            }),
            configuration: ShownConfiguration::new(&given.configuration, &given.warnings, given.registry),
            events: helpful_events(scheduler.engine()),
            before,
            after,
            decisions,
            queue,
            kept: VecDeque::new(),
            given,
        })
    }

    /// The answer to a question.
    pub(crate) fn answer(&mut self, path: &str, query: &Query) -> QueryAnswer {
        let answer = match path {
            ABOUT_PATH => Ok(about("offline", &self.given.title, false)),
            CLUSTER_PATH => Ok(self.cluster(query)),
            NODE_PATH => Ok(self.node(query)),
            QUEUE_PATH => asked_limit(query).map(|limit| self.queue(limit)),
            DECISIONS_PATH => self.decisions(query),
            EXPLAIN_PATH => self.explain(query),
            CONFIGURATION_PATH => Ok(self.configuration.answer(query)),
            NOW_PATH => Ok(json_answer(&json!({"live": false, "summary": self.summary}))),
            _ => return QueryAnswer::NotFound(format!("there is nothing at {path}")),
        };
        answer.unwrap_or_else(QueryAnswer::BadRequest)
    }

    /// `state=before` is the cluster as it was read.
    fn cluster(&self, query: &Query) -> QueryAnswer {
        let [before, after] = &self.columns;
        let columns = if query.get("state") == Some("before") { before } else { after };
        json_answer(&columns.since(query.get("known")))
    }

    fn node(&self, query: &Query) -> QueryAnswer {
        let name = query.get("name").unwrap_or_default();
        let cluster = if query.get("state") == Some("before") { &self.before } else { &self.after };
        match NodeDetail::new(cluster, name) {
            Some(detail) => json_answer(&detail),
            None => QueryAnswer::NotFound(format!("there is no node {name}")),
        }
    }

    fn queue(&self, limit: usize) -> QueryAnswer {
        let pods: Vec<&Value> = self.queue.iter().take(limit).collect();
        json_answer(&json!({"pods": pods, "count": self.queue.len(), "events": self.events}))
    }

    fn decisions(&self, query: &Query) -> Result<QueryAnswer, String> {
        let (pod, limit) = (asked_pod(query)?, asked_limit(query)?);
        let wanted = self.decisions.iter().filter(|(key, _)| pod.as_ref().is_none_or(|pod| key == pod));
        let decisions: Vec<&Value> = wanted.map(|(_, brief)| brief).take(limit).collect();
        Ok(json_answer(&json!({"decisions": decisions, "kept": self.decisions.len(), "lost": 0})))
    }

    /// What `supercargo explain` would say.
    fn explain(&mut self, query: &Query) -> Result<QueryAnswer, String> {
        let (pod, nodes) = asked_to_explain(query)?;
        let form = query.get("form").unwrap_or_default();
        let question = format!("{form} {pod} {}", nodes.join(" "));
        if let Some((_, text)) = self.kept.iter().find(|(kept, _)| *kept == question) {
            return Ok(QueryAnswer::Json(text.clone()));
        }
        let cluster = ReadCluster {
            objects: self.given.objects.clone(),
            configuration: &self.given.configuration,
            registry: self.given.registry,
            seed_and_time: (self.given.seed, self.given.now),
        };
        let answer = match cluster.explain(&pod.to_string(), &nodes, None) {
            Ok(explanation) => explained(explanation, query),
            Err(problems) => QueryAnswer::NotFound(problems.to_string()),
        };
        if let QueryAnswer::Json(text) = &answer {
            self.keep(question, text.clone());
        }
        Ok(answer)
    }

    fn keep(&mut self, question: String, text: Bytes) {
        self.kept.push_back((question, text));
        let bytes =
            |kept: &VecDeque<(String, Bytes)>| -> usize { kept.iter().map(|(_, text)| text.len()).sum() };
        while bytes(&self.kept) > MAX_KEPT_BYTES && self.kept.pop_front().is_some() {}
    }
}

/// A decision in the fields that a running scheduler keeps of it.
fn brief(attempt: &Attempt) -> Value {
    let mut brief = json!({
        "pod": attempt.pod.key().to_string(),
        "attempt": attempt.number,
        "after": seconds(attempt.at),
    });
    let mut scheduled = |node: &str, feasible: usize, total: Option<i64>, ties: usize| {
        brief["result"] = json!("Scheduled");
        brief["node"] = json!(node);
        brief["feasible"] = json!(feasible);
        brief["total"] = json!(total);
        brief["ties"] = json!(ties);
    };
    match &attempt.placement {
        Placement::On { node, total, ties, feasible, .. } => scheduled(node, *feasible, Some(*total), *ties),
        Placement::Decided(decision) => match decision.node() {
            Some(node) => {
                scheduled(node, decision.feasible.len(), decision.best_total(), decision.best.len());
            }
            None => {
                brief["result"] = json!("Failed");
                brief["message"] = json!(decision.message());
                if let Some(Ok(nomination)) = &decision.preemption {
                    brief["nominatedNode"] = json!(nomination.node);
                    brief["victims"] = json!(nomination.victims.len());
                }
            }
        },
    }
    brief
}

/// The pods that are left, the most important first.
fn waiting(scheduler: &OfflineScheduler, messages: &HashMap<Key, String>) -> Vec<Value> {
    let mut pods: Vec<_> = scheduler.queue().pending().collect();
    pods.sort_by_key(|pending| (-i64::from(pending.pod.spec.priority), pending.pod.key()));
    let nominated = |uid: &str| scheduler.engine().nominations().node_of(uid);
    let told = pods.iter().map(|pending| {
        let key = pending.pod.key();
        PendingEntry {
            pod: &key,
            priority: pending.pod.spec.priority,
            queue: format!("{:?}", pending.place),
            attempts: pending.attempts,
            refused_by: pending.refused_by.all().collect(),
            gated_by: pending.held_by,
            nominated_node: nominated(&pending.pod.uid),
            message: messages.get(&key).map(String::as_str),
        }
        .to_json()
    });
    told.collect()
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
pub(crate) mod tests {
    use supercargo_manifest::Source;
    use supercargo_model::object::Reader;

    use super::*;

    /// A cluster of a text.
    pub(crate) fn read(text: &str) -> Input {
        Input::new(objects(text))
    }

    fn objects(text: &str) -> Vec<Object> {
        let mut reader = Reader::default();
        reader.read(&Source::new("test", text));
        reader.finish().unwrap().objects
    }
}
