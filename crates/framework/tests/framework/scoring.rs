//! Prepare, score, normalize, weigh and sum.

use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict, normalize,
    points::{Score, ScoreNode},
    profile::{Profile, Scores},
    registry::define,
};
use supercargo_model::{
    Cluster, NodeInfo,
    testing::{Builder, cluster, node, pod},
};

use crate::support::{ByLabel, Normalizes, Prepares, Setup};

fn scored(name: &str, score: i64) -> Builder {
    node(name).label("score", &score.to_string())
}

fn run(profile: &Profile, cluster: &Cluster) -> Result<Scores, String> {
    let nodes: Vec<&NodeInfo> = cluster.nodes().collect();
    profile.score(cluster, &pod("p").pod(), &nodes).map_err(|error| error.0)
}

#[test]
fn normalizers() {
    const TOP: i64 = i64::MAX;
    const LOW: i64 = i64::MIN;
    type Normalizer = fn(&mut [i64]);
    // (normalizer, before, after)
    let cases: &[(Normalizer, &[i64], &[i64])] = &[
        (normalize::proportional, &[], &[]),
        (normalize::proportional, &[0, 0], &[0, 0]),
        // 100 × 1 / 3 = 33.3, 100 × 2 / 3 = 66.7
        (normalize::proportional, &[1, 2, 3], &[33, 66, 100]),
        (normalize::proportional, &[-5, 10], &[-50, 100]),
        (normalize::proportional, &[-5, -1], &[-5, -1]),
        (normalize::proportional, &[TOP, TOP / 2, 0], &[100, 49, 0]),
        (normalize::reversed, &[], &[]),
        (normalize::reversed, &[0, 0], &[100, 100]),
        (normalize::reversed, &[1, 2, 3], &[67, 34, 0]),
        (normalize::reversed, &[TOP, 0], &[0, 100]),
        (normalize::min_max, &[], &[]),
        (normalize::min_max, &[7, 7], &[0, 0]),
        // 100 × (score + 10) / 40
        (normalize::min_max, &[-10, 0, 30], &[0, 25, 100]),
        (normalize::min_max, &[-30, -20], &[0, 100]),
        // 100 × (2 / 3)
        (normalize::min_max, &[0, 2, 3], &[0, 66, 100]),
        (normalize::min_max, &[LOW, 0, TOP], &[0, 50, 100]),
    ];
    for (normalizer, before, after) in cases {
        let mut column = before.to_vec();
        normalizer(&mut column);
        assert_eq!(column, *after, "{before:?}");
    }
}

#[test]
fn scores_are_weighed_and_summed() {
    let profile = Setup::new()
        .with(define("Plain", |_| Ok(ByLabel)).score(), 3)
        .with(
            define("Turned", |_| {
                Ok(Normalizes(|column| {
                    normalize::reversed(column);
                    Ok(())
                }))
            })
            .score()
            .normalize(),
            2,
        )
        .ready();
    let cluster = cluster([scored("a", 10), scored("b", 100)]);
    let scores = run(&profile, &cluster).unwrap();
    let shown: Vec<(&str, i32, &[i64], &[i64])> =
        (scores.columns.iter()).map(|c| (&*c.plugin, c.weight, &*c.raw, &*c.normalized)).collect();
    assert_eq!(
        shown,
        [
            ("Plain", 3, &[10, 100][..], &[10, 100][..]),
            // 100 − 100 × 10 / 100, 0
            ("Turned", 2, &[10, 100][..], &[90, 0][..]),
        ]
    );
    // 10 × 3 + 90 × 2, 100 × 3 + 0 × 2
    assert_eq!(scores.totals, [210, 300]);
}

#[test]
fn the_largest_weights_do_not_overflow() {
    let profile = Setup::new()
        .with(define("One", |_| Ok(ByLabel)).score(), i32::MAX)
        .with(define("Two", |_| Ok(ByLabel)).score(), i32::MAX)
        .ready();
    let scores = run(&profile, &cluster([scored("a", 100)])).unwrap();
    // 2 × 100 × (2³¹ − 1)
    assert_eq!(scores.totals, [429_496_729_400]);
}

#[test]
fn a_score_out_of_range_ends_the_cycle_and_is_named() {
    for bad in [-1, 101, i64::MIN, i64::MAX] {
        let profile = Setup::new().with(define("Wild", |_| Ok(ByLabel)).score(), 1).ready();
        let cluster = cluster([scored("fine", 100), scored("bad", bad)]);
        assert_eq!(
            run(&profile, &cluster).unwrap_err(),
            format!(
                "plugin \"Wild\" gives node \"bad\" the score {bad}, which is not in 0..=100 after normalizing"
            )
        );
    }
    // Before normalizing, any range will do.
    let tame = |column: &mut [i64]| {
        normalize::min_max(column);
        Ok(())
    };
    let profile =
        Setup::new().with(define("Tamed", move |_| Ok(Normalizes(tame))).score().normalize(), 1).ready();
    let cluster = cluster([scored("a", -5), scored("b", 5000)]);
    assert_eq!(run(&profile, &cluster).unwrap().totals, [0, 100]);
}

#[test]
fn weight_zero_has_no_influence() {
    let profile = Setup::new()
        .with(define("Mute", |_| Ok(ByLabel)).score(), 0)
        .with(define("Heard", |_| Ok(ByLabel)).score(), 1)
        .ready();
    let scores = run(&profile, &cluster([scored("a", 7)])).unwrap();
    assert_eq!((scores.columns.len(), scores.totals), (1, vec![7]));
    // Not even a bad one, and alone it is as if nobody scored.
    let alone = Setup::new().with(define("Mute", |_| Ok(ByLabel)).score(), 0).ready();
    assert!(!alone.has_score_plugins());
    assert_eq!(run(&alone, &cluster([scored("a", 777)])).unwrap().totals, [0]);
}

fn prepares(prepared: Result<Option<i64>, &'static str>) -> Result<Scores, String> {
    let plugin = define("Prepares", move |_| Ok(Prepares(prepared))).pre_score().score();
    let profile = Setup::new().with(plugin, 1).ready();
    run(&profile, &cluster([node("a"), node("b")]))
}

#[test]
fn preparing_may_skip_the_plugin_or_end_the_cycle() {
    assert_eq!(prepares(Ok(Some(42))).unwrap().totals, [42, 42]);
    let skipped = prepares(Ok(None)).unwrap();
    assert_eq!((skipped.columns.len(), skipped.totals), (0, vec![0, 0]));
    assert_eq!(
        prepares(Err("the sky fell")).unwrap_err(),
        "running PreScore plugin \"Prepares\": the sky fell"
    );
}

#[test]
fn what_was_not_prepared_is_missed() {
    use supercargo_framework::registry::Point;
    let plugin = define("Prepares", |_| Ok(Prepares(Ok(Some(1))))).pre_score().score();
    let profile = Setup::new().with(plugin, 1).without(Point::PreScore, "Prepares").ready();
    assert_eq!(
        run(&profile, &cluster([node("a")])).unwrap_err(),
        "running Score plugins: plugin \"Prepares\" failed with: nothing was prepared for this step (i64): its \
         preparing step (preFilter or preScore) is disabled"
    );
}

#[test]
fn faults_in_scoring_and_normalizing_end_the_cycle() {
    let profile = Setup::new().with(define("Reads", |_| Ok(ByLabel)).score(), 1).ready();
    assert_eq!(
        run(&profile, &cluster([node("unlabelled")])).unwrap_err(),
        "running Score plugins: plugin \"Reads\" failed with: no label"
    );
    let fails = define("Fails", |_| Ok(Normalizes(|_| Err(Status::error("no idea"))))).score().normalize();
    let profile = Setup::new().with(fails, 1).ready();
    assert_eq!(
        run(&profile, &cluster([scored("a", 1)])).unwrap_err(),
        "running Normalize on Score plugins: plugin \"Fails\" failed with: no idea"
    );
}

#[test]
fn one_node_at_a_time_gives_the_same_column_as_all_at_once() {
    struct WholeColumn;
    impl Score for WholeColumn {
        fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
            for (score, node) in column.iter_mut().zip(input.nodes) {
                *score = node.name().len() as i64;
            }
            Ok(())
        }
    }
    struct OneByOne;
    impl ScoreNode for OneByOne {
        fn score_node(&self, _: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
            Ok(node.name().len() as i64)
        }
    }
    let cluster = cluster(["a", "bb", "ccc"].map(node));
    let nodes: Vec<&NodeInfo> = cluster.nodes().collect();
    let (pod, prepared) = (pod("p").pod(), Prepared::nothing());
    let input = ScoreInput { prepared: &prepared, cluster: &cluster, pod: &pod, nodes: &nodes };
    let (mut whole, mut each) = ([0; 3], [0; 3]);
    WholeColumn.score(input, &mut whole).unwrap();
    OneByOne.score(input, &mut each).unwrap();
    assert_eq!(whole, [1, 2, 3]);
    assert_eq!(each, whole);
}

#[test]
fn a_share_beyond_what_can_be_written_is_the_nearest_that_can() {
    use supercargo_framework::formula::Divisor;
    // (capacity, part, 100 × part / capacity)
    let cases = [
        (4, 1, 25),
        (3, -1, -33),
        (i64::MAX, i64::MAX, 100),
        (1, i64::MAX, i64::MAX),
        (1, i64::MIN, i64::MIN),
        (-1, i64::MAX, i64::MIN),
    ];
    for (capacity, part, expected) in cases {
        assert_eq!(Divisor::percent(capacity, part), expected, "{part} of {capacity}");
    }
}
