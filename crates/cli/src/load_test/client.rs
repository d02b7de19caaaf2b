//! Makes and deletes pods over HTTP, as controllers do: side by side, and as fast as the server takes it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Instant,
};

use serde_json::json;
use supercargo_live::{
    real::{RealWorld, RestConfig},
    world::{ContentType, Method, Request, World},
};
use supercargo_manifest::Problem;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};

use super::objects::{NAMESPACE, pod, pod_name};
use crate::run::runtime;

/// Requests under way at a time.
const AT_ONCE: usize = 16;

/// What is to be done with a pod.
pub(super) enum Job {
    /// Make the one with this number.
    Make(usize),
    /// Delete the one with this name. It may be gone already.
    Delete(String),
}

/// What becomes of it.
pub(super) enum Told {
    /// A pod is about to be made.
    Makes(String, Instant),
    Failed(Problem),
}

/// Does jobs on a thread of its own, until it is dropped.
pub(super) struct Client {
    jobs: mpsc::UnboundedSender<Job>,
    told: Receiver<Told>,
    left: Arc<AtomicUsize>,
}

impl Client {
    pub(super) fn start(server: String) -> Result<Self, Problem> {
        let (jobs, to_do) = mpsc::unbounded_channel();
        let (tells, told) = channel();
        let left: Arc<AtomicUsize> = Arc::default();
        let (runtime, shared_left) = (runtime()?, left.clone());
        thread::spawn(move || runtime.block_on(work(server, to_do, tells, shared_left)));
        Ok(Self { jobs, told, left })
    }

    pub(super) fn order(&self, job: Job) {
        self.left.fetch_add(1, Ordering::Relaxed);
        // A worker that has failed has told why.
        let _ = self.jobs.send(job);
    }

    /// How many jobs are not done yet.
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// What was told since this was asked the last time.
    pub(super) fn told(&self) -> impl Iterator<Item = Told> + '_ {
        self.told.try_iter()
    }
}

type Jobs = Arc<Mutex<mpsc::UnboundedReceiver<Job>>>;

async fn work(
    server: String,
    jobs: mpsc::UnboundedReceiver<Job>,
    tells: Sender<Told>,
    left: Arc<AtomicUsize>,
) {
    let access = RestConfig { master: Some(server), ..RestConfig::default() };
    let world = match RealWorld::open(&access).await {
        Ok(world) => Arc::new(world),
        // Nobody listens any more when the test has ended.
        Err(why) => return drop(tells.send(Told::Failed(Problem::error(why.to_string())))),
    };
    let jobs: Jobs = Arc::new(Mutex::new(jobs));
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        workers.spawn(work_through(world.clone(), jobs.clone(), tells.clone(), left.clone()));
    }
    while workers.join_next().await.is_some() {}
}

async fn work_through(world: Arc<RealWorld>, jobs: Jobs, tells: Sender<Told>, left: Arc<AtomicUsize>) {
    loop {
        let next = jobs.lock().await.recv().await;
        let Some(job) = next else { return };
        let request = request(&job);
        if let Job::Make(number) = job {
            // Before it is made, for it may be bound before the answer is here.
            let _ = tells.send(Told::Makes(pod_name(number), Instant::now()));
        }
        let failed = match world.send(request).await {
            Ok(reply) if reply.is_success() || reply.status == 404 => None,
            Ok(reply) => Some(format!("{}: {}", reply.status, reply.message())),
            Err(unanswered) => Some(unanswered.to_string()),
        };
        if let Some(why) = failed {
            let _ = tells.send(Told::Failed(Problem::error(format!("the test cluster refuses: {why}"))));
        }
        left.fetch_sub(1, Ordering::Relaxed);
    }
}

fn request(job: &Job) -> Request {
    let collection = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let (method, path, body) = match job {
        Job::Make(number) => (Method::Post, collection, pod(*number)),
        Job::Delete(name) => {
            let at_once = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
            (Method::Delete, format!("{collection}/{name}"), at_once)
        }
    };
    Request::new(method, path, ContentType::Json, body.to_string().into())
}
