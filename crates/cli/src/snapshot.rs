//! `supercargo snapshot`: what is in a cluster, to a file that `--cluster` reads.

use std::{fs, io::Write, path::PathBuf, time::Duration};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use supercargo_manifest::{Problem, Problems};

use crate::{
    failure::{Ending, Failure},
    input,
    objects::LiveCluster,
    output::Console,
    record::Snapshot,
    run::runtime,
};

/// Whoever does not get everything within this time is told what is missing.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file, packed with gzip if its name ends with .gz; without it, stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    cluster: LiveCluster,

    /// Keep this annotation of objects; may be given more than once. No other is kept
    #[arg(long = "annotation", value_name = "KEY")]
    annotations: Vec<String>,
}

pub(crate) fn run(options: &Options, console: &mut Console) -> Result<Ending, Failure> {
    let runtime = runtime()?;
    let taken: Result<Snapshot, Problems> = runtime.block_on(async {
        let taking = Snapshot::take(&options.cluster, &options.annotations);
        match tokio::time::timeout(PATIENCE, taking).await {
            Ok(taken) => Ok(taken?),
            Err(_) => {
                let message = format!("the cluster was not read within {} s", PATIENCE.as_secs());
                Err(Problem::error(message).into())
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let Snapshot { server, objects } = taken?;
    let count = objects.len();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string() + "\n";
    match &options.output {
        None => console.bytes(list.as_bytes())?,
        Some(path) => write(path, &list)?,
    }
    console.note(format!("{count} objects of {server}"));
    Ok(Ending::Well)
}

fn write(path: &PathBuf, list: &str) -> Result<(), Problem> {
    let wrong = |error: std::io::Error| input::about(path, format!("cannot write this: {error}"));
    let bytes = match path.extension().is_some_and(|ending| ending == "gz") {
        false => list.as_bytes().to_vec(),
        true => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(list.as_bytes()).and_then(|()| encoder.finish()).map_err(wrong)?
        }
    };
    fs::write(path, bytes).map_err(wrong)
}
