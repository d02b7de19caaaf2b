//! Functions that take a regular expression. Those that are literals are compiled with the program.

use crate::{
    budget::{Budget, Halt, elements},
    value::Value,
};
use regex::Regex;

type Answer = Result<Value, Halt>;

pub(crate) fn matches(args: &[Value], budget: &mut Budget) -> Answer {
    let [Value::Text(text), Value::Text(pattern)] = args else { return Ok(Value::no_such_overload()) };
    Ok(match budget.regex(pattern)? {
        Ok(regex) => Value::Bool(regex.is_match(text)),
        Err(message) => Value::error(message),
    })
}

pub(crate) fn find(args: &[Value], budget: &mut Budget) -> Answer {
    let (Some(_), Some(pattern)) = (args[0].as_text(), args[1].as_text()) else {
        return Ok(Value::no_such_overload());
    };
    match budget.regex(pattern)? {
        Ok(regex) => found(&regex, args),
        Err(message) => Ok(Value::error(format!("Illegal regex: {message}"))),
    }
}

pub(crate) fn find_all(args: &[Value], budget: &mut Budget) -> Answer {
    let (Some(_), Some(pattern)) = (args[0].as_text(), args[1].as_text()) else {
        return Ok(Value::no_such_overload());
    };
    match budget.regex(pattern)? {
        Ok(regex) => all_found(&regex, args),
        Err(message) => Ok(Value::error(format!("Illegal regex: {message}"))),
    }
}

/// With a literal pattern.
pub(crate) fn compiled(function: &str, regex: &Regex, args: &[Value]) -> Answer {
    match function {
        "matches" => Ok(match args[0].as_text() {
            Some(text) => Value::Bool(regex.is_match(text)),
            None => Value::no_such_overload(),
        }),
        "find" => found(regex, args),
        _ => all_found(regex, args),
    }
}

fn found(regex: &Regex, args: &[Value]) -> Answer {
    let Some(text) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    Ok(Value::text(regex.find(text).map_or("", |found| found.as_str())))
}

fn all_found(regex: &Regex, args: &[Value]) -> Answer {
    let Some(text) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    let limit = match args.get(2) {
        None => usize::MAX,
        Some(Value::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
        Some(_) => return Ok(Value::no_such_overload()),
    };
    let mut all = Vec::new();
    for found in regex.find_iter(text).take(limit) {
        all.push(Value::text(found.as_str()));
        elements(all.len())?;
    }
    Ok(Value::list(all))
}
