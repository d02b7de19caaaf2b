//! Values as Go writes them.

use std::fmt::Write;

/// `%q`.
pub(crate) fn quoted(text: &str) -> String {
    let mut written = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\x07' => written.push_str("\\a"),
            '\x08' => written.push_str("\\b"),
            '\x0c' => written.push_str("\\f"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\x0b' => written.push_str("\\v"),
            _ if is_printed(letter) => written.push(letter),
            _ if letter < ' ' || letter == '\x7f' => {
                let _ = write!(written, "\\x{:02x}", letter as u32);
            }
            _ if (letter as u32) < 0x10000 => {
                let _ = write!(written, "\\u{:04x}", letter as u32);
            }
            _ => {
                let _ = write!(written, "\\U{:08x}", letter as u32);
            }
        }
    }
    written.push('"');
    written
}

/// Go prints letters, marks, numbers, punctuation and symbols, and of spaces the plain one only.
fn is_printed(letter: char) -> bool {
    letter == ' '
        || !(letter.is_control()
            || letter.is_whitespace()
            || matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}'))
}

/// `%g` with as many digits as are needed.
pub(crate) fn general(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `%f` with as many digits as are needed.
pub(crate) fn fixed(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    format!("{value}")
}
