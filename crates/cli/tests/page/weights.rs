//! Weights as sliders: what the page works out is what the engine works out.

use std::{collections::BTreeMap, process::Command};

use serde_json::{Value, json};

use crate::{
    check_quiet,
    served::{ServedPage, example, text},
    webdriver::Browser,
};

const POD: &str = "shop/cart-84c7d5f6b-lw8pd";

/// What the command says about the pod, under a configuration.
fn explain(config: Option<&str>) -> Value {
    let (cluster, pods) = (example("cluster"), example("pods.yaml"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_supercargo"));
    command.args(["explain", POD, "--cluster", text(&cluster), "--pods", text(&pods), "-o", "json"]);
    command.args(config.map(|config| ["--config", config]).into_iter().flatten());
    let ran = command.output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

fn totals(explanation: &Value) -> BTreeMap<String, i64> {
    let nodes = explanation["nodes"].as_array().expect("a list");
    let total = |node: &Value| Some((node["name"].as_str()?.to_owned(), node["total"].as_i64()?));
    nodes.iter().map(|node| total(node).expect("a name and a total")).collect()
}

/// The totals that the page shows.
fn shown(browser: &Browser) -> BTreeMap<String, i64> {
    let rows = browser.script(
        "return Object.fromEntries([...document.querySelectorAll('#scores tbody tr')].map((row) =>
            [row.querySelector('th button').textContent, Number(row.querySelector('.total').textContent)]))",
    );
    serde_json::from_value(rows).expect("totals")
}

fn set_slider(browser: &Browser, plugin: &str, weight: i64) {
    browser.script(&format!(
        "const slider = document.querySelector(\"[data-plugin='{plugin}']\");
         slider.value = {weight}; slider.dispatchEvent(new Event('input', {{bubbles: true}}))"
    ));
    // It is shown with the next frame.
    browser.wait_until(&format!(
        "[...document.querySelectorAll('#scores thead .plugin')].every((head) => !head.textContent.startsWith('{plugin} ') || head.textContent.includes('× {weight}'))"
    ));
}

#[test]
fn sliders_score_as_the_engine_does_under_the_configuration_that_results() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::of_examples();
    browser.open(&format!("{}#decision/{POD}", page.address));
    browser.wait_for_view("decision");
    let before = explain(None);
    assert_eq!(shown(&browser), totals(&before), "as the command tells it");
    let chosen = before["placed"].as_str().expect("a node").to_owned();
    assert_eq!(browser.find("#chosen").text(), chosen);

    // All weights otherwise, one of them 0: it takes the plugin out.
    let plugins: Vec<String> = before["scorePlugins"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|plugin| plugin["name"].as_str().expect("a name").to_owned())
        .collect();
    assert!(plugins.len() >= 3, "{plugins:?}");
    for (place, plugin) in plugins.iter().enumerate() {
        set_slider(&browser, plugin, [7, 0, 1, 9, 2, 5][place % 6]);
    }
    browser.wait_until("!document.getElementById('resulting').hidden && document.getElementById('weights-yaml').textContent.includes('weight: 7')");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.yaml");
    // The last answer may still be on its way: it is asked for after a pause.
    let wanted = format!("name: {}", plugins.last().expect("a plugin"));
    let is_written = |yaml: &str| yaml.contains(&wanted);
    let yaml = browser.script("return document.getElementById('weights-yaml').textContent");
    assert!(yaml.as_str().is_some_and(is_written), "{yaml}");
    let weights: Vec<String> = plugins
        .iter()
        .enumerate()
        .map(|(place, plugin)| format!("weight={plugin}={}", [7, 0, 1, 9, 2, 5][place % 6]))
        .collect();
    let asked = page.ask(&format!("configuration?profile=default-scheduler&{}", weights.join("&")));
    std::fs::write(&file, asked["yaml"].as_str().expect("YAML")).expect("a file");
    let after = explain(Some(text(&file)));
    assert_eq!(shown(&browser), totals(&after), "the engine with those weights");

    // Who would move is marked, and what stays is not.
    let stays = totals(&after)[&chosen] == *totals(&after).values().max().expect("a node");
    let marked = browser.script("return Boolean(document.querySelector('tr.would'))");
    assert_eq!(marked, json!(!stays));
    let verdict = browser.find("#verdict").text();
    assert!(verdict.contains("would move"), "{verdict}");

    browser.find("#reset").click();
    browser.wait_until("!document.querySelector('tr.would') && !document.querySelector('.slider.changed')");
    assert_eq!(shown(&browser), totals(&before), "as before");
    check_quiet(&browser, &page);
}

#[test]
fn a_weight_without_its_plugin_moves_whom_the_engine_says() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::of_examples();
    browser.open(&format!("{}#decision/{POD}", page.address));
    browser.wait_for_view("decision");
    let explanation = explain(None);
    for influence in explanation["influence"].as_array().expect("a list") {
        let plugin = influence["plugin"].as_str().expect("a name");
        let weight = influence["weight"].as_i64().expect("a weight");
        for (weight, expected) in [(0, &influence["without"]), (2 * weight, &influence["twice"])] {
            set_slider(&browser, plugin, weight);
            let moves =
                browser.script("return document.querySelector('tr.would th button')?.textContent ?? null");
            let expected =
                if expected["changes"] == json!(true) { expected["best"].clone() } else { Value::Null };
            assert_eq!(moves, expected, "{plugin} × {weight}");
        }
        browser.find("#reset").click();
    }
    // All shown pods are compared, as many as were decided.
    browser.wait_until("Number(document.getElementById('main').dataset.compared) >= 5");
    check_quiet(&browser, &page);
}

#[test]
fn scores_can_be_sorted_and_nodes_asked_about() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::of_examples();
    browser.open(&format!("{}#decision/{POD}", page.address));
    browser.wait_for_view("decision");
    let names =
        "return [...document.querySelectorAll('#scores tbody th button')].map((one) => one.textContent)";
    browser.find("#scores [data-key='node']").click();
    let by_name: Vec<String> = serde_json::from_value(browser.script(names)).expect("names");
    assert!(by_name.is_sorted(), "{by_name:?}");
    browser.find("#scores [data-key='node']").click();
    let back: Vec<String> = serde_json::from_value(browser.script(names)).expect("names");
    assert!(back.iter().rev().eq(&by_name), "{back:?}");

    // A node that was refused: by whom, with numbers, as the command says it.
    let explained = page.ask(&format!("explain?pod={POD}&node=gpu-a1"));
    let objection = &explained["whyNot"][0]["objections"][0];
    browser.find("#why-node").type_in("gpu-a1");
    browser.find("#why-node + button").click();
    browser.wait_until("document.querySelector('#why-not .why')");
    let text = browser.find("#why-not").text();
    assert!(text.contains(objection["reasons"][0].as_str().expect("a reason")), "{text}");
    assert!(text.contains(objection["details"][0]["text"].as_str().expect("a detail")), "{text}");
    // The refused nodes by reason.
    let groups =
        browser.script("return document.querySelectorAll('[aria-label=\"Refused nodes\"] details').length");
    assert_eq!(groups, json!(explained["rejections"].as_array().expect("a list").len()));
    check_quiet(&browser, &page);
}
