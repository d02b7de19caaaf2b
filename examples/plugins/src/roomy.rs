//! Prefers nodes with room for many more pods: a score that sees the whole list, on the scale of 0 to 10 that priority
//! functions had before there were plugins. Such a function can be taken over as it is.

use supercargo::{
    framework::{
        ScoreInput, Verdict, normalize,
        points::{NormalizeScore, Score},
        registry::{Definition, define},
    },
    model::NodeInfo,
};

/// The plugin.
pub struct Roomy;

/// Its name, how it is made, and what it serves.
pub fn definition() -> Definition<Roomy> {
    define("Roomy", |_| Ok(Roomy)).score().normalize()
}

/// The older function: a number from 0 to 10 for each node.
fn prioritize(nodes: &[&NodeInfo]) -> Vec<i64> {
    let tenths = |info: &&NodeInfo| {
        let most = info.node.allocatable.pods;
        let free = (most - info.pods.len() as i64).max(0);
        (10 * free).checked_div(most).unwrap_or(0)
    };
    nodes.iter().map(tenths).collect()
}

impl Score for Roomy {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        column.copy_from_slice(&prioritize(input.nodes));
        Ok(())
    }
}

impl NormalizeScore for Roomy {
    /// 0 to 10 becomes 0 to 100.
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::from_ten(column)
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
    fn tenths_of_the_room_that_is_left() {
        let nodes = cluster([
            node("empty").allocatable("pods", "4"),
            // 10 × 3 / 4 = 7, cut off: 70 of 100
            node("some").allocatable("pods", "4"),
            pod("one").on("some"),
            node("full").allocatable("pods", "1"),
            pod("two").on("full"),
            node("none").allocatable("pods", "0"),
        ]);
        let plugin = PluginUnderTest::of(definition(), "{}").unwrap();
        // By name: empty, full, none, some.
        assert_eq!(plugin.score(&nodes, &pod("p").pod()).unwrap(), [100, 0, 0, 70]);
    }
}
