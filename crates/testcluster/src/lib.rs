//! A Kubernetes API server in memory, for tests and for the demo. It is not a cluster, and says so.
//!
//! Objects are kept as they come, with versions and a history. Lists, watches, patches, bindings and
//! refusals are those of an API server 1.36, as far as schedulers and kubectl use them. Custom
//! resources are served from the creation of their CustomResourceDefinition on. A referee
//! writes down every binding and every rule that one breaks, and faults happen on purpose: see
//! [`ApiServer::faults`], or `/testcluster/faults` over HTTP.
//!
//! ```
//! use serde_json::json;
//! use supercargo_testcluster::{TestClusterOptions, TestCluster};
//!
//! let cluster = TestCluster::start(TestClusterOptions::default())?;
//! cluster.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))?;
//! cluster.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}))?;
//! cluster.bind("default", "p", "n")?;
//! assert_eq!(cluster.bind("default", "p", "n").map_err(|refusal| refusal.code()), Err(409));
//! assert_eq!(cluster.bindings().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! kubectl works as people use it (`tests/wire/kubectl.rs`): its objects are read as JSON, YAML or protobuf and answered as
//! JSON or tables; deployments are rolled out step by step; unknown fields are refused where it asks for that; and `logs`
//! says that nothing runs. What a kind's fields are stands in one table, `schema/fields.txt`.
//!
//! Over HTTP, next to the API itself:
//!
//! | request | what it does |
//! |---|---|
//! | `GET`, `PUT`, `DELETE /testcluster/faults` | tells, replaces or clears the [`FaultPlan`] |
//! | `POST /testcluster/actions` | a [`ServerAction`]: `{"do": "cutWatches"}`, `{"do": "compact"}`, `{"do": "restart", "downMillis": 500, "forgetHistory": true}` |
//! | `GET /testcluster/bindings`, `…/violations`, `…/requests` | what has happened |
//!
//! A plan names the requests and what goes wrong with them; what it leaves open matches everything:
//!
//! ```
//! # let plan = r#"
//! {
//!   "seed": 7,
//!   "rules": [
//!     {"verbs": ["create"], "resource": "pods", "subresource": "binding", "every": 10,
//!      "fault": {"do": "answer", "code": 429, "retryAfterSeconds": 1}},
//!     {"verbs": ["list"], "userAgent": "supercargo", "fault": {"do": "delay", "millis": 200}},
//!     {"share": 0.01, "times": 5, "fault": {"do": "commitThenAnswer", "code": 500}},
//!     {"share": 0.01, "fault": {"do": "commitThenDelay", "millis": 5000}},
//!     {"share": 0.01, "fault": {"do": "commitThenHangUp"}},
//!     {"share": 0.01, "fault": {"do": "hangUp"}}
//!   ],
//!   "watchesCutPerSecond": 0.1,
//!   "goneAsStatus": false
//! }
//! # "#;
//! # let plan: supercargo_testcluster::FaultPlan = serde_json::from_str(plan)?;
//! # assert_eq!(plan.rules.len(), 6);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Invariants:
//!
//! - No request ends the process; what is wrong is refused with a `Status`.
//! - Memory is bounded by the objects that exist, the history's limit, the bindings written down, and
//!   the CustomResourceDefinitions that ever were.
//!   A slow watch is told that it is too late rather than waited for.
//! - A change is written as JSON once, however many watches see it.

mod access;
mod api;
mod clock;
mod cluster;
mod controllers;
mod definition;
mod events;
mod failure;
mod faults;
mod http;
mod in_process;
mod object;
mod options;
mod patch;
mod random;
mod referee;
mod requests;
mod resource;
mod schema;
mod selector;
mod signal;
mod store;

pub use access::{ADMIN_TOKEN, AccessRules, RequestAttributes, Rule, User};
pub use clock::Clock;
pub use cluster::{ApiServer, ClusterBackup, FaultControl, SeenChange, TestCluster, TimedOut};
pub use failure::StatusError;
pub use faults::{Fault, FaultPlan, FaultRule, ServerAction};
pub use http::ResponseBody;
pub use in_process::InProcessClient;
pub use options::{BindingAnswer, DeviceDriver, Kubelets, TestClusterOptions};
pub use patch::PatchKind;
pub use referee::{AcceptedBinding, Violation};
pub use requests::RequestGroup;
pub use signal::SignalReceiver;

/// What to tell people on every start: this is not a cluster. It is logged by [`TestCluster::start`];
/// a command prints it to standard error as well.
pub const NOTICE: &str = "this is a test cluster in memory, not a Kubernetes cluster: nothing in it runs, \
                          and nothing of it stays";
