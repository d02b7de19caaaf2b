//! A guest that behaves, or does not: a stand-in for a plugin in WebAssembly where the host hands its answers to the framework.
//!
//! A real guest that hangs runs out of fuel, and one that dies is trapped; the host tells both as errors, for the pod that
//! it was asked about. Here they are errors from the start, so that no compiler has to be part of a simulated process.
//! What the real host makes of such guests is tested in `crates/wasm/tests/guests/limits.rs` and `hostile.rs`.

use std::{cell::Cell, sync::Arc, time::Duration};

use supercargo_framework::{
    Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    points::{Filter, Permit, PermitHandle, PermitOutcome, Requeue, Score, ScoreInput},
    registry::{Args, Definition, Registry, define},
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, Name, NodeInfo, Pod};

use super::plan::GuestMode;

/// The name that it is configured by.
pub(super) const NAME: &str = "SimulatedGuest";
/// A score that no plugin may give.
const NONSENSE: i64 = i64::MIN;
/// How long a pod waits for a permission that does not come.
const PATIENCE: Duration = Duration::from_secs(5);

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
    define(NAME, SimulatedGuest::new).filter().score().permit().requeue()
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
            _ => Ok(()),
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

impl Permit for SimulatedGuest {
    fn permit(&self, _: &Cluster, _: &Arc<Pod>, _: &Name) -> Result<PermitOutcome, Status> {
        Ok(match MODE.get() {
            GuestMode::PermitsNobody => {
                PermitOutcome::Wait { timeout: PATIENCE, handle: PermitHandle::default() }
            }
            _ => PermitOutcome::Granted,
        })
    }
}

impl Requeue for SimulatedGuest {
    /// What it refuses are permissions alone. One event is enough to tell whether it is remembered, and with others a pod would
    /// wake itself: it gives up its claim to the node when it is refused.
    fn events(&self) -> Vec<EventInterest> {
        vec![EventInterest::new(EventResource::Node, [ActionType::Add])]
    }
}
