//! Kubernetes 1.36's feature gates: which are known, how they are set, and what setting them means here.

use std::collections::BTreeMap;

use supercargo_manifest::{Problem, nearest};

use super::flags::values;

/// A gate in each line: its name, its stage, whether it is on by default, and `locked` if that cannot be changed.
const KNOWN: &str = include_str!("feature_gates.txt");

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";
/// The only component whose gates kube-scheduler takes.
const COMPONENT: &str = "kube";

/// Gates that are heeded.
const HONOURED: &[&str] = &[ALL_ALPHA, ALL_BETA, "ComponentFlagz", "ComponentStatusz", "LoggingAlphaOptions"];

/// Gates that change what kube-scheduler does and nothing here, and what is done whatever they say.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("CoordinatedLeaderElection", "the leader is elected by the Lease alone, without LeaseCandidates"),
    ("DRAConsumableCapacity", DEVICES),
    ("DRADeviceBindingConditions", DEVICES),
    ("DRADeviceTaintRules", DEVICES),
    ("DRADeviceTaints", DEVICES),
    ("DRAExtendedResource", DEVICES),
    ("DRAListTypeAttributes", DEVICES),
    ("DRANodeAllocatableResources", DEVICES),
    ("DRAPartitionableDevices", DEVICES),
    ("DRAPrioritizedList", DEVICES),
    ("DRAResourceClaimDeviceStatus", DEVICES),
    ("DRASchedulerFilterTimeout", DEVICES),
    ("DRAWorkloadResourceClaims", WORKLOADS),
    ("GangScheduling", WORKLOADS),
    ("GenericWorkload", WORKLOADS),
    ("InPlacePodLevelResourcesVerticalScaling", AS_BY_DEFAULT),
    ("MatchLabelKeysInPodTopologySpread", AS_BY_DEFAULT),
    ("NativeHistograms", "histograms in /metrics are classic ones"),
    ("NodeDeclaredFeatures", AS_BY_DEFAULT),
    ("NominatedNodeNameForExpectation", AS_BY_DEFAULT),
    ("OpportunisticBatching", "pods of one template are decided from cached state, with the same results"),
    ("PodLevelResources", AS_BY_DEFAULT),
    ("SchedulerAsyncAPICalls", "decisions never wait for writes to the API server"),
    ("SchedulerAsyncPreemption", "decisions never wait for the eviction of victims"),
    ("SchedulerPopFromBackoffQ", AS_BY_DEFAULT),
    ("StorageCapacityScoring", "the capacity of storage does not count in scores"),
    ("TaintTolerationComparisonOperators", AS_BY_DEFAULT),
    ("TopologyAwareWorkloadScheduling", WORKLOADS),
    ("VolumeLimitScaling", AS_BY_DEFAULT),
    ("WatchListClient", "lists are streamed where the API server offers it"),
    ("WorkloadAwarePreemption", WORKLOADS),
];

const DEVICES: &str = "resource claims are treated as with the defaults of 1.36";
const WORKLOADS: &str = "pods of a workload are scheduled one by one";
const AS_BY_DEFAULT: &str = "the scheduler behaves as with the default of 1.36";

struct Gate {
    name: &'static str,
    stage: &'static str,
    default: bool,
    locked: bool,
}

fn known() -> impl Iterator<Item = Gate> {
    KNOWN.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, stage, default) = (words.next()?, words.next()?, words.next()?);
        Some(Gate { name, stage, default: default == "on", locked: words.next().is_some() })
    })
}

/// The feature gates as they were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeatureGates {
    set: BTreeMap<&'static str, bool>,
}

impl FeatureGates {
    /// Reads what `--feature-gates` says: `Name=true`, also as `kube:Name=true`.
    pub(super) fn parse(given: &[String]) -> Result<Self, Problem> {
        let mut gates = Self::default();
        for pair in given.iter().map(|pair| pair.trim()).filter(|pair| !pair.is_empty()) {
            let (name, on) = read(pair)?;
            gates.set.insert(name, on);
        }
        Ok(gates)
    }

    /// Whether a gate is on.
    pub(super) fn enabled(&self, name: &str) -> bool {
        known().find(|gate| gate.name == name).is_some_and(|gate| self.is_on(&gate))
    }

    fn is_on(&self, gate: &Gate) -> bool {
        let all = match gate.stage {
            _ if gate.locked => None,
            "ALPHA" => self.set.get(ALL_ALPHA),
            "BETA" => self.set.get(ALL_BETA),
            _ => None,
        };
        self.set.get(gate.name).or(all).copied().unwrap_or(gate.default)
    }

    /// All gates with their stages, as kube-scheduler's metric has them, and whether they are on.
    pub(super) fn all(&self) -> Vec<(&'static str, &'static str, bool)> {
        known()
            .map(|gate| (gate.name, if gate.stage == "GA" { "" } else { gate.stage }, self.is_on(&gate)))
            .collect()
    }

    /// What those should know who set gates that change nothing here.
    pub(super) fn warnings(&self) -> Vec<String> {
        let changed =
            known().filter(|gate| self.is_on(gate) != gate.default && !HONOURED.contains(&gate.name));
        let told = changed.filter_map(|gate| {
            let (_, meaning) = WITHOUT_EFFECT.iter().find(|(name, _)| *name == gate.name)?;
            Some(format!("the feature gate {}={} is not honoured: {meaning}", gate.name, self.is_on(&gate)))
        });
        told.collect()
    }
}

fn read(pair: &str) -> Result<(&'static str, bool), Problem> {
    let wrong = |why: String| Problem::error(format!("--feature-gates: {why}"));
    let (component, pair) = pair.split_once(':').unwrap_or((COMPONENT, pair));
    if component != COMPONENT {
        let hint = format!("kube-scheduler has gates of {COMPONENT} only");
        return Err(wrong(format!("component not registered: {component}")).hint(hint));
    }
    let Some((name, value)) = pair.split_once('=') else {
        return Err(wrong(format!("missing bool value for {pair}")).hint(format!("write {pair}=true")));
    };
    let (name, value) = (name.trim(), value.trim());
    let Some(gate) = known().find(|gate| gate.name == name) else {
        let problem = wrong(format!("unrecognized feature gate: {name}"));
        let near = nearest(name, known().map(|gate| gate.name));
        let hint = match near {
            Some(near) => format!("did you mean {near}?"),
            None => "Kubernetes 1.36 has no such gate, or has it no more".to_owned(),
        };
        return Err(problem.hint(hint));
    };
    let on =
        values::boolean(value).map_err(|why| wrong(format!("invalid value of {name}={value}: {why}")))?;
    if gate.locked && on != gate.default {
        let locked = gate.default;
        let problem = wrong(format!("cannot set feature gate {name} to {on}, feature is locked to {locked}"));
        return Err(problem.hint("kube-scheduler 1.36 refuses this too; leave the gate out"));
    }
    Ok((gate.name, on))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FeatureGates, String> {
        let given: Vec<String> = text.split(',').map(str::to_owned).collect();
        FeatureGates::parse(&given).map_err(|problem| problem.to_string())
    }

    #[test]
    fn the_list_is_that_of_1_36() {
        let count = |stage| known().filter(|gate| gate.stage == stage).count();
        assert_eq!(["ALPHA", "BETA", "GA", "DEPRECATED"].map(count), [49, 100, 76, 16]);
        for (name, _) in WITHOUT_EFFECT {
            let gate = known().find(|gate| gate.name == *name).expect(name);
            assert!(!gate.locked, "{name} cannot be set at all");
        }
    }

    #[test]
    fn gates_are_on_by_default_by_name_and_by_stage() {
        let gates = parse("kube:GangScheduling=T,AllBeta=false,ComponentFlagz=true").unwrap();
        assert!(gates.enabled("GangScheduling") && gates.enabled("ComponentFlagz"));
        assert!(!gates.enabled("ComponentStatusz"), "a beta feature");
        assert!(gates.enabled("SidecarContainers"), "it is locked");
        assert!(parse("AllAlpha=true").unwrap().enabled("StorageCapacityScoring"));
        assert!(parse("").unwrap().enabled("ComponentStatusz"));
    }

    #[test]
    fn gates_that_are_not_honoured_are_told() {
        assert_eq!(parse("ComponentFlagz=false,SchedulerAsyncPreemption=true").unwrap().warnings(), [""; 0]);
        let told = parse("SchedulerAsyncPreemption=false,RotateKubeletServerCertificate=false").unwrap();
        let [told] = &told.warnings()[..] else { panic!("one warning") };
        assert!(
            told.contains("SchedulerAsyncPreemption=false is not honoured: decisions never wait"),
            "{told}"
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_a_hint() {
        for (text, told) in [
            (
                "GangSheduling=true",
                "unrecognized feature gate: GangSheduling\nhint: did you mean GangScheduling?",
            ),
            ("NoSuchThingAtAll=true", "hint: Kubernetes 1.36 has no such gate"),
            ("GangScheduling", "missing bool value for GangScheduling\nhint: write GangScheduling=true"),
            ("GangScheduling=maybe", "invalid value of GangScheduling=maybe"),
            ("SidecarContainers=false", "feature is locked to true"),
            ("wardle:GangScheduling=true", "component not registered: wardle"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(told), "{problem}");
        }
    }
}
