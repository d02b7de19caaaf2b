//! A scheduler in this process with its page on loopback, for the demo.

use std::sync::Arc;

use supercargo_config::Loaded;
use supercargo_framework::registry::Registry;
use supercargo_live::world::SharedWorld;
use supercargo_manifest::{Problem, Problems};
use supercargo_scheduler::{Election, RunningScheduler, SchedulerOptions, start};
use supercargo_server::metrics::Metrics;
use tokio_util::sync::CancellationToken;

use super::{
    beside::Beside,
    decisions::{Asked, KeptDecisions},
    feature_gates::FeatureGates,
    live_page::LivePage,
    measure::{MeteredWorld, MetricsMeter},
};
use crate::{
    page::{self, ShownConfiguration},
    ui,
};

const DECISIONS_KEPT: usize = 1000;
const DECISIONS_KEPT_BYTES: usize = 4 << 20;

/// The scheduler, and where its page is.
pub(crate) struct WatchedScheduler {
    pub(crate) running: RunningScheduler,
    pub(crate) address: String,
    pub(crate) metrics: Arc<Metrics>,
    /// The page has a thread of its own.
    _beside: Beside,
}

/// Starts a scheduler in a world whose API server is at this address, and its page on this port of loopback; both end with
/// `stop`.
pub(crate) async fn start_watched(
    (world, server): (SharedWorld, &str),
    loaded: &Loaded,
    registry: &Registry,
    (port, title): (u16, String),
    stop: CancellationToken,
) -> Result<WatchedScheduler, Problems> {
    let configuration = &loaded.configuration;
    let gates = FeatureGates::parse(&[])?;
    let measured = Arc::new(MetricsMeter::new(configuration, &gates, &[]));
    let world: SharedWorld = Arc::new(MeteredWorld::new(world, server, &measured));
    let setup = SchedulerOptions {
        election: Election::Never,
        meter: measured.clone(),
        watcher: measured.clone(),
        ..Default::default()
    };
    let running = start(&world, configuration, registry, setup)?;
    let kept = KeptDecisions::new(running.records(), DECISIONS_KEPT, DECISIONS_KEPT_BYTES);
    world.spawn(Box::pin(kept.clone().keep_fetching(world.clone())));
    let asked = Asked {
        kept,
        inspector: running.inspector().clone(),
        configuration: Arc::new(configuration.clone()),
        world,
    };
    let shown = ShownConfiguration::new(configuration, &loaded.warnings, registry);
    let live_page = LivePage::new(asked, measured.clone(), None, shown, ("demo", title));
    let beside = Beside::start()?;
    let metrics = measured.metrics();
    let served = metrics.clone();
    let serving = async move {
        let server = page::bind_locally(port).await.map_err(|error| ui::cannot_serve(&error))?;
        let address = ui::address(&server);
        let routes = live_page.routes(ui::bare_routes(served), true);
        tokio::spawn(server.serve(page::open_locally(routes), stop.cancelled_owned()));
        Ok::<String, Problems>(address)
    };
    let address = beside.run(serving).await.map_err(|problem: Problem| Problems::from(problem))??;
    Ok(WatchedScheduler { running, address, metrics, _beside: beside })
}
