//! Spreads the pods of a namespace over the nodes: a score of one node at a time (the map), and a normalize that sees all
//! of them (the reduce).

use supercargo::{
    framework::{
        ScoreInput, Status, Verdict, normalize,
        points::{NormalizeScore, ScoreNode},
        registry::{Definition, define},
    },
    model::NodeInfo,
};

/// The plugin.
pub struct NamespaceSpread;

/// Its name, how it is made, and what it serves.
pub fn definition() -> Definition<NamespaceSpread> {
    define("NamespaceSpread", |_| Ok(NamespaceSpread)).score().normalize()
}

impl ScoreNode for NamespaceSpread {
    /// How many pods of the pod's namespace are on the node already.
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let there = node.pods.iter().filter(|pod| pod.namespace == input.pod.namespace);
        Ok(there.count() as i64)
    }
}

impl NormalizeScore for NamespaceSpread {
    /// The node with the most of them gets 0, one without any gets 100.
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::reversed(column);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use supercargo::{
        framework::testing::PluginUnderTest,
        model::testing::{cluster, node, pod},
    };

    use super::*;

    #[test]
    fn fewer_of_the_own_namespace_are_better() {
        let nodes = cluster([
            node("a"),
            node("b"),
            node("c"),
            pod("1").on("b"),
            pod("2").on("c"),
            pod("3").on("c"),
            pod("4").on("c"),
            // Another namespace does not count.
            pod("5").namespace("other").on("a"),
        ]);
        let plugin = PluginUnderTest::of(definition(), "{}").unwrap();
        // 0, 1 and 3 pods; 100 − 100 × 1 / 3 = 67
        assert_eq!(plugin.score(&nodes, &pod("p").pod()).unwrap(), [100, 67, 0]);
        // Of `other` there is one on a: 100 − 100 × 1 / 1 = 0
        assert_eq!(plugin.score(&nodes, &pod("p").namespace("other").pod()).unwrap(), [0, 100, 100]);
    }
}
