//! An answer that many ask for, worked out once for all who ask within a while.

use std::{sync::Arc, time::Duration};

use tokio::sync::Mutex;

/// No answer is older, however long it takes to work out.
const MAX_AGE: Duration = Duration::from_secs(10);

/// An answer that is kept for a while. A hundred pages cost the scheduler what one does.
pub(crate) struct Memo<T> {
    least_age: Duration,
    part_of_time: u32,
    kept: Mutex<Option<MemoizedAnswer<T>>>,
}

struct MemoizedAnswer<T> {
    answer: Arc<T>,
    /// Until when it will do, by the clock of whoever asks.
    until: Duration,
}

impl<T> Memo<T> {
    /// Answers will do for so long; longer, if working them out would take more than this part of the time: 50 is a fiftieth.
    pub(crate) fn new(least_age: Duration, part_of_time: u32) -> Self {
        Self { least_age, part_of_time, kept: Mutex::new(None) }
    }

    /// The answer. It is worked out by one while the others wait for it.
    pub(crate) async fn get<F>(
        &self,
        now: impl Fn() -> Duration,
        work_out: impl FnOnce() -> F,
    ) -> Option<Arc<T>>
    where
        F: Future<Output = Option<T>>,
    {
        let mut kept = self.kept.lock().await;
        let began = now();
        if let Some(kept) = kept.as_ref().filter(|kept| began < kept.until) {
            return Some(kept.answer.clone());
        }
        let answer = Arc::new(work_out().await?);
        let ended = now();
        let age = self.least_age.max(ended.saturating_sub(began) * self.part_of_time).min(MAX_AGE);
        *kept = Some(MemoizedAnswer { answer: answer.clone(), until: ended + age });
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_hundred_who_ask_cost_one_look() {
        let memo = Memo::new(Duration::from_secs(1), 200);
        let (looks, clock) = (Cell::new(0), Cell::new(Duration::ZERO));
        let ask = || {
            memo.get(
                || clock.get(),
                async || {
                    looks.set(looks.get() + 1);
                    // A look takes 10 ms, so that its answer has to do for 200 × 10 ms = 2 s.
                    clock.set(clock.get() + Duration::from_millis(10));
                    Some(looks.get())
                },
            )
        };
        for _ in 0..100 {
            assert_eq!(ask().await.as_deref(), Some(&1));
        }
        clock.set(Duration::from_millis(2009));
        assert_eq!(ask().await.as_deref(), Some(&1));
        clock.set(Duration::from_millis(2010));
        assert_eq!(ask().await.as_deref(), Some(&2));
    }
}
