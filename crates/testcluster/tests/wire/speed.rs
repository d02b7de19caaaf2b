//! Fast enough to test a fast scheduler. The bounds are a fraction of what it does, as machines are busy.

use std::time::{Duration, Instant};

use serde_json::json;
use supercargo_testcluster::TestClusterOptions;

use crate::client::{PODS, cluster_with, node, pod};

#[tokio::test]
async fn thousands_of_nodes_are_there_at_once() {
    let (cluster, _client) = cluster_with(TestClusterOptions::default());
    let start = Instant::now();
    cluster.create_many((0..5_000).map(|number| node(&format!("n{number}")))).expect("they are created");
    let took = start.elapsed();
    assert_eq!(cluster.count("nodes"), Ok(5_000));
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn bindings_are_fast_alongside_watches() {
    const COUNT: usize = 1_000;
    const AT_ONCE: usize = 16;
    let (cluster, client) = cluster_with(TestClusterOptions::default());
    cluster.create_many((0..COUNT).map(|number| pod(&format!("p{number}")))).expect("they are created");
    let version = cluster.resource_version();
    let mut watches = Vec::new();
    for _ in 0..4 {
        watches.push(client.watch(&format!("/api/v1/pods?watch=true&resourceVersion={version}")).await);
    }
    let start = Instant::now();
    let binders = (0..AT_ONCE).map(|first| {
        let client = client.clone();
        tokio::spawn(async move {
            for number in (first..COUNT).step_by(AT_ONCE) {
                let path = format!("{PODS}/p{number}/binding");
                assert_eq!(client.post(&path, json!({"target": {"name": "n"}})).await.code, 201);
            }
        })
    });
    for binder in binders.collect::<Vec<_>>() {
        binder.await.expect("all are bound");
    }
    for watch in &mut watches {
        for _ in 0..COUNT {
            assert_eq!(watch.next().await.expect("an event")["type"], "MODIFIED");
        }
    }
    let took = start.elapsed();
    assert_eq!(cluster.bindings().len(), COUNT);
    assert!(took < Duration::from_secs(5), "{COUNT} bindings and four watches took {took:?}");
}
