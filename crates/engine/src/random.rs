//! What chance there is in a cycle, from the seed of a run.

use supercargo_model::random::Random;

/// The seed of the n-th cycle of a run.
pub(crate) fn cycle_seed(seed: u64, cycle: u64) -> u64 {
    Random(seed ^ cycle.wrapping_mul(0xd134_2543_de82_ef95)).number()
}
