//! A browser, driven over the WebDriver protocol: JSON over HTTP to chromedriver, on loopback.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use supercargo_manifest::Base64;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What an element is called in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Without these, a browser that may not reach anything but loopback tries to all the same.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--window-size=1440,900",
];

/// A browser with one window. It ends when it is dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

/// An element of the page.
pub(crate) struct Element<'b> {
    browser: &'b Browser,
    id: String,
}

impl Browser {
    /// Starts one. Where there is no chromedriver, tests of the page are left out, and say so; in CI they fail.
    pub(crate) fn start() -> Option<Self> {
        let started =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = match started {
            Ok(driver) => driver,
            Err(error) => {
                let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
                assert!(!is_ci, "chromedriver cannot be started: {error}; apt-get install chromium-driver");
                // Nobody may be there to read it.
                let _ = writeln!(
                    std::io::stderr(),
                    "note: the page is not tested: chromedriver cannot be started: {error}"
                );
                return None;
            }
        };
        let mut lines = BufReader::new(driver.stdout.take().expect("it was asked for")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| port_in(&line))
            .expect("chromedriver's port");
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().expect("a folder");
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let flags: Vec<&str> = FLAGS.into_iter().chain([&*folder]).collect();
        let options = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags}, "goog:loggingPrefs": {"browser": "ALL"}}}});
        let session = browser.call("POST", "/session", &options);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    /// Goes to an address.
    pub(crate) fn open(&self, address: &str) {
        assert!(address.starts_with("http://127.0.0.1:"), "never elsewhere: {address}");
        self.command("url", &json!({"url": address}));
    }

    /// What a script gives, which is the body of a function.
    #[track_caller]
    pub(crate) fn script(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait_until(&self, expression: &str) {
        let start = Instant::now();
        while self.script(&format!("return Boolean({expression})")) != json!(true) {
            assert!(start.elapsed() < PATIENCE, "waited in vain for {expression}\n{}", self.text());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until a view is there.
    #[track_caller]
    pub(crate) fn wait_for_view(&self, view: &str) {
        self.wait_until(&format!("document.getElementById('main')?.dataset.ready === '{view}'"));
    }

    /// All that can be read on the page.
    pub(crate) fn text(&self) -> String {
        self.script("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// The first element that a selector selects.
    #[track_caller]
    pub(crate) fn find(&self, selector: &str) -> Element<'_> {
        let found = self.command("element", &json!({"using": "css selector", "value": selector}));
        let id = found[ELEMENT].as_str().unwrap_or_else(|| panic!("no {selector}: {found}")).to_owned();
        Element { browser: self, id }
    }

    /// Presses keys, wherever the focus is.
    pub(crate) fn press(&self, keys: &str) {
        let presses = keys.chars().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let presses: Vec<Value> = presses.collect();
        self.command("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": presses}]}));
    }

    /// Moves the pointer to a place in the window.
    pub(crate) fn point_at(&self, x: i64, y: i64) {
        let way = json!([{"type": "pointerMove", "duration": 0, "x": x, "y": y}]);
        self.command("actions", &json!({"actions": [{"type": "pointer", "id": "mouse", "actions": way}]}));
    }

    /// As wide and high as a screen; a narrow one is a phone's.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.development("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// What the system says that people like: dark or light.
    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.development("Emulation.setEmulatedMedia", &features);
    }

    fn development(&self, command: &str, parameters: &Value) {
        self.command("goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
    }

    /// A picture of the window, as PNG.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let taken = self.session_call("GET", "screenshot", &Value::Null);
        let picture: Base64 = serde_json::from_value(taken).expect("base64");
        picture.bytes()
    }

    /// What the browser complained about: errors of scripts, and what the content security policy refused.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.command("se/log", &json!({"type": "browser"}));
        let entries = log.as_array().into_iter().flatten().filter(|entry| entry["level"] != "INFO");
        entries.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    #[track_caller]
    fn command(&self, command: &str, body: &Value) -> Value {
        self.session_call("POST", command, body)
    }

    #[track_caller]
    fn session_call(&self, method: &str, command: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}/{command}", self.session), body)
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut reader = BufReader::new(stream);
        let length = body_length(&mut reader);
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).expect("a whole answer");
        let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
        let value = answer["value"].take();
        assert!(value.get("error").is_none(), "{method} {path}: {}", value["message"]);
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with the session; killed, it would leave it behind. Also when a test has failed.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let session = &self.session;
            let _ = write!(
                stream,
                "DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            );
            let _ = stream.read(&mut [0; 1]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Element<'_> {
    #[track_caller]
    pub(crate) fn click(&self) {
        self.browser.command(&format!("element/{}/click", self.id), &json!({}));
    }

    #[track_caller]
    pub(crate) fn type_in(&self, text: &str) {
        self.browser.command(&format!("element/{}/value", self.id), &json!({"text": text}));
    }

    pub(crate) fn text(&self) -> String {
        let text = self.browser.session_call("GET", &format!("element/{}/text", self.id), &Value::Null);
        text.as_str().unwrap_or_default().to_owned()
    }
}

/// The port in what chromedriver says when it has started.
fn port_in(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("started successfully on port ")?;
    rest.trim_end_matches('.').parse().ok()
}

fn body_length(reader: &mut impl BufRead) -> usize {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            return length;
        }
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().expect("a length");
        }
    }
}
