//! Amounts at the ends of 64 bits neither panic nor wrap.

use std::sync::Arc;

use proptest::prelude::*;
use supercargo_model::{Cluster, Key, Pod, Quantity, Resources};

use crate::support::{node, pod};

const MOST: &str = "9223372036854775807";
const LEAST: &str = "-9223372036854775808";

fn holding(name: &str, amount: &str) -> Arc<Pod> {
    let requests =
        format!("{{cpu: {amount}, memory: {amount}, ephemeral-storage: {amount}, example.com/x: {amount}}}");
    pod(
        name,
        &format!("spec: {{nodeName: 'n', containers: [{{name: c, resources: {{requests: {requests}}}}}]}}"),
    )
}

#[test]
fn the_most_added_to_the_most_stays_the_most() {
    let mut cluster = Cluster::default();
    cluster.put_node(node("n", "", &format!("status: {{allocatable: {{cpu: {MOST}, memory: {MOST}}}}}")));
    cluster.put_pod(holding("a", MOST));
    cluster.put_pod(holding("b", MOST));
    let info = cluster.node("n").unwrap();
    let all = &info.requested;
    let amounts = [all.milli_cpu, all.memory, all.ephemeral_storage, all.get("example.com/x")];
    assert_eq!(amounts, [i64::MAX; 4]);
    assert_eq!(info.requested_or_default_milli_cpu, i64::MAX);
    // cpu counts in thousandths: 2⁶³ − 1 cores are more than there are numbers.
    assert_eq!(info.node.allocatable.milli_cpu, i64::MAX);
}

#[test]
fn containers_of_the_most_are_summed_exactly_before_they_are_cut() {
    let requests = format!("resources: {{requests: {{memory: {MOST}}}}}");
    let minus = "resources: {requests: {memory: -9223372036854775807}}";
    let all = format!(
        "spec: {{containers: [{{name: a, {requests}}}, {{name: b, {requests}}}, {{name: c, {minus}}}]}}"
    );
    assert_eq!(pod("p", &all).spec.requests.fit.memory, i64::MAX);
    let two = format!("spec: {{containers: [{{name: a, {requests}}}, {{name: c, {minus}}}]}}");
    assert_eq!(pod("p", &two).spec.requests.fit.memory, 0);
}

#[test]
fn the_least_is_no_demand() {
    let p = holding("p", LEAST);
    assert_eq!((p.spec.requests.fit.memory, p.spec.requests.held.memory), (0, 0));
    let mut resources = Resources::default();
    resources.subtract(&Resources { memory: i64::MAX, ..Resources::default() });
    resources.subtract(&Resources { memory: i64::MAX, ..Resources::default() });
    assert_eq!(resources.memory, i64::MIN);
}

#[test]
fn quantities_beyond_64_bits_are_the_nearest_number() {
    // (text, units, thousandths)
    let cases = [
        (MOST, i64::MAX, i64::MAX),
        ("9223372036854775808", i64::MAX, i64::MAX),
        (LEAST, i64::MIN, i64::MIN),
        ("-1e19", i64::MIN, i64::MIN),
        ("9223372036854775807m", 9_223_372_036_854_776, i64::MAX),
        ("9223372036854775807n", 9_223_372_037, 9_223_372_036_855),
        ("1e20", i64::MAX, i64::MAX),
        ("8Ei", i64::MAX, i64::MAX),
        ("16Ei", i64::MAX, i64::MAX),
        ("7E", 7_000_000_000_000_000_000, i64::MAX),
    ];
    for (text, value, milli) in cases {
        let quantity: Quantity = text.parse().unwrap();
        assert_eq!((quantity.value(), quantity.milli_value()), (value, milli), "{text}");
    }
}

fn amount() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (-2_i64..3).prop_map(|n| (i128::from(i64::MAX) + i128::from(n)).to_string()),
        (-2_i64..3).prop_map(|n| (i128::from(i64::MIN) + i128::from(n)).to_string()),
        Just("1e30".to_owned()),
        Just("-1e30".to_owned()),
    ]
}

proptest! {
    #[test]
    fn no_amounts_panic_and_demand_never_lowers_usage(
        amounts in proptest::collection::vec(amount(), 1..5),
        capacity in amount(),
    ) {
        let mut cluster = Cluster::default();
        cluster.put_node(node("n", "", &format!("status: {{allocatable: {{cpu: {capacity}, memory: {capacity}}}}}")));
        for (i, amount) in amounts.iter().enumerate() {
            let before = cluster.node("n").unwrap().requested.clone();
            let pod = holding(&format!("p{i}"), amount);
            let wants_more = pod.spec.requests.fit.memory > 0;
            cluster.put_pod(pod);
            let after = &cluster.node("n").unwrap().requested;
            prop_assert!(!wants_more || (after.memory >= before.memory && after.milli_cpu >= before.milli_cpu));
        }
        for i in 0..amounts.len() {
            cluster.remove_pod(&Key::new("default", format!("p{i}")));
        }
        prop_assert!(cluster.node("n").unwrap().pods.is_empty());
    }
}

/// Nobody's demand is forgotten because another's was more than can be counted: what is left on a node when that goes is
/// what was there before.
#[test]
fn demand_beyond_all_numbers_goes_without_a_trace() {
    let mut cluster = Cluster::default();
    cluster.put_node(node("n", "", "status: {allocatable: {cpu: 4}}"));
    cluster.put_pod(holding("usual", "2"));
    cluster.put_pod(holding("huge", MOST));
    cluster.put_pod(holding("as-huge", MOST));
    let amounts = |cluster: &Cluster| {
        let info = cluster.node("n").unwrap();
        let all = &info.requested;
        [all.milli_cpu, all.memory, all.ephemeral_storage, all.get("example.com/x")]
    };
    cluster.remove_pod(&Key::new("default", "huge"));
    // 2 and 2⁶³ − 1 are still there.
    assert_eq!(amounts(&cluster), [i64::MAX; 4]);
    cluster.remove_pod(&Key::new("default", "as-huge"));
    assert_eq!(amounts(&cluster), [2_000, 2, 2, 2]);
    let info = cluster.node("n").unwrap();
    assert_eq!((info.requested_or_default_milli_cpu, info.requested_or_default_memory), (2_000, 2));
}
