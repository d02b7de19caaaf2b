//! A guest that behaves, or does not: a stand-in for a plugin in WebAssembly where the host hands its answers to the framework.
//!
//! A real guest that hangs runs out of fuel, and one that dies is trapped; the host tells both as errors, for the pod that
//! it was asked about. Here they are errors from the start, so that no compiler has to be part of a simulated process.
//! What the real host makes of such guests is tested in `crates/wasm/tests/guests/limits.rs` and `hostile.rs`.

use std::cell::Cell;

use supercargo_framework::{
    Prepared, Status, Verdict,
    points::{Filter, Score, ScoreInput},
    registry::{Args, Definition, Registry, define},
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, NodeInfo, Pod};

use super::plan::GuestMode;

/// The name that it is configured by.
pub(super) const NAME: &str = "SimulatedGuest";
/// A score that no plugin may give.
const NONSENSE: i64 = i64::MIN;

thread_local! {
    /// How the guests of the cluster that lives in this thread behave.
    static MODE: Cell<GuestMode> = const { Cell::new(GuestMode::Fine) };
}

/// All plugins, and the guest.
pub fn soak_registry() -> Registry {
    let mut registry = supercargo_plugins::registry();
    registry.add(definition());
    registry
}

fn definition() -> Definition<SimulatedGuest> {
    define(NAME, SimulatedGuest::new).filter().score()
}

/// Sets how guests behave, in this thread.
pub(super) fn set(mode: GuestMode) {
    MODE.set(mode);
}

/// The plugin.
struct SimulatedGuest;

impl SimulatedGuest {
    fn new(_: &Args<'_>) -> Result<Self, Problems> {
        Ok(Self)
    }
}

impl Filter for SimulatedGuest {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        match MODE.get() {
            GuestMode::Hangs => Err(Status::error("the guest used up its fuel")),
            GuestMode::Dies if node.id.index().is_multiple_of(2) => {
                Err(Status::error("the guest was trapped: unreachable"))
            }
            GuestMode::Fine | GuestMode::Dies | GuestMode::Nonsense => Ok(()),
        }
    }
}

impl Score for SimulatedGuest {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        let nonsense = MODE.get() == GuestMode::Nonsense;
        for (score, node) in column.iter_mut().zip(input.nodes) {
            *score = if nonsense { NONSENSE } else { (node.id.index() % 7) as i64 };
        }
        Ok(())
    }
}
