//! The stream of pods: new ones come, old ones go. It has a thread of its own, so that what it costs to make a pod is not
//! the scheduler's to pay.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use supercargo_manifest::Problem;
use supercargo_testcluster::{ApiServer, StatusError};

use super::objects::{NAMESPACE, pod, pod_name};

/// How long a pod lives before it is deleted again.
pub(super) const LIFETIME: Duration = Duration::from_secs(45);
const TICK: Duration = Duration::from_millis(20);
/// So many pods may be made before the first is decided; or those of so long, if they are more.
const MIN_AHEAD: usize = 100;
const AHEAD: Duration = Duration::from_millis(100);

/// The stream, as long as it runs.
pub(super) struct PodStream {
    created: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), StatusError>>,
}

impl PodStream {
    /// Starts to make so many pods a second.
    pub(super) fn start(cluster: ApiServer, rate: usize) -> Result<Self, Problem> {
        let (created, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut source = PodSource {
            cluster,
            rate: rate as f64,
            created: created.clone(),
            made_until: Duration::ZERO,
            made: VecDeque::new(),
            deleted: 0,
        };
        let asked_to_stop = stop.clone();
        let run = move || {
            let started = Instant::now();
            while !asked_to_stop.load(Ordering::Relaxed) {
                source.make_and_delete(started.elapsed())?;
                thread::sleep(TICK);
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("pod-stream".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Problem::error(format!("cannot start a thread: {error}")))?;
        Ok(Self { created, stop, thread })
    }

    /// How many pods were made.
    pub(super) fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }

    /// Whether it ended by itself: the cluster refused something.
    pub(super) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it, and tells how many pods were made.
    pub(super) fn end(self) -> Result<usize, Problem> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(Ok(())) => Ok(self.created.load(Ordering::Relaxed)),
            Ok(Err(refusal)) => Err(Problem::error(format!("cannot make a pod: {}", refusal.message()))),
            Err(_) => Err(Problem::error("the stream of pods ended badly")),
        }
    }
}

/// What the thread works with.
struct PodSource {
    cluster: ApiServer,
    rate: f64,
    created: Arc<AtomicUsize>,
    /// Until when pods were made, and how many there were at which time.
    made_until: Duration,
    made: VecDeque<(Duration, usize)>,
    deleted: usize,
}

impl PodSource {
    fn make_and_delete(&mut self, now: Duration) -> Result<(), StatusError> {
        let before = self.created.load(Ordering::Relaxed);
        // On a machine that is too slow for the rate, fewer are made, so that one sees pods placed rather than waiting.
        let ahead = MIN_AHEAD.max((self.rate * AHEAD.as_secs_f64()) as usize);
        if before > ahead && self.is_undecided(before - ahead) {
            self.made_until = now;
        }
        let due = ((now - self.made_until).as_secs_f64() * self.rate) as usize;
        for number in before..before + due {
            self.cluster.create(pod(number, &pod_name(number)))?;
            self.created.store(number + 1, Ordering::Relaxed);
        }
        if due > 0 {
            self.made_until += Duration::from_secs_f64(due as f64 / self.rate);
            self.made.push_back((now, before + due));
        }
        while let Some((_, made)) = self.made.pop_front_if(|(at, _)| *at + LIFETIME < now) {
            self.delete_until(made);
        }
        Ok(())
    }

    /// Whether a pod is on no node, and nobody has said why.
    fn is_undecided(&self, number: usize) -> bool {
        let pod = self.cluster.get("pods", NAMESPACE, &pod_name(number));
        pod.is_ok_and(|pod| pod["spec"]["nodeName"].is_null() && pod["status"]["conditions"].is_null())
    }

    fn delete_until(&mut self, old: usize) {
        while self.deleted < old {
            // Somebody may have deleted it with kubectl; and its node may have failed, so that it has another name.
            let name = pod_name(self.deleted);
            if self.cluster.delete("pods", NAMESPACE, &name).is_err() {
                let _ = self.cluster.delete("pods", NAMESPACE, &format!("{name}r"));
            }
            self.deleted += 1;
        }
    }
}
