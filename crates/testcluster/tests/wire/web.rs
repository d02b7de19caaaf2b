//! What a web page could make a browser send.

use crate::client::{PODS, cluster, pod};

#[tokio::test]
async fn a_page_of_elsewhere_cannot_make_pods() {
    let (cluster, client) = cluster();
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("host", "evil.example"),
        ("host", "evil.example:8001"),
    ] {
        let page = client.clone().header(name, value);
        let reply = page.post(PODS, pod("p")).await;
        assert_eq!(reply.refusal(), (403, "Forbidden"), "{name}: {value}");
        assert_eq!(page.get("/api/v1/nodes").await.code, 403, "{name}: {value}");
    }
    assert_eq!(cluster.list("pods", "").expect("pods").len(), 0);
    let own_page = client.clone().header("origin", &cluster.url());
    assert_eq!(own_page.post(PODS, pod("p")).await.code, 201);
}
