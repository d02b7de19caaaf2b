//! `supercargo record`: what happens in a cluster, to a file that can be replayed.

mod cluster;
mod file;
mod state;

use std::{path::PathBuf, time::Duration};

use supercargo_live::world::World;
use supercargo_manifest::{Problem, Problems};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::{Ending, Failure},
    input,
    objects::LiveCluster,
    output::Console,
    run::{runtime, stop_on_signal},
};
use cluster::Followed;
use file::RecordingFile;
use state::State;

/// What has been heard is on the disk after so long at most.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// Whoever waits for longer than this until everything is read is told why.
const SLOW: Duration = Duration::from_secs(15);
const DEFAULT_ROTATE_BYTES: &str = "1Gi";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file, packed with gzip unless its name ends with .jsonl; a recording that is there already is continued
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    cluster: LiveCluster,

    /// Keep this annotation of objects; may be given more than once. No other is kept
    #[arg(long = "annotation", value_name = "KEY")]
    annotations: Vec<String>,

    /// Begin a new file (FILE.1, FILE.2, …) with a snapshot when this one has grown so large
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_ROTATE_BYTES)]
    rotate_size: supercargo_model::Quantity,

    /// End after this long, such as 10m; without it, after Ctrl-C
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<supercargo_config::Duration>,
}

pub(crate) fn run(options: &Options, console: &mut Console) -> Result<Ending, Failure> {
    let runtime = runtime()?;
    let ended = runtime.block_on(record(options, console));
    // Whatever still runs (a watch that nobody reads) must not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended.map_err(Failure::from)
}

async fn record(options: &Options, console: &mut Console) -> Result<Ending, Problems> {
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let mut file = RecordingFile::open(&options.output, options.rotate_size.value().max(0).unsigned_abs())?;
    let mut state = State::resumed(file.take_text(), &options.annotations);
    let resumed = state.len();
    let mut followed = Followed::open(&options.cluster).await?;
    let began = Instant::now();
    let until = options.time.and_then(|time| Some(began + time.to_std()?));
    let mut flush = interval_at(began + FLUSH_EVERY, FLUSH_EVERY);
    flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let wrong = |error: std::io::Error| input::about(&options.output, format!("cannot write this: {error}"));
    let mut told_slow = false;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = sleep_until(until.unwrap_or(began)), if until.is_some() => break,
            _ = flush.tick() => {
                file.flush().map_err(wrong)?;
                if !state.is_complete() && began.elapsed() > SLOW && !std::mem::replace(&mut told_slow, true) {
                    console.note(format!("still reading: {}", followed.unread().join(", ")));
                }
            }
            event = followed.next() => {
                let Some(event) = event else { break };
                let was_complete = state.is_complete();
                let now = now_seconds(&*followed.world);
                state.take_in(event, now, followed.is_synced());
                if !was_complete && state.is_complete() {
                    file.write(&state.take_lines()).map_err(wrong)?;
                    file.flush().map_err(wrong)?;
                    tell_begin(options, &followed, resumed, state.len(), console);
                } else if was_complete {
                    file.write(&state.take_lines()).map_err(wrong)?;
                    if file.is_full() {
                        file.rotate(&state.snapshot(now)).map_err(wrong)?;
                        console.note(format!("goes on in {}", file.path().display()));
                    }
                }
            }
        }
    }
    file.flush().map_err(wrong)?;
    if !state.is_complete() {
        let message = format!("the cluster was not read in full: {}", followed.unread().join(", "));
        return Err(Problem::error(message).into());
    }
    console.note(format!("recorded {} changes", state.changes()));
    Ok(Ending::Well)
}

fn now_seconds(world: &dyn World) -> f64 {
    world.now().as_microsecond() as f64 / 1e6
}

fn tell_begin(options: &Options, followed: &Followed, resumed: usize, objects: usize, console: &mut Console) {
    let server = &followed.server;
    let path = options.output.display();
    console.note(match resumed {
        0 => format!("recording {objects} objects of {server} and their changes to {path}; Ctrl-C ends it"),
        _ => format!("going on with {path}: {objects} objects of {server}; Ctrl-C ends it"),
    });
}

/// What a recording goes on with that finds these bytes in its file: the text that is whole, where that ends in the file,
/// and the objects that are there then, as a new file would begin with them. `None` if it becomes too large.
#[cfg(feature = "fuzzing")]
pub(crate) fn resumed(bytes: Vec<u8>, packed: bool) -> Option<(String, u64, String)> {
    let most = input::most_unpacked_bytes(&bytes);
    let file::Parts { text, whole, .. } = file::parts(bytes, packed, most).ok()?;
    let snapshot = State::resumed(Some(text.clone()), &[]).snapshot(0.0);
    Some((text, whole, snapshot))
}

/// All objects of a cluster, as a recording keeps them.
pub(crate) struct Snapshot {
    pub(crate) server: String,
    pub(crate) objects: Vec<serde_json::Value>,
}

impl Snapshot {
    /// Reads a cluster once.
    pub(crate) async fn take(cluster: &LiveCluster, annotations: &[String]) -> Result<Self, Problem> {
        let mut followed = Followed::open(cluster).await?;
        let mut state = State::resumed(None, annotations);
        while !state.is_complete() {
            let ended = || Problem::error("the cluster can no longer be read");
            let event = followed.next().await.ok_or_else(ended)?;
            state.take_in(event, 0.0, followed.is_synced());
        }
        Ok(Self { server: followed.server, objects: state.into_objects() })
    }
}
