//! An answer that many ask for, worked out and written once for all who ask within a while.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use supercargo_server::QueryAnswer;
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

/// So many forms of an answer are kept: pages ask for few, and whoever makes them up must not fill the memory.
const MAX_FORMS: usize = 8;

/// What was seen, with the answers that were written from it, each form once.
pub(crate) struct Written<T> {
    seen: T,
    answers: std::sync::Mutex<BTreeMap<String, Bytes>>,
}

impl<T> Written<T> {
    pub(crate) fn new(seen: T) -> Self {
        Self { seen, answers: std::sync::Mutex::default() }
    }

    /// The answer in a form; `write` makes it if nobody has asked for it yet.
    pub(crate) fn answer(&self, form: &str, write: impl FnOnce(&T) -> QueryAnswer) -> QueryAnswer {
        // It is written under the lock: who comes meanwhile waits for it, rather than to write it as well.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers.get(form) {
            return QueryAnswer::Json(known.clone());
        }
        let answer = write(&self.seen);
        if let QueryAnswer::Json(text) = &answer
            && answers.len() < MAX_FORMS
        {
            answers.insert(form.to_owned(), text.clone());
        }
        answer
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

    #[test]
    fn an_answer_is_written_once_in_each_form_and_few_forms_are_kept() {
        let (written, writes) = (Written::new(7), Cell::new(0));
        let ask = |form: &str| {
            written.answer(form, |seen| {
                writes.set(writes.get() + 1);
                if form == "wrong" {
                    return QueryAnswer::BadRequest(form.to_owned());
                }
                QueryAnswer::Json(format!("[{seen},{form:?}]").into())
            })
        };
        for _ in 0..100 {
            assert_eq!(ask("a"), QueryAnswer::Json(Bytes::from_static(b"[7,\"a\"]")));
            assert_eq!(ask("b"), QueryAnswer::Json(Bytes::from_static(b"[7,\"b\"]")));
        }
        assert_eq!(writes.get(), 2);
        ask("wrong");
        (0..100).for_each(|form| drop(ask(&form.to_string())));
        assert_eq!(written.answers.lock().unwrap().len(), MAX_FORMS);
        assert!(!written.answers.lock().unwrap().contains_key("wrong"));
    }
}
