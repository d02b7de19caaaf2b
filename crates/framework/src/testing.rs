//! For the tests of plugins: running a type at its points, as a profile would.

use supercargo_manifest::{self as manifest, Problem, Problems, Source};
use supercargo_model::{Cluster, Node, NodeInfo, Pod};

use crate::{
    Detail, MAX_SCORE, MIN_SCORE, Prepared, ScoreInput, Status, Verdict,
    details::RefusalKind,
    event::{ActionType, Change, EventInterest, EventResource},
    points::{Filter, NormalizeScore, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Score},
    registry::{Args, Plugin, Registration, Registry},
};

/// A plugin under test: made as it is registered, from arguments as a configuration writes them.
pub struct PluginUnderTest(Plugin);

impl PluginUnderTest {
    /// Makes the plugin; `args` is YAML, and `{}` for none.
    pub fn of(plugin: impl Into<Registration>, args: &str) -> Result<Self, Problems> {
        let source = Source::new("args", args);
        let documents = manifest::read(&source)?;
        let args = documents.first().map_or_else(Args::none, |value| Args::new(&source, value, "args"));
        plugin.into().build(&args).map(Self)
    }

    /// A plugin of a registry, without arguments.
    pub fn named(registry: &Registry, name: &str) -> Result<Self, Problems> {
        let registration = registry.get(name).ok_or_else(|| Problem::error(format!("there is no {name}")))?;
        registration.build(&Args::none()).map(Self)
    }

    /// For each node by name, `ok` or the message of the refusal; all `ok` if the plugin does not filter this pod.
    pub fn filter(&self, cluster: &Cluster, pod: &Pod) -> Vec<String> {
        let prepared = match self.0.pre_filter.as_ref().map(|plugin| plugin.pre_filter(cluster, pod)) {
            None => Prepared::nothing(),
            Some(Ok(PreFilterOutcome::Go { prepared, .. })) => prepared,
            Some(Ok(PreFilterOutcome::Skip)) => return vec!["ok".to_owned(); cluster.node_count()],
            Some(Err(status)) => return vec![status.message(); cluster.node_count()],
        };
        let verdict = |node| match &self.0.filter {
            Some(plugin) => said(plugin.filter(&prepared, cluster, pod, node)),
            None => "ok".to_owned(),
        };
        by_name(cluster).into_iter().map(verdict).collect()
    }

    /// For each node by name, what the plugin tells about its refusal; nothing where it agrees.
    pub fn details(&self, cluster: &Cluster, pod: &Pod) -> Vec<Vec<Detail>> {
        self.of_refused(cluster, pod, |plugin, prepared, node| plugin.details(prepared, cluster, pod, node))
    }

    /// For each node by name, the kinds that it is counted under in a summary; nothing where the plugin agrees.
    pub fn kinds(&self, cluster: &Cluster, pod: &Pod) -> Vec<Vec<RefusalKind>> {
        self.of_refused(cluster, pod, |plugin, prepared, node| plugin.kinds(prepared, cluster, pod, node))
    }

    fn of_refused<T>(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        tell: impl Fn(&dyn Filter, &Prepared, &NodeInfo) -> Vec<T>,
    ) -> Vec<Vec<T>> {
        let prepared = match self.0.pre_filter.as_ref().map(|plugin| plugin.pre_filter(cluster, pod)) {
            None => Some(Prepared::nothing()),
            Some(Ok(PreFilterOutcome::Go { prepared, .. })) => Some(prepared),
            Some(_) => None,
        };
        let told = |node: &NodeInfo| {
            let (plugin, prepared) = (self.0.filter.as_deref()?, prepared.as_ref()?);
            plugin.filter(prepared, cluster, pod, node).is_err().then(|| tell(plugin, prepared, node))
        };
        by_name(cluster).into_iter().map(|node| told(node).unwrap_or_default()).collect()
    }

    /// The scores of all nodes by name, after normalizing; empty if the plugin does not score this pod. A score outside
    /// of 0..=100 is an error, as it is in a profile.
    pub fn score(&self, cluster: &Cluster, pod: &Pod) -> Result<Vec<i64>, Status> {
        let nodes = by_name(cluster);
        let prepared = match self.0.pre_score.as_ref().map(|plugin| plugin.pre_score(cluster, pod, &nodes)) {
            None => Prepared::nothing(),
            Some(outcome) => match outcome? {
                PreScoreOutcome::Go(prepared) => prepared,
                PreScoreOutcome::Skip => return Ok(vec![]),
            },
        };
        let Some(plugin) = &self.0.score else { return Ok(vec![]) };
        let input = ScoreInput { prepared: &prepared, cluster, pod, nodes: &nodes };
        let mut column = vec![0; nodes.len()];
        plugin.score(input, &mut column)?;
        if let Some(plugin) = &self.0.normalize {
            plugin.normalize(input, &mut column)?;
        }
        match column.iter().find(|score| !(MIN_SCORE..=MAX_SCORE).contains(*score)) {
            Some(score) => Err(Status::error(format!("{score} is not within {MIN_SCORE}..={MAX_SCORE}"))),
            None => Ok(column),
        }
    }
}

/// The scores before and after normalizing, of all nodes by name; empty if the plugin skips itself.
pub fn score<P: PreScore + Score + NormalizeScore>(
    plugin: &P,
    cluster: &Cluster,
    pod: &Pod,
) -> Result<(Vec<i64>, Vec<i64>), Status> {
    let nodes = by_name(cluster);
    let prepared = match plugin.pre_score(cluster, pod, &nodes)? {
        PreScoreOutcome::Skip => return Ok((vec![], vec![])),
        PreScoreOutcome::Go(prepared) => prepared,
    };
    let input = ScoreInput { prepared: &prepared, cluster, pod, nodes: &nodes };
    let mut raw = vec![0; nodes.len()];
    plugin.score(input, &mut raw)?;
    let mut normalized = raw.clone();
    plugin.normalize(input, &mut normalized)?;
    Ok((raw, normalized))
}

/// The scores of a plugin that does not normalize; empty if it skips itself.
pub fn plain_score<P: PreScore + Score>(plugin: &P, cluster: &Cluster, pod: &Pod) -> Vec<i64> {
    let nodes = by_name(cluster);
    let prepared = match plugin.pre_score(cluster, pod, &nodes).unwrap() {
        PreScoreOutcome::Skip => return vec![],
        PreScoreOutcome::Go(prepared) => prepared,
    };
    let mut column = vec![0; nodes.len()];
    let input = ScoreInput { prepared: &prepared, cluster, pod, nodes: &nodes };
    plugin.score(input, &mut column).unwrap();
    column
}

/// Whether a change of a node's taints gives a pod its turn that waits for it.
pub fn taint_change_helps(interest: &EventInterest, pod: &Pod, before: Option<&Node>, after: &Node) -> bool {
    let change = Change::Node(before, Some(after));
    interest.helps(&Cluster::default(), EventResource::Node, ActionType::UpdateNodeTaint, pod, &change)
}

/// The nodes by name.
pub fn by_name(cluster: &Cluster) -> Vec<&NodeInfo> {
    let mut nodes: Vec<&NodeInfo> = cluster.nodes().collect();
    nodes.sort_by_key(|node| node.name().clone());
    nodes
}

/// For each node by name, `ok` or the message of the refusal; all `ok` if the plugin skips itself.
pub fn filter<P: PreFilter + Filter>(plugin: &P, cluster: &Cluster, pod: &Pod) -> Vec<String> {
    let prepared = match plugin.pre_filter(cluster, pod) {
        Ok(PreFilterOutcome::Skip) => return vec!["ok".to_owned(); cluster.node_count()],
        Ok(PreFilterOutcome::Go { prepared, .. }) => prepared,
        Err(status) => return vec![status.message(); cluster.node_count()],
    };
    (by_name(cluster).into_iter()).map(|node| verdict(plugin, &prepared, cluster, pod, node)).collect()
}

/// `ok`, or the message of the refusal.
pub fn verdict<P: Filter>(
    plugin: &P,
    prepared: &Prepared,
    cluster: &Cluster,
    pod: &Pod,
    node: &NodeInfo,
) -> String {
    said(plugin.filter(prepared, cluster, pod, node))
}

fn said(verdict: Verdict) -> String {
    match verdict {
        Ok(()) => "ok".to_owned(),
        Err(status) => status.message(),
    }
}
