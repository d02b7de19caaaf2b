//! `supercargo bench --kind start`: from the start of the process until all is listed and a first pod is bound.

use std::{fmt, path::Path, thread, time::Duration};

use serde::Serialize;
use supercargo_manifest::Problem;
use supercargo_testcluster::{TestCluster, TestClusterOptions};

use crate::{
    failure::Failure,
    load_test::{SchedulerProcess, fill_for_start},
};

const LOOK_EVERY: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(300);

/// What was measured of a start.
#[derive(Serialize)]
pub(super) struct StartRow {
    kind: &'static str,
    nodes: usize,
    bound: usize,
    /// From the start of the process until a pod that waited was bound.
    seconds: f64,
    /// The most memory that the process held; 0 where the system does not tell.
    peak_rss_mb: u64,
}

impl fmt::Display for StartRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, nodes, bound, seconds, peak_rss_mb } = self;
        write!(
            f,
            "{kind}: {nodes} nodes and {bound} pods listed, and the first pod bound, after {seconds:.2} s; {peak_rss_mb} MB at most"
        )
    }
}

/// Fills a cluster in memory, and starts the scheduler on it as a process of its own.
pub(super) fn measure(nodes: usize, bound: usize, config: Option<&Path>) -> Result<StartRow, Failure> {
    let cluster = TestCluster::start(TestClusterOptions::default())
        .map_err(|error| Problem::error(format!("cannot listen on a port of this machine: {error}")))?;
    fill_for_start(&cluster, nodes, bound)?;
    let mut process = SchedulerProcess::start(&cluster.url(), config)?;
    while cluster.bindings().is_empty() {
        process.check()?;
        if process.started.elapsed() > LONGEST {
            return Err(Problem::error("no pod was bound within 300 s").into());
        }
        thread::sleep(LOOK_EVERY);
    }
    let seconds = process.started.elapsed().as_secs_f64();
    Ok(StartRow { kind: "start", nodes, bound, seconds, peak_rss_mb: process.peak_mib() })
}
