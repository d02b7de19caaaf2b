//! The scheduling cycle: from a pod and a cluster to a decision.
//!
//! A decision follows from the state, the configuration and the seed alone. No Kubernetes wire, no HTTP, no files, no
//! clock.

pub mod consult;
mod cycle;
pub mod decision;
mod laps;
mod node_classes;
mod pick;
mod queue;
mod random;
mod refusals;
mod sampling;
mod signature_cache;
mod signature_state;

pub use cycle::{Engine, EngineProfile, PathCounts, Placement, Settings, Survey};
pub use decision::{BriefRefusal, Decision, Outcome};
pub use pick::TieBreak;
pub use queue::{
    Admission, Backoff, Cause, Counts, Failure, Incoming, Pending, Place, Popped, Queue, QueueName,
    QueueObserver, QueueSettings, Refusal, Removal, SchedulingQueue,
};
pub use sampling::nodes_to_find;
