//! From one type to another.

use crate::{
    budget::{Budget, Halt},
    functions::time::{self, Moment},
    go_text,
    value::Value,
};

type Answer = Result<Value, Halt>;

fn failed(from: &Value, to: &str) -> Value {
    Value::error(format!("type conversion error from '{}' to '{to}'", from.type_name()))
}

pub(crate) fn identity(args: &[Value], _: &mut Budget) -> Answer {
    Ok(args[0].clone())
}

pub(crate) fn to_type(args: &[Value], _: &mut Budget) -> Answer {
    Ok(Value::Type(args[0].type_name()))
}

pub(crate) fn to_bool(args: &[Value], _: &mut Budget) -> Answer {
    let Value::Text(text) = &args[0] else { return Ok(failed(&args[0], "bool")) };
    Ok(match &**text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Value::Bool(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Value::Bool(false),
        _ => failed(&args[0], "bool"),
    })
}

pub(crate) fn to_bytes(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Text(text) => Value::Bytes(text.as_bytes().into()),
        other => failed(other, "bytes"),
    })
}

pub(crate) fn to_double(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Int(value) => Value::Double(*value as f64),
        Value::Uint(value) => Value::Double(*value as f64),
        Value::Text(text) => parsed_double(text).map_or_else(|| failed(&args[0], "double"), Value::Double),
        other => failed(other, "double"),
    })
}

/// As Go reads it: with underscores or in hexadecimal it is not read here.
pub(crate) fn parsed_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if matches!(&*lower, "inf" | "infinity" | "nan") {
        return text.to_ascii_lowercase().parse().ok();
    }
    let value: f64 = text.parse().ok()?;
    // Beyond what can be represented is an error.
    value.is_finite().then_some(value)
}

pub(crate) fn to_duration(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Text(text) => time::parse_duration(text)
            .map_or_else(|| failed(&args[0], "google.protobuf.Duration"), Value::Duration),
        other => failed(other, "google.protobuf.Duration"),
    })
}

pub(crate) fn to_int(args: &[Value], _: &mut Budget) -> Answer {
    let overflow = || Value::error("integer overflow");
    Ok(match &args[0] {
        Value::Double(value) => {
            let within = value.is_finite() && *value > i64::MIN as f64 && *value < i64::MAX as f64;
            if within { Value::Int(*value as i64) } else { overflow() }
        }
        Value::Duration(nanos) => Value::Int(*nanos),
        Value::Moment(moment) => Value::Int(moment.seconds),
        Value::Uint(value) => i64::try_from(*value).map_or_else(|_| overflow(), Value::Int),
        Value::Text(text) => text.parse().map_or_else(|_| failed(&args[0], "int"), Value::Int),
        other => failed(other, "int"),
    })
}

pub(crate) fn to_uint(args: &[Value], _: &mut Budget) -> Answer {
    let overflow = || Value::error("unsigned integer overflow");
    Ok(match &args[0] {
        Value::Double(value) => {
            let within = value.is_finite() && *value >= 0.0 && *value < 18_446_744_073_709_551_616.0;
            if within { Value::Uint(*value as u64) } else { overflow() }
        }
        Value::Int(value) => u64::try_from(*value).map_or_else(|_| overflow(), Value::Uint),
        // Go takes no sign here.
        Value::Text(text) if !text.starts_with('+') => {
            text.parse().map_or_else(|_| failed(&args[0], "uint"), Value::Uint)
        }
        other => failed(other, "uint"),
    })
}

pub(crate) fn to_text(args: &[Value], _: &mut Budget) -> Answer {
    Ok(text_of(&args[0]))
}

/// The value as text, or the error that it has none.
pub(crate) fn text_of(value: &Value) -> Value {
    match value {
        Value::Text(_) => value.clone(),
        Value::Bool(value) => Value::text(if *value { "true" } else { "false" }),
        Value::Int(value) => Value::text(&value.to_string()),
        Value::Uint(value) => Value::text(&value.to_string()),
        Value::Double(value) => Value::text(&go_text::general(*value)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(_) => Value::error("invalid UTF-8 in bytes, cannot convert to string"),
        },
        Value::Duration(nanos) => Value::text(&time::written_duration(*nanos)),
        Value::Moment(moment) => Value::text(&moment.to_string()),
        Value::Null => Value::text("null"),
        Value::Type(name) => Value::text(name),
        other => failed(other, "string"),
    }
}

pub(crate) fn to_timestamp(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Int(seconds) => Moment::at(*seconds, 0, 0),
        Value::Text(text) => match Moment::parse(text) {
            Some((seconds, nanos, offset)) => Moment::at(seconds, nanos, offset),
            None => failed(&args[0], "google.protobuf.Timestamp"),
        },
        other => failed(other, "google.protobuf.Timestamp"),
    })
}
