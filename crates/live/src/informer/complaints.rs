//! Log lines about resources, few enough to be read: what keeps one from being read mostly keeps all of them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use supercargo_model::object::Kind;

use crate::world::World;

/// At most one line of a sort in this time.
const PAUSE: Duration = Duration::from_secs(60);
/// How many sorts are told apart.
const MAX_SORTS: usize = 64;

/// The sort of all that come when there are too many.
const OTHERS: &str = "";

/// What is wrong with resources, told rarely. Clones tell together.
#[derive(Clone, Default)]
pub(super) struct Complaints {
    sorts: Arc<Mutex<HashMap<String, Sort>>>,
}

/// Complaints in the same words.
#[derive(Default)]
struct Sort {
    told: Option<Duration>,
    /// Those that were not told since.
    suppressed: u64,
    kinds: BTreeSet<&'static str>,
}

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    kinds: String,
    suppressed: u64,
}

impl Complaints {
    /// Says it, or counts it among those that the next line in these words mentions.
    pub(super) fn say(&self, world: &dyn World, kind: Kind, what: &str) {
        self.say_as(world, kind, what, what);
    }

    /// The same for an object, of which there may be many.
    pub(super) fn say_of_object(&self, world: &dyn World, kind: Kind, what: &str) {
        self.say_as(world, kind, kind.name(), what);
    }

    fn say_as(&self, world: &dyn World, kind: Kind, sort: &str, what: &str) {
        if let Some(Line { kinds, suppressed }) = self.line(world.uptime(), kind, sort) {
            let suppressed = (suppressed > 0).then_some(suppressed);
            tracing::warn!(kinds, suppressed, "{what}");
        }
    }

    fn line(&self, now: Duration, kind: Kind, sort: &str) -> Option<Line> {
        let mut sorts = self.sorts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_one_too_many =
            |sorts: &HashMap<String, Sort>| sorts.len() >= MAX_SORTS && !sorts.contains_key(sort);
        if is_one_too_many(&sorts) {
            sorts.retain(|_, sort| sort.told.is_some_and(|then| now.saturating_sub(then) < PAUSE));
        }
        let sort = if is_one_too_many(&sorts) { OTHERS } else { sort };
        let sort = sorts.entry(sort.to_owned()).or_default();
        sort.kinds.insert(kind.name());
        if sort.told.is_some_and(|then| now.saturating_sub(then) < PAUSE) {
            sort.suppressed += 1;
            return None;
        }
        sort.told = Some(now);
        let kinds = std::mem::take(&mut sort.kinds).into_iter().collect::<Vec<_>>().join(",");
        Some(Line { kinds, suppressed: std::mem::take(&mut sort.suppressed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_all_kinds_is_told_once_and_then_counted() {
        let complaints = Complaints::default();
        let say = |seconds, kind, what: &str| {
            let line = complaints.line(Duration::from_secs(seconds), kind, what);
            line.map(|line| (line.kinds, line.suppressed))
        };
        let told = |kinds: &str, suppressed| Some((kinds.to_owned(), suppressed));
        assert_eq!(say(1, Kind::Node, "refused"), told(Kind::Node.name(), 0));
        for second in 1..60 {
            assert_eq!(say(second, Kind::Node, "refused"), None);
            assert_eq!(say(second, Kind::Pod, "refused"), None);
        }
        // Something else is told at once.
        assert_eq!(say(30, Kind::Pod, "expired"), told(Kind::Pod.name(), 0));
        let both = format!("{},{}", Kind::Node.name(), Kind::Pod.name());
        assert_eq!(say(61, Kind::Pod, "refused"), told(&both, 118));
        assert_eq!(say(62, Kind::Pod, "refused"), None);
    }

    #[test]
    fn ever_new_words_are_bounded() {
        let complaints = Complaints::default();
        let said = |from: usize, at| {
            let lines = (from..from + 1000)
                .filter(|n| complaints.line(Duration::from_secs(at), Kind::Pod, &n.to_string()).is_some());
            lines.count()
        };
        assert_eq!((said(0, 1), said(1000, 2), said(2000, 70)), (MAX_SORTS + 1, 0, MAX_SORTS + 1));
    }
}
