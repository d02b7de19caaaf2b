//! A live cluster that is only read.

use std::sync::Arc;

use supercargo_live::{
    informer::{self, InformerHealth, WatchEvent},
    real::RealWorld,
    recording::recorded_resources,
    world::{Request, SharedWorld},
};
use supercargo_manifest::Problem;
use supercargo_model::object::Kind;
use tokio::sync::mpsc;

use crate::objects::LiveCluster;

/// A cluster whose objects are followed.
pub(crate) struct Followed {
    pub(crate) world: SharedWorld,
    pub(crate) server: String,
    events: mpsc::Receiver<WatchEvent>,
    unread: Vec<Kind>,
}

impl Followed {
    pub(crate) async fn open(cluster: &LiveCluster) -> Result<Self, Problem> {
        let real = RealWorld::open(&cluster.rest_config()).await;
        let real = real.map_err(|error| Problem::error(error.to_string()))?;
        let server = real.server().to_owned();
        let world: SharedWorld = Arc::new(real);
        probe(&world, &server).await?;
        let resources = recorded_resources();
        let unread = resources.iter().map(|resource| resource.kind).collect();
        let events = informer::open(&world, resources, &InformerHealth::default());
        Ok(Self { world, server, events, unread })
    }

    /// What becomes known next.
    pub(crate) async fn next(&mut self) -> Option<WatchEvent> {
        let event = self.events.recv().await?;
        if let WatchEvent::Synced(kind) = &event {
            self.unread.retain(|unread| unread != kind);
        }
        Some(event)
    }

    /// Whether everything has been told at least once.
    pub(crate) fn is_synced(&self) -> bool {
        self.unread.is_empty()
    }

    /// The kinds that have not been told in full.
    pub(crate) fn unread(&self) -> Vec<&'static str> {
        self.unread.iter().map(|kind| kind.name()).collect()
    }
}

/// Informers try for ever: whether anybody is there, and lets us in, is found out first.
async fn probe(world: &SharedWorld, server: &str) -> Result<(), Problem> {
    let reply = world.send(Request::get("/api/v1/nodes?limit=1")).await;
    match reply {
        Ok(reply) if reply.is_success() => Ok(()),
        Ok(reply) => {
            let message = format!("{server} does not let its nodes be read: {}", reply.message());
            Err(Problem::error(message)
                .hint("it takes the permissions that `supercargo rbac` prints, but for writing"))
        }
        Err(unanswered) => Err(Problem::error(format!("cannot reach {server}: {unanswered}"))),
    }
}
