//! Prefers nodes that cost less: a score that sees the whole list.

use serde::Deserialize;
use supercargo::{
    framework::{
        MAX_SCORE, ScoreInput, Verdict,
        points::Score,
        registry::{Args, Definition, define},
    },
    manifest::Problems,
    model::Node,
};

/// What a configuration may say.
#[derive(Deserialize)]
#[serde(default)]
struct CheapestFirstArgs {
    /// The label that holds what a node costs: a whole number, in any unit.
    label: String,
}

impl Default for CheapestFirstArgs {
    fn default() -> Self {
        Self { label: "example.com/price".to_owned() }
    }
}

/// The plugin.
pub struct CheapestFirst {
    label: String,
}

/// Its name, how it is made, and what it serves.
pub fn definition() -> Definition<CheapestFirst> {
    define("CheapestFirst", CheapestFirst::new).score().default_args(r#"{"label": "example.com/price"}"#)
}

impl CheapestFirst {
    fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let CheapestFirstArgs { label } = args.decode()?;
        if label.is_empty() {
            return Err(args.problem("label", "must not be empty").into());
        }
        Ok(Self { label })
    }

    fn price(&self, node: &Node) -> Option<i64> {
        node.labels.get(&self.label)?.parse().ok()
    }
}

impl Score for CheapestFirst {
    /// The cheapest gets 100, the dearest 0, the others in between by their price. A node without a price gets 0.
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        let prices: Vec<Option<i64>> = input.nodes.iter().map(|info| self.price(&info.node)).collect();
        let known = || prices.iter().flatten().copied();
        let (Some(cheapest), Some(dearest)) = (known().min(), known().max()) else {
            column.fill(0);
            return Ok(());
        };
        for (score, price) in column.iter_mut().zip(&prices) {
            *score = match price {
                Some(price) if dearest > cheapest => MAX_SCORE * (dearest - price) / (dearest - cheapest),
                Some(_) => MAX_SCORE,
                None => 0,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use supercargo::{
        framework::testing::PluginUnderTest,
        model::{
            Cluster,
            testing::{cluster, node, pod},
        },
    };

    use super::*;

    /// Nodes a, b, … with these prices.
    fn priced(prices: &[&str]) -> Cluster {
        let names = ["a", "b", "c", "d"];
        let nodes = names.iter().zip(prices).map(|(name, price)| match *price {
            "" => node(name),
            price => node(name).label("example.com/price", price),
        });
        cluster(nodes)
    }

    #[test]
    fn the_cheaper_the_better() {
        let cases: [(&[&str], &[i64]); 5] = [
            // 100 × (50 − 20) / (50 − 10) = 75
            (&["10", "20", "50"], &[100, 75, 0]),
            (&["10", "", "50"], &[100, 0, 0]),
            // A price that is no number is none.
            (&["10", "cheap"], &[100, 0]),
            (&["10", "10"], &[100, 100]),
            (&["", ""], &[0, 0]),
        ];
        let plugin = PluginUnderTest::of(definition(), "{}").unwrap();
        for (prices, scores) in cases {
            let found = plugin.score(&priced(prices), &pod("p").pod()).unwrap();
            assert_eq!(found, scores, "{prices:?}");
        }
    }

    #[test]
    fn the_label_can_be_chosen() {
        let nodes = cluster([node("a").label("cost", "7"), node("b").label("cost", "3")]);
        let plugin = PluginUnderTest::of(definition(), "{label: cost}").unwrap();
        assert_eq!(plugin.score(&nodes, &pod("p").pod()).unwrap(), [0, 100]);
    }

    #[test]
    fn wrong_arguments_are_told_with_their_place() {
        for (args, told) in [
            ("{label: ''}", "args:1:9: args.label: must not be empty"),
            ("{lable: cost}", "args:1:2: args.lable: "),
        ] {
            let problems = PluginUnderTest::of(definition(), args).err().expect("a problem");
            assert!(problems.to_string().contains(told), "{problems}");
        }
    }
}
