//! KubeSchedulerConfiguration: what people write, what it means, and what is wrong with it.
//!
//! The crate is pure: texts come in and texts go out. It knows plugins only through the registry that it is
//! handed: their names, the points they serve, and what they say about their arguments.
//!
//! ```
//! use supercargo_config::load;
//! use supercargo_manifest::Source;
//!
//! let text = "
//! apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! profiles:
//! - plugins:
//!     score:
//!       enabled:
//!       - name: NodeAfinity
//! ";
//! let problems = load(&Source::new("config.yaml", text), &supercargo_plugins::registry())
//!     .err()
//!     .expect("there is no such plugin");
//! assert!(problems.to_string().contains("hint: did you mean NodeAffinity?"));
//! ```
//!
//! Invariants:
//!
//! - No text makes this crate panic.
//! - What [`Configuration::to_yaml`] writes, [`load`] reads as the same configuration.
//! - The fields of the schema are the fields that are read: both come from the same types.

mod configuration;
mod defaults;
mod diff;
mod document;
mod effective;
mod extender;
mod header;
mod legacy;
mod load;
mod merge;
mod migrate;
mod names;
mod pitfalls;
mod place;
mod plugin_args;
mod plugin_sets;
mod policy;
mod profile_plugins;
mod resolve;
mod schema;
mod tree;
mod validate;
mod written;
mod yaml;

pub use configuration::{
    ClientConnection, Configuration, LeaderElection, PluginArguments, ProfileConfiguration, ReadyProfile,
};
pub use diff::{ConfigDifference, diff};
pub use document::TieBreak;
pub use effective::{Effective, EffectivePlugin, TableRow};
pub use extender::{Extender, ExtenderTls, ManagedResource, REDACTED, without_password};
pub use load::{Loaded, default_configuration, load};
pub use migrate::{Migrated, migrate};
pub use schema::schema;
pub use supercargo_manifest::{Base64, Duration};
pub use yaml::write as to_yaml;
