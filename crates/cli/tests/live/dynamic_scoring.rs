//! DynamicScoring: an operator's preferences change while pods arrive.

use serde_json::{Value, json};

use crate::{
    draft::{node, pod},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

const WARNING: &str = "InvalidDynamicScoring";

/// A text that prefers nodes with a label.
fn preferring(colour: &str, score: i32) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: DynamicScoring\ndynamicScores:\n- score: {score}\n  \
         selector:\n  - matchLabelExpressions:\n    - {{key: colour, operator: In, values: [{colour}]}}\n"
    )
}

/// A scheduler for which the preferences outweigh everything else, and two nodes.
fn scheduler(stage: &Stage) -> SchedulerProcess {
    stage.make_all([node("red").label("colour", "red"), node("blue").label("colour", "blue")]);
    let configuration = format!(
        "{{schedulerName: {0}, plugins: {{score: {{enabled: [{{name: DynamicScoring, weight: 100}}]}}}}, \
         pluginConfig: [{{name: DynamicScoring, \
         args: {{configMap: {{namespace: {0}, name: scores}}, key: now.yaml}}}}]}}",
        stage.name
    );
    stage.scheduler_of(&format!("profiles: [{configuration}]"))
}

fn config_map(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scores"}, "data": {"now.yaml": text}})
}

fn config_maps(stage: &Stage) -> String {
    format!("/api/v1/namespaces/{}/configmaps", stage.name)
}

fn tell(stage: &Stage, text: &str) {
    stage.client.patch(&format!("{}/scores", config_maps(stage)), &json!({"data": {"now.yaml": text}}));
}

/// Waits for a line of the log, which says that the scheduler has read what the server was told.
fn wait_for(scheduler: &SchedulerProcess, words: &str, times: usize) {
    wait_until(words, || scheduler.log().matches(words).count() == times);
}

#[test]
fn a_change_counts_from_the_next_pod_on_and_a_broken_text_changes_nothing() {
    let stage = Stage::in_memory();
    stage.client.create(&config_maps(&stage), &config_map(&preferring("red", 5)));
    let scheduler = scheduler(&stage);
    let goes_to = |name: &str| {
        stage.make(pod(name));
        stage.wait_until_bound(name)
    };
    assert_eq!(goes_to("one"), "red");

    tell(&stage, &preferring("blue", 5));
    wait_for(&scheduler, "DynamicScoring has changed", 2);
    assert_eq!((goes_to("two"), goes_to("three")), ("blue".to_owned(), "blue".to_owned()));

    tell(&stage, &preferring("red", 5).replace("- score: 5", "- score: five"));
    let event = stage.wait_for_event("scores", WARNING);
    assert_eq!(
        (event["type"].as_str(), event["regarding"]["kind"].as_str()),
        (Some("Warning"), Some("ConfigMap"))
    );
    let note = event["note"].as_str().unwrap_or_default();
    assert!(note.starts_with("now.yaml: line 4: dynamicScores[0].score: "), "{note}");
    assert_eq!(scheduler.metric("supercargo_dynamic_scoring_errors_total", ""), 1.0);
    assert!(scheduler.log().contains("DynamicScoring cannot be read; what held before still holds"));
    assert_eq!(goes_to("four"), "blue");

    tell(&stage, &preferring("blue", -5));
    wait_for(&scheduler, "DynamicScoring has changed", 3);
    assert_eq!((goes_to("five"), goes_to("six")), ("red".to_owned(), "red".to_owned()));
}

#[test]
fn a_config_map_may_come_late_and_go_again() {
    let stage = Stage::in_memory();
    let scheduler = scheduler(&stage);
    scheduler.wait_until_ready();
    let missing = || scheduler.metric("supercargo_dynamic_scoring_missing", "");
    wait_for(&scheduler, "DynamicScoring finds no ConfigMap", 1);
    assert_eq!(missing(), 1.0);
    stage.client.create(&config_maps(&stage), &config_map(&preferring("blue", 5)));
    wait_for(&scheduler, "DynamicScoring has changed", 1);
    assert_eq!(missing(), 0.0);
    for name in ["one", "two", "three"] {
        stage.make(pod(name));
        assert_eq!(stage.wait_until_bound(name), "blue");
    }
    stage.client.delete(&format!("{}/scores", config_maps(&stage)));
    wait_for(&scheduler, "DynamicScoring prefers no node", 1);
    assert_eq!(missing(), 1.0);
    assert_eq!(scheduler.log().matches("DynamicScoring finds no ConfigMap").count(), 1);
    // Neutral: the emptier node is the better one.
    stage.make(pod("four").cpu("1"));
    assert_eq!(stage.wait_until_bound("four"), "red");
}
