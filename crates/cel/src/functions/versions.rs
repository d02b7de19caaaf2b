//! Semantic versions.

use crate::{
    budget::{Budget, Halt},
    semver::Semver,
    value::Value,
};
use std::{cmp::Ordering, sync::Arc};

type Answer = Result<Value, Halt>;

fn parsed(args: &[Value]) -> Option<Result<Semver, String>> {
    let text = args[0].as_text()?;
    match args.get(1) {
        None | Some(Value::Bool(false)) => Some(Semver::parse(text)),
        Some(Value::Bool(true)) => Some(Semver::parse_normalized(text)),
        Some(_) => None,
    }
}

pub(crate) fn to_semver(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match parsed(args) {
        Some(Ok(version)) => Value::Semver(Arc::new(version)),
        Some(Err(message)) => Value::error(message),
        None => Value::no_such_overload(),
    })
}

pub(crate) fn is_semver(args: &[Value], _: &mut Budget) -> Answer {
    Ok(parsed(args).map_or_else(Value::no_such_overload, |parsed| Value::Bool(parsed.is_ok())))
}

fn of_two(args: &[Value], read: fn(Ordering) -> Value) -> Answer {
    Ok(match (&args[0], &args[1]) {
        (Value::Semver(left), Value::Semver(right)) => read(left.compare(right)),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn is_greater_than(args: &[Value], _: &mut Budget) -> Answer {
    of_two(args, |order| Value::Bool(order.is_gt()))
}

pub(crate) fn is_less_than(args: &[Value], _: &mut Budget) -> Answer {
    of_two(args, |order| Value::Bool(order.is_lt()))
}

pub(crate) fn compare_to(args: &[Value], _: &mut Budget) -> Answer {
    of_two(args, |order| Value::Int(order as i64))
}

fn number(args: &[Value], place: usize) -> Answer {
    Ok(match &args[0] {
        // As Go converts it: large ones become negative.
        Value::Semver(version) => Value::Int(version.numbers[place] as i64),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn major(args: &[Value], _: &mut Budget) -> Answer {
    number(args, 0)
}

pub(crate) fn minor(args: &[Value], _: &mut Budget) -> Answer {
    number(args, 1)
}

pub(crate) fn patch(args: &[Value], _: &mut Budget) -> Answer {
    number(args, 2)
}
