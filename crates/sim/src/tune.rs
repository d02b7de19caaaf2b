//! Searches a configuration that is better by an objective, and judges it on parts of the trace that the search has not seen.
//!
//! The trace is cut into blocks of time. For each block in turn, candidates are found on the others and the best of them is
//! judged on it. Only what holds there counts: a gain on the blocks that it was found on proves nothing.

mod blocks;
mod objective;
mod search;
mod space;
mod statistics;

pub use objective::Objective;
pub use search::{HeldBack, SearchLimits, SearchProgress, SearchResult, Tuner};
pub use space::TuningCandidate;
pub use statistics::Gains;
