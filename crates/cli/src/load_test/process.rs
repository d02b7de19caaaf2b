//! The scheduler as a process of its own.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};

use supercargo_manifest::Problem;

/// How long it may take until it serves.
const START_WITHIN: Duration = Duration::from_secs(30);
/// How much of its log is kept, for whoever has to find out why it ended.
const KEPT_LINES: usize = 20;

/// `supercargo run`, as whoever runs this test would start it. It is killed when this is dropped.
pub(crate) struct SchedulerProcess {
    child: Child,
    pub(crate) started: Instant,
    /// Where it answers, such as `127.0.0.1:40123`.
    pub(crate) address: String,
    log: Arc<Mutex<VecDeque<String>>>,
}

impl SchedulerProcess {
    pub(crate) fn start(server: &str, config: Option<&Path>) -> Result<Self, Problem> {
        let cannot = |error| Problem::error(format!("cannot start the scheduler: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["run", "--master", server, "--insecure-address", "127.0.0.1:0", "--leader-elect=true"]);
        if let Some(config) = config {
            command.arg("--config").arg(config);
        }
        let started = Instant::now();
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(cannot)?;
        let log: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let addresses = follow_log(&mut child, &log);
        let mut process = Self { child, started, address: String::new(), log };
        process.address = addresses.recv_timeout(START_WITHIN).map_err(|_| process.ended_early())?;
        Ok(process)
    }

    /// What is wrong if it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Problem> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.ended_early()),
        }
    }

    fn ended_early(&self) -> Problem {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = log.iter().map(String::as_str).collect();
        Problem::error(format!("the scheduler does not run:\n{}", lines.join("\n")))
    }

    /// The memory that it holds; 0 where the system does not tell.
    pub(crate) fn resident_mib(&self) -> u64 {
        self.told_by_system("VmRSS:")
    }

    /// The most memory that it has held; 0 where the system does not tell.
    pub(crate) fn peak_mib(&self) -> u64 {
        self.told_by_system("VmHWM:")
    }

    fn told_by_system(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1024
    }
}

/// Reads the log as long as there is one, so that it never stands in the way; tells where the process serves.
fn follow_log(child: &mut Child, log: &Arc<Mutex<VecDeque<String>>>) -> Receiver<String> {
    let (to_starter, addresses) = channel();
    let (stderr, log) = (child.stderr.take(), log.clone());
    thread::spawn(move || {
        let lines =
            stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).map_while(Result::ok);
        for line in lines {
            if let Some(told) = line.split("serving address=").nth(1) {
                let address = told.split(' ').next().unwrap_or_default();
                // Only the first one is waited for.
                let _ = to_starter.send(address.to_owned());
            }
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            if log.len() == KEPT_LINES {
                log.pop_front();
            }
            log.push_back(line);
        }
    });
    addresses
}

impl Drop for SchedulerProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
