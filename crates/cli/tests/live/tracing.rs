//! Spans for a collector: what it gets, and that one that fails harms nobody.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::{
    draft::{node, pod},
    process::wait_until,
    stage::Stage,
};

/// A collector that keeps what it is sent, as path and document, and answers with a status.
struct Collector {
    endpoint: String,
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        // It ends with the process.
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(connection.try_clone().expect("a connection"));
                while let Some(request) = read(&mut reader) {
                    kept.lock().unwrap().push(request);
                    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
                    (&connection).write_all(answer.as_bytes()).expect("somebody listens");
                }
            }
        });
        Self { endpoint, got }
    }

    /// All spans so far, as name and the rest.
    fn spans(&self) -> Vec<Value> {
        let got = self.got.lock().unwrap();
        let scopes = got.iter().flat_map(|(_, document)| {
            document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
        });
        scopes.collect()
    }
}

/// A request's path and document; `None` at the end.
fn read(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let (_, length) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).expect("JSON")))
}

fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().expect("attributes");
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| attribute["value"]["stringValue"].clone())
}

#[test]
fn a_collector_gets_attempts_with_their_points_and_bindings() {
    let (stage, collector) = (Stage::in_memory(), Collector::answering("200 OK"));
    stage.make(node("n"));
    let scheduler = stage.scheduler_with("", &["--tracing-endpoint", &collector.endpoint]);
    stage.make(pod("fits"));
    stage.make(pod("too-large").cpu("1000"));
    stage.wait_until_bound("fits");
    let of = |name: &str| {
        collector
            .spans()
            .into_iter()
            .find(|span| span["name"] == "scheduling attempt" && attribute(span, "k8s.pod.name") == name)
    };
    wait_until("both attempts are exported", || of("fits").is_some() && of("too-large").is_some());
    assert_eq!(collector.got.lock().unwrap()[0].0, "/v1/traces");
    let (fits, too_large) = (of("fits").unwrap(), of("too-large").unwrap());
    assert_eq!(attribute(&fits, "k8s.node.name"), stage.node_name("n"));
    assert_eq!(attribute(&fits, "supercargo.result"), "scheduled");
    assert_eq!(attribute(&too_large, "supercargo.result"), "unschedulable");
    assert_eq!(too_large["status"], json!({}), "a pod without a node is a verdict, and no error");

    let spans = collector.spans();
    let children = |parent: &Value| -> Vec<Value> {
        let of_it = |span: &&Value| span["parentSpanId"] == parent["spanId"];
        spans
            .iter()
            .filter(of_it)
            .inspect(|span| assert_eq!(span["traceId"], parent["traceId"]))
            .cloned()
            .collect()
    };
    let named = |spans: &[Value], name: &str| spans.iter().find(|span| span["name"] == name).cloned();
    assert!(named(&children(&too_large), "filter").is_some(), "{:#?}", children(&too_large));
    let binding = named(&children(&fits), "binding").expect("its binding");
    assert!(named(&children(&binding), "bind").is_some(), "{:#?}", children(&binding));
    let exported = scheduler.metric("supercargo_trace_spans_exported_total", "");
    assert!(exported >= 5.0, "{exported}");
    assert_eq!(scheduler.metric("supercargo_trace_spans_dropped_total", ""), 0.0);
}

#[test]
fn a_collector_that_fails_costs_spans_and_nothing_else() {
    let (stage, collector) = (Stage::in_memory(), Collector::answering("503 Service Unavailable"));
    stage.make(node("n"));
    let scheduler = stage.scheduler_with("", &["--tracing-endpoint", &collector.endpoint]);
    stage.make(pod("fits"));
    stage.wait_until_bound("fits");
    let dropped = || scheduler.metric("supercargo_trace_spans_dropped_total", "");
    wait_until("lost spans are counted", || dropped() > 0.0);
    wait_until("and told", || scheduler.log().contains("spans cannot be exported"));
}
