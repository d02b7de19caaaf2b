//! What is done to a cluster, and what goes wrong, moment by moment: data, so that it can be printed, kept and shortened.
//!
//! Steps name nobody: they pick among what is there when their time comes, so that a plan still makes sense when some of
//! its steps are taken out.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a lease holds in clusters whose API server may be away for a while, as OpenShift has it.
pub(super) const SELDOM_RENEWED_SECONDS: u64 = 137;

/// A plan: how the cluster begins, and what happens when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Where all further chance begins.
    pub seed: u64,
    /// How it begins.
    pub setup: PlannedSetup,
    /// How long it goes on, in seconds of cluster time, up to the last look.
    pub seconds: u64,
    /// What happens, in the order of time.
    pub steps: Vec<PlannedStep>,
}

impl Plan {
    /// The same, and nothing goes wrong.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.setup.forbidden_seconds = 0;
        for step in &mut self.steps {
            // The pods come all the same.
            if let Act::LeaderGoes { template, count, .. } = step.act {
                step.act = Act::CreatePods { template, count: 2 * count, life_seconds: 0 };
            }
        }
        self.steps.retain(|step| !step.act.is_fault());
        self
    }
}

/// How a cluster and its schedulers begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedSetup {
    /// Schedulers that share a lease; one alone takes no lease.
    pub replicas: usize,
    /// Whether another scheduler with a name of its own works beside them.
    pub beside: bool,
    /// The lease: its duration in seconds. Deadline and retries follow from it.
    pub lease_seconds: u64,
    /// Nodes at the start.
    pub nodes: u64,
    /// How many changes of each resource the server remembers.
    pub history: usize,
    /// How often watches get bookmarks, in seconds; 0 is never.
    pub bookmark_seconds: u64,
    /// How long claims wait for their volumes, in milliseconds.
    pub provision_millis: u64,
    /// Whether an extender is asked about some of the pods.
    pub extender: bool,
    /// How many percent of the nodes are looked at.
    pub percentage: u32,
    /// Whether a guest filters and scores for every pod.
    pub guest: bool,
    /// How long schedulers may not read one of the kinds at first, in seconds: permissions come late.
    pub forbidden_seconds: u64,
    /// Which kind that is.
    pub forbidden_kind: u64,
    /// How often nodes tell that they are well, in seconds; 0 is never.
    pub heartbeat_seconds: u64,
    /// Whether there are devices, and claims to them.
    pub devices: bool,
}

impl PlannedSetup {
    /// How long a leader tries to renew its lease, and how often anybody tries, in seconds: as in the clusters that have such
    /// leases, 15 s, 10 s and 2 s or 137 s, 107 s and 26 s; in these proportions otherwise.
    pub(super) fn renewal_seconds(&self) -> (u64, u64) {
        match self.lease_seconds {
            SELDOM_RENEWED_SECONDS => (107, 26),
            lease => (lease * 2 / 3, (lease / 7).max(1)),
        }
    }
}

impl Default for PlannedSetup {
    fn default() -> Self {
        Self {
            replicas: 1,
            beside: false,
            lease_seconds: 15,
            nodes: 4,
            history: 1000,
            bookmark_seconds: 60,
            provision_millis: 500,
            extender: false,
            percentage: 100,
            guest: false,
            forbidden_seconds: 0,
            forbidden_kind: 0,
            heartbeat_seconds: 0,
            devices: false,
        }
    }
}

/// Something that happens at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// When, in milliseconds from the start.
    pub at_millis: u64,
    /// What.
    #[serde(flatten)]
    pub act: Act,
}

impl PlannedStep {
    /// When.
    pub fn at(&self) -> Duration {
        Duration::from_millis(self.at_millis)
    }
}

/// What somebody does, or what goes wrong. A `pick` chooses among what is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Act {
    AddNode {
        shape: u64,
        zone: u64,
    },
    RemoveNode {
        pick: u64,
    },
    /// Its pods go with it, at once.
    NodeDies {
        pick: u64,
    },
    /// Deleted and made anew under the same name, perhaps of another shape.
    RecreateNode {
        pick: u64,
        shape: u64,
    },
    Cordon {
        pick: u64,
        on: bool,
    },
    Taint {
        pick: u64,
        on: bool,
    },
    RelabelNode {
        pick: u64,
        zone: u64,
    },
    ResizeNode {
        pick: u64,
        shape: u64,
    },
    /// Cordoned, and its pods are evicted as far as budgets allow.
    Drain {
        pick: u64,
    },
    /// Pods that end by themselves after a while; 0 seconds is never.
    CreatePods {
        template: u64,
        count: u64,
        life_seconds: u64,
    },
    DeletePod {
        pick: u64,
    },
    /// Deleted without grace and made anew under the same name.
    RecreatePod {
        pick: u64,
        template: u64,
    },
    RelabelPod {
        pick: u64,
    },
    /// Something happens to the pod that was made last, perhaps while it is being scheduled or bound.
    RaceNewest {
        sort: u64,
        pick: u64,
    },
    /// A node whose numbers make no sense: negative, or as large as can be.
    OddNode {
        pick: u64,
    },
    /// A pod that waits gets the toleration that it lacks.
    TolerateMore {
        pick: u64,
    },
    /// Pods that wait for a gate.
    CreateGated {
        template: u64,
        count: u64,
    },
    OpenGate {
        pick: u64,
    },
    Deploy {
        template: u64,
        replicas: u64,
    },
    Scale {
        pick: u64,
        replicas: u64,
    },
    Roll {
        pick: u64,
        template: u64,
    },
    DeleteDeployment {
        pick: u64,
    },
    AddBudget {
        app: u64,
        min_available: u64,
    },
    RemoveBudget {
        pick: u64,
    },
    RelabelNamespace {
        pick: u64,
    },
    DeleteNamespace {
        pick: u64,
    },
    /// A volume for the claims that nobody provisions.
    AddVolume {
        zone: u64,
    },
    /// Something happens to devices, or to pods that claim some.
    Devices {
        sort: u64,
        pick: u64,
    },
    /// Another scheduler binds a pod that is ours, behind our back.
    ForeignBinds {
        pick: u64,
        node: u64,
    },
    /// Another scheduler's pod of three cpus comes to a node, and makes no sense otherwise.
    UnreadablePod {
        node: u64,
    },
    /// A pod whose deletion a finalizer holds up.
    HeldPod {
        template: u64,
    },
    /// Another scheduler's own pod comes to a node.
    ForeignPod {
        template: u64,
        node: u64,
    },
    /// Requests go wrong.
    Requests {
        fault: RequestFault,
        verb: FaultyVerb,
        per_mille: u64,
        seconds: u64,
    },
    /// Whoever reads this kind is forbidden to.
    Forbidden {
        kind: u64,
        seconds: u64,
    },
    CutWatches,
    Compact,
    /// Nobody reaches the server for a while.
    RestartServer {
        down_millis: u64,
        forget_history: bool,
    },
    /// The state is kept, to be restored later.
    Backup,
    /// The newest backup is restored, if there is one.
    Restore {
        bumped: bool,
    },
    /// Changes of a kind come late to a scheduler.
    LateWatch {
        process: u64,
        kind: u64,
        millis: u64,
        seconds: u64,
    },
    SlowLink {
        process: u64,
        millis: u64,
        seconds: u64,
    },
    LinkDown {
        process: u64,
        seconds: u64,
    },
    /// The process ends after so many polls of its tasks, and is started again after a while.
    Kill {
        process: u64,
        polls: u64,
        down_seconds: u64,
    },
    /// Asked to stop, and started again.
    Restart {
        process: u64,
    },
    /// The leader goes in the middle of its work: asked to stop, or stopped in its tracks if it stands still for some seconds.
    /// Watches show pods late then, its own a little, the others' a lot.
    LeaderGoes {
        template: u64,
        count: u64,
        after_millis: u64,
        late_millis: u64,
        frozen_seconds: u64,
    },
    Pause {
        process: u64,
        seconds: u64,
    },
    ClockStep {
        process: u64,
        seconds: i64,
    },
    Extender {
        mode: ExtenderMode,
        seconds: u64,
    },
    Guest {
        mode: GuestMode,
        seconds: u64,
    },
    /// Everything is mended, things settle, and all rules are checked.
    Look,
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum RequestFault {
    Lost,
    LostAfterwards,
    Conflict,
    TooMany,
    TooManyForLong,
    TooManyForAnHour,
    Internal,
    InternalAfterwards,
    Unavailable,
    Slow,
    SlowAfterwards,
    VerySlow,
}

/// The requests that it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum FaultyVerb {
    Any,
    Bind,
    Evict,
    Status,
    Lease,
    Read,
    Volume,
}

/// How an extender behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ExtenderMode {
    #[default]
    Fine,
    Hangs,
    Dies,
    Nonsense,
    Slow,
    /// It refuses every node.
    Refuses,
    /// It refuses every other node.
    RefusesSome,
    /// It answers more than anybody should read.
    Endless,
}

/// How guests behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum GuestMode {
    #[default]
    Fine,
    Hangs,
    Dies,
    Nonsense,
    /// Who has a place waits for a permission that does not come.
    PermitsNobody,
}

impl Act {
    /// What it is called in a plan's text.
    pub fn name(&self) -> String {
        let written = serde_json::to_value(self).unwrap_or_default();
        written["do"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether this is something going wrong, rather than what people and controllers do.
    pub fn is_fault(&self) -> bool {
        use Act::*;
        matches!(
            self,
            Requests { .. }
                | Forbidden { .. }
                | CutWatches
                | Compact
                | RestartServer { .. }
                | Backup
                | Restore { .. }
                | LateWatch { .. }
                | SlowLink { .. }
                | LinkDown { .. }
                | Kill { .. }
                | Restart { .. }
                | LeaderGoes { .. }
                | Pause { .. }
                | ClockStep { .. }
                | Extender { .. }
                | Guest { .. }
        )
    }
}
