//! `supercargo run`: the scheduler on a cluster.

mod beside;
mod decision_log;
mod decisions;
mod feature_gates;
mod flags;
mod guests;
mod live_page;
mod logging;
mod measure;
mod otlp;
mod pod_lines;
mod review;
mod serving;
mod spans;
mod watched;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use supercargo_config::{Configuration, Loaded};
use supercargo_framework::registry::Registry;
use supercargo_live::{
    informer::InformerHealth,
    real::{RealWorld, RestConfig},
    scheduler::records::DecisionObserver,
    world::SharedWorld,
};
use supercargo_manifest::{Problem, Problems};
use supercargo_scheduler::{Election, Ended, campaign, start};
use supercargo_wasm::Host;
use tokio_util::sync::CancellationToken;

pub(crate) use flags::{Options, explain_unknown, with_dashes};
pub(crate) use watched::{WatchedScheduler, start_watched};

use crate::{
    failure::{Ending, Failure},
    objects::load_configuration,
    output::Console,
    page::ShownConfiguration,
    version::{KUBERNETES, VERSION},
};
use beside::Beside;
use decision_log::DecisionLog;
use decisions::{Asked, KeptDecisions};
use flags::{Checked, DecisionOptions, TracingOptions};
use live_page::LivePage;
use measure::{MeteredWorld, MetricsMeter};
use otlp::Exporter;
use review::ByApiServer;
use serving::Serving;
use spans::Spans;

/// How long the last spans may take when the process ends.
const LAST_SPANS_WITHIN: Duration = Duration::from_secs(1);

/// Runs the scheduler until it is told to stop.
pub(crate) fn run(
    options: &Options,
    console: &mut Console,
    registry: &Registry,
    guests: &Host,
) -> Result<Ending, Failure> {
    if let Some(version) = options.show_version.as_deref().filter(|version| *version != "false") {
        return tell_version(version, console);
    }
    let checked = options.check()?;
    let signals = Signals::hear()?;
    let Loaded { mut configuration, warnings } =
        load_configuration(options.config.as_ref(), console, registry)?;
    options.apply(&mut configuration);
    if let Some(path) = &options.write_config_to {
        return write_configuration(path, &configuration, registry, console);
    }
    let pod_lines = logging::start(options)?;
    for warning in &checked.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = runtime()?;
    runtime.spawn(pod_lines.tell_left_out());
    let shown = ShownConfiguration::new(&configuration, &warnings, registry);
    let ending =
        runtime.block_on(schedule(options, checked, &configuration, shown, registry, guests, signals));
    // Whatever still runs (a request that nobody waits for) must not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ending.map_err(Failure::from)
}

/// One thread decides, watches and writes: a decision takes microseconds, and waking another thread costs more than it
/// saves. The lease and what is served have another ([`Beside`]).
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Problem> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Problem::error(format!("cannot start: {error}")))
}

fn write_configuration(
    path: &PathBuf,
    configuration: &Configuration,
    registry: &Registry,
    console: &mut Console,
) -> Result<Ending, Failure> {
    let text = configuration.to_yaml(registry);
    let written = std::fs::write(path, text);
    written.map_err(|error| Problem::error(format!("cannot write {}: {error}", path.display())))?;
    console.note(format!("wrote the configuration to {}", path.display()));
    Ok(Ending::Well)
}

async fn schedule(
    options: &Options,
    checked: Checked,
    configuration: &Configuration,
    shown: ShownConfiguration,
    registry: &Registry,
    guests: &Host,
    signals: Signals,
) -> Result<Ending, Problems> {
    let stop = signals.stop_in_order();
    let access = access(options, configuration);
    let real = open(&access).await?;
    tracing::info!(version = VERSION, server = real.server(), "supercargo starts");
    let about = ("live", real.server().to_owned());
    if !real.checks_certificate() {
        tracing::warn!(
            "the API server's certificate is not checked: the kubeconfig says insecure-skip-tls-verify"
        );
    }
    let measured = MetricsMeter::new(configuration, &checked.gates, &options.disabled_metrics);
    let (spans, exporter) = tracing_export(&options.tracing, &measured)?.unzip();
    let measured = Arc::new(measured.with_spans(spans));
    let world: SharedWorld = Arc::new(MeteredWorld::real(real, &measured));
    let beside = Beside::start()?;
    // With connections of its own and no limit, so that the lease never waits behind other requests.
    let own_access = RestConfig { queries_per_second: None, ..access };
    let beside_world: SharedWorld = Arc::new(MeteredWorld::real(open(&own_access).await?, &measured));
    let exporting = exporter.map(|exporter| beside.enter(|| tokio::spawn(exporter.run(stop.clone()))));
    let lease = beside.enter(|| campaign(&beside_world, configuration));
    let informers = InformerHealth::default();
    let told = &options.decisions;
    let setup = supercargo_scheduler::SchedulerOptions {
        election: Election::Joined(lease.clone()),
        meter: measured.clone(),
        watcher: measured.clone(),
        extender_transport: supercargo_scheduler::over_http(),
        strictness: options.strictness(),
        informers: informers.clone(),
        max_unschedulable: Some(options.max_unschedulable()),
        decisions: decision_log(told)?,
        explain_in_events: told.explain_in_events,
    };
    let running = start(&world, configuration, registry, setup)?;
    let _watched = guests::follow(guests, measured.metrics(), running.plugin_changes())?;
    let max_bytes = usize::try_from(told.decisions_kept_bytes).unwrap_or(usize::MAX);
    let kept = KeptDecisions::new(running.records(), told.decisions_kept, max_bytes);
    beside.enter(|| beside_world.spawn(Box::pin(kept.clone().keep_fetching(beside_world.clone()))));
    let asked = Asked {
        kept,
        inspector: running.inspector().clone(),
        configuration: Arc::new(configuration.clone()),
        world: world.clone(),
    };
    let page = LivePage::new(asked, measured.clone(), lease.clone(), shown, about);
    let serving = Serving {
        options: options.clone(),
        checked,
        configuration: serde_json::from_str(&configuration.to_json(registry)).unwrap_or_default(),
        profiling: configuration.enable_profiling,
        reviewer: reviewer(options, &own_access, &beside_world, &measured).await?,
        world: beside_world,
        lease,
        synced: running.synced(),
        informers,
        informers_world: world,
        inspector: running.inspector().clone(),
        page,
        measured,
        stop: stop.clone(),
    };
    let server = beside.run(serving.start()).await?.map_err(|error| Problem::error(error.to_string()))?;
    let ended = running.run_until(stop.cancelled()).await;
    stop.cancel();
    if let Some(server) = server {
        // Its own limit ends it.
        let _ = server.await;
    }
    if let Some(exporting) = exporting {
        // What is left of the spans is worth a moment, and no more.
        let _ = tokio::time::timeout(LAST_SPANS_WITHIN, exporting).await;
    }
    if ended == Ended::LostLease {
        tracing::error!("the lease was lost: ending, so that a fresh process can take part again");
        return Ok(Ending::Found);
    }
    tracing::info!("stopped");
    Ok(Ending::Well)
}

/// Where spans are made and how they are sent, if somebody collects them.
fn tracing_export(
    options: &TracingOptions,
    measured: &MetricsMeter,
) -> Result<Option<(Spans, Exporter)>, Problem> {
    let Some(endpoint) = &options.tracing_endpoint else { return Ok(None) };
    let spans = Spans::new(measured.metrics(), options.tracing_sampling_rate_per_million);
    let exporter = Exporter::new(endpoint, spans.clone(), measured.metrics())?;
    Ok(Some((spans, exporter)))
}

/// Full decisions go to a file, if one is named.
fn decision_log(options: &DecisionOptions) -> Result<Option<Arc<dyn DecisionObserver>>, Problem> {
    let Some(path) = &options.decision_log else { return Ok(None) };
    let log = DecisionLog::start(path, options.decision_log_max_size, options.decision_log_files)?;
    Ok(Some(Arc::new(log)))
}

async fn open(access: &RestConfig) -> Result<RealWorld, Problems> {
    RealWorld::open(access).await.map_err(Problems::from)
}

/// Asks those who callers are and what they may do that the flags name, or the scheduler's own API server.
async fn reviewer(
    options: &Options,
    own: &RestConfig,
    own_world: &SharedWorld,
    measured: &MetricsMeter,
) -> Result<ByApiServer, Problems> {
    let other = async |kubeconfig: &Option<PathBuf>| -> Result<SharedWorld, Problems> {
        match kubeconfig.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            None => Ok(own_world.clone()),
            Some(file) => {
                let access = RestConfig { kubeconfig: Some(file.clone()), master: None, ..own.clone() };
                let world: SharedWorld = Arc::new(MeteredWorld::real(open(&access).await?, measured));
                Ok(world)
            }
        }
    };
    Ok(ByApiServer {
        authentication: other(&options.authentication_kubeconfig).await?,
        authorization: other(&options.authorization_kubeconfig).await?,
    })
}

/// What `--version` prints; `raw` in full.
fn tell_version(version: &str, console: &mut Console) -> Result<Ending, Failure> {
    match version {
        "raw" => {
            console.line(format!("{{\"kubernetes\": \"{KUBERNETES}\", \"supercargo\": \"{VERSION}\"}}"))?;
        }
        _ => console.line(format!("Kubernetes {KUBERNETES}+supercargo.{VERSION}"))?,
    }
    Ok(Ending::Well)
}

fn access(options: &Options, configuration: &Configuration) -> RestConfig {
    let connection = &configuration.client_connection;
    let in_configuration = Some(&connection.kubeconfig).filter(|path| !path.is_empty()).map(PathBuf::from);
    RestConfig {
        kubeconfig: options.kubeconfig.clone().or(in_configuration),
        context: None,
        master: options.master.clone(),
        queries_per_second: connection.queries_per_second(),
        burst: connection.burst,
    }
}

/// Hears signals from the start on, in a thread of its own. Guests are compiled before anything runs, which may take a minute,
/// and a signal that nobody hears does not end the first process of a container.
struct Signals {
    stop: CancellationToken,
    /// Whether there is something that has to come to its end.
    runs: Arc<AtomicBool>,
}

impl Signals {
    fn hear() -> Result<Self, Problem> {
        let signals = Self { stop: CancellationToken::new(), runs: Arc::default() };
        let (stop, runs, runtime) = (signals.stop.clone(), signals.runs.clone(), runtime()?);
        let hears = async move {
            let heard = CancellationToken::new();
            let ends = tokio::spawn(stop_on_signal(heard.clone()));
            heard.cancelled().await;
            if !runs.load(Ordering::SeqCst) {
                std::process::exit(0);
            }
            stop.cancel();
            // The second signal ends the process there.
            let _ = ends.await;
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        let thread = thread.spawn(move || runtime.block_on(hears));
        thread.map_err(|error| Problem::error(format!("cannot start: {error}")))?;
        Ok(signals)
    }

    /// From now on the first signal is told by this, and ends nothing.
    fn stop_in_order(self) -> CancellationToken {
        self.runs.store(true, Ordering::SeqCst);
        self.stop
    }
}

/// The first signal lets everything come to its end; the second ends it.
pub(crate) async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    for second in [false, true] {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if second {
            tracing::warn!("forced shutdown");
            std::process::exit(i32::from(crate::failure::CANNOT));
        }
        tracing::info!("shutting down; repeat to force");
        stop.cancel();
    }
}
