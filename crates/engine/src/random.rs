//! Numbers from a seed: the same seed gives the same numbers.

/// SplitMix64: small, fast, and good enough for fair choices.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The seed of the n-th cycle of a run.
pub(crate) fn cycle_seed(seed: u64, cycle: u64) -> u64 {
    Random::new(seed ^ cycle.wrapping_mul(0xd134_2543_de82_ef95)).next()
}
