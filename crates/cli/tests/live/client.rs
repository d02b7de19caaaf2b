//! A plain client of an API server, for the scenarios: what it asks for must work, or the test ends.

use std::path::PathBuf;

use serde_json::{Value, json};
use supercargo_live::{
    real::{RealWorld, RestConfig},
    world::{ContentType, Method, Reply, Request, World},
};
use tokio::runtime::{Builder, Runtime};

/// How often a request is repeated that the server did not answer, or was too busy for.
const TRIES: usize = 50;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

pub(crate) struct Client {
    runtime: Runtime,
    world: RealWorld,
}

impl Client {
    pub(crate) fn of_server(url: String) -> Self {
        Self::open(&RestConfig { master: Some(url), ..RestConfig::default() })
    }

    pub(crate) fn of_kubeconfig(file: PathBuf) -> Self {
        Self::open(&RestConfig { kubeconfig: Some(file), ..RestConfig::default() })
    }

    fn open(access: &RestConfig) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let world = runtime.block_on(RealWorld::open(access)).expect("a cluster that can be asked");
        Self { runtime, world }
    }

    /// Sends a request until it is answered.
    fn send(&self, request: &Request) -> Reply {
        for _ in 0..TRIES {
            match self.runtime.block_on(self.world.send(request.clone())) {
                Ok(reply) if reply.status != 429 => return reply,
                _ => std::thread::sleep(PAUSE),
            }
        }
        panic!("{request}: no answer");
    }

    fn done(&self, request: &Request) -> Value {
        let reply = self.send(request);
        assert!(reply.is_success(), "{request}: {} {}", reply.status, reply.message());
        serde_json::from_slice(&reply.body).expect("an object as JSON")
    }

    fn write(method: Method, path: String, body: &Value) -> Request {
        let content_type = match method {
            Method::Patch => ContentType::MergePatch,
            _ => ContentType::Json,
        };
        Request::new(method, path, content_type, body.to_string().into())
    }

    pub(crate) fn create(&self, collection: &str, object: &Value) -> Value {
        self.done(&Self::write(Method::Post, collection.to_owned(), object))
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path);
        match self.send(&request) {
            reply if reply.status == 404 => None,
            reply if reply.is_success() => serde_json::from_slice(&reply.body).ok(),
            reply => panic!("{request}: {} {}", reply.status, reply.message()),
        }
    }

    pub(crate) fn list(&self, collection: &str) -> Vec<Value> {
        let list = self.get(collection).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub(crate) fn patch(&self, path: &str, patch: &Value) -> Value {
        self.done(&Self::write(Method::Patch, path.to_owned(), patch))
    }

    /// Deletes an object, or all objects of a collection, without any grace. It may be gone already.
    pub(crate) fn delete(&self, path: &str) {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let request = Self::write(Method::Delete, path.to_owned(), &options);
        let reply = self.send(&request);
        assert!(
            reply.is_success() || matches!(reply.status, 404 | 409),
            "{request}: {} {}",
            reply.status,
            reply.message()
        );
    }
}
