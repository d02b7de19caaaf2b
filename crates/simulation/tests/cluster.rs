//! The test cluster on virtual time: its controllers, and what goes wrong on the way to it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::StreamExt;
use serde_json::{Value, json};
use supercargo_framework::virtual_time::Executor;
use supercargo_live::world::{Reply, Request, Unanswered, World};
use supercargo_simulation::{clock::api_server, world::SimulatedWorld};
use supercargo_testcluster::{ApiServer, Fault, FaultRule, Kubelets, TestClusterOptions};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn cluster(options: &TestClusterOptions) -> (Arc<Executor>, ApiServer) {
    let executor = Arc::new(Executor::default());
    let server = api_server(&executor, options);
    (executor, server)
}

fn with_pod(server: &ApiServer) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).expect("a node");
    server.create(pod).expect("a pod");
}

fn sent(executor: &Arc<Executor>, server: &ApiServer, request: Request) -> Result<Reply, Unanswered> {
    let process = executor.process();
    let world = SimulatedWorld::new(executor, process, server, 0);
    let (answer, slot) = (world.send(request), Arc::<Mutex<Option<_>>>::default());
    let filled = slot.clone();
    executor.spawn(process, Box::pin(async move { *filled.lock().unwrap() = Some(answer.await) }));
    executor.run_until(|| slot.lock().unwrap().is_some(), Duration::from_secs(60));
    slot.lock().unwrap().take().expect("an answer, or that there is none")
}

#[test]
fn kubelets_pretend_on_virtual_time() {
    let kubelets = Kubelets { start_delay: Duration::from_secs(300), ..Kubelets::default() };
    let (executor, server) =
        cluster(&TestClusterOptions { kubelets: Some(kubelets), ..TestClusterOptions::default() });
    with_pod(&server);
    server.bind("default", "p", "n").expect("it is bound");
    let phase = || server.get("pods", "default", "p").expect("it is there")["status"]["phase"].clone();
    executor.run_for(Duration::from_secs(299));
    assert_eq!(phase(), "Pending");
    executor.run_for(Duration::from_secs(2));
    assert_eq!(phase(), "Running");
}

#[test]
fn requests_are_answered_or_go_wrong_as_over_a_network() {
    let (executor, server) = cluster(&TestClusterOptions::default());
    with_pod(&server);
    let get = || Request::get(format!("{PODS}/p"));
    assert_eq!(sent(&executor, &server, get()).map(|reply| reply.status), Ok(200));
    server.faults().add(FaultRule::new(Fault::HangUp).times(1));
    assert!(matches!(sent(&executor, &server, get()), Err(Unanswered::OutcomeUnknown(_))));
    server.faults().add(FaultRule::new(Fault::Answer { code: 429, retry_after_seconds: 7 }).times(1));
    let refused = sent(&executor, &server, get()).expect("an answer");
    assert_eq!((refused.status, refused.retry_after), (429, Some(Duration::from_secs(7))));
    server.faults().add(FaultRule::new(Fault::Delay { millis: 5000 }).times(1));
    let impatient = get().within(Duration::from_secs(1));
    assert!(matches!(sent(&executor, &server, impatient), Err(Unanswered::OutcomeUnknown(_))));
}

#[test]
fn a_process_that_stood_still_hears_everything_at_once() {
    let (executor, server) = cluster(&TestClusterOptions::default());
    let process = executor.process();
    let world = SimulatedWorld::new(&executor, process, &server, 0);
    let (watch, heard) =
        (world.watch(Request::get(format!("{PODS}?watch=true"))), Arc::<Mutex<Vec<_>>>::default());
    let ear = heard.clone();
    executor.spawn(
        process,
        Box::pin(async move {
            let Ok(mut lines) = watch.await else { return };
            while let Some(Ok(line)) = lines.next().await {
                let line: Value = serde_json::from_slice(&line).expect("a line is JSON");
                ear.lock().unwrap().push(line["type"].as_str().unwrap_or_default().to_owned());
            }
        }),
    );
    executor.run_for(Duration::from_secs(1));
    executor.pause(process);
    with_pod(&server);
    server.bind("default", "p", "n").expect("it is bound");
    executor.run_for(Duration::from_secs(1));
    assert!(heard.lock().unwrap().is_empty());
    executor.resume(process);
    executor.run_for(Duration::from_millis(10));
    assert_eq!(*heard.lock().unwrap(), ["ADDED", "MODIFIED"]);
}
