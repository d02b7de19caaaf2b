//! What holds when a configuration says nothing.

/// The plugins that are on by default, in their order, with the weight of their score where one is set.
pub(crate) const PLUGINS: [(&str, Option<i32>); 20] = [
    ("SchedulingGates", None),
    ("PrioritySort", None),
    ("NodeUnschedulable", None),
    ("NodeName", None),
    ("TaintToleration", Some(3)),
    ("NodeAffinity", Some(2)),
    ("NodePorts", None),
    ("NodeResourcesFit", Some(1)),
    ("VolumeRestrictions", None),
    ("NodeVolumeLimits", None),
    ("VolumeBinding", None),
    ("VolumeZone", None),
    ("PodTopologySpread", Some(2)),
    ("InterPodAffinity", Some(2)),
    ("DynamicResources", Some(2)),
    ("DefaultPreemption", None),
    ("NodeResourcesBalancedAllocation", Some(1)),
    ("ImageLocality", Some(1)),
    ("DefaultBinder", None),
    ("NodeDeclaredFeatures", None),
];

/// What a score counts when no weight is given.
pub(crate) const WEIGHT: i32 = 1;

pub(crate) const SCHEDULER_NAME: &str = "default-scheduler";
pub(crate) const PARALLELISM: i32 = 16;
/// 0 means: by the size of the cluster.
pub(crate) const PERCENTAGE_OF_NODES_TO_SCORE: i32 = 0;
pub(crate) const MIN_FEASIBLE_NODES_TO_FIND: i32 = 100;
pub(crate) const POD_INITIAL_BACKOFF_SECONDS: i64 = 1;
pub(crate) const POD_MAX_BACKOFF_SECONDS: i64 = 10;

pub(crate) const LEASE_SECONDS: i64 = 15;
pub(crate) const RENEW_DEADLINE_SECONDS: i64 = 10;
pub(crate) const RETRY_PERIOD_SECONDS: i64 = 2;
pub(crate) const RESOURCE_LOCK: &str = "leases";
pub(crate) const RESOURCE_NAME: &str = "kube-scheduler";
pub(crate) const RESOURCE_NAMESPACE: &str = "kube-system";

pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const BURST: i32 = 100;
