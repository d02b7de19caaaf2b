//! The page in a real browser: Chromium, headless, on loopback. Without chromedriver these tests are left out, and say so;
//! in CI (`CI=true`) they fail.
//!
//! With `SUPERCARGO_SCREENSHOTS=FOLDER` they leave pictures there: those of docs/images are made so.

mod large_cluster;
mod live_page;
mod pictures;
mod served;
mod webdriver;
mod weights;

use serde_json::json;

use served::ServedPage;
use webdriver::Browser;

const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";
const DOWN: &str = "\u{e015}";
const END: &str = "\u{e010}";

/// Nothing was complained about, and nothing came from elsewhere.
#[track_caller]
pub(crate) fn check_quiet(browser: &Browser, page: &ServedPage) {
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let origin = page.address.trim_end_matches("ui/");
    let loaded = browser.script("return performance.getEntriesByType('resource').map((one) => one.name)");
    for address in loaded.as_array().expect("a list") {
        assert!(address.as_str().is_some_and(|address| address.starts_with(origin)), "{address}");
    }
}

#[test]
fn only_its_own_machine_may_ask_and_the_browser_is_told_to_be_strict() {
    let page = ServedPage::of_examples();
    let (head, body) = page.get_as("localhost", "/ui/");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("<title>Supercargo</title>"), "{head}");
    let head = head.to_ascii_lowercase();
    for expected in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(head.contains(expected), "{expected}: {head}");
    }
    for (host, path, status) in [
        ("evil.example", "/ui/", 403),
        ("evil.example", "/supercargo/v1/cluster", 403),
        ("127.0.0.1", "/supercargo/v1/cluster", 200),
        ("localhost", "/ui", 308),
        ("localhost", "/ui/other.js", 404),
        ("localhost", "/supercargo/v1/node?name=none", 404),
        ("localhost", "/supercargo/v1/explain", 400),
        ("localhost", "/supercargo/v1/explain?pod=none", 404),
        ("localhost", "/supercargo/v1/configuration?profile=default-scheduler&weight=Nobody=1", 400),
    ] {
        let (head, _) = page.get_as(host, path);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{host}{path}: {head}");
    }
}

#[test]
fn the_cluster_is_a_map_that_hands_and_keys_can_go_over() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::of_examples();
    browser.open(&page.address);
    browser.wait_for_view("cluster");
    // Three zones of four nodes each.
    assert_eq!(browser.script("return document.querySelectorAll('.zone canvas').length"), json!(3));
    assert_eq!(browser.script("return supercargoPainted.cells"), json!(12));

    // A click on the first cell of the second zone.
    browser.find(".zone[data-zone$='b'] canvas").click();
    let first = "const box = document.querySelectorAll('.zone canvas')[1].getBoundingClientRect();
        document.querySelectorAll('.cells')[1].dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: box.left + 3, clientY: box.top + 3}))";
    browser.script(first);
    browser.wait_until("document.querySelector('.detail h2')?.textContent === 'general-b1'");
    let detail = browser.find(".detail").text();
    assert!(detail.contains("cpu") && detail.contains("pods"), "{detail}");

    // With the keys: the first node, the next one, the last one.
    browser.script("document.getElementById('map').focus()");
    browser.script("document.querySelector('.detail .close').click()");
    for (keys, expected) in [(END, "spot-c1"), ("\u{e011}", "general-a1"), (RIGHT, "general-a2"), (DOWN, "")]
    {
        browser.press(keys);
        let said = browser.script("return document.getElementById('announcer').textContent");
        assert!(said.as_str().is_some_and(|said| said.starts_with(expected)), "{expected}: {said}");
    }
    browser.press(ENTER);
    browser.wait_until("!document.querySelector('.detail').hidden");

    // The same as a table, sorted by a column.
    browser.find("#as-table").click();
    browser.find("#node-table [data-key='cpu']").click();
    let loads = browser.script(
        "return [...document.querySelectorAll('#node-table tbody tr td:nth-child(3)')].map((cell) => parseInt(cell.textContent))",
    );
    let loads: Vec<i64> = serde_json::from_value(loads).expect("numbers");
    assert!(loads.len() == 12 && loads.is_sorted_by(|one, next| one >= next), "{loads:?}");
    let sorted = browser
        .script("return document.querySelector('[data-key=cpu]').parentElement.getAttribute('aria-sort')");
    assert_eq!(sorted, json!("descending"));
    check_quiet(&browser, &page);
}

#[test]
fn the_queue_says_who_waits_and_what_would_help() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::of_examples();
    let waiting = page.ask("queue");
    assert!(waiting["count"].as_u64().is_some_and(|count| count > 0), "{waiting}");
    browser.open(&format!("{}#queue", page.address));
    browser.wait_for_view("queue");
    let rows = browser.script("return document.querySelectorAll('#queue-table tbody tr').length");
    assert_eq!(rows, waiting["count"]);
    let pod = waiting["pods"].as_array().expect("a list").iter().find(|pod| pod["message"].is_string());
    let pod = pod.expect("one that was refused");
    let text = browser.text();
    assert!(text.contains(pod["message"].as_str().expect("a text")), "{text}");
    // Only those of one queue.
    let place = pod["queue"].as_str().expect("a queue");
    browser.find(&format!("[data-queue='{place}']")).click();
    let badges = browser.script("return [...new Set([...document.querySelectorAll('#queue-table .badge')].map((one) => one.className))]");
    assert_eq!(badges, json!([format!("badge {place}")]));
    // Its explanation is a click away.
    browser.find("#queue-table tbody a").click();
    browser.wait_for_view("decision");
    check_quiet(&browser, &page);
}

#[test]
fn the_configuration_is_shown_by_extension_point() {
    let Some(browser) = Browser::start() else { return };
    let page = ServedPage::of_examples();
    browser.open(&page.address);
    browser.wait_for_view("cluster");
    // By its number.
    browser.press("5");
    browser.wait_for_view("configuration");
    let points =
        browser.script("return [...document.querySelectorAll('.points h3')].map((one) => one.textContent)");
    let points: Vec<String> = serde_json::from_value(points).expect("texts");
    assert!(points.starts_with(&["preEnqueue".into(), "queueSort".into(), "preFilter".into()]), "{points:?}");
    assert!(browser.text().contains("kubescheduler.config.k8s.io/v1"));
    browser.press("4");
    browser.wait_for_view("now");
    let figures = browser.find("#figures").text();
    assert!(figures.contains("Still waiting"), "{figures}");
    check_quiet(&browser, &page);
}
