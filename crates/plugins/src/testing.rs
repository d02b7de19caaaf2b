//! What the plugins' tests share: running a type at its points, as a profile would.

use supercargo_framework::{
    Prepared, ScoreInput, Status,
    points::{Filter, NormalizeScore, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Score},
};
use supercargo_model::{Cluster, NodeInfo, Pod};

/// The scores before and after normalizing, of all nodes by name; empty if the plugin skips itself.
pub(crate) fn score<P: PreScore + Score + NormalizeScore>(
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
pub(crate) fn plain_score<P: PreScore + Score>(plugin: &P, cluster: &Cluster, pod: &Pod) -> Vec<i64> {
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

/// The nodes by name.
pub(crate) fn by_name(cluster: &Cluster) -> Vec<&NodeInfo> {
    let mut nodes: Vec<&NodeInfo> = cluster.nodes().collect();
    nodes.sort_by_key(|node| node.name().clone());
    nodes
}

/// For each node by name, `ok` or the message of the refusal; all `ok` if the plugin skips itself.
pub(crate) fn filter<P: PreFilter + Filter>(plugin: &P, cluster: &Cluster, pod: &Pod) -> Vec<String> {
    let prepared = match plugin.pre_filter(cluster, pod) {
        Ok(PreFilterOutcome::Skip) => return vec!["ok".to_owned(); cluster.node_count()],
        Ok(PreFilterOutcome::Go { prepared, .. }) => prepared,
        Err(status) => return vec![status.message(); cluster.node_count()],
    };
    (by_name(cluster).into_iter()).map(|node| verdict(plugin, &prepared, cluster, pod, node)).collect()
}

/// `ok`, or the message of the refusal.
pub(crate) fn verdict<P: Filter>(
    plugin: &P,
    prepared: &Prepared,
    cluster: &Cluster,
    pod: &Pod,
    node: &NodeInfo,
) -> String {
    match plugin.filter(prepared, cluster, pod, node) {
        Ok(()) => "ok".to_owned(),
        Err(status) => status.message(),
    }
}
