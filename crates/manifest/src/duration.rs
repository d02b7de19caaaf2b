//! Spans of time as Go writes them: `15s`, `1m30s`, `100ms`.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error};

/// A span of time, in whole nanoseconds; may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanos: i64,
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The units of the notation, the longer spelling before the one it begins with.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3600 * NANOS_PER_SECOND),
];

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self { nanos: 0 };

    /// So many seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self { nanos: seconds.saturating_mul(NANOS_PER_SECOND) }
    }

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// Its length in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// As the standard library's type, unless it is negative.
    pub fn to_std(self) -> Option<std::time::Duration> {
        self.nanos.try_into().ok().map(std::time::Duration::from_nanos)
    }

    /// Reads the notation.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if digits == "0" {
            return Some(Self::ZERO);
        }
        if digits.is_empty() {
            return None;
        }
        let mut rest = digits;
        let mut nanos: i128 = 0;
        while !rest.is_empty() {
            let (part, after) = leading_part(rest)?;
            nanos = nanos.checked_add(part)?;
            rest = after;
        }
        let nanos = if negative { -nanos } else { nanos };
        Some(Self { nanos: nanos.try_into().ok()? })
    }
}

/// A number with its unit, in nanoseconds, and what follows it.
fn leading_part(text: &str) -> Option<(i128, &str)> {
    let number_ends = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(number_ends);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let unit_ends = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, after) = rest.split_at(unit_ends);
    let unit_nanos = i128::from(UNITS.iter().find(|(name, _)| *name == unit)?.1);
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(unit_nanos)?;
    let mut scale = unit_nanos;
    for digit in fraction.bytes() {
        scale /= 10;
        nanos = nanos.checked_add(i128::from(digit - b'0') * scale)?;
    }
    Some((nanos, after))
}

/// As Go writes it.
impl std::str::FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("{text} is not a duration such as 90s, 15m or 1h30m"))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        let nanos = self.nanos.unsigned_abs();
        let second = NANOS_PER_SECOND.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if nanos < second {
            let (unit, size) = match nanos {
                0..1_000 => ("ns", 1),
                1_000..1_000_000 => ("µs", 1_000),
                _ => ("ms", 1_000_000),
            };
            return write!(f, "{}{unit}", decimal(nanos, size));
        }
        let (hours, minutes) = (nanos / (3600 * second), nanos / (60 * second) % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(nanos % (60 * second), second))
    }
}

/// A number of parts as a decimal number of wholes.
fn decimal(parts: u64, parts_per_whole: u64) -> String {
    let digits = parts_per_whole.ilog10() as usize;
    let (whole, fraction) = (parts / parts_per_whole, parts % parts_per_whole);
    if fraction == 0 {
        return whole.to_string();
    }
    let fraction = format!("{fraction:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{text:?} is not a span of time\n\
                 hint: write a number with a unit, such as 15s, 1m30s or 100ms"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_as_go_does() {
        for (text, written) in [
            ("15s", Some("15s")),
            ("90s", Some("1m30s")),
            ("1h", Some("1h0m0s")),
            ("1h15m30.918s", Some("1h15m30.918s")),
            ("100ms", Some("100ms")),
            ("1.5us", Some("1.5µs")),
            ("3ns", Some("3ns")),
            (".5s", Some("500ms")),
            ("0", Some("0s")),
            ("-2s", Some("-2s")),
            ("+2s", Some("2s")),
            ("", None),
            ("-", None),
            ("5", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("5 s", None),
            ("5d", None),
            ("99999999999h", None),
        ] {
            let read = Duration::parse(text).map(|duration| duration.to_string());
            assert_eq!(read.as_deref(), written, "{text:?}");
        }
    }
}
