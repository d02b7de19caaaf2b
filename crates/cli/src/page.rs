//! What the page asks for, wherever the answers come from: a running scheduler, or a cluster of files.
//!
//! All answers are JSON below `/supercargo/v1/`, and what there is one of for each node comes in columns: a page with 50,000
//! nodes has to stay usable. Reading changes nothing.

mod cluster_columns;
mod configuration;
mod memo;
mod node_detail;
pub(crate) mod offline;
mod score_table;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};
use supercargo_engine::Engine;
use supercargo_model::{Key, Name};
use supercargo_server::{
    AccessControl, AccessDecision, AccessOptions, AccessRequest, BoxFuture, Clock, ConnectionLimits,
    ConnectionSecurity, Port, Protected, Query, QueryAnswer, ReviewError, Reviewer, Routes, ServeError,
    Server, ServerOptions, UserInfo,
};
use supercargo_sim::explanation::Explanation;

pub(crate) use cluster_columns::{ClusterColumns, ClusterLook};
pub(crate) use configuration::ShownConfiguration;
pub(crate) use memo::{Memo, Written};
pub(crate) use node_detail::NodeDetail;
pub(crate) use score_table::ScoreTable;

/// What kind of scheduler this is.
pub(crate) const ABOUT_PATH: &str = "/supercargo/v1/about";
/// The nodes and their load.
pub(crate) const CLUSTER_PATH: &str = "/supercargo/v1/cluster";
/// One node, and what is on it.
pub(crate) const NODE_PATH: &str = "/supercargo/v1/node";
/// Figures of the running scheduler.
pub(crate) const NOW_PATH: &str = "/supercargo/v1/now";
/// The effective configuration, and what becomes of it with other weights.
pub(crate) const CONFIGURATION_PATH: &str = "/supercargo/v1/configuration";
/// The last decisions.
pub(crate) const DECISIONS_PATH: &str = "/supercargo/v1/decisions";
/// The queue.
pub(crate) const QUEUE_PATH: &str = "/supercargo/v1/queue";
/// Where a pod is explained. Not below /api: the role system:discovery, which everybody with an account has, allows all
/// paths there.
pub(crate) const EXPLAIN_PATH: &str = "/supercargo/v1/explain";

/// All of them.
pub(crate) const PATHS: [&str; 8] = [
    ABOUT_PATH,
    CLUSTER_PATH,
    NODE_PATH,
    NOW_PATH,
    CONFIGURATION_PATH,
    DECISIONS_PATH,
    QUEUE_PATH,
    EXPLAIN_PATH,
];

/// How many nodes may be asked about at a time: nobody is scheduled meanwhile.
pub(crate) const MAX_NODES: usize = 20;
/// How many decisions or pods are told, unless the caller says otherwise.
const DEFAULT_LIMIT: usize = 100;

/// What the page shows first about where its answers come from.
pub(crate) fn about(kind: &str, title: &str, live: bool) -> QueryAnswer {
    let version = env!("CARGO_PKG_VERSION");
    json_answer(&json!({"kind": kind, "title": title, "live": live, "version": version}))
}

/// An answer.
pub(crate) fn json_answer(value: &impl serde::Serialize) -> QueryAnswer {
    match serde_json::to_vec(value) {
        Ok(text) => QueryAnswer::Json(text.into()),
        Err(error) => QueryAnswer::Unavailable(error.to_string()),
    }
}

/// An explanation in the form that is asked for: `form=columns` is for the page.
pub(crate) fn explained(explanation: Explanation, query: &Query) -> QueryAnswer {
    match query.get("form") {
        Some("columns") => json_answer(&ScoreTable::new(explanation)),
        Some(other) => QueryAnswer::BadRequest(format!("there is no form {other:?}: say columns, or none")),
        None => json_answer(&explanation),
    }
}

/// The pod that is asked about, if one is; in the namespace `default` if none is named.
pub(crate) fn asked_pod(query: &Query) -> Result<Option<Key>, String> {
    let Some(pod) = query.get("pod") else { return Ok(None) };
    match pod.split('/').collect::<Vec<_>>()[..] {
        [name] if !name.is_empty() => Ok(Some(Key::new("default", name))),
        [namespace, name] if !name.is_empty() => Ok(Some(Key::new(namespace, name))),
        _ => Err(format!("{pod:?} is not NAMESPACE/NAME")),
    }
}

/// The pod to explain, and the nodes that are asked about.
pub(crate) fn asked_to_explain(query: &Query) -> Result<(Key, Vec<Name>), String> {
    let pod = asked_pod(query)?.ok_or("say which pod: ?pod=NAMESPACE/NAME")?;
    let nodes: Vec<Name> = query.all("node").map(Name::from).collect();
    if nodes.len() > MAX_NODES {
        return Err(format!("ask about {MAX_NODES} nodes at a time, at most"));
    }
    Ok((pod, nodes))
}

/// How many are asked for.
pub(crate) fn asked_limit(query: &Query) -> Result<usize, String> {
    let limit =
        query.get("limit").map(|limit| limit.parse().map_err(|_| format!("limit {limit:?} is no number")));
    limit.unwrap_or(Ok(DEFAULT_LIMIT))
}

/// A pod that waits, as the page shows it.
pub(crate) struct PendingEntry<'a> {
    pub(crate) pod: &'a Key,
    pub(crate) priority: i32,
    pub(crate) queue: String,
    pub(crate) attempts: u32,
    pub(crate) refused_by: Vec<&'a Name>,
    pub(crate) gated_by: Option<&'a Name>,
    pub(crate) nominated_node: Option<&'a Name>,
    /// Why its last attempt failed.
    pub(crate) message: Option<&'a str>,
}

impl PendingEntry<'_> {
    /// The pod as JSON; since when it waits is for the caller to add.
    pub(crate) fn to_json(&self) -> Value {
        let mut waiting = json!({
            "pod": self.pod.to_string(),
            "priority": self.priority,
            "queue": self.queue,
            "attempts": self.attempts,
            "refusedBy": self.refused_by,
        });
        let names = [("gatedBy", self.gated_by), ("nominatedNode", self.nominated_node)];
        for (field, value) in names {
            if let Some(value) = value {
                waiting[field] = json!(value);
            }
        }
        if let Some(message) = self.message {
            waiting["message"] = json!(message);
        }
        waiting
    }
}

/// The events after which the pods that a plugin refused are tried again, by plugin.
pub(crate) type HelpfulEvents = BTreeMap<Name, BTreeSet<String>>;

/// The same for all plugins that refuse pods.
pub(crate) fn helpful_events(engine: &Engine) -> HelpfulEvents {
    let mut events = HelpfulEvents::new();
    for profile in engine.profiles().iter() {
        let rules = profile.queue_rules();
        for (plugin, interests) in rules.all_interests() {
            let labels = interests.events().iter().map(supercargo_framework::event::ClusterEvent::label);
            events.entry(plugin.clone()).or_default().extend(labels);
        }
    }
    events
}

/// Serves on loopback, to everybody on this machine who asks by a name of this machine.
pub(crate) async fn bind_locally(port: u16) -> Result<Server, ServeError> {
    let options = ServerOptions {
        address: std::net::Ipv4Addr::LOCALHOST.into(),
        port: Port::from_flag(port).unwrap_or(Port::Ephemeral),
        security: ConnectionSecurity::Plain,
        share_port: false,
        limits: ConnectionLimits::default(),
    };
    Server::bind(options).await
}

/// Routes for such a server.
pub(crate) fn open_locally(routes: Routes) -> Protected {
    let access = AccessOptions { always_allow_paths: vec!["/*".to_owned()], ..AccessOptions::default() };
    routes.only_by_local_name().protected(AccessControl::new(Arc::new(Nobody), access, Clock::system()))
}

/// Knows nobody, and is not asked: all paths are open.
struct Nobody;

impl Reviewer for Nobody {
    fn review_token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewError>> {
        Box::pin(async { Ok(None) })
    }

    fn review_access<'a>(
        &'a self,
        _: &'a AccessRequest,
    ) -> BoxFuture<'a, Result<AccessDecision, ReviewError>> {
        Box::pin(async { Err(ReviewError::new("nobody is known here".to_owned())) })
    }
}
