//! What the running scheduler serves.
//!
//! Health is open to everybody. Everything else (`/metrics`, `/configz`, and whatever routes are added) is for callers
//! whom the API server knows and allows, as with kube-scheduler; a look-up that fails is a refusal.
//!
//! [`Server::bind`] listens, [`Routes`] says what there is, [`AccessControl`] who may see it. Traffic with the API server is not
//! this crate's: it asks through a [`Reviewer`].
//!
//! ```no_run
//! # use std::{net::IpAddr, sync::Arc};
//! # use supercargo_server::{metrics::*, *};
//! # use tokio_util::sync::CancellationToken;
//! # async fn run(
//! #     bind_address: IpAddr, secure_port: u16, reviewer: Arc<dyn Reviewer>, synced: tokio::sync::watch::Receiver<bool>,
//! #     configuration: serde_json::Value, explain: axum::Router, stop: CancellationToken,
//! # ) -> Result<(), ServeError> {
//! let metrics = Arc::new(Metrics::new(&BuildInfo::new(env!("CARGO_PKG_VERSION"), ""), Clock::system()));
//! let configz = Configz::default();
//! configz.set("kubescheduler.config.k8s.io", configuration);
//! let readyz = vec![
//!     HealthCheck::ping(),
//!     HealthCheck::flag("informer-sync", synced, "not everything is listed yet"),
//!     HealthCheck::shutdown(stop.clone()),
//! ];
//! let routes = Routes::new(Health { readyz, ..Health::default() }, metrics.clone(), configz)
//!     .merge(explain)
//!     .protected(AccessControl::new(reviewer, AccessOptions::default(), Clock::system()));
//! if let Some(port) = Port::from_flag(secure_port) {
//!     let security = ConnectionSecurity::Tls(TlsOptions::default());
//!     let limits = ConnectionLimits::default();
//!     let options = ServerOptions { address: bind_address, port, security, share_port: false, limits };
//!     let server = Server::bind(options).await?;
//!     tokio::spawn(server.serve(routes, stop.cancelled_owned()));
//! }
//! # Ok(()) }
//! ```

mod access;
mod clock;
mod connection;
mod connections;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod health;
pub mod metrics;
mod routes;
mod server;
mod tls;
mod ui;
mod zpages;

pub use access::{
    AccessControl, AccessDecision, AccessOptions, AccessRequest, BoxFuture, ReviewError, Reviewer, UserInfo,
};
pub use clock::Clock;
pub use error::ServeError;
pub use health::{Health, HealthCheck};
pub use routes::{AnswerQueries, Configz, ListPods, Protected, Query, QueryAnswer, Routes};
pub use server::{ConnectionLimits, ConnectionSecurity, Drained, Port, Server, ServerOptions};
pub use tls::{
    Certificate, CipherSuites, KeyExchanges, NamedCertificate, TlsOptions, TlsVersion, UnknownOffer,
};
pub use ui::PAGE_PATH;
pub use zpages::{Flags, Statusz};
