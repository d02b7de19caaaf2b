//! The health addresses and their lists.

use supercargo_server::{Health, HealthCheck};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{client::get, setup::Setup};

const ANN: &str = "Authorization: Bearer ann";

#[tokio::test]
async fn well_is_ok_and_the_list_is_there_for_the_asking() {
    let server = Setup::default().start().await;
    let answer = get(server.address, "/livez", &[]).await;
    assert_eq!((answer.code, &*answer.body), (200, "ok"));
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("cache-control"), "no-cache, private");
    let answer = get(server.address, "/livez?verbose", &[]).await;
    assert_eq!(answer.body, "[+]ping ok\nlivez check passed\n");
}

#[tokio::test]
async fn what_fails_is_listed_and_its_reason_only_told_to_those_who_may_ask() {
    let (synced, sync) = watch::channel(false);
    let readyz =
        vec![HealthCheck::ping(), HealthCheck::flag("informer-sync", sync, "nodes are not there yet")];
    let server = Setup { health: Health { readyz, ..Health::default() }, ..Setup::default() }.start().await;

    let answer = get(server.address, "/readyz", &[]).await;
    let list = "[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n";
    assert_eq!((answer.code, &*answer.body), (500, list));
    let answer = get(server.address, "/readyz/informer-sync", &[ANN]).await;
    assert_eq!((answer.code, &*answer.body), (500, "internal server error: nodes are not there yet\n"));
    assert_eq!(get(server.address, "/readyz/informer-sync", &[]).await.code, 403);
    assert_eq!(get(server.address, "/readyz/ping", &[ANN]).await.body, "ok");
    assert_eq!(get(server.address, "/healthz", &[]).await.body, "ok", "other addresses have other checks");

    synced.send_replace(true);
    assert_eq!(get(server.address, "/readyz", &[]).await.body, "ok");
}

#[tokio::test]
async fn checks_can_be_excluded() {
    let readyz = vec![HealthCheck::ping(), HealthCheck::new("leaderElection", || Err("lease lost".into()))];
    let server = Setup { health: Health { readyz, ..Health::default() }, ..Setup::default() }.start().await;
    let answer = get(server.address, "/readyz?verbose&exclude=leaderElection&exclude=x", &[]).await;
    let list = "[+]ping ok\n[+]leaderElection excluded: ok\n\
                warn: some health checks cannot be excluded: no matches for \"x\"\nreadyz check passed\n";
    assert_eq!((answer.code, &*answer.body), (200, list));
}

#[tokio::test]
async fn a_process_that_stops_is_not_ready() {
    let stop = CancellationToken::new();
    let readyz = vec![HealthCheck::shutdown(stop.clone())];
    let server = Setup { health: Health { readyz, ..Health::default() }, ..Setup::default() }.start().await;
    assert_eq!(get(server.address, "/readyz", &[]).await.code, 200);
    stop.cancel();
    assert_eq!(get(server.address, "/readyz", &[]).await.code, 500);
}

#[tokio::test]
async fn results_are_counted() {
    let server = Setup::default().start().await;
    get(server.address, "/readyz", &[]).await;
    let text = get(server.address, "/metrics/slis", &[ANN]).await.body;
    assert!(text.contains(r#"kubernetes_healthcheck{name="ping",type="readyz"} 1"#), "{text}");
    assert!(
        text.contains(r#"kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 1"#),
        "{text}"
    );
}
