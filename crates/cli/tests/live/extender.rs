//! An extender as a process of its own, with a real HTTP server: this very test binary, started once more. What it does
//! goes by the first part of the path, so that one process can be good and bad at once.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use crate::client::Client;

/// Where to listen, and with it that this process is the extender.
const LISTEN: &str = "TEST_EXTENDER_LISTEN";
/// The API server, for binding.
const API_SERVER: &str = "TEST_EXTENDER_API_SERVER";
/// A folder with `ca.pem`, `server.pem` and `server.key`, for TLS with client certificates.
const TLS: &str = "TEST_EXTENDER_TLS";

/// An extender that runs. It is killed when it is dropped.
pub(crate) struct ExtenderProcess {
    child: Child,
    pub(crate) address: String,
}

impl ExtenderProcess {
    pub(crate) fn start() -> Self {
        Self::start_with("127.0.0.1:0", &[])
    }

    /// One that can bind pods.
    pub(crate) fn start_for(api_server: &str) -> Self {
        Self::start_with("127.0.0.1:0", &[(API_SERVER, api_server)])
    }

    /// One that speaks TLS, to those that its authority knows.
    pub(crate) fn start_with_tls(folder: &str) -> Self {
        Self::start_with("127.0.0.1:0", &[(TLS, folder)])
    }

    /// One where another was.
    pub(crate) fn start_at(address: &str) -> Self {
        Self::start_with(address, &[])
    }

    fn start_with(address: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "extender::runs_as_an_extender", "--ignored", "--nocapture"])
            .env(LISTEN, address)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let says = "listening at ";
        let address = lines
            .find_map(|line| line.ok()?.split_once(says).map(|(_, address)| address.to_owned()))
            .expect("it listens");
        Self { child, address }
    }

    /// The `urlPrefix` for one of its ways to behave.
    pub(crate) fn url(&self, way: &str) -> String {
        format!("http://{}/{way}", self.address)
    }

    /// How often a path was asked for; `connections` for how many connections there were.
    pub(crate) fn count(&self, what: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(stream, "GET /counts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let counts: Value = serde_json::from_str(body).expect("JSON");
        counts[what].as_u64().unwrap_or(0)
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().expect("it has ended");
    }
}

impl Drop for ExtenderProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test: the extender's process, if it was started as such.
#[test]
#[ignore = "only runs as a process of its own, for other tests"]
fn runs_as_an_extender() {
    let Ok(address) = std::env::var(LISTEN) else { return };
    let listener = TcpListener::bind(address).expect("a free port");
    let line = format!("\nlistening at {}\n", listener.local_addr().expect("an address"));
    std::io::stdout().write_all(line.as_bytes()).expect("somebody listens");
    let tls = std::env::var(TLS).ok().map(|folder| tls_config(&folder));
    let counts = Counts::default();
    for stream in listener.incoming().flatten() {
        counts.add("connections");
        let (counts, tls) = (counts.clone(), tls.clone());
        std::thread::spawn(move || match tls {
            Some(tls) => {
                let connection = ServerConnection::new(tls).expect("a configuration");
                serve(StreamOwned::new(connection, stream), &counts);
            }
            None => serve(stream, &counts),
        });
    }
}

fn tls_config(folder: &str) -> Arc<ServerConfig> {
    let file = |name: &str| std::fs::read(format!("{folder}/{name}")).expect("a file");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&file("ca.pem")).expect("a certificate")).expect("an authority");
    let provider = Arc::new(ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let chain = vec![CertificateDer::from_pem_slice(&file("server.pem")).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(&file("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients.build().expect("a verifier"))
        .with_single_cert(chain, key)
        .expect("a certificate with its key");
    Arc::new(config)
}

#[derive(Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    fn add(&self, what: &str) {
        *self.0.lock().expect("no panic").entry(what.to_owned()).or_default() += 1;
    }
}

/// Serves requests on a connection until it ends.
fn serve<S: Read + Write>(stream: S, counts: &Counts) {
    let mut stream = BufReader::new(stream);
    while let Some((path, body)) = request(&mut stream) {
        counts.add(&path);
        if path == "/counts" {
            let counts = json!(*counts.0.lock().expect("no panic"));
            let _ = reply(stream.get_mut(), 200, &counts);
            return;
        }
        let (way, verb) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        if act(stream.get_mut(), way, verb, &body).is_err() {
            return;
        }
    }
}

/// The path and the body of a request. It must be what kube-scheduler would send.
fn request<S: Read>(stream: &mut BufReader<S>) -> Option<(String, Value)> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => break,
        };
    }
    if method != "POST" {
        return Some((path, Value::Null));
    }
    assert_eq!(headers["content-type"], "application/json");
    let mut body = vec![0; headers["content-length"].parse().expect("a length")];
    stream.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).expect("JSON")))
}

fn reply(stream: &mut impl Write, status: u16, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// An answer of which every byte is a piece of its own.
fn in_bytes(stream: &mut impl Write, body: &Value) -> std::io::Result<()> {
    let pieces =
        body.to_string().into_bytes().into_iter().flat_map(|byte| [b'1', b'\r', b'\n', byte, b'\r', b'\n']);
    stream.write_all(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    stream.write_all(&pieces.collect::<Vec<u8>>())?;
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}

/// Does what a way says; an error ends the connection.
fn act(stream: &mut impl Write, way: &str, verb: &str, body: &Value) -> std::io::Result<()> {
    let ends = || Err(std::io::Error::other("ends"));
    match (way, verb) {
        ("good", "filter") => reply(stream, 200, &filter(body, |name| !name.ends_with("-a"))),
        ("good", "prioritize") => {
            let score = |name: &str| if name.ends_with("-c") { 10 } else { 1 };
            let list: Vec<_> =
                names(body).iter().map(|name| json!({"Host": name, "Score": score(name)})).collect();
            reply(stream, 200, &json!(list))
        }
        ("good", "preempt") => reply(stream, 200, &preempt(body)),
        ("good", "bind") => reply(stream, 200, &bind(body)),
        ("refuses", "filter") => reply(stream, 200, &filter(body, |_| false)),
        ("all", "filter") => reply(stream, 200, &filter(body, |_| true)),
        ("wordy", _) => reply(stream, 200, &json!({"Error": "no ".repeat(5_000_000)})),
        ("wordy-and-broken", _) => reply(stream, 500, &json!("no ".repeat(5_000_000))),
        ("in-bytes", _) => in_bytes(stream, &json!({"Error": "x".repeat(2 << 20)})),
        ("broken", _) => reply(stream, 500, &json!("out of order")),
        ("hangs", _) => loop {
            std::thread::park();
        },
        ("exits", _) => {
            // In the middle of an answer.
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{{")?;
            stream.flush()?;
            std::process::exit(0);
        }
        ("lies", "filter") => {
            let item = json!({"metadata": {"name": "nowhere"}});
            reply(stream, 200, &json!({"Nodes": {"items": [item]}, "NodeNames": ["nowhere"]}))
        }
        ("lies", "prioritize") => {
            let list: Vec<_> = names(body).iter().map(|name| json!({"Host": name, "Score": 11})).collect();
            reply(stream, 200, &json!(list))
        }
        ("endless", _) => {
            write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
            loop {
                stream.write_all(chunk.as_bytes())?;
            }
        }
        _ => {
            reply(stream, 404, &json!("no such way"))?;
            ends()
        }
    }
}

/// The names of the nodes in `ExtenderArgs`.
fn names(body: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    match body["NodeNames"].as_array() {
        Some(names) => names.iter().map(text).collect(),
        None => {
            let items = body["Nodes"]["items"].as_array().expect("nodes");
            // In full: also what no scheduler reads.
            assert!(items.iter().all(|node| node["status"]["conditions"][0]["message"] == "pretends"));
            items.iter().map(|node| text(&node["metadata"]["name"])).collect()
        }
    }
}

/// An `ExtenderFilterResult` in the form of the question, as Go writes it.
fn filter(body: &Value, passes: impl Fn(&str) -> bool) -> Value {
    assert!(body["Pod"]["spec"]["containers"][0]["image"].is_string(), "a pod in full");
    let (passed, failed): (Vec<_>, Vec<_>) = names(body).into_iter().partition(|name| passes(name));
    let failed: BTreeMap<_, _> =
        failed.into_iter().map(|name| (name, "the extender does not like it")).collect();
    let (mut nodes, mut node_names) = (Value::Null, Value::Null);
    if body["NodeNames"].is_null() {
        let items = body["Nodes"]["items"].as_array().expect("nodes").iter();
        let items = items.filter(|node| passed.iter().any(|name| node["metadata"]["name"] == **name));
        nodes = json!({"metadata": {}, "items": items.collect::<Vec<_>>()});
    } else {
        node_names = json!(passed);
    }
    json!({"Nodes": nodes, "NodeNames": node_names, "FailedNodes": failed, "FailedAndUnresolvableNodes": null, "Error": ""})
}

/// Room is made on the last of the candidates, by name.
fn preempt(body: &Value) -> Value {
    let (candidates, by_uid) = match body["NodeNameToMetaVictims"].as_object() {
        Some(candidates) => (candidates, true),
        None => (body["NodeNameToVictims"].as_object().expect("candidates"), false),
    };
    let (node, victims) = candidates.iter().max_by_key(|(name, _)| name.to_string()).expect("a candidate");
    let uid = |pod: &Value| if by_uid { pod["UID"].clone() } else { pod["metadata"]["uid"].clone() };
    let pods: Vec<_> =
        victims["Pods"].as_array().expect("pods").iter().map(|pod| json!({"UID": uid(pod)})).collect();
    json!({"NodeNameToMetaVictims": {node: {"Pods": pods, "NumPDBViolations": victims["NumPDBViolations"]}}})
}

/// Binds a pod through the API server.
fn bind(body: &Value) -> Value {
    let text = |field: &str| body[field].as_str().expect("a text");
    let client = Client::of_server(std::env::var(API_SERVER).expect("an API server"));
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": text("PodName"), "namespace": text("PodNamespace"), "uid": text("PodUID")},
        "target": {"kind": "Node", "name": text("Node")},
    });
    let path = format!("/api/v1/namespaces/{}/pods/{}/binding", text("PodNamespace"), text("PodName"));
    client.create(&path, &binding);
    json!({"Error": ""})
}
