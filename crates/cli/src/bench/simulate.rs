//! `supercargo bench --kind simulate`: from a file with the cluster to where all pending pods would go.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};
use supercargo_manifest::Problem;

use crate::{failure::Failure, load_test::objects_to_simulate};

const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What was measured of `supercargo simulate`.
#[derive(Serialize)]
pub(super) struct SimulateRow {
    kind: &'static str,
    nodes: usize,
    bound: usize,
    pods: usize,
    /// From the start of the process to its end.
    seconds: f64,
    /// The most memory that the process held; 0 where the system does not tell.
    peak_rss_mb: u64,
}

impl fmt::Display for SimulateRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, nodes, bound, pods, seconds, peak_rss_mb } = self;
        write!(
            f,
            "{kind}: {nodes} nodes and {bound} pods read, and {pods} more placed, after {seconds:.2} s; {peak_rss_mb} MB at most"
        )
    }
}

/// Runs `supercargo simulate` as a process of its own, with every node scored.
pub(super) fn measure(
    nodes: usize,
    bound: usize,
    pods: usize,
    config: Option<&Path>,
) -> Result<SimulateRow, Failure> {
    let folder = Folder::new().map_err(|error| cannot("write to the folder for temporary files", &error))?;
    let items: Vec<Value> = objects_to_simulate(nodes, bound, pods).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let cluster = folder.write("cluster.json", &list)?;
    let all_nodes = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
    });
    let config = match config {
        Some(config) => config.to_owned(),
        None => folder.write("config.json", &all_nodes)?,
    };
    let executable = std::env::current_exe().map_err(|error| cannot("find this program", &error))?;
    let mut command = Command::new(executable);
    command.arg("simulate").arg("--cluster").arg(cluster).arg("--config").arg(config);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| cannot("start the simulation", &error))?;
    let mut peak_rss_mb = 0;
    let ended = loop {
        peak_rss_mb = super::peak_rss_mb(&child.id().to_string()).max(peak_rss_mb);
        if let Some(ended) = child.try_wait().map_err(|error| cannot("wait for the simulation", &error))? {
            break ended;
        }
        thread::sleep(LOOK_EVERY);
    };
    if !ended.success() {
        return Err(Problem::error(format!("the simulation ended with {ended}")).into());
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(SimulateRow { kind: "simulate", nodes, bound, pods, seconds, peak_rss_mb })
}

fn cannot(what: &str, error: &io::Error) -> Problem {
    Problem::error(format!("cannot {what}: {error}"))
}

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("supercargo-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, value: &Value) -> Result<PathBuf, Problem> {
        let path = self.0.join(name);
        let written = fs::write(&path, value.to_string());
        written.map_err(|error| cannot(&format!("write {}", path.display()), &error))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left there is the system's to clean up.
        let _ = fs::remove_dir_all(&self.0);
    }
}
