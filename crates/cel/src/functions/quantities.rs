//! Kubernetes' quantities.

use crate::{
    amount::Amount,
    budget::{Budget, Halt},
    value::Value,
};
use std::{cmp::Ordering, sync::Arc};

type Answer = Result<Value, Halt>;

pub(crate) fn to_quantity(args: &[Value], _: &mut Budget) -> Answer {
    let Some(text) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    Ok(match Amount::parse(text) {
        Ok(amount) => Value::Amount(Arc::new(amount), false),
        Err(message) => Value::error(message),
    })
}

pub(crate) fn is_quantity(args: &[Value], _: &mut Budget) -> Answer {
    let Some(text) = args[0].as_text() else { return Ok(Value::no_such_overload()) };
    Ok(Value::Bool(Amount::parse(text).is_ok()))
}

fn of_one(args: &[Value], read: fn(&Amount) -> Value) -> Answer {
    Ok(match &args[0] {
        Value::Amount(amount, _) => read(amount),
        _ => Value::no_such_overload(),
    })
}

fn of_two(args: &[Value], read: fn(Ordering) -> Value) -> Answer {
    Ok(match (&args[0], &args[1]) {
        (Value::Amount(left, _), Value::Amount(right, _)) => read(left.compare(right)),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn sign(args: &[Value], _: &mut Budget) -> Answer {
    of_one(args, |amount| Value::Int(amount.sign()))
}

pub(crate) fn as_approximate_float(args: &[Value], _: &mut Budget) -> Answer {
    of_one(args, |amount| Value::Double(amount.as_float()))
}

pub(crate) fn is_integer(args: &[Value], _: &mut Budget) -> Answer {
    of_one(args, |amount| Value::Bool(amount.as_integer().is_some()))
}

pub(crate) fn as_integer(args: &[Value], _: &mut Budget) -> Answer {
    of_one(args, |amount| match amount.as_integer() {
        Some(integer) => Value::Int(integer),
        None => Value::error("cannot convert value to integer"),
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

fn computed(args: &[Value], compute: fn(&Amount, &Amount) -> Amount) -> Answer {
    let Value::Amount(left, _) = &args[0] else { return Ok(Value::no_such_overload()) };
    let right = match &args[1] {
        Value::Amount(right, _) => **right,
        Value::Int(value) => Amount::Scaled { value: *value, scale: 0 },
        _ => return Ok(Value::no_such_overload()),
    };
    Ok(Value::Amount(Arc::new(compute(left, &right)), true))
}

pub(crate) fn add(args: &[Value], _: &mut Budget) -> Answer {
    computed(args, Amount::plus)
}

pub(crate) fn subtract(args: &[Value], _: &mut Budget) -> Answer {
    computed(args, Amount::minus)
}
