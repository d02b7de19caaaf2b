//! Answers of the API server, kept for a while.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ring::digest::{Context, SHA256};

use crate::clock::Clock;

/// What was asked, as a digest: of fixed size, and no token lies about in memory.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ReviewKey([u8; 32]);

impl ReviewKey {
    pub(super) fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut context = Context::new(&SHA256);
        for word in words {
            // With its length, so that no two lists of words look the same.
            context.update(&(word.len() as u64).to_le_bytes());
            context.update(word.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(context.finish().as_ref());
        Self(key)
    }
}

/// Answers by question, no more than a given number, each for as long as it was given.
pub(super) struct ReviewCache<A> {
    clock: Clock,
    capacity: usize,
    kept: Mutex<HashMap<ReviewKey, Kept<A>>>,
}

struct Kept<A> {
    answer: A,
    until: Instant,
}

impl<A: Clone> ReviewCache<A> {
    pub(super) fn new(clock: Clock, capacity: usize) -> Self {
        Self { clock, capacity, kept: Mutex::default() }
    }

    pub(super) fn get(&self, question: &ReviewKey) -> Option<A> {
        let now = self.clock.now();
        self.kept().get(question).filter(|kept| kept.until > now).map(|kept| kept.answer.clone())
    }

    pub(super) fn keep(&self, question: ReviewKey, answer: A, ttl: Duration) {
        let now = self.clock.now();
        let mut kept = self.kept();
        if kept.len() >= self.capacity {
            kept.retain(|_, kept| kept.until > now);
        }
        if kept.len() >= self.capacity {
            let first = kept.iter().min_by_key(|(_, kept)| kept.until).map(|(question, _)| question.clone());
            first.map(|question| kept.remove(&question));
        }
        kept.insert(question, Kept { answer, until: now + ttl });
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<ReviewKey, Kept<A>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answer_makes_room() {
        let answers = ReviewCache::new(Clock::system(), 2);
        for (place, word) in ["a", "b", "c"].into_iter().enumerate() {
            answers.keep(ReviewKey::of([word]), word, Duration::from_secs(60 + place as u64));
        }
        assert_eq!(
            ["a", "b", "c"].map(|word| answers.get(&ReviewKey::of([word]))),
            [None, Some("b"), Some("c")]
        );
    }
}
