//! What is seen of the scheduler from outside: whether it answers, and whether it renews its lease.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::Value;
use supercargo_testcluster::TestCluster;

/// How often health is asked for.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// An answer that takes longer counts as this long.
const PATIENCE: Duration = Duration::from_secs(10);
const LEASE_NAMESPACE: &str = "kube-system";
const LEASE: &str = "kube-scheduler";

/// Asks for health all the time, on a thread of its own.
pub(super) struct HealthWatcher {
    /// The slowest answer since somebody looked.
    slowest: Arc<Mutex<Duration>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HealthWatcher {
    pub(super) fn start(address: String) -> Self {
        let (slowest, over) = (Arc::new(Mutex::new(Duration::ZERO)), Arc::new(AtomicBool::new(false)));
        let (shared, is_over) = (slowest.clone(), over.clone());
        let thread = thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let took = ask(&address).map_or(PATIENCE, |()| asked.elapsed());
                if !is_over.load(Ordering::Relaxed) {
                    let mut slowest = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    *slowest = took.max(*slowest);
                }
                thread::sleep(ASK_EVERY);
            }
        });
        Self { slowest, over, thread: Some(thread) }
    }

    /// The slowest answer since this was asked the last time.
    pub(super) fn take_slowest(&self) -> Duration {
        std::mem::take(&mut *self.slowest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is asked from now on does not count: the process is about to end.
    pub(super) fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that has failed asks no more.
            let _ = thread.join();
        }
    }
}

impl Drop for HealthWatcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// Over a connection of its own, as a kubelet does.
fn ask(address: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(io::Error::other("not healthy")) }
}

/// Sees when the lease is renewed.
pub(super) struct LeaseWatcher {
    renewed: Option<(Value, Instant)>,
    longest: Duration,
}

impl LeaseWatcher {
    pub(super) fn new() -> Self {
        Self { renewed: None, longest: Duration::ZERO }
    }

    /// To be called often.
    pub(super) fn look(&mut self, cluster: &TestCluster, now: Instant) {
        let Ok(lease) = cluster.get("leases", LEASE_NAMESPACE, LEASE) else { return };
        let at = lease["spec"]["renewTime"].clone();
        match &mut self.renewed {
            Some((known, when)) => {
                self.longest = self.longest.max(now - *when);
                if *known != at {
                    (*known, *when) = (at, now);
                }
            }
            None => self.renewed = Some((at, now)),
        }
    }

    /// The longest that the lease has stood unchanged since this was asked the last time.
    pub(super) fn take_longest(&mut self) -> Duration {
        std::mem::take(&mut self.longest)
    }

    /// A scheduler that was killed holds its lease for a while; without it, the next one need not wait.
    pub(super) fn forget(&mut self, cluster: &TestCluster) {
        // There is none if the scheduler never led.
        let _ = cluster.delete_now("leases", LEASE_NAMESPACE, LEASE);
        self.renewed = None;
    }
}
