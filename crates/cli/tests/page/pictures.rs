//! Pictures of the page, for the documentation and for whoever changes how it looks.

use std::path::PathBuf;

use crate::{large_cluster::page_of, served::ServedPage, webdriver::Browser};

const FOLDER: &str = "SUPERCARGO_SCREENSHOTS";
const DESKTOP: (u32, u32) = (1440, 900);
const PHONE: (u32, u32) = (390, 844);

/// A picture: what it is called, the screen, dark or light, where, the view, and what is done before.
type Picture<'a> = (&'a str, (u32, u32), &'a str, &'a str, &'a str, &'a str);

#[test]
fn pictures_are_made_when_they_are_asked_for() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let Some(browser) = Browser::start() else { return };
    std::fs::create_dir_all(&folder).expect("a folder");
    let examples = ServedPage::of_examples();
    let (_files, large) = page_of(5000);
    let (examples, large) = (&*examples.address, &*large.address);
    let slide = "const slider = document.querySelectorAll('#sliders input[type=range]')[4];
        slider.value = 0; slider.dispatchEvent(new Event('input', {bubbles: true}))";
    let point = "const box = document.querySelectorAll('.zone canvas')[1].getBoundingClientRect();
        document.querySelectorAll('.cells')[1].dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: box.left + 9, clientY: box.top + 9}))";
    let pod = "#decision/shop/cart-84c7d5f6b-lw8pd";
    let score = "#cluster/score/shop/cart-84c7d5f6b-lw8pd";
    let pictures: [Picture<'_>; 9] = [
        ("cluster-dark", DESKTOP, "dark", large, "", point),
        ("cluster-light", DESKTOP, "light", examples, "", point),
        ("decision-dark", (1440, 1240), "dark", examples, pod, slide),
        ("decision-light", (1440, 1240), "light", examples, pod, slide),
        ("queue-light", (1440, 520), "light", examples, "#queue", ""),
        ("configuration-dark", DESKTOP, "dark", examples, "#configuration", ""),
        ("phone-cluster-dark", PHONE, "dark", examples, score, ""),
        ("phone-queue-light", PHONE, "light", examples, "#queue", ""),
        ("phone-decision-dark", PHONE, "dark", examples, pod, slide),
    ];
    for (name, (width, height), scheme, address, view, act) in pictures {
        browser.resize(width, height);
        browser.prefer(scheme);
        take(&browser, &format!("{address}{view}"), act);
        std::fs::write(folder.join(format!("{name}.png")), browser.screenshot()).expect("a file");
    }
    take_live(&browser, &folder);
}

/// Opens a view, does something there, and waits until nothing moves any more.
fn take(browser: &Browser, address: &str, act: &str) {
    browser.open(address);
    browser.wait_until("document.getElementById('main')?.dataset.ready");
    if !act.is_empty() {
        browser.script(act);
    }
    settle(browser);
}

/// What is shown for the eye only (a bar that grows, an answer after a pause) has come to its end.
fn settle(browser: &Browser) {
    browser.script("globalThis.settled = false; setTimeout(() => { globalThis.settled = true; }, 900)");
    browser.wait_until("globalThis.settled");
}

/// A scheduler at work, after it has been looked at for a while.
fn take_live(browser: &Browser, folder: &std::path::Path) {
    let demo = ServedPage::start(&[
        "demo",
        "--nodes",
        "300",
        "--rate",
        "60",
        "--port",
        "0",
        "--page-port",
        "0",
        "--for",
        "120s",
    ]);
    browser.resize(DESKTOP.0, DESKTOP.1);
    browser.prefer("dark");
    browser.open(&format!("{}#now", demo.address));
    browser.wait_for_view("now");
    browser.script("globalThis.settled = false; setTimeout(() => { globalThis.settled = true; }, 40000)");
    browser.wait_until("globalThis.settled");
    std::fs::write(folder.join("now-dark.png"), browser.screenshot()).expect("a file");
}
