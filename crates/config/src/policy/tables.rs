//! Which plugins do the work of which predicates and priorities.

/// The plugins whose filters do a predicate's work.
pub(super) struct Predicate(pub(super) &'static [&'static str]);

/// What does a priority's work.
pub(super) enum Priority {
    /// The score of a plugin.
    Score(&'static str),
    LeastAllocated,
    MostAllocated,
    /// PodTopologySpread with the constraints that it knows itself.
    SystemSpread,
    /// Nothing any more, and why.
    Gone(&'static str),
}

/// A priority that scores all nodes alike.
pub(super) const EQUAL: &str = "EqualPriority";

/// In the order in which the predicates ran.
pub(super) const PREDICATES: [(&str, Predicate); 22] = [
    ("CheckNodeUnschedulable", Predicate(&["NodeUnschedulable"])),
    ("GeneralPredicates", Predicate(&["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"])),
    ("HostName", Predicate(&["NodeName"])),
    ("PodFitsHostPorts", Predicate(&["NodePorts"])),
    ("PodFitsPorts", Predicate(&["NodePorts"])),
    ("MatchNodeSelector", Predicate(&["NodeAffinity"])),
    ("PodFitsResources", Predicate(&["NodeResourcesFit"])),
    ("NoDiskConflict", Predicate(&["VolumeRestrictions"])),
    ("PodToleratesNodeTaints", Predicate(&["TaintToleration"])),
    ("MaxEBSVolumeCount", Predicate(&["NodeVolumeLimits"])),
    ("MaxGCEPDVolumeCount", Predicate(&["NodeVolumeLimits"])),
    ("MaxCSIVolumeCountPred", Predicate(&["NodeVolumeLimits"])),
    ("MaxAzureDiskVolumeCount", Predicate(&["NodeVolumeLimits"])),
    ("MaxCinderVolumeCount", Predicate(&["NodeVolumeLimits"])),
    ("CheckVolumeBinding", Predicate(&["VolumeBinding"])),
    ("NoVolumeZoneConflict", Predicate(&["VolumeZone"])),
    ("EvenPodsSpread", Predicate(&["PodTopologySpread"])),
    ("MatchInterPodAffinity", Predicate(&["InterPodAffinity"])),
    // These looked at conditions of nodes, which are taints now.
    ("CheckNodeCondition", Predicate(&["TaintToleration", "NodeUnschedulable"])),
    ("CheckNodeMemoryPressure", Predicate(&["TaintToleration"])),
    ("CheckNodeDiskPressure", Predicate(&["TaintToleration"])),
    ("CheckNodePIDPressure", Predicate(&["TaintToleration"])),
];

pub(super) const PRIORITIES: [(&str, Priority); 12] = [
    ("LeastRequestedPriority", Priority::LeastAllocated),
    ("MostRequestedPriority", Priority::MostAllocated),
    ("BalancedResourceAllocation", Priority::Score("NodeResourcesBalancedAllocation")),
    ("NodeAffinityPriority", Priority::Score("NodeAffinity")),
    ("TaintTolerationPriority", Priority::Score("TaintToleration")),
    ("ImageLocalityPriority", Priority::Score("ImageLocality")),
    ("InterPodAffinityPriority", Priority::Score("InterPodAffinity")),
    ("EvenPodsSpreadPriority", Priority::Score("PodTopologySpread")),
    ("SelectorSpreadPriority", Priority::SystemSpread),
    ("ServiceSpreadingPriority", Priority::SystemSpread),
    (
        "NodePreferAvoidPodsPriority",
        Priority::Gone("its annotation is gone; taint the nodes with the effect PreferNoSchedule instead"),
    ),
    (EQUAL, Priority::Gone("a score that is equal for all nodes changes nothing")),
];

/// On whatever the predicates say.
pub(super) const MANDATORY_FILTERS: [&str; 2] = ["NodeUnschedulable", "TaintToleration"];

/// The predicates of a policy that names none.
pub(super) const DEFAULT_PREDICATES: [&str; 9] = [
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "MaxCSIVolumeCountPred",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "EvenPodsSpread",
    "MatchInterPodAffinity",
];

/// The priorities of a policy that names none.
pub(super) const DEFAULT_PRIORITIES: [(&str, i32); 8] = [
    ("BalancedResourceAllocation", 1),
    ("EvenPodsSpreadPriority", 2),
    ("ImageLocalityPriority", 1),
    ("InterPodAffinityPriority", 1),
    ("LeastRequestedPriority", 1),
    ("NodeAffinityPriority", 1),
    ("SelectorSpreadPriority", 1),
    ("TaintTolerationPriority", 1),
];

/// Plugins that no policy names and every scheduler needs, before the filters and after them.
pub(super) const ALWAYS: [&str; 2] = ["SchedulingGates", "PrioritySort"];
pub(super) const ALWAYS_LAST: [&str; 4] =
    ["DynamicResources", "DefaultPreemption", "NodeDeclaredFeatures", "DefaultBinder"];

/// Plugins that prepare their score.
pub(super) const PREPARES_SCORE: [&str; 6] = [
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
];

pub(super) fn predicate(name: &str) -> Option<&'static Predicate> {
    PREDICATES.iter().find(|(known, _)| *known == name).map(|(_, predicate)| predicate)
}

pub(super) fn priority(name: &str) -> Option<&'static Priority> {
    PRIORITIES.iter().find(|(known, _)| *known == name).map(|(_, priority)| priority)
}
