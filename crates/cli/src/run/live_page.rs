//! The page's answers of a running scheduler.
//!
//! Figures are read from what is counted anyway. Whatever the deciding thread has to be asked for is asked once for all
//! pages that are open, and what is answered is written once for all of them; only who wants a pod explained, or a node in
//! detail, asks it for himself.

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
    ShownConfiguration, Written,
};

/// How long an answer does for everybody who asks.
const CLUSTER_AGE: Duration = Duration::from_secs(1);
const QUEUE_AGE: Duration = Duration::from_millis(500);
const NOW_AGE: Duration = Duration::from_millis(500);
const DECISIONS_AGE: Duration = Duration::from_millis(500);

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
    cluster: Memo<Written<ClusterColumns>>,
    queue: Memo<Written<Vec<QueueRecord>>>,
    now: Memo<Written<serde_json::Value>>,
    /// The last ones of all pods; those of one pod are looked up for who asks.
    decisions: Memo<Written<()>>,
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
            decisions: Memo::new(DECISIONS_AGE, BESIDE_PART),
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
                DECISIONS_PATH if query.get("pod").is_some() => self.asked.decisions(&query),
                DECISIONS_PATH => self.last_decisions(&query).await.unwrap_or_else(stopped),
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
            Some(Written::new(ClusterColumns::new(look)))
        };
        let columns = self.cluster.get(|| self.world().uptime(), look).await?;
        let known = query.get("known");
        Some(columns.answer(known.unwrap_or_default(), |columns| page::json_answer(&columns.since(known))))
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
        let look = async || Some(Written::new(self.inspector().queue().await?));
        let queue = self.queue.get(|| self.world().uptime(), look).await?;
        let limit = query.get("limit").unwrap_or_default();
        Some(queue.answer(limit, |queue| self.asked.queue(queue, events, query)))
    }

    async fn last_decisions(&self, query: &Query) -> Option<QueryAnswer> {
        let last = self.decisions.get(|| self.world().uptime(), async || Some(Written::new(()))).await?;
        let limit = query.get("limit").unwrap_or_default();
        Some(last.answer(limit, |()| self.asked.decisions(query)))
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
            Some(Written::new(figures))
        };
        let figures = self.now.get(|| self.world().uptime(), figures).await?;
        Some(figures.answer("", page::json_answer))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::Timestamp;
    use supercargo_live::{
        real::{RealWorld, RestConfig},
        world::{Lines, Refused, Reply, Request, Unanswered, World},
    };
    use supercargo_manifest::Problems;
    use supercargo_scheduler::{Election, RunningScheduler, SchedulerOptions, start};
    use supercargo_testcluster::{TestCluster, TestClusterOptions};

    use super::*;
    use crate::run::{decisions::KeptDecisions, feature_gates::FeatureGates};

    /// A world whose clock stands still: nothing that is kept for a while becomes too old.
    struct StandsStill(SharedWorld);

    impl World for StandsStill {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn uptime(&self) -> Duration {
            Duration::from_secs(60)
        }

        fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
            self.0.sleep(span)
        }

        fn random(&self) -> u64 {
            self.0.random()
        }

        fn spawn(&self, task: BoxFuture<'static, ()>) {
            self.0.spawn(task);
        }

        fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
            self.0.spawn_aside(task);
        }

        fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
            self.0.send(request)
        }

        fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
            self.0.watch(request)
        }
    }

    /// Some nodes, and a pod that fits none of them.
    fn cluster() -> TestCluster {
        let cluster = TestCluster::start(TestClusterOptions::default()).expect("a port");
        let nodes = (0..20).map(|i| {
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{i}")},
                   "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}})
        });
        let whale = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "whale", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}]}});
        cluster.create_many(nodes.chain([whale])).expect("they are well");
        cluster
    }

    async fn page_of(cluster: &TestCluster) -> (RunningScheduler, Arc<LivePage>) {
        let registry = supercargo_plugins::registry();
        let configuration = supercargo_config::default_configuration(&registry).expect("the defaults");
        let access = RestConfig { master: Some(cluster.url()), ..RestConfig::default() };
        let world: SharedWorld = Arc::new(RealWorld::open(&access).await.expect("it is there"));
        let gates = FeatureGates::parse(&[]).expect("none");
        let measured = Arc::new(MetricsMeter::new(&configuration, &gates, &[]));
        let setup = SchedulerOptions {
            election: Election::Never,
            meter: measured.clone(),
            watcher: measured.clone(),
            ..Default::default()
        };
        let running = start(&world, &configuration, &registry, setup).expect("it starts");
        let asked = Asked {
            kept: KeptDecisions::new(running.records(), 100, 1 << 20),
            inspector: running.inspector().clone(),
            configuration: Arc::new(configuration.clone()),
            world: Arc::new(StandsStill(world)),
        };
        let shown = ShownConfiguration::new(&configuration, &Problems::default(), &registry);
        let page = LivePage::new(asked, measured, None, shown, ("live", String::new()));
        running.synced().wait_for(|synced| *synced).await.expect("it reads all");
        (running, page)
    }

    #[tokio::test]
    async fn a_hundred_pages_ask_the_deciding_thread_what_one_does() {
        let cluster = cluster();
        let (running, page) = page_of(&cluster).await;
        let known = page.cluster(&Query::default()).await.expect("it runs");
        let QueryAnswer::Json(known) = known else { panic!("{known:?}") };
        let known: serde_json::Value = serde_json::from_slice(&known).expect("JSON");
        let known = format!("known={}", known["generation"].as_str().expect("a generation"));

        // What the views ask for again and again while they are seen.
        let again = [
            (NOW_PATH, ""),
            (DECISIONS_PATH, "limit=15"),
            (QUEUE_PATH, "limit=500"),
            (CLUSTER_PATH, known.as_str()),
        ];
        let mut answers: Vec<BTreeSet<(usize, usize)>> = vec![BTreeSet::new(); again.len()];
        for _ in 0..100 {
            for (seen, (path, query)) in answers.iter_mut().zip(again) {
                let answer = page.clone().answer(path, Query::parse(query)).await;
                let QueryAnswer::Json(text) = answer else { panic!("{path}: {answer:?}") };
                seen.insert((text.as_ptr() as usize, text.len()));
            }
        }
        // One look at the nodes, one at the queue, and once for what helps those who wait.
        assert_eq!(running.inspector().asked(), 3);
        // The same bytes for all: nothing was written again.
        assert_eq!(answers.iter().map(BTreeSet::len).collect::<Vec<_>>(), [1, 1, 1, 1]);
        running.stop().await;
    }
}
