//! The page of a scheduler that runs: the demo's.

use serde_json::json;

use crate::{check_quiet, served::ServedPage, webdriver::Browser};

#[test]
fn figures_the_queue_and_the_map_follow_a_running_scheduler() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::start(&[
        "demo",
        "--nodes",
        "90",
        "--rate",
        "20",
        "--port",
        "0",
        "--page-port",
        "0",
        "--for",
        "120s",
    ]);
    browser.open(&format!("{}#now", page.address));
    browser.wait_for_view("now");
    browser.wait_until("document.querySelectorAll('#stream tr').length > 5");
    browser.wait_until("Number(document.querySelector('.charts dd').textContent) > 0");
    let figures = browser.find("#figures").text();
    assert!(figures.contains("90 nodes") && figures.contains("no election"), "{figures}");

    // The load changes on the map, and only what changes is painted.
    browser.press("1");
    browser.wait_for_view("cluster");
    assert_eq!(browser.script("return document.querySelectorAll('.zone').length"), json!(3));
    let cells = browser.script("return supercargoPainted.cells").as_i64().expect("a number");
    browser.wait_until(&format!("supercargoPainted.cells > {cells}"));

    // One pod waits from the beginning on, because it asks for more than any node has.
    browser.press("2");
    browser.wait_for_view("queue");
    browser.wait_until("document.querySelector('#queue-table')?.textContent.includes('Insufficient cpu')");

    // A decision is explained as it would be made now.
    browser.press("3");
    browser.wait_for_view("decision");
    browser.wait_until("document.querySelectorAll('#scores tbody tr').length > 0");
    assert!(browser.text().contains("as it would be decided now"));
    check_quiet(&browser, &page);
}

#[test]
fn a_running_scheduler_is_shown_through_the_command() {
    let demo = ServedPage::start(&[
        "demo",
        "--nodes",
        "9",
        "--rate",
        "1",
        "--port",
        "0",
        "--page-port",
        "0",
        "--for",
        "120s",
    ]);
    let url = demo.address.trim_end_matches("/ui/");
    let page = ServedPage::start(&["ui", "--server", url, "--port", "0"]);
    assert_ne!(page.address, demo.address);
    assert_eq!(page.ask("about"), demo.ask("about"));
    assert_eq!(page.ask("cluster")["nodes"]["names"].as_array().map(Vec::len), Some(9));
    let weights = "configuration?profile=default-scheduler&weight=NodeResourcesFit%3D5";
    assert_eq!(page.ask(weights), demo.ask(weights), "what is asked is handed on");
    let (head, body) = page.get_as("localhost", "/supercargo/v1/node?name=none");
    assert!(head.starts_with("HTTP/1.1 404") && body.contains("there is no node none"), "{head} {body}");
    let (_, body) = page.get_as("localhost", "/ui/");
    assert!(body.contains("<title>Supercargo</title>"));
}
