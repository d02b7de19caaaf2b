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
use supercargo_server::{Query, QueryAnswer};
use supercargo_sim::explanation::{Explanation, WHAT_IF};

use crate::{
    explain::document,
    page::{self, HelpfulEvents, PendingEntry, asked_limit, asked_pod, asked_to_explain},
};

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
    /// The last decisions, the newest first.
    pub(super) fn decisions(&self, query: &Query) -> QueryAnswer {
        let (pod, limit) = match (asked_pod(query), asked_limit(query)) {
            (Ok(pod), Ok(limit)) => (pod, limit),
            (Err(wrong), _) | (_, Err(wrong)) => return QueryAnswer::BadRequest(wrong),
        };
        let kept = self.kept.fetched();
        let wanted =
            kept.records.iter().rev().filter(|record| pod.as_ref().is_none_or(|pod| record.pod == *pod));
        let decisions: Vec<Value> = wanted.take(limit).map(|record| self.brief(record)).collect();
        page::json_answer(&json!({"decisions": decisions, "kept": kept.records.len(), "lost": kept.lost}))
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

    /// The pods that wait, as far as they are asked for.
    pub(super) fn queue(&self, queue: &[QueueRecord], events: &HelpfulEvents, query: &Query) -> QueryAnswer {
        let limit = match asked_limit(query) {
            Ok(limit) => limit,
            Err(wrong) => return QueryAnswer::BadRequest(wrong),
        };
        let pods: Vec<Value> = queue.iter().take(limit).map(|pod| self.waiting(pod)).collect();
        page::json_answer(&json!({"pods": pods, "count": queue.len(), "events": events}))
    }

    fn waiting(&self, pod: &QueueRecord) -> Value {
        let mut waiting = PendingEntry {
            pod: &pod.pod,
            priority: pod.priority,
            queue: format!("{:?}", pod.place),
            attempts: pod.attempts,
            refused_by: pod.refused_by.plugins.iter().chain(&pod.refused_by.pending).collect(),
            gated_by: pod.gated_by.as_ref(),
            nominated_node: pod.nominated_node.as_ref(),
            message: pod.last_failure.as_ref().map(|failure| &*failure.message),
        }
        .to_json();
        waiting["since"] = self.time(pod.since);
        waiting["waits"] = json!(self.world.uptime().saturating_sub(pod.since).as_secs_f64());
        waiting
    }

    /// What would be decided for a pod now, and why.
    pub(super) async fn explain(&self, query: &Query) -> QueryAnswer {
        let (pod, nodes) = match asked_to_explain(query) {
            Ok(asked) => asked,
            Err(wrong) => return QueryAnswer::BadRequest(wrong),
        };
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
                page::explained(explanation, query)
            }
        }
    }
}

/// There is nobody left to ask.
pub(super) fn stopped() -> QueryAnswer {
    QueryAnswer::Unavailable("the scheduler has stopped".to_owned())
}
