//! A cluster's life under faults: several schedulers, users, controllers and an API server in one thread on virtual time,
//! all of it drawn from one seed, with rules that are checked all along.
//!
//! A seed gives a [`Plan`] (`draw`); running it gives an [`LifeOutcome`]: what happened, and which rules were broken. A plan that
//! breaks one is made shorter as long as it still does (`shrink`).

mod acts;
mod conduct;
mod devices;
mod draw;
mod extender;
mod guest;
mod history;
mod log;
mod look;
mod objects;
mod plan;
mod rules;
mod run;
mod shrink;
mod tally;

pub use devices::with_devices;
pub use draw::{paced_plan, plan};
pub use guest::soak_registry;
pub use history::HistoryLine;
pub use plan::{Act, ExtenderMode, FaultyVerb, GuestMode, Plan, PlannedSetup, PlannedStep, RequestFault};
pub use rules::{BrokenRule, SimulationRule};
pub use run::{LifeOutcome, run, run_untold};
pub use shrink::shrink;
pub use tally::SoakTally;
