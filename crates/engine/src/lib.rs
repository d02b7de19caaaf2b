//! The scheduling cycle: from a pod and a cluster to a decision.
//!
//! A decision follows from the state, the configuration and the seed alone. No Kubernetes wire, no HTTP, no files, no
//! clock.

mod cluster_state;
mod cycle;
pub mod decision;
mod engine;
mod explanation;
pub mod extender_calls;
mod fast_path;
mod full_path;
mod inspection;
mod label_sets;
mod laps;
mod load_buckets;
mod node_classes;
mod pick;
mod queue;
mod random;
mod refusals;
mod room;
mod sampling;
mod search_classes;
mod settings;
mod signature_cache;
mod signature_state;
mod stretches;
mod trial;

pub use cycle::PathCounts;
pub use decision::{BriefRefusal, Decision, Outcome};
pub use engine::Engine;
pub use explanation::{Allotment, BudgetUse, Explained, Influence, Reweighed, Victim, influence};
pub use fast_path::Placement;
pub use inspection::{Inspection, Survey};
pub use pick::TieBreak;
pub use queue::{
    Admission, At, AttemptFailure, Backoff, Incoming, PendingPod, Popped, Queue, QueueCounts, QueueName,
    QueueObserver, QueuePlace, QueueSettings, QueueingCause, Refusal, Removal, SchedulingQueue,
};
pub use sampling::nodes_to_find;
pub use settings::{EngineProfile, Profiles, Settings};
pub use trial::Trial;
