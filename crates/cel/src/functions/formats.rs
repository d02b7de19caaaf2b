//! Formats that texts can be validated against. How many messages there are is the reference's; the messages are ours.

use crate::{
    budget::{Budget, Halt},
    declarations::Implementation,
    functions::{time::Moment, url},
    value::Value,
};

type Answer = Result<Value, Halt>;

#[derive(Debug)]
pub(crate) struct NamedFormat {
    /// As `format.named` knows it.
    name: &'static str,
    /// The function that gives it.
    pub(crate) function: &'static str,
    pub(crate) constant: Implementation,
    /// Two formats are equal if these are.
    pub(crate) shown: &'static str,
    /// What the cost of a validation grows with.
    pub(crate) regex_length: u64,
    problems: fn(&str) -> Vec<&'static str>,
}

macro_rules! formats {
    ($($place:literal, $name:literal, $shown:literal, $length:literal, $problems:expr;)*) => {
        pub(crate) static FORMATS: [NamedFormat; 13] = [$(NamedFormat {
            name: $name,
            function: concat!("format.", $name),
            constant: |_, _| Ok(Value::Format(&FORMATS[$place])),
            shown: $shown,
            regex_length: $length,
            problems: $problems,
        }),*];
    };
}

formats! {
    0, "dns1123Label", "DNS1123Label", 30, dns1123_label;
    1, "dns1123Subdomain", "DNS1123Subdomain", 60, dns1123_subdomain;
    2, "dns1035Label", "DNS1035Label", 30, dns1035_label;
    3, "qualifiedName", "QualifiedName", 60, qualified_name;
    4, "dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| dns1123_label(&without_trailing_dash(text));
    5, "dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |text| dns1123_subdomain(&without_trailing_dash(text));
    6, "dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| dns1035_label(&without_trailing_dash(text));
    7, "labelValue", "LabelValue", 40, label_value;
    8, "uri", "URI", 1103, |text| one(url::is_request_uri(text), "not a URI");
    9, "uuid", "uuid", 70, |text| one(is_uuid(text), "does not match the UUID format");
    10, "byte", "byte", 84, |text| one(is_base64(text), "invalid base64");
    11, "date", "date", 71, |text| one(is_date(text), "invalid date");
    12, "datetime", "datetime", 71, |text| one(is_datetime(text), "invalid datetime");
}

pub(crate) fn named(args: &[Value], _: &mut Budget) -> Answer {
    let Some(name) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    let found = FORMATS.iter().find(|format| format.name == name);
    Ok(found.map_or(Value::Optional(None), |format| Value::some(Value::Format(format))))
}

pub(crate) fn validate(args: &[Value], _: &mut Budget) -> Answer {
    let Value::Format(format) = &args[0] else { return Ok(Value::no_such_overload()) };
    let Some(text) = args[1].as_text() else { return Ok(Value::no_such_overload()) };
    let problems = (format.problems)(text);
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(problems.into_iter().map(Value::text).collect())))
}

fn one(valid: bool, problem: &'static str) -> Vec<&'static str> {
    if valid { Vec::new() } else { vec![problem] }
}

/// What stands before a name that will be appended to it may end with a dash.
fn without_trailing_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        // The reference replaces the last two characters by one.
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        _ => text.to_owned(),
    }
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Lower case, digits and dashes; both ends without a dash.
fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()].into_iter().all(|byte| byte.is_some_and(|byte| lower(*byte)));
    ends && bytes.iter().all(|byte| lower(*byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn too_long(text: &str, most: usize) -> Option<&'static str> {
    (text.len() > most).then_some("too long")
}

fn dns1123_label(text: &str) -> Vec<&'static str> {
    let wrong = (!is_label(text)).then(|| if is_subdomain(text) { "has dots" } else { "not a DNS label" });
    too_long(text, 63).into_iter().chain(wrong).collect()
}

fn dns1123_subdomain(text: &str) -> Vec<&'static str> {
    let wrong = (!is_subdomain(text)).then_some("not a DNS subdomain");
    too_long(text, 253).into_iter().chain(wrong).collect()
}

fn dns1035_label(text: &str) -> Vec<&'static str> {
    let begins = text.starts_with(|letter: char| letter.is_ascii_lowercase());
    let wrong = (!(begins && is_label(text))).then_some("not a DNS label that begins with a letter");
    too_long(text, 63).into_iter().chain(wrong).collect()
}

/// Letters, digits and `-_.`; both ends a letter or a digit.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends =
        [bytes.first(), bytes.last()].into_iter().all(|byte| byte.is_some_and(u8::is_ascii_alphanumeric));
    ends && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn qualified_name(text: &str) -> Vec<&'static str> {
    let mut problems = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            match prefix {
                "" => problems.push("prefix is empty"),
                _ => problems.extend(dns1123_subdomain(prefix)),
            }
            name
        }
        _ => return vec!["more than one slash"],
    };
    if name.is_empty() {
        problems.push("name is empty");
    }
    problems.extend(too_long(name, 63));
    if !is_name(name) {
        problems.push("name has characters that are not allowed");
    }
    problems
}

fn label_value(text: &str) -> Vec<&'static str> {
    let wrong = (!(text.is_empty() || is_name(text))).then_some("not a label's value");
    too_long(text, 63).into_iter().chain(wrong).collect()
}

/// 32 hexadecimal digits, with dashes where they belong or without.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (place, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.as_bytes().get(..length) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => rest = &rest[length..],
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && digits.bytes().all(known)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && Moment::parse(&format!("{text}T00:00:00Z")).is_some()
}

fn is_datetime(text: &str) -> bool {
    let text = text.to_lowercase();
    let Some((date, rest)) = text.split_once('t') else { return false };
    let time = rest.split('t').next().unwrap_or_default();
    is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let bytes = time.as_bytes();
    let two = |at: usize, most: &[u8; 2]| {
        bytes
            .get(at..at + 2)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_digit) && digits <= &most[..])
    };
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    if !(two(0, b"23") && colon(2) && two(3, b"59") && colon(5) && two(6, b"59")) {
        return false;
    }
    let zone = &time[8..];
    let is_zone = |zone: &str| zone == "z" || is_offset(zone);
    // A fraction begins with any character.
    let mut letters = zone.chars();
    letters.next();
    let behind = letters.as_str().trim_start_matches(|letter: char| letter.is_ascii_digit());
    let has_fraction = behind.len() < letters.as_str().len();
    is_zone(zone) || has_fraction && is_zone(behind)
}

/// `+02:00`.
fn is_offset(zone: &str) -> bool {
    let [sign, hour_tens, hour_ones, b':', minute_tens, minute_ones] = zone.as_bytes() else { return false };
    matches!(sign, b'+' | b'-')
        && [hour_tens, hour_ones, minute_tens, minute_ones].into_iter().all(u8::is_ascii_digit)
}
