//! The last decisions, kept brief, and the way to ask for more: served to those who may see metrics.
//!
//! Brief records cost next to nothing and are always kept. A full one, with the scores of every node, would take the fast
//! path away from every pod; so it is worked out when somebody asks, on the state as it is then, and says so. Who wants the
//! full records of all decisions has `--decision-log`.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_config::Configuration;
use supercargo_live::{
    scheduler::{
        inspector::{Inspector, PodExplanation, QueueRecord},
        records::{Follower, Record, RecordKind, Records},
    },
    world::SharedWorld,
};
use supercargo_model::{Key, Name};
use supercargo_server::{AnswerQueries, BoxFuture, Query, QueryAnswer, Routes};
use supercargo_sim::explanation::{Explanation, WHAT_IF};

use super::EXPLAIN_PATH;
use crate::explain::document;

/// Where the last decisions are served.
const DECISIONS_PATH: &str = "/supercargo/v1/decisions";
/// Where the queue is served.
const QUEUE_PATH: &str = "/supercargo/v1/queue";
/// How many are told, unless the caller says otherwise.
const DEFAULT_LIMIT: usize = 100;
/// How many nodes may be asked about at a time: nobody is scheduled meanwhile.
const MAX_NODES: usize = 20;
/// How often records are fetched: often enough that none are lost, and the deciding thread wakes nobody.
const FETCH_EVERY: Duration = Duration::from_millis(100);

/// The last decisions. Clones share them.
#[derive(Clone)]
pub(super) struct KeptDecisions(Arc<Mutex<Kept>>);

struct Kept {
    follower: Option<Follower>,
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    max_count: usize,
    max_bytes: usize,
    /// How many were lost before they were fetched.
    lost: u64,
}

impl KeptDecisions {
    /// Keeps so many; none if either is 0, and then nothing is recorded at all.
    pub(super) fn new(records: &Records, max_count: usize, max_bytes: usize) -> Self {
        let follower = (max_count > 0 && max_bytes > 0).then(|| records.follow_decisions());
        let kept = VecDeque::new();
        Self(Arc::new(Mutex::new(Kept { follower, records: kept, bytes: 0, max_count, max_bytes, lost: 0 })))
    }

    /// Fetches records for ever.
    pub(super) async fn keep_fetching(self, world: SharedWorld) {
        while self.fetched().follower.is_some() {
            world.sleep(FETCH_EVERY).await;
        }
    }

    fn fetched(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(delivery) = kept.follower.as_mut().and_then(Follower::try_next) {
            kept.lost += delivery.lost;
            kept.add(delivery.record);
        }
        kept
    }
}

impl Kept {
    fn add(&mut self, record: Arc<Record>) {
        if !matches!(record.what, RecordKind::Decided { .. } | RecordKind::Failed { .. }) {
            return;
        }
        self.bytes += record.bytes();
        self.records.push_back(record);
        while self.records.len() > self.max_count || self.bytes > self.max_bytes {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }
}

/// Who answers questions about decisions.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) kept: KeptDecisions,
    pub(super) inspector: Inspector,
    pub(super) configuration: Arc<Configuration>,
    /// Where the scheduler lives: its clock is that of the records.
    pub(super) world: SharedWorld,
}

impl Asked {
    /// The routes that answer.
    pub(super) fn routes(self, routes: Routes) -> Routes {
        let [decisions, queue, explain] = [self.clone(), self.clone(), self];
        let decisions: AnswerQueries = Arc::new(move |query| {
            let answer = decisions.decisions(&query);
            Box::pin(async { answer })
        });
        let queue: AnswerQueries = Arc::new(move |query| queue.clone().queue(query));
        let explain: AnswerQueries = Arc::new(move |query| explain.clone().explain(query));
        routes.answers(DECISIONS_PATH, decisions).answers(QUEUE_PATH, queue).answers(EXPLAIN_PATH, explain)
    }

    fn decisions(&self, query: &Query) -> QueryAnswer {
        let (pod, limit) = match (pod(query), limit(query)) {
            (Ok(pod), Ok(limit)) => (pod, limit),
            (Err(wrong), _) | (_, Err(wrong)) => return QueryAnswer::BadRequest(wrong),
        };
        let kept = self.kept.fetched();
        let wanted =
            kept.records.iter().rev().filter(|record| pod.as_ref().is_none_or(|pod| record.pod == *pod));
        let decisions: Vec<Value> = wanted.take(limit).map(|record| self.brief(record)).collect();
        QueryAnswer::Json(
            json!({"decisions": decisions, "kept": kept.records.len(), "lost": kept.lost}).to_string(),
        )
    }

    /// When something happened, by the wall clock.
    fn time(&self, at: Duration) -> Value {
        let ago = self.world.uptime().saturating_sub(at);
        let now = self.world.now();
        json!(now.checked_sub(ago).unwrap_or(now).to_string())
    }

    fn brief(&self, record: &Record) -> Value {
        let mut brief = json!({
            "time": self.time(record.at), "pod": record.pod.to_string(), "uid": record.uid,
        });
        match &record.what {
            RecordKind::Decided { attempt, node, feasible, total, ties } => {
                brief["result"] = json!("Scheduled");
                brief["attempt"] = json!(attempt);
                brief["node"] = json!(node);
                brief["feasible"] = json!(feasible);
                brief["total"] = json!(total);
                brief["ties"] = json!(ties);
            }
            RecordKind::Failed { message, nominated_node } => {
                brief["result"] = json!("Failed");
                brief["message"] = json!(message);
                if let Some(node) = nominated_node {
                    brief["nominatedNode"] = json!(node);
                }
            }
            RecordKind::Queued { .. } | RecordKind::Left { .. } => {}
        }
        brief
    }

    fn queue(self, query: Query) -> BoxFuture<'static, QueryAnswer> {
        Box::pin(async move {
            let limit = match limit(&query) {
                Ok(limit) => limit,
                Err(wrong) => return QueryAnswer::BadRequest(wrong),
            };
            let Some(queue) = self.inspector.queue().await else { return stopped() };
            let pods: Vec<Value> = queue.iter().take(limit).map(|pod| self.waiting(pod)).collect();
            QueryAnswer::Json(json!({"pods": pods, "count": queue.len()}).to_string())
        })
    }

    fn waiting(&self, pod: &QueueRecord) -> Value {
        let refused_by = pod.refused_by.plugins.iter().chain(&pod.refused_by.pending);
        let mut waiting = json!({
            "pod": pod.pod.to_string(),
            "priority": pod.priority,
            "queue": format!("{:?}", pod.place),
            "since": self.time(pod.since),
            "attempts": pod.attempts,
            "refusedBy": refused_by.collect::<Vec<_>>(),
        });
        for (field, value) in [("gatedBy", &pod.gated_by), ("nominatedNode", &pod.nominated_node)] {
            if let Some(value) = value {
                waiting[field] = json!(value);
            }
        }
        waiting
    }

    fn explain(self, query: Query) -> BoxFuture<'static, QueryAnswer> {
        Box::pin(async move {
            let pod = match pod(&query) {
                Ok(Some(pod)) => pod,
                Ok(None) => return QueryAnswer::BadRequest("say which pod: ?pod=NAMESPACE/NAME".to_owned()),
                Err(wrong) => return QueryAnswer::BadRequest(wrong),
            };
            let nodes: Vec<Name> = query.all("node").map(Name::from).collect();
            if nodes.len() > MAX_NODES {
                return QueryAnswer::BadRequest(format!("ask about {MAX_NODES} nodes at a time, at most"));
            }
            match self.inspector.explain(pod.clone(), nodes).await {
                None => stopped(),
                Some(PodExplanation::Unknown) => QueryAnswer::NotFound(format!("there is no pod {pod}")),
                Some(PodExplanation::OtherScheduler) => {
                    QueryAnswer::NotFound(format!("pod {pod} asks for another scheduler"))
                }
                Some(PodExplanation::Explained { explained, bound_to }) => {
                    let explanation = Explanation {
                        basis: WHAT_IF.to_owned(),
                        bound_to: bound_to.map(|node| node.to_string()),
                        ..document(&explained, &self.configuration)
                    };
                    match serde_json::to_string(&explanation) {
                        Ok(text) => QueryAnswer::Json(text),
                        Err(error) => QueryAnswer::Unavailable(error.to_string()),
                    }
                }
            }
        })
    }
}

fn stopped() -> QueryAnswer {
    QueryAnswer::Unavailable("the scheduler has stopped".to_owned())
}

/// The pod that is asked about, if one is; in the namespace `default` if none is named.
fn pod(query: &Query) -> Result<Option<Key>, String> {
    let Some(pod) = query.get("pod") else { return Ok(None) };
    match pod.split('/').collect::<Vec<_>>()[..] {
        [name] if !name.is_empty() => Ok(Some(Key::new("default", name))),
        [namespace, name] if !name.is_empty() => Ok(Some(Key::new(namespace, name))),
        _ => Err(format!("{pod:?} is not NAMESPACE/NAME")),
    }
}

fn limit(query: &Query) -> Result<usize, String> {
    let limit =
        query.get("limit").map(|limit| limit.parse().map_err(|_| format!("limit {limit:?} is no number")));
    limit.unwrap_or(Ok(DEFAULT_LIMIT))
}
