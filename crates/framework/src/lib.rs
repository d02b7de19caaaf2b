//! The contract between plugins and the engine.
//!
//! A plugin is a type that implements some of the traits in [`points`] and is registered by name in a
//! [`registry::Registry`]. A [`profile::Profile`] is a choice of plugins with weights; it runs them and combines their
//! scores. No particular plugin, no I/O.

pub mod answer;
pub mod assumed;
pub mod binding_signal;
pub mod bugs;
pub mod changes;
pub mod checks;
pub mod details;
pub mod event;
pub mod fast;
pub mod formula;
pub mod handle;
pub mod normalize;
pub mod offline;
mod opaque;
pub mod points;
pub mod preemption;
pub mod profile;
pub mod queueing;
pub mod registry;
pub mod status;
pub mod stopwatch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod turns;
pub mod vector;
pub mod virtual_time;
pub mod waiting;

pub use details::Detail;
pub use points::{MAX_SCORE, MIN_SCORE, Prepared, ScoreInput};
pub use status::{Code, Status, Verdict};
