//! The page's answers of a running scheduler.
//!
//! Figures are read from what is counted anyway. Whatever the deciding thread has to be asked for is asked once for all
//! pages that are open; only who wants a pod explained asks it for himself.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use supercargo_live::{
    lease::{LeadershipState, Lease},
    scheduler::inspector::{Inspector, QueueRecord},
    world::SharedWorld,
};
use supercargo_server::{AnswerQueries, BoxFuture, Query, QueryAnswer, Routes};
use tokio::sync::OnceCell;

use super::{
    decisions::{Asked, stopped},
    measure::MetricsMeter,
};
use crate::page::{
    self, ABOUT_PATH, CLUSTER_PATH, CONFIGURATION_PATH, ClusterColumns, ClusterLook, DECISIONS_PATH,
    EXPLAIN_PATH, HelpfulEvents, Memo, NODE_PATH, NOW_PATH, NodeDetail, PATHS, QUEUE_PATH,
    ShownConfiguration,
};

/// How long an answer does for everybody who asks.
const CLUSTER_AGE: Duration = Duration::from_secs(1);
const QUEUE_AGE: Duration = Duration::from_millis(500);
const NOW_AGE: Duration = Duration::from_millis(500);

/// The part of the time that answers may take, of the deciding thread and of the one beside it.
const DECIDING_PART: u32 = 50;
const BESIDE_PART: u32 = 10;

/// Answers the page of a running scheduler.
pub(super) struct LivePage {
    asked: Asked,
    measured: Arc<MetricsMeter>,
    lease: Option<Lease>,
    configuration: ShownConfiguration,
    /// What kind of scheduler this is, and what it schedules.
    about: (&'static str, String),
    cluster: Memo<ClusterColumns>,
    queue: Memo<Vec<QueueRecord>>,
    now: Memo<serde_json::Value>,
    events: OnceCell<HelpfulEvents>,
    /// When it began, by the world's uptime.
    began: Duration,
}

impl LivePage {
    pub(super) fn new(
        asked: Asked,
        measured: Arc<MetricsMeter>,
        lease: Option<Lease>,
        configuration: ShownConfiguration,
        about: (&'static str, String),
    ) -> Arc<Self> {
        Arc::new(Self {
            began: asked.world.uptime(),
            asked,
            measured,
            lease,
            configuration,
            about,
            cluster: Memo::new(CLUSTER_AGE, DECIDING_PART),
            queue: Memo::new(QUEUE_AGE, DECIDING_PART),
            now: Memo::new(NOW_AGE, BESIDE_PART),
            events: OnceCell::new(),
        })
    }

    /// The routes that answer; with the page itself if it is wanted.
    pub(super) fn routes(self: Arc<Self>, routes: Routes, with_page: bool) -> Routes {
        let routes = PATHS.into_iter().fold(routes, |routes, path| {
            let page = self.clone();
            let answer: AnswerQueries = Arc::new(move |query| page.clone().answer(path, query));
            routes.answers(path, answer)
        });
        if with_page { routes.page() } else { routes }
    }

    fn answer(self: Arc<Self>, path: &'static str, query: Query) -> BoxFuture<'static, QueryAnswer> {
        Box::pin(async move {
            match path {
                ABOUT_PATH => page::about(self.about.0, &self.about.1, true),
                CLUSTER_PATH => self.cluster(&query).await.unwrap_or_else(stopped),
                NODE_PATH => self.node(&query).await.unwrap_or_else(stopped),
                QUEUE_PATH => self.queue(&query).await.unwrap_or_else(stopped),
                EXPLAIN_PATH => self.asked.explain(&query).await,
                CONFIGURATION_PATH => self.configuration.answer(&query),
                NOW_PATH => self.now().await.unwrap_or_else(stopped),
                DECISIONS_PATH => self.asked.decisions(&query),
                _ => QueryAnswer::NotFound(format!("there is nothing at {path}")),
            }
        })
    }

    fn inspector(&self) -> &Inspector {
        &self.asked.inspector
    }

    fn world(&self) -> &SharedWorld {
        &self.asked.world
    }

    async fn cluster(&self, query: &Query) -> Option<QueryAnswer> {
        let look = async || {
            let look = self.inspector().ask(|engine, _| ClusterLook::new(engine.cluster())).await?;
            Some(ClusterColumns::new(look))
        };
        let columns = self.cluster.get(|| self.world().uptime(), look).await?;
        Some(page::json_answer(&columns.since(query.get("known"))))
    }

    async fn node(&self, query: &Query) -> Option<QueryAnswer> {
        let name = query.get("name").unwrap_or_default().to_owned();
        let wanted = name.clone();
        let detail =
            self.inspector().ask(move |engine, _| NodeDetail::new(engine.cluster(), &wanted)).await?;
        Some(match detail {
            Some(detail) => page::json_answer(&detail),
            None => QueryAnswer::NotFound(format!("there is no node {name}")),
        })
    }

    async fn queue(&self, query: &Query) -> Option<QueryAnswer> {
        let events = async || {
            let events = self.inspector().ask(|engine, _| page::helpful_events(engine)).await;
            events.ok_or(())
        };
        let events = self.events.get_or_try_init(events).await.ok()?;
        let queue = self.queue.get(|| self.world().uptime(), async || self.inspector().queue().await).await?;
        Some(self.asked.queue(&queue, events, query))
    }

    async fn now(&self) -> Option<QueryAnswer> {
        let figures = async || {
            let mut figures = self.measured.metrics().figures();
            figures["live"] = json!(true);
            figures["uptimeSeconds"] = json!(self.world().uptime().saturating_sub(self.began).as_secs_f64());
            figures["leader"] = match &self.lease {
                None => json!({"state": "alone"}),
                Some(lease) => json!({"state": leadership(lease.state()), "holder": lease.holder()}),
            };
            Some(figures)
        };
        let figures = self.now.get(|| self.world().uptime(), figures).await?;
        Some(page::json_answer(&*figures))
    }
}

fn leadership(state: LeadershipState) -> &'static str {
    match state {
        LeadershipState::Leading => "leading",
        LeadershipState::Waiting => "standby",
        LeadershipState::Lost => "lost",
        LeadershipState::Released => "released",
    }
}
