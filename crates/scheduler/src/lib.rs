//! Putting it together: a configuration, a registry of plugins and a world in, a scheduler out.
//!
//! - `start` gives the scheduler on a cluster: for the command, the demo, the tests on virtual time, and whoever embeds it
//!   (`examples/embed.rs`). What it does can be followed, and it can be asked about its queue, about a pod, and what it
//!   would decide.
//! - [`offline::OfflineScheduler`] runs the same queue and engine on virtual time, over objects that were read from files.
//!
//! Without the feature `live` there is only the second, and nothing that does I/O.

pub mod offline;
pub mod setup;

#[cfg(feature = "live")]
mod extenders;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod running;

#[cfg(feature = "live")]
pub use extenders::{ExtenderTransport, extenders, over_http, roles};
#[cfg(feature = "live")]
pub use live::campaign;
#[cfg(feature = "live")]
pub use running::{Election, Ended, RunningScheduler, SchedulerOptions, start};
