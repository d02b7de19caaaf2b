//! What literals stand for.

use crate::value::Value;

pub(crate) fn int(sign: &str, text: &str) -> Option<Value> {
    let (digits, radix) = radix(text);
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Value::Int)
}

/// Ends with `u`.
pub(crate) fn uint(text: &str) -> Option<Value> {
    let (digits, radix) = radix(&text[..text.len() - 1]);
    u64::from_str_radix(digits, radix).ok().map(Value::Uint)
}

fn radix(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16))
}

pub(crate) fn double(sign: &str, text: &str) -> Option<Value> {
    let value: f64 = format!("{sign}{text}").parse().ok()?;
    value.is_finite().then_some(Value::Double(value))
}

pub(crate) fn text(quoted: &str) -> Result<Value, &'static str> {
    let bytes = unescaped(quoted, false)?;
    String::from_utf8(bytes).map(|text| Value::text(&text)).map_err(|_| "invalid unicode code point")
}

pub(crate) fn bytes(quoted: &str) -> Result<Value, &'static str> {
    unescaped(quoted, true).map(|bytes| Value::Bytes(bytes.into()))
}

const BROKEN: &str = "unable to unescape string";

fn unescaped(quoted: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let quoted = quoted.replace("\r\n", "\n").replace('\r', "\n");
    let raw = quoted.starts_with(['r', 'R']);
    let quoted = if raw { &quoted[1..] } else { &quoted };
    let triple = quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""));
    let quotes = if triple { 3 } else { 1 };
    let body = quoted.get(quotes..quoted.len() - quotes).ok_or(BROKEN)?;
    if raw || !body.contains('\\') {
        return Ok(body.as_bytes().to_vec());
    }
    let mut written = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        written.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], is_bytes, &mut written)?;
    }
    written.extend_from_slice(rest.as_bytes());
    Ok(written)
}

/// What is behind the escape sequence, whose backslash has been read.
fn escape<'t>(text: &'t str, is_bytes: bool, written: &mut Vec<u8>) -> Result<&'t str, &'static str> {
    let first = text.chars().next().ok_or(BROKEN)?;
    let rest = &text[first.len_utf8()..];
    let simple = match first {
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(11),
        '\\' | '\'' | '"' | '`' | '?' => Some(first as u8),
        _ => None,
    };
    if let Some(byte) = simple {
        written.push(byte);
        return Ok(rest);
    }
    let (digits, radix, length) = match first {
        'x' | 'X' => (rest.get(..2), 16, 2),
        'u' if !is_bytes => (rest.get(..4), 16, 4),
        'U' if !is_bytes => (rest.get(..8), 16, 8),
        '0'..='3' => (text.get(..3), 8, 2),
        _ => return Err(BROKEN),
    };
    let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok()).ok_or(BROKEN)?;
    if is_bytes {
        written.push(code as u8);
    } else {
        let letter = char::from_u32(code).ok_or("invalid unicode code point")?;
        written.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(&rest[length..])
}
