//! What happens in the demo, one thing after the other, and what there is to tell about it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use serde_json::Value;
use supercargo_live::scheduler::{
    inspector::Inspector,
    records::{Record, RecordKind},
};
use supercargo_manifest::Problem;
use supercargo_model::Name;
use supercargo_testcluster::{ApiServer, StatusError, TestCluster};

use super::objects::{
    ACCELERATORS, GPU, NAMESPACE, SHOP, WHALE, ZONE_LABEL, accelerators, device_objects, failed, inference,
    number_in, pod, recovered, shop, spare, urgent, version, whale,
};
use super::screen::{DemoFigures, ZoneLoad};

/// How many lines are kept.
const KEPT_LINES: usize = 100;
/// How many urgent pods come at a time.
const URGENT: usize = 2;
/// So many more ask for spare GPUs than there are: they wait.
const TOO_MANY: usize = 3;
const MAX_SPARE: usize = 2000;
const MAX_CLAIMING: usize = 100;
/// How the names of pods that claim accelerators begin.
const INFERENCE: &str = "infer-";
/// How the names of pods that give way begin.
const SPARE: &str = "spare-";

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Chapter {
    Fill,
    Wait,
    Update,
    Devices,
    Fail,
    Recover,
    Crowd,
    Preempt,
    CleanUp,
}

/// When in a round each chapter begins, as a part of the round.
const CHAPTERS: [(f64, Chapter); 9] = [
    (0.0, Chapter::Fill),
    (0.08, Chapter::Wait),
    (0.18, Chapter::Update),
    (0.3, Chapter::Devices),
    (0.38, Chapter::Fail),
    (0.56, Chapter::Recover),
    (0.6, Chapter::Crowd),
    (0.74, Chapter::Preempt),
    (0.95, Chapter::CleanUp),
];

impl Chapter {
    /// Until when, as a part of the round, it waits for the end of what it follows on: on a busy machine things take longer.
    fn waits_until(self) -> Option<f64> {
        Some(match self {
            Self::Fail => 0.5,
            Self::Recover => 0.62,
            Self::Preempt => 0.85,
            Self::CleanUp => 0.98,
            Self::Fill | Self::Wait | Self::Update | Self::Devices | Self::Crowd => return None,
        })
    }

    /// What there is to see in it.
    fn shows(self) -> Option<&'static str> {
        Some(match self {
            Self::Fill => "a cluster filling up",
            Self::Wait => "a pod that waits",
            Self::Update => "a rolling update",
            Self::Devices => "claims to devices",
            Self::Fail => "a failing node",
            Self::Preempt => "preemption",
            Self::Recover | Self::Crowd | Self::CleanUp => return None,
        })
    }
}

/// A line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoryLine {
    pub(super) at: Duration,
    /// A chapter begins.
    pub(super) is_chapter: bool,
    pub(super) text: String,
}

/// A node that has failed, and the pods that it had.
struct FailedNode {
    name: String,
    since: Duration,
    lost: usize,
    back: usize,
    on: BTreeSet<Name>,
}

/// The story so far.
pub(super) struct Story<'c> {
    cluster: &'c TestCluster,
    inspector: Inspector,
    /// How long a round takes.
    round_takes: Duration,
    round: usize,
    next: usize,
    replicas: usize,
    /// How many pods claim two accelerators each: half of them are taken.
    claiming: usize,
    failed: Option<FailedNode>,
    /// All GPUs are taken: a pod was refused one.
    is_crowded: bool,
    made: Vec<String>,
    /// The chapters that have begun.
    begun: BTreeSet<Chapter>,
    /// What was seen of each chapter.
    seen: BTreeMap<Chapter, String>,
    pub(super) preemptions: usize,
    placed_urgent: usize,
    pub(super) lines: VecDeque<StoryLine>,
    /// How many lines there were.
    pub(super) told: usize,
}

impl<'c> Story<'c> {
    pub(super) fn new(cluster: &'c TestCluster, inspector: Inspector, nodes: usize, takes: Duration) -> Self {
        Self {
            cluster,
            inspector,
            round_takes: takes,
            round: 0,
            next: 0,
            replicas: (nodes / 10).clamp(6, 300),
            claiming: (accelerators(nodes) / 4).min(MAX_CLAIMING),
            failed: None,
            is_crowded: false,
            made: Vec::new(),
            begun: BTreeSet::new(),
            seen: BTreeMap::new(),
            preemptions: 0,
            placed_urgent: 0,
            lines: VecDeque::new(),
            told: 0,
        }
    }

    /// Lets happen what is due.
    pub(super) async fn go_on(&mut self, now: Duration) -> Result<(), Problem> {
        loop {
            let (part, chapter) = CHAPTERS[self.next];
            let begins = |part: f64| self.round_takes.mul_f64(self.round as f64 + part);
            if now < begins(part) {
                return Ok(());
            }
            let may_wait = chapter.waits_until().is_some_and(|part| now < begins(part));
            if may_wait && !self.is_time_for(chapter)? {
                return Ok(());
            }
            self.next = (self.next + 1) % CHAPTERS.len();
            self.begin(chapter, now).await?;
            self.begun.insert(chapter);
            self.round += usize::from(self.next == 0);
        }
    }

    /// Whether what a chapter follows on is over.
    fn is_time_for(&self, chapter: Chapter) -> Result<bool, Problem> {
        Ok(match chapter {
            Chapter::Fail => self.is_updated()?,
            Chapter::Recover => self.failed.as_ref().is_none_or(|failed| failed.back >= failed.lost),
            Chapter::Preempt => self.is_crowded,
            Chapter::CleanUp => self.placed_urgent >= URGENT * (self.round + 1),
            _ => true,
        })
    }

    async fn begin(&mut self, chapter: Chapter, now: Duration) -> Result<(), Problem> {
        match chapter {
            Chapter::Fill => self.fill(now),
            Chapter::Wait => self.wait(now),
            Chapter::Update => self.update(now),
            Chapter::Devices => self.claim_devices(now),
            Chapter::Fail => self.fail(now).await,
            Chapter::Recover => self.recover(now),
            Chapter::Crowd => self.crowd(now).await,
            Chapter::Preempt => self.preempt(now),
            Chapter::CleanUp => self.clean_up().await,
        }
    }

    /// What was seen to its end, a line each.
    pub(super) fn seen(&self) -> Vec<String> {
        let seen = self.seen.iter().filter_map(|(chapter, what)| Some((chapter.shows()?, what)));
        seen.map(|(shows, what)| format!("{shows}: {what}")).collect()
    }

    /// What had only begun.
    pub(super) fn unseen(&self) -> Vec<&'static str> {
        let unseen = self.begun.iter().filter(|chapter| !self.seen.contains_key(chapter));
        unseen.filter_map(|chapter| chapter.shows()).collect()
    }

    /// Sees how full the cluster is.
    pub(super) fn look(&mut self, figures: &DemoFigures) {
        if figures.bound == 0 {
            return;
        }
        let zones: Vec<String> = figures.zones.iter().map(ZoneLoad::summary).collect();
        self.seen.insert(Chapter::Fill, zones.join(", "));
    }

    fn tell(&mut self, at: Duration, is_chapter: bool, text: String) {
        self.lines.push_back(StoryLine { at, is_chapter, text });
        self.told += 1;
        if self.lines.len() > KEPT_LINES {
            self.lines.pop_front();
        }
    }

    fn fill(&mut self, now: Duration) -> Result<(), Problem> {
        if self.round > 0 {
            return Ok(());
        }
        self.cluster.create(shop(self.replicas)).map_err(refused)?;
        let replicas = self.replicas;
        self.tell(
            now,
            true,
            format!("The cluster fills. Deployment {SHOP} wants {replicas} pods, spread over the zones."),
        );
        Ok(())
    }

    fn wait(&mut self, now: Duration) -> Result<(), Problem> {
        if self.round > 0 {
            return Ok(());
        }
        self.cluster.create(whale()).map_err(refused)?;
        self.tell(now, true, "A pod asks for 64 cores. No node has them: it waits, and says why.".to_owned());
        Ok(())
    }

    fn update(&mut self, now: Duration) -> Result<(), Problem> {
        let mut deployment = self.cluster.get("deployments", NAMESPACE, SHOP).map_err(refused)?;
        let image = version(self.round + 2);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image.as_str().into();
        self.cluster.update(deployment).map_err(refused)?;
        let image = image.rsplit('/').next().unwrap_or_default();
        self.tell(now, true, format!("A rolling update: {SHOP} becomes {image}."));
        Ok(())
    }

    fn claim_devices(&mut self, now: Duration) -> Result<(), Problem> {
        let count = self.claiming;
        if count == 0 {
            return Ok(());
        }
        if self.round == 0 {
            self.cluster.create_many(device_objects()).map_err(refused)?;
        }
        for i in 0..count {
            self.make(inference(&format!("{INFERENCE}{}-{i:03}", self.round)))?;
        }
        let text = format!(
            "{count} pods claim two {ACCELERATORS} each that are attached to the same root of the bus."
        );
        self.tell(now, true, text);
        Ok(())
    }

    /// Which devices were given away.
    fn tell_devices(&mut self, now: Duration) -> Result<(), Problem> {
        let claims = self.cluster.list("resourceclaims", NAMESPACE).map_err(refused)?;
        let given = |claim: &Value| {
            let results = claim["status"]["allocation"]["devices"]["results"].as_array()?;
            let devices: Vec<&str> = results.iter().filter_map(|device| device["device"].as_str()).collect();
            let pod = claim["metadata"]["ownerReferences"][0]["name"].as_str()?;
            Some(format!("{pod} has {} on {}", devices.join(" and "), results.first()?["pool"].as_str()?))
        };
        let given: Vec<String> = claims.iter().filter_map(given).collect();
        if let Some(one) = given.first() {
            let text = format!("{} of {} claims have their devices: {one}", given.len(), claims.len());
            self.seen.insert(Chapter::Devices, text.clone());
            self.tell(now, false, text);
        }
        Ok(())
    }

    /// Whether all pods of the Deployment are of its last version, and run.
    fn is_updated(&self) -> Result<bool, Problem> {
        let deployment = self.cluster.get("deployments", NAMESPACE, SHOP).map_err(refused)?;
        let status = &deployment["status"];
        let are_all = |key: &str| status[key].as_u64() == Some(self.replicas as u64);
        Ok(status["observedGeneration"] == deployment["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "readyReplicas"].into_iter().all(are_all))
    }

    /// The pods of the Deployment that are to stay.
    async fn shop_pods(&self) -> Result<Vec<Value>, Problem> {
        let mut pods = self
            .beside(|cluster| cluster.list_selected("pods", NAMESPACE, &format!("app={SHOP}"), ""))
            .await?;
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        Ok(pods)
    }

    /// Does what takes a while, such as looking at all pods, on a thread of its own: this one has the scheduler.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ApiServer) -> Result<T, StatusError> + Send + 'static,
    ) -> Result<T, Problem> {
        let cluster = (**self.cluster).clone();
        let done = tokio::task::spawn_blocking(move || work(&cluster)).await;
        done.map_err(|error| Problem::error(format!("the demo ended badly: {error}")))?.map_err(refused)
    }

    /// How the pods of the Deployment are spread.
    async fn tell_spread(&mut self, now: Duration) -> Result<(), Problem> {
        let pods = self.shop_pods().await?;
        let mut zones: BTreeMap<String, usize> = BTreeMap::new();
        for pod in &pods {
            let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
            // It may be gone by now.
            let Ok(node) = self.cluster.get("nodes", "", node) else { continue };
            let zone = node["metadata"]["labels"][ZONE_LABEL].as_str().unwrap_or_default();
            *zones.entry(zone.to_owned()).or_default() += 1;
        }
        let spread: Vec<String> = zones.iter().map(|(zone, pods)| format!("{zone} {pods}")).collect();
        let spread = spread.join(", ");
        if !self.is_updated()? {
            self.tell(now, false, format!("{SHOP} is still being updated: {spread}"));
            return Ok(());
        }
        self.seen.insert(Chapter::Update, format!("{SHOP} stays spread over the zones ({spread})"));
        self.tell(now, false, format!("{SHOP} after the update: {spread}"));
        Ok(())
    }

    async fn fail(&mut self, now: Duration) -> Result<(), Problem> {
        self.tell_spread(now).await?;
        self.tell_devices(now)?;
        let pods = self.shop_pods().await?;
        let hosts = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str().map(str::to_owned));
        let hosts: BTreeSet<String> = hosts.collect();
        // Of the nodes that have some of its pods, the one where most is lost.
        let fullest = self.inspector.ask(move |engine, _| {
            let infos = hosts.iter().filter_map(|name| engine.cluster().node(name));
            let info = infos.max_by_key(|info| info.pods.len())?;
            let pods: Vec<String> = info.pods.iter().map(|pod| pod.name.to_string()).collect();
            Some((info.name().to_string(), pods))
        });
        let Some((name, lost)) = fullest.await.flatten() else { return Ok(()) };
        let node = self.cluster.get("nodes", "", &name).map_err(refused)?;
        self.cluster.update(failed(node)).map_err(refused)?;
        self.failed = Some(FailedNode {
            name: name.clone(),
            since: now,
            lost: lost.len(),
            back: 0,
            on: BTreeSet::new(),
        });
        for pod_name in &lost {
            // Somebody may have deleted it meanwhile.
            let _ = self.cluster.delete_now("pods", NAMESPACE, pod_name);
            // A Deployment makes its pods again; for the others their owner is played here.
            if let Some(i) = number_in(pod_name) {
                self.cluster.create(pod(i, &format!("{pod_name}r"))).map_err(refused)?;
            } else if pod_name.starts_with(INFERENCE) {
                self.make(inference(&format!("{pod_name}r")))?;
            }
        }
        self.tell(now, true, format!("Node {name} fails, and {} pods lose their place.", lost.len()));
        Ok(())
    }

    fn recover(&mut self, now: Duration) -> Result<(), Problem> {
        let Some(FailedNode { name, .. }) = self.failed.take() else { return Ok(()) };
        let node = self.cluster.get("nodes", "", &name).map_err(refused)?;
        self.cluster.update(recovered(node)).map_err(refused)?;
        self.tell(now, true, format!("Node {name} is back."));
        Ok(())
    }

    /// All GPUs are taken by pods that give way, and some more wait.
    async fn crowd(&mut self, now: Duration) -> Result<(), Problem> {
        let free = self.inspector.ask(|engine, _| {
            let gpus = |resources: &supercargo_model::resources::Resources| {
                resources.scalars.iter().find(|(name, _)| **name == *GPU).map_or(0, |(_, amount)| *amount)
            };
            let free =
                |info: &supercargo_model::NodeInfo| gpus(&info.node.allocatable) - gpus(&info.requested);
            engine.cluster().nodes().map(free).sum::<i64>()
        });
        let free = usize::try_from(free.await.unwrap_or(0)).unwrap_or(0);
        let count = (free + TOO_MANY).min(MAX_SPARE);
        let names: Vec<String> = (0..count).map(|i| format!("{SPARE}{}-{i:04}", self.round)).collect();
        self.is_crowded = false;
        self.made.extend(names.iter().cloned());
        self.beside(move |cluster| cluster.create_many(names.iter().map(|name| spare(name)))).await?;
        self.tell(
            now,
            true,
            format!(
                "Training takes the {free} free GPUs; {} more pods wait for one.",
                count - free.min(count)
            ),
        );
        Ok(())
    }

    fn preempt(&mut self, now: Duration) -> Result<(), Problem> {
        for i in 0..URGENT {
            self.make(urgent(&format!("urgent-{}-{i}", self.round)))?;
        }
        self.tell(
            now,
            true,
            format!("{URGENT} urgent pods want two GPUs each, and none is free: preemption."),
        );
        Ok(())
    }

    fn make(&mut self, pod: Value) -> Result<(), Problem> {
        self.made.extend(pod["metadata"]["name"].as_str().map(str::to_owned));
        self.cluster.create(pod).map(drop).map_err(refused)
    }

    async fn clean_up(&mut self) -> Result<(), Problem> {
        let made = std::mem::take(&mut self.made);
        self.beside(move |cluster| {
            for name in &made {
                // It may have been evicted.
                let _ = cluster.delete("pods", NAMESPACE, name);
            }
            Ok(())
        })
        .await
    }

    /// Hears what the scheduler did.
    pub(super) fn hear(&mut self, record: &Record, now: Duration) {
        let pod = &*record.pod.name;
        match &record.what {
            RecordKind::Failed { nominated_node: Some(node), .. } => {
                self.preemptions += 1;
                self.tell(
                    now,
                    false,
                    format!("{pod}: room is made on {node}, where less important pods give way"),
                );
            }
            RecordKind::Failed { message, .. } if pod == WHALE => {
                let first = message.split(". ").next().unwrap_or(message);
                self.seen.insert(Chapter::Wait, format!("{pod}, because {first}"));
            }
            RecordKind::Failed { .. } if pod.starts_with(SPARE) => self.is_crowded = true,
            RecordKind::Decided { node, feasible, .. } if pod.starts_with("urgent-") => {
                self.placed_urgent += 1;
                let seen = format!(
                    "{} urgent pods got room, {} times others gave way",
                    self.placed_urgent, self.preemptions
                );
                self.seen.insert(Chapter::Preempt, seen);
                let of = if *feasible == 1 {
                    "the only one left".to_owned()
                } else {
                    format!("best of {feasible}")
                };
                self.tell(now, false, format!("{pod} goes to {node}, {of}"));
            }
            RecordKind::Decided { node, .. } => self.came_back(pod, node, now),
            _ => {}
        }
    }

    fn came_back(&mut self, pod: &str, node: &Name, now: Duration) {
        let is_ours = pod.starts_with(INFERENCE) || number_in(pod).is_some();
        let is_again = pod.starts_with(SHOP) || pod.ends_with('r') && is_ours;
        let Some(failed) = self.failed.as_mut().filter(|failed| is_again && failed.back < failed.lost) else {
            return;
        };
        failed.back += 1;
        failed.on.insert(node.clone());
        if failed.back == failed.lost {
            let (lost, name, nodes) = (failed.lost, failed.name.clone(), failed.on.len());
            let took = (now - failed.since).as_millis();
            let text =
                format!("all {lost} pods of {name} have a place again, on {nodes} nodes, after {took} ms");
            self.seen.insert(Chapter::Fail, text.clone());
            self.tell(now, false, text);
        }
    }
}

fn refused(refusal: StatusError) -> Problem {
    Problem::error(format!("the cluster in memory refuses: {}", refusal.message()))
}
