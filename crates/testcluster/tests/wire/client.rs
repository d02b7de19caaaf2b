//! A small client.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use supercargo_testcluster::{TestCluster, TestClusterOptions};
use tokio::time::timeout;

/// Longer than anything here takes, shorter than anybody waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) value: Value,
}

impl Reply {
    /// The code and the reason of a refusal.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.code, self.value["reason"].as_str().unwrap_or_default())
    }

    pub(crate) fn message(&self) -> &str {
        self.value["message"].as_str().unwrap_or_default()
    }

    /// The names of a list's items.
    pub(crate) fn names(&self) -> Vec<&str> {
        let items = self.value["items"].as_array().expect("it is a list");
        items.iter().map(|item| item["metadata"]["name"].as_str().expect("it has a name")).collect()
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    url: String,
    http: Http<HttpConnector, Full<Bytes>>,
    headers: Vec<(&'static str, String)>,
}

impl Client {
    pub(crate) fn new(cluster: &TestCluster) -> Self {
        let http = Http::builder(TokioExecutor::new()).build_http();
        Self { url: cluster.url(), http, headers: vec![("user-agent", "wire-test/1".to_owned())] }
    }

    /// The same over HTTP/2, which kubectl and schedulers speak.
    pub(crate) fn over_http2(mut self) -> Self {
        self.http = Http::builder(TokioExecutor::new()).http2_only(true).build_http();
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn response(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Result<Response<Incoming>, String> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request =
            request.header("content-type", kind).body(Full::new(body.into())).expect("it is a request");
        match timeout(PATIENCE, self.http.request(request)).await {
            Ok(answered) => answered.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    /// Sends a text; an error is a connection that broke.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Result<Reply, String> {
        let response = self.response(method, path, kind, body).await?;
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Ok(Reply { code, headers, value })
    }

    pub(crate) async fn send(&self, method: Method, path: &str, kind: &str, body: String) -> Reply {
        self.try_send(method, path, kind, body).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, "", String::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.send(Method::PUT, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> Reply {
        self.send(Method::DELETE, path, "application/json", options.to_string()).await
    }

    /// `kind` is `merge`, `strategic-merge` or `json`.
    pub(crate) async fn patch(&self, path: &str, kind: &str, body: Value) -> Reply {
        let kind = format!("application/{kind}-patch+json");
        self.send(Method::PATCH, path, &kind, body.to_string()).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watching {
        let response = self.response(Method::GET, path, "", String::new()).await.expect("an answer");
        assert_eq!(response.status(), 200, "{path}");
        Watching { body: response.into_body(), read: BytesMut::new() }
    }
}

/// A watch that is being read.
pub(crate) struct Watching {
    body: Incoming,
    read: BytesMut,
}

impl Watching {
    /// The next event; nothing when the watch has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1);
                return Some(serde_json::from_slice(&line).expect("a line is JSON"));
            }
            let frame = timeout(PATIENCE, self.body.frame()).await.expect("an event in time")?;
            let data = frame.ok()?.into_data().ok()?;
            self.read.extend_from_slice(&data);
        }
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn told(&mut self) -> String {
        match self.next().await {
            Some(event) => {
                let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
                format!("{} {name}", event["type"].as_str().unwrap_or_default()).trim_end().to_owned()
            }
            None => "end".to_owned(),
        }
    }

    pub(crate) async fn expect(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.told().await, *expected);
        }
    }
}

/// A cluster in which nothing happens by itself, and a client of it.
pub(crate) fn cluster() -> (TestCluster, Client) {
    cluster_with(TestClusterOptions::default())
}

pub(crate) fn cluster_with(options: TestClusterOptions) -> (TestCluster, Client) {
    let cluster = TestCluster::start(options).expect("it starts");
    let client = Client::new(&cluster);
    (cluster, client)
}

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    })
}

pub(crate) fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    })
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}
