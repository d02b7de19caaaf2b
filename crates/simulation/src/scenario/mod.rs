//! Scenarios: what is done to a cluster and when to look, what was seen, and how that differs from what was expected.

mod ask;
mod compare;
mod expectation;
mod kind;
mod observe;
mod play;
mod simulated;
mod step;

pub use ask::ask;
pub use compare::{Difference, Level, differences};
pub use expectation::Expectation;
pub use observe::MetricReadings;
pub use play::{ProcessCommand, Stage, play};
pub use simulated::SimulatedStage;
pub use step::{Scenario, Step, Unreadable, read_folder};
