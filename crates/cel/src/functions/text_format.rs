//! `"%s of %d".format([…])`, at run time and as far as it can be checked before.

use crate::{
    ast::{Expr, ExprKind, Id},
    budget::{Budget, Halt, text_bytes},
    functions::conversions::text_of,
    go_text::quoted,
    types::Type,
    value::Value,
};

type Answer = Result<Value, Halt>;

const DEFAULT_PRECISION: usize = 6;
/// More digits than any number has; Go would write zeroes.
const MOST_PRECISION: usize = 1000;

/// `%` and what follows it.
#[derive(Clone, Copy)]
struct Clause {
    verb: char,
    precision: Option<usize>,
}

/// Why a clause cannot be used with a type, but for its name.
const STRING: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given";
const DECIMAL: &str = "decimal clause can only be used on integers, was given";
const FIXED: &str = "fixed-point clause can only be used on doubles, was given";
const SCIENTIFIC: &str = "scientific clause can only be used on doubles, was given";
const BINARY: &str = "only integers and bools can be formatted as binary, was given";
const HEX: &str = "only integers, byte buffers, and strings can be formatted as hex, was given";
const OCTAL: &str = "octal clause can only be used on integers, was given";

enum Piece<'t> {
    Text(&'t str),
    Clause(Clause),
}

/// The next piece and what is behind it, or what is wrong with the clause.
fn piece(text: &str) -> Result<(Piece<'_>, &str), String> {
    let Some(rest) = text.strip_prefix('%') else {
        let end = text.find('%').unwrap_or(text.len());
        let (plain, rest) = text.split_at(end);
        return Ok((Piece::Text(plain), rest));
    };
    if let Some(rest) = rest.strip_prefix('%') {
        return Ok((Piece::Text("%"), rest));
    }
    if rest.is_empty() {
        return Err("unexpected end of string".into());
    }
    let (precision, rest) = match rest.strip_prefix('.') {
        None => (None, rest),
        Some(rest) => {
            let end = rest.find(|letter: char| !letter.is_ascii_digit());
            let end = end.ok_or("could not parse formatting clause: error while parsing precision: could not find end of precision specifier")?;
            let (digits, rest) = rest.split_at(end);
            let message = || {
                let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                format!(
                    "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {}: {why}",
                    quoted(digits)
                )
            };
            (Some(digits.parse::<u32>().map_err(|_| message())? as usize), rest)
        }
    };
    let verb = rest.chars().next().unwrap_or_default();
    if !"sdfebxXo".contains(verb) {
        // Go looks at bytes.
        let byte = rest.as_bytes().first().copied().unwrap_or_default() as char;
        return Err(format!("could not parse formatting clause: unrecognized formatting clause \"{byte}\""));
    }
    Ok((Piece::Clause(Clause { verb, precision }), &rest[1..]))
}

pub(crate) fn format(args: &[Value], budget: &mut Budget) -> Answer {
    let [Value::Text(text), Value::List(values)] = args else { return Ok(Value::no_such_overload()) };
    let mut written = String::new();
    let mut next = 0;
    let mut rest = &**text;
    while !rest.is_empty() {
        let is_clause = rest.starts_with('%') && !rest.starts_with("%%");
        if is_clause && next >= values.len() {
            return Ok(Value::error(format!("index {next} out of range")));
        }
        let (found, behind) = match piece(rest) {
            Ok(found) => found,
            Err(message) => return Ok(Value::error(message)),
        };
        match found {
            Piece::Text(plain) => written.push_str(plain),
            Piece::Clause(clause) => {
                match clause.written(&values[next], budget)? {
                    Ok(text) => written.push_str(&text),
                    Err(why) => return Ok(Value::error(format!("error during formatting: {why}"))),
                }
                next += 1;
            }
        }
        text_bytes(Some(written.len()))?;
        rest = behind;
    }
    Ok(Value::text(&written))
}

type Written = Result<String, String>;

impl Clause {
    fn written(self, value: &Value, budget: &mut Budget) -> Result<Written, Halt> {
        let precision = self.precision.unwrap_or(DEFAULT_PRECISION).min(MOST_PRECISION);
        Ok(match self.verb {
            's' => return as_text(value, budget),
            'd' => decimal(value),
            'f' => double(value, FIXED).map(|value| fixed(value, precision)),
            'e' => double(value, SCIENTIFIC).map(scientific),
            'b' => binary(value),
            'o' => octal(value),
            verb => hexadecimal(value).map(|text| if verb == 'X' { text.to_uppercase() } else { text }),
        })
    }
}

fn refused(message: &str, value: &Value) -> String {
    format!("{message} {}", value.type_name())
}

fn as_text(value: &Value, budget: &mut Budget) -> Result<Written, Halt> {
    use Value::*;
    Ok(match value {
        List(_) | Map(_) => return aggregate(value, budget),
        Null => Ok("null".into()),
        Int(_) | Uint(_) | Double(_) | Bool(_) | Text(_) | Moment(_) | Bytes(_) | Duration(_) | Type(_) => {
            match text_of(value) {
                Value::Text(text) => Ok(text.to_string()),
                Value::Error(message) => {
                    Err(format!("could not convert argument {} to string", quoted(&message)))
                }
                _ => Err(refused(STRING, value)),
            }
        }
        other => Err(refused(STRING, other)),
    })
}

fn decimal(value: &Value) -> Written {
    match value {
        Value::Int(value) => Ok(value.to_string()),
        Value::Uint(value) => Ok(value.to_string()),
        other => Err(refused(DECIMAL, other)),
    }
}

fn double(value: &Value, otherwise: &str) -> Result<f64, String> {
    match value {
        Value::Double(value) => Ok(*value),
        Value::Text(text) => match &**text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(refused(otherwise, value)),
        },
        other => Err(refused(otherwise, other)),
    }
}

/// As American English writes it.
fn fixed(value: f64, precision: usize) -> String {
    if let Some(special) = not_finite(value) {
        return special;
    }
    let plain = format!("{:.precision$}", value.abs());
    let (whole, fraction) =
        plain.split_once('.').map_or((&*plain, None), |(whole, part)| (whole, Some(part)));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

/// Always six digits: the reference takes the precision for a width.
fn scientific(value: f64) -> String {
    if let Some(special) = not_finite(value) {
        return special;
    }
    let plain = format!("{value:.6e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("\u{207b}", rest));
    let raised: String = format!("{exponent:0>2}")
        .chars()
        .map(|digit| {
            ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize]
        })
        .collect();
    format!("{digits}\u{202f}×\u{202f}10{sign}{raised}")
}

fn not_finite(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".into());
    }
    value.is_infinite().then(|| if value > 0.0 { "∞".into() } else { "-∞".into() })
}

/// A number in another base, with its sign before it.
fn signed(value: i64, write: fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", write(value.unsigned_abs()))
}

fn binary(value: &Value) -> Written {
    let write = |value: u64| format!("{value:b}");
    match value {
        Value::Int(value) => Ok(signed(*value, write)),
        Value::Uint(value) => Ok(write(*value)),
        Value::Bool(value) => Ok(if *value { "1".into() } else { "0".into() }),
        other => Err(refused(BINARY, other)),
    }
}

fn octal(value: &Value) -> Written {
    let write = |value: u64| format!("{value:o}");
    match value {
        Value::Int(value) => Ok(signed(*value, write)),
        Value::Uint(value) => Ok(write(*value)),
        other => Err(refused(OCTAL, other)),
    }
}

fn hexadecimal(value: &Value) -> Written {
    let write = |value: u64| format!("{value:x}");
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match value {
        Value::Int(value) => Ok(signed(*value, write)),
        Value::Uint(value) => Ok(write(*value)),
        Value::Text(text) => Ok(bytes(text.as_bytes())),
        Value::Bytes(value) => Ok(bytes(value)),
        other => Err(refused(HEX, other)),
    }
}

fn aggregate(value: &Value, budget: &mut Budget) -> Result<Written, Halt> {
    budget.step()?;
    let parts: Result<Vec<String>, String> = match value {
        Value::List(list) => {
            let mut parts = Vec::new();
            for element in list.iter() {
                match member(element, budget)? {
                    Ok(text) => parts.push(text),
                    Err(why) => return Ok(Err(why)),
                }
            }
            Ok(parts)
        }
        Value::Map(map) => {
            let mut pairs = Vec::new();
            for (key, value) in map.entries.values() {
                let (Ok(key), Ok(value)) = (member(key, budget)?, member(value, budget)?) else {
                    return Ok(Err(format!("no formatting function for {}", value.type_name())));
                };
                pairs.push((key, value));
            }
            pairs.sort();
            Ok(pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect())
        }
        _ => return Ok(Err(refused(STRING, value))),
    };
    let (open, close) = if matches!(value, Value::List(_)) { ('[', ']') } else { ('{', '}') };
    Ok(parts.and_then(|parts| {
        let length = parts.iter().map(|part| part.len() + 2).sum();
        match text_bytes(Some(length)) {
            Ok(_) => Ok(format!("{open}{}{close}", parts.join(", "))),
            Err(_) => Err("text is too long".into()),
        }
    }))
}

/// What is in a list or a map is written as CEL would write it.
fn member(value: &Value, budget: &mut Budget) -> Result<Written, Halt> {
    budget.step()?;
    Ok(match value {
        Value::Text(text) => Ok(quoted(text)),
        Value::Bytes(_) => match text_of(value) {
            Value::Text(text) => Ok(format!("b{}", quoted(&text))),
            _ => Err("could not convert argument to string".into()),
        },
        Value::Double(value) if value.is_finite() => Ok(format!("{value:.6}")),
        Value::Double(value) => Ok(quoted(&crate::go_text::general(*value))),
        Value::Moment(moment) => Ok(format!("timestamp({})", quoted(&moment.to_string()))),
        Value::Duration(_) => match text_of(value) {
            Value::Text(text) => Ok(format!("duration({})", quoted(&text))),
            _ => Err("could not convert argument to string".into()),
        },
        Value::Type(name) => Ok(format!("type({name})")),
        Value::List(_) | Value::Map(_) => return aggregate(value, budget),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => return as_text(value, budget),
        other => Err(format!("no formatting function for {}", other.type_name())),
    })
}

/// What is wrong with a literal format and its arguments: where and what.
pub(crate) fn defect(
    call: Id,
    text: &str,
    args: &[&Expr],
    type_of: &dyn Fn(&Expr) -> Type,
) -> Option<(Id, String)> {
    let mut next = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let is_clause = rest.starts_with('%') && !rest.starts_with("%%");
        if is_clause && rest.len() > 1 && next >= args.len() {
            return Some((call, format!("index {next} out of range")));
        }
        let (found, behind) = match piece(rest) {
            Ok(found) => found,
            Err(message) => return Some((call, message)),
        };
        if let Piece::Clause(clause) = found {
            if let Some((id, message)) = clause.misfit(args[next], type_of) {
                return Some((id, format!("error during formatting: {message}")));
            }
            next += 1;
        }
        rest = behind;
    }
    (args.len() > next).then(|| {
        let message =
            format!("too many arguments supplied to string.format (expected {next}, got {})", args.len());
        (call, message)
    })
}

impl Clause {
    fn misfit(self, arg: &Expr, type_of: &dyn Fn(&Expr) -> Type) -> Option<(Id, String)> {
        let found = type_of(arg);
        let (fits, message) = match self.verb {
            's' => return not_text(arg, type_of),
            'd' => (matches!(found, Type::Int | Type::Uint), DECIMAL),
            'f' => (matches!(found, Type::Double | Type::Text), FIXED),
            'e' => (matches!(found, Type::Double | Type::Text), SCIENTIFIC),
            'b' => (matches!(found, Type::Int | Type::Uint | Type::Bool), BINARY),
            'o' => (matches!(found, Type::Int | Type::Uint), OCTAL),
            _ => (matches!(found, Type::Int | Type::Uint | Type::Text | Type::Bytes), HEX),
        };
        (!fits && found != Type::Dyn).then(|| (arg.id, format!("{message} {}", found.name())))
    }
}

fn not_text(arg: &Expr, type_of: &dyn Fn(&Expr) -> Type) -> Option<(Id, String)> {
    use Type::*;
    let found = type_of(arg);
    let fits = matches!(
        found,
        Dyn | List(_)
            | Map(_)
            | Int
            | Uint
            | Double
            | Bool
            | Text
            | Timestamp
            | Bytes
            | Duration
            | Meta(_)
            | Null
    );
    if !fits {
        return Some((arg.id, format!("{STRING} {}", found.name())));
    }
    match &arg.kind {
        ExprKind::List(elements) => elements.iter().find_map(|element| not_text(&element.expr, type_of)),
        ExprKind::Map(entries) => entries
            .iter()
            .find_map(|entry| not_text(&entry.key, type_of).or_else(|| not_text(&entry.value, type_of))),
        _ => None,
    }
}
