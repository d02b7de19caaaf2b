//! Keys that a map has twice, of which one would silently win.

use std::collections::HashMap;

use crate::problem::{Problem, Problems};
use crate::value::{Entry, Location, Source};

/// Reports keys of one map that are written twice. Small maps, which are nearly all, need no hashing.
pub(crate) fn check_duplicates(source: &Source, entries: &[Entry], problems: &mut Problems) {
    const SMALL_MAP_ENTRIES: usize = 16;
    if entries.len() <= SMALL_MAP_ENTRIES {
        for (index, entry) in entries.iter().enumerate() {
            if let Some(first) = entries[..index].iter().find(|first| first.key == entry.key) {
                problems.push(duplicate(source, first.key_at, entry));
            }
        }
        return;
    }
    let mut seen: HashMap<&str, Location> = HashMap::with_capacity(entries.len());
    for entry in entries {
        match seen.get(&*entry.key) {
            Some(first_at) => problems.push(duplicate(source, *first_at, entry)),
            None => drop(seen.insert(&entry.key, entry.key_at)),
        }
    }
}

fn duplicate(source: &Source, first_at: Location, second: &Entry) -> Problem {
    Problem::error(format!("the key {:?} is already set on line {}", second.key, first_at.line))
        .at(source, second.key_at)
        .hint("keep one of the two")
}
