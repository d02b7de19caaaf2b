//! KubeSchedulerConfiguration: what people write, what it means, and what is wrong with it.
//!
//! The crate is pure: texts come in and texts go out. It knows plugins only through the registry that it is handed: their names, the
//! points they serve, and what they say about their arguments.

mod base64;
mod configuration;
mod defaults;
mod diff;
mod document;
mod duration;
mod effective;
mod extender;
mod header;
mod legacy;
mod load;
mod merge;
mod names;
mod pitfalls;
mod place;
mod plugin_args;
mod plugin_sets;
mod resolve;
mod tree;
mod validate;
mod written;
mod yaml;

pub use base64::Base64;
pub use configuration::{
    Arguments, ClientConnection, Configuration, LeaderElection, ProfileConfiguration, ReadyProfile,
};
pub use diff::{Change, diff};
pub use document::TieBreak;
pub use duration::Duration;
pub use effective::{Effective, EffectivePlugin, TableRow};
pub use extender::{Extender, ExtenderTls, ManagedResource};
pub use load::{Loaded, default_configuration, load};
