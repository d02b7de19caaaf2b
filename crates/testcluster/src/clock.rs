//! The time as Kubernetes writes it.

use jiff::{SignedDuration, Timestamp};

/// Now, to the second: `2026-11-15T22:58:22Z`.
pub(crate) fn now() -> String {
    seconds(Timestamp::now())
}

/// Now, to the microsecond, as leases and events have it.
pub(crate) fn now_micros() -> String {
    format!("{:.6}", Timestamp::now())
}

/// So many seconds from now.
pub(crate) fn in_seconds(count: i64) -> String {
    let later = Timestamp::now().checked_add(SignedDuration::from_secs(count));
    seconds(later.unwrap_or(Timestamp::MAX))
}

fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// How many seconds have passed since a time, if it is one.
pub(crate) fn seconds_since(time: &str) -> Option<i64> {
    let time: Timestamp = time.parse().ok()?;
    Some(Timestamp::now().as_second() - time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_second_or_the_microsecond() {
        assert_eq!(now().len(), "2026-11-15T22:58:22Z".len());
        assert_eq!(now_micros().len(), "2026-11-15T22:58:22.000000Z".len());
        assert_eq!(seconds_since(&in_seconds(-5)), Some(5));
        assert_eq!(seconds_since("yesterday"), None);
        assert!(in_seconds(i64::MAX).starts_with("9999"), "no overflow");
    }
}
