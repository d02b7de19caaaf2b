//! A guest as a plugin: asked once about all nodes, whichever way the engine asks.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use supercargo_framework::{
    Code, Prepared, ScoreInput, Status, Verdict,
    points::{CycleStart, Filter, MAX_SCORE, MIN_SCORE, NormalizeScore, PreScore, PreScoreOutcome, Score},
    vector::vectorized,
};
use supercargo_manifest::clip;
use supercargo_model::{
    Cluster, Name, NodeId, NodeInfo, Pod, PodSpec,
    changes::{ChangeLogId, Moment},
};
use wasmtime::InstancePre;

use crate::{
    attributes::NO_TEXT,
    host::{GuestEvent, Host},
    instance::{End, GuestError, Instance},
    module::{GuestStep, Steps},
    settings::GuestSettings,
    state::{Logged, State},
};

/// A module that runs, and the instances of it that nobody needs just now.
pub(crate) struct RunningModule {
    pre: InstancePre<State>,
    pub(crate) steps: Steps,
    idle: Mutex<Vec<Instance>>,
}

impl RunningModule {
    /// Starts the first instance, to see whether it works.
    pub(crate) fn start(
        pre: InstancePre<State>,
        steps: Steps,
        settings: &GuestSettings,
        host: &Host,
    ) -> Result<Self, GuestError> {
        let first = Instance::start(&pre, &settings.args, &settings.limits, host.ticker()?)?;
        Ok(Self { pre, steps, idle: Mutex::new(vec![first]) })
    }
}

/// A plugin that is a guest.
pub(crate) struct Guest {
    pub(crate) name: Name,
    pub(crate) settings: GuestSettings,
    /// The bytes of the file that it began with.
    pub(crate) content: Arc<[u8]>,
    host: Host,
    running: RwLock<Arc<RunningModule>>,
    /// What takes over when the next cycle begins.
    next: Mutex<Option<Arc<RunningModule>>>,
    has_next: AtomicBool,
    /// What was said about all nodes for the pod that is being looked at.
    verdicts: Mutex<Option<Arc<Verdicts>>>,
}

/// What a guest's filter says of all nodes, for one pod at one moment.
struct Verdicts {
    by: Arc<RunningModule>,
    history: ChangeLogId,
    moment: Moment,
    namespace: Name,
    name: Name,
    uid: Name,
    spec: Arc<PodSpec>,
    /// The nodes that are refused, by row.
    refused: HashMap<u32, Status, foldhash::fast::RandomState>,
}

impl Verdicts {
    fn hold_for(&self, by: &Arc<RunningModule>, cluster: &Cluster, pod: &Pod) -> bool {
        Arc::ptr_eq(&self.by, by)
            && self.history.is(cluster.changes().history())
            && self.moment == cluster.changes().now()
            && Arc::ptr_eq(&self.spec, &pod.spec)
            && self.uid == pod.uid
            && self.name == pod.name
            && self.namespace == pod.namespace
    }
}

/// The scores that a guest gives, in the order of the nodes.
#[derive(Clone)]
struct Scored {
    raw: Vec<i64>,
    normalized: Vec<i64>,
}

impl Guest {
    pub(crate) fn new(
        name: Name,
        settings: GuestSettings,
        content: Arc<[u8]>,
        host: Host,
        running: RunningModule,
    ) -> Self {
        Self {
            name,
            settings,
            content,
            host,
            running: RwLock::new(Arc::new(running)),
            next: Mutex::default(),
            has_next: AtomicBool::new(false),
            verdicts: Mutex::default(),
        }
    }

    pub(crate) fn running(&self) -> Arc<RunningModule> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets a module take over when the next cycle begins.
    pub(crate) fn replace_with(&self, running: RunningModule) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(running));
        self.has_next.store(true, Ordering::Release);
    }

    /// Uses an instance of a module that nobody else uses meanwhile. One that failed is not used again.
    fn with<T>(
        &self,
        running: &RunningModule,
        use_it: impl FnOnce(&mut Instance) -> Result<T, GuestError>,
    ) -> Result<T, Status> {
        let idle = || running.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = idle().pop();
        let used = match spare {
            Some(instance) => Ok(instance),
            None => self.host.ticker().and_then(|ticker| {
                Instance::start(&running.pre, &self.settings.args, &self.settings.limits, ticker)
            }),
        };
        let result = used.and_then(|mut instance| {
            let result = use_it(&mut instance);
            self.tell_logged(instance.take_logged());
            let result = result?;
            instance.finish();
            if !instance.is_worn() && idle().len() < self.settings.limits.instances {
                idle().push(instance);
            }
            Ok(result)
        });
        result.map_err(|GuestError(what)| {
            let message = format!("{}: {what}", self.settings.path.display());
            self.host.tell(&GuestEvent::Failed { plugin: &self.name, why: &message });
            Status::error(message)
        })
    }

    fn tell_logged(&self, Logged { lines, left_out }: Logged) {
        for (level, line) in &lines {
            self.host.tell(&GuestEvent::Logged { plugin: &self.name, level: *level, line });
        }
        if left_out > 0 {
            self.host.tell(&GuestEvent::LeftOut { plugin: &self.name, lines: left_out });
        }
    }

    /// Asks the filter about some nodes, by row, and calls back for each that is refused.
    pub(crate) fn filter_rows(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        rows: &[u32],
        would_be: Option<&NodeInfo>,
        mut refused: impl FnMut(u32, Status),
    ) -> Verdict {
        let running = self.running();
        let mut found = Vec::new();
        self.with(&running, |instance| {
            let ticker = self.host.ticker()?;
            instance.prepare(cluster, pod, rows, would_be, ticker)?;
            instance.filter(rows, ticker, |row, code, reason| {
                found.push((row, code, reason));
                Ok(())
            })?;
            for (row, code, reason) in found.drain(..) {
                refused(row, self.refusal(instance, cluster, row, code, reason)?);
            }
            Ok(())
        })
    }

    fn refusal(
        &self,
        instance: &Instance,
        cluster: &Cluster,
        row: u32,
        code: u32,
        reason: u32,
    ) -> Result<Status, GuestError> {
        let node = || cluster.node_at(NodeId::from_index(row as usize)).name();
        let code = match code {
            1 => Code::Unschedulable,
            2 => Code::UnschedulableAndUnresolvable,
            other => {
                let meanings = "0 is fit, 1 is unschedulable, 2 is unresolvable";
                let (code, node) = (other as i32, node());
                return Err(GuestError(format!(
                    "the verdict {code} of node {node} means nothing: {meanings}"
                )));
            }
        };
        let reason = match (reason, instance.text(reason)) {
            (NO_TEXT, _) => format!("node(s) were refused by {}", self.name),
            (_, Some(text)) => clip(text).into_owned(),
            (id, None) => {
                let node = node();
                return Err(GuestError(format!("the reason {id} for node {node} is not the id of a text")));
            }
        };
        Ok(Status::new(code, [reason.into()]))
    }

    /// Asks for the scores of some nodes, by row: in one go, so that the guest can rely on what it prepared. The scores
    /// as given and as normalized are handed on as they lie in the guest's memory, by row. `false` if it skips the pod.
    pub(crate) fn score_rows(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        rows: &[u32],
        prepares: bool,
        mut raw: impl FnMut(&Instance),
        mut normalized: impl FnMut(&Instance),
    ) -> Result<bool, Status> {
        let running = self.running();
        let steps = running.steps;
        self.with(&running, |instance| {
            let ticker = self.host.ticker()?;
            instance.prepare(cluster, pod, rows, None, ticker)?;
            if prepares && steps.pre_score && instance.run(GuestStep::PreScore, ticker)? == End::Skip {
                return Ok(false);
            }
            instance.run(GuestStep::Score, ticker)?;
            raw(instance);
            if steps.normalize {
                instance.run(GuestStep::Normalize, ticker)?;
            }
            check_scores(instance, cluster, rows, steps)?;
            normalized(instance);
            Ok(true)
        })
    }

    /// The scores of nodes in their order; `None` if the guest skips the pod.
    fn scored(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
        prepares: bool,
    ) -> Result<Option<Scored>, Status> {
        let mut rows: Vec<u32> = nodes.iter().map(|node| node.id.index() as u32).collect();
        rows.sort_unstable();
        let (mut raw, mut normalized) = (Vec::new(), Vec::new());
        let gave = self.score_rows(
            cluster,
            pod,
            &rows,
            prepares,
            |instance| raw.extend(instance.scores().iter().map(number)),
            |instance| normalized.extend(instance.scores().iter().map(number)),
        )?;
        let of_nodes = |by_row: &[i64]| nodes.iter().map(|node| by_row[node.id.index()]).collect();
        Ok(gave.then(|| Scored { raw: of_nodes(&raw), normalized: of_nodes(&normalized) }))
    }

    /// What was scored when it was prepared; or what is scored now, where preparing is switched off.
    fn scores_of(&self, input: ScoreInput<'_>) -> Result<Scored, Status> {
        match input.prepared.get::<Scored>() {
            Ok(scored) => Ok(scored.clone()),
            Err(_) => {
                let scored = self.scored(input.cluster, input.pod, input.nodes, false)?;
                // Nothing skips that was not asked to prepare.
                scored.ok_or_else(|| Status::error("the guest skipped its score"))
            }
        }
    }

    fn verdicts(&self, cluster: &Cluster, pod: &Pod) -> Result<Arc<Verdicts>, Status> {
        let running = self.running();
        let kept = || self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdicts) = kept().as_ref().filter(|kept| kept.hold_for(&running, cluster, pod)) {
            return Ok(verdicts.clone());
        }
        let rows: Vec<u32> = cluster.columns().live.iter().map(|id| id.index() as u32).collect();
        let mut refused = HashMap::default();
        self.filter_rows(cluster, pod, &rows, None, |row, status| drop(refused.insert(row, status)))?;
        let verdicts = Arc::new(Verdicts {
            by: running,
            history: cluster.changes().history().mark(),
            moment: cluster.changes().now(),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            spec: pod.spec.clone(),
            refused,
        });
        *kept() = Some(verdicts.clone());
        Ok(verdicts)
    }
}

fn number(bytes: &[u8; 8]) -> i64 {
    i64::from_le_bytes(*bytes)
}

fn check_scores(
    instance: &Instance,
    cluster: &Cluster,
    rows: &[u32],
    steps: Steps,
) -> Result<(), GuestError> {
    let in_range = |bytes: &[u8; 8]| (MIN_SCORE..=MAX_SCORE).contains(&i64::from_le_bytes(*bytes));
    let scores = instance.scores();
    // Rows that nobody asked about are mostly in range, too: then one look at all of them is enough.
    let all_in_range = vectorized(
        #[inline(always)]
        || scores.iter().fold(true, |all, score| all & in_range(score)),
    );
    if all_in_range {
        return Ok(());
    }
    let Some(row) = rows.iter().find(|row| !in_range(&scores[**row as usize])) else {
        return Ok(());
    };
    let node = cluster.node_at(NodeId::from_index(*row as usize)).name();
    let after = if steps.normalize { " after normalizing" } else { "" };
    let score = number(&scores[*row as usize]);
    Err(GuestError(format!("the score {score} of node {node} is outside {MIN_SCORE}..={MAX_SCORE}{after}")))
}

impl CycleStart for Guest {
    fn cycle_starts(&self) -> bool {
        if !self.has_next.load(Ordering::Acquire) || !self.has_next.swap(false, Ordering::AcqRel) {
            return false;
        }
        let Some(next) = self.next.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return false;
        };
        *self.running.write().unwrap_or_else(PoisonError::into_inner) = next;
        true
    }
}

impl Filter for Guest {
    fn filter(&self, _: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        if std::ptr::eq(node, cluster.node_at(node.id)) {
            let verdicts = self.verdicts(cluster, pod)?;
            return verdicts.refused.get(&(node.id.index() as u32)).map_or(Ok(()), |no| Err(no.clone()));
        }
        // The node as it would be, with other pods on it.
        let mut verdict = Ok(());
        let row = node.id.index() as u32;
        self.filter_rows(cluster, pod, &[row], Some(node), |_, status| verdict = Err(status))?;
        verdict
    }
}

impl PreScore for Guest {
    fn pre_score(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> Result<PreScoreOutcome, Status> {
        let scored = self.scored(cluster, pod, nodes, true)?;
        Ok(scored.map_or(PreScoreOutcome::Skip, PreScoreOutcome::go))
    }
}

impl Score for Guest {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        column.copy_from_slice(&self.scores_of(input)?.raw);
        Ok(())
    }
}

impl NormalizeScore for Guest {
    fn normalize(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        column.copy_from_slice(&self.scores_of(input)?.normalized);
        Ok(())
    }
}
