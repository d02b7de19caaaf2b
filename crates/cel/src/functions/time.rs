//! Durations and moments.

use crate::{
    budget::{Budget, Halt},
    go_text,
    value::Value,
};
use std::fmt;

type Answer = Result<Value, Halt>;

const NANOS: i64 = 1_000_000_000;
/// The years 1 to 9999.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Since 1970.
    pub(crate) seconds: i64,
    nanos: u32,
    /// Of the zone that it was written in: only its text shows it.
    offset_seconds: i32,
}

pub(crate) fn duration_or_overflow(nanos: Option<i64>) -> Value {
    nanos.map_or_else(|| Value::error("integer overflow"), Value::Duration)
}

impl Moment {
    /// The value, or the error that it is out of range.
    pub(crate) fn at(seconds: i64, nanos: u32, offset_seconds: i32) -> Value {
        if (FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
            Value::Moment(Self { seconds, nanos, offset_seconds })
        } else {
            Value::error("timestamp overflow")
        }
    }

    pub(crate) fn instant(&self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    /// Go's zero time is the beginning of year 1.
    pub(crate) fn is_go_zero(&self) -> bool {
        self.instant() == (FIRST_SECOND, 0)
    }

    pub(crate) fn plus(&self, nanos: i64) -> Value {
        let sum = i64::from(self.nanos) + nanos.rem_euclid(NANOS);
        let seconds = self.seconds + nanos.div_euclid(NANOS) + sum / NANOS;
        Self::at(seconds, (sum % NANOS) as u32, self.offset_seconds)
    }

    pub(crate) fn since(&self, other: &Self) -> Option<i64> {
        let seconds = self.seconds.checked_sub(other.seconds)?.checked_mul(NANOS)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// RFC 3339: seconds, nanoseconds and the zone's offset.
    pub(crate) fn parse(text: &str) -> Option<(i64, u32, i32)> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| -> Option<i64> {
            let digits = bytes.get(from..to)?;
            digits
                .iter()
                .all(u8::is_ascii_digit)
                .then(|| std::str::from_utf8(digits).ok()?.parse().ok())
                .flatten()
        };
        let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
        if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (nanos, end) = fraction(bytes, 19)?;
        let offset = zone(&bytes[end..])?;
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        Some((seconds - i64::from(offset), nanos, offset))
    }

    fn local(&self, offset_seconds: i64) -> Local {
        let seconds = self.seconds + offset_seconds;
        let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, date) = civil(day);
        Local { day, year, month, date, second, nanos: self.nanos }
    }
}

struct Local {
    /// Since 1970.
    day: i64,
    year: i64,
    month: i64,
    date: i64,
    /// Of the day.
    second: i64,
    nanos: u32,
}

fn fraction(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    if !matches!(bytes.get(at), Some(b'.' | b',')) {
        return Some((0, at));
    }
    let digits: Vec<u8> = bytes[at + 1..].iter().copied().take_while(u8::is_ascii_digit).collect();
    if digits.is_empty() {
        return None;
    }
    let value = |place: usize| u32::from(digits.get(place).map_or(0, |digit| digit - b'0'));
    let nanos = (0..9).fold(0, |nanos, place| nanos * 10 + value(place));
    Some((nanos, at + 1 + digits.len()))
}

fn zone(bytes: &[u8]) -> Option<i32> {
    if bytes == b"Z" {
        return Some(0);
    }
    let [sign @ (b'+' | b'-'), tens, ones, b':', minute_tens, minute_ones] = bytes else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i32::from(byte - b'0'));
    let hours = digit(tens)? * 10 + digit(ones)?;
    let minutes = digit(minute_tens)? * 10 + digit(minute_ones)?;
    if hours > 24 || minutes > 60 {
        return None;
    }
    let offset = hours * 3600 + minutes * 60;
    Some(if *sign == b'-' { -offset } else { offset })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970 of a date, in the calendar that has no gaps. Years begin in March, so that leap days end them.
fn days(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + date - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Local { year, month, date, second, nanos, .. } = self.local(i64::from(self.offset_seconds));
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(out, "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanos > 0 {
            let digits = format!("{nanos:09}");
            write!(out, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset_seconds == 0 {
            return out.write_str("Z");
        }
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.offset_seconds.abs() / 60;
        write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// In seconds, as `string(duration)` gives it.
pub(crate) fn written_duration(nanos: i64) -> String {
    let seconds = (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9;
    format!("{}s", go_text::fixed(seconds))
}

/// Go's durations: `1h2m3.5s`, `-1.5h`, `100ms`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, behind) = one_unit(rest)?;
        total = total.checked_add(nanos).filter(|total| *total <= 1 << 63)?;
        rest = behind;
    }
    if negative {
        return Some((total as i64).wrapping_neg());
    }
    i64::try_from(total).ok()
}

fn one_unit(text: &str) -> Option<(u64, &str)> {
    let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_end = rest.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1000,
        "ms" => 1_000_000,
        "s" => NANOS as u64,
        "m" => 60 * NANOS as u64,
        "h" => 3600 * NANOS as u64,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(unit)?;
    if !fraction.is_empty() {
        let shown = &fraction[..fraction.len().min(18)];
        let value: u64 = shown.parse().ok()?;
        let part = value as f64 * (unit as f64 / 10f64.powi(shown.len() as i32));
        nanos = nanos.checked_add(part as u64)?;
    }
    (nanos <= 1 << 63).then_some((nanos, rest))
}

/// The moment in the zone of the second argument, or in UTC.
fn in_zone(args: &[Value], read: fn(&Local) -> i64) -> Answer {
    let Value::Moment(moment) = &args[0] else { return Ok(Value::no_such_overload()) };
    let offset = match args.get(1) {
        None => Ok(0),
        Some(Value::Text(zone)) => offset_of(zone),
        Some(_) => return Ok(Value::no_such_overload()),
    };
    Ok(match offset {
        Ok(offset) => Value::Int(read(&moment.local(offset))),
        Err(message) => Value::error(message),
    })
}

/// `02:00` and `-01:30`. Of named zones only UTC is known: there is no database here.
fn offset_of(zone: &str) -> Result<i64, String> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return match zone {
            "" | "UTC" => Ok(0),
            _ => Err(format!("unknown time zone {zone}")),
        };
    };
    let number = |text: &str| -> Result<i64, String> {
        let parsed: Result<i32, _> = text.parse();
        let message = || format!("strconv.Atoi: parsing {}: invalid syntax", go_text::quoted(text));
        parsed.map(i64::from).map_err(|_| message())
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let offset = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    // No place on earth is further away; beyond it Go's arithmetic is not worth following.
    Ok((offset * 60).clamp(-86_400 * 366, 86_400 * 366))
}

pub(crate) fn full_year(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.year)
}

pub(crate) fn month(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.month - 1)
}

pub(crate) fn day_of_year(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.day - days(local.year, 1, 1))
}

pub(crate) fn day_of_month(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.date - 1)
}

pub(crate) fn date(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.date)
}

pub(crate) fn day_of_week(args: &[Value], _: &mut Budget) -> Answer {
    // 1970 began on a Thursday, and weeks on Sunday.
    in_zone(args, |local| (local.day + 4).rem_euclid(7))
}

pub(crate) fn hours(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.second / 3600)
}

pub(crate) fn minutes(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.second / 60 % 60)
}

pub(crate) fn seconds(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| local.second % 60)
}

pub(crate) fn milliseconds(args: &[Value], _: &mut Budget) -> Answer {
    in_zone(args, |local| i64::from(local.nanos / 1_000_000))
}

fn of_duration(args: &[Value], unit: i64) -> Answer {
    Ok(match &args[0] {
        Value::Duration(nanos) => Value::Int(nanos / unit),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn duration_hours(args: &[Value], _: &mut Budget) -> Answer {
    of_duration(args, 3600 * NANOS)
}

pub(crate) fn duration_minutes(args: &[Value], _: &mut Budget) -> Answer {
    of_duration(args, 60 * NANOS)
}

pub(crate) fn duration_seconds(args: &[Value], _: &mut Budget) -> Answer {
    of_duration(args, NANOS)
}

pub(crate) fn duration_milliseconds(args: &[Value], _: &mut Budget) -> Answer {
    of_duration(args, 1_000_000)
}
