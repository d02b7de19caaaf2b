//! How much work was done, counted where it could become too much: comparisons, and members of sets that were looked at.
//!
//! Only builds with debug assertions count, so that tests can bound the work rather than the time.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// So many steps were done.
#[inline(always)]
pub fn done(steps: usize) {
    if cfg!(debug_assertions) {
        STEPS.set(STEPS.get() + steps as u64);
    }
}

/// How many steps this thread has done so far; 0 in builds that do not count.
pub fn steps() -> u64 {
    STEPS.get()
}
