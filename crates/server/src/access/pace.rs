//! How many questions are put to the API server on whose behalf: whoever makes up ever new paths or tokens has to wait,
//! and nobody else does.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{clock::Clock, connections::Client};

/// So many callers are told apart; whoever has asked for nothing lately need not be remembered.
const MAX_ASKERS: usize = 4096;

/// On whose behalf something is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asker {
    /// What a user may do. All without credentials are one.
    User(String),
    /// Whose token a client shows.
    Client(Option<Client>),
}

/// A bucket for each asker: some questions at once, and then so many a second.
pub(super) struct ReviewPace {
    clock: Clock,
    burst: u32,
    between: Duration,
    /// When each asker's bucket will be full again.
    full_at: Mutex<HashMap<Asker, Instant>>,
}

impl ReviewPace {
    pub(super) fn new(clock: Clock, burst: u32, per_second: u32) -> Self {
        let between = Duration::from_secs(1) / per_second.max(1);
        Self { clock, burst: burst.max(1), between, full_at: Mutex::default() }
    }

    /// Whether a question may be asked now; then it counts.
    pub(super) fn allows(&self, asker: Asker) -> bool {
        let now = self.clock.now();
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if full_at.len() >= MAX_ASKERS && !full_at.contains_key(&asker) {
            full_at.retain(|_, full| *full > now);
            if full_at.len() >= MAX_ASKERS {
                return false;
            }
        }
        let full = full_at.entry(asker).or_insert(now);
        let next = (*full).max(now) + self.between;
        if next > now + self.between * self.burst {
            return false;
        }
        *full = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn some_at_once_and_then_so_many_a_second_for_each_of_them() {
        let passed = Arc::new(Mutex::new(Duration::ZERO));
        let (start, told) = (Instant::now(), passed.clone());
        let clock = Clock::from_fn(move || start + *told.lock().unwrap());
        let pace = ReviewPace::new(clock, 4, 2);
        let user = |name: &str| Asker::User(name.to_owned());
        let allowed = |name: &str| (0..10).filter(|_| pace.allows(user(name))).count();
        assert_eq!((allowed("ann"), allowed("bob"), allowed("ann")), (4, 4, 0));
        *passed.lock().unwrap() = Duration::from_millis(1500);
        assert_eq!(allowed("ann"), 3);
        *passed.lock().unwrap() = Duration::from_secs(60);
        assert_eq!(allowed("ann"), 4);
        // Ever new names take no more memory than so many.
        let allowed = (0..10_000).filter(|i| pace.allows(user(&i.to_string()))).count();
        assert!(allowed < MAX_ASKERS, "ann is one of them");
        assert_eq!(pace.full_at.lock().unwrap().len(), MAX_ASKERS);
    }
}
