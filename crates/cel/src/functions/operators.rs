//! Arithmetic, order, containment and size.

use crate::{
    budget::{Budget, Halt, elements, text_bytes},
    functions::time,
    value::{Equality, NO_SUCH_OVERLOAD, Value, compare, same},
};
use std::cmp::Ordering;

type Answer = Result<Value, Halt>;

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";

pub(crate) fn int_or(value: Option<i64>, otherwise: &str) -> Value {
    value.map_or_else(|| Value::error(otherwise), Value::Int)
}

fn uint_or(value: Option<u64>, otherwise: &str) -> Value {
    value.map_or_else(|| Value::error(otherwise), Value::Uint)
}

pub(crate) fn not(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Bool(value) => Value::Bool(!value),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn add(args: &[Value], _: &mut Budget) -> Answer {
    use Value::*;
    Ok(match (&args[0], &args[1]) {
        (Int(left), Int(right)) => int_or(left.checked_add(*right), INT_OVERFLOW),
        (Uint(left), Uint(right)) => uint_or(left.checked_add(*right), UINT_OVERFLOW),
        (Double(left), Double(right)) => Double(left + right),
        (Text(left), Text(right)) => {
            text_bytes(left.len().checked_add(right.len()))?;
            Value::text(&format!("{left}{right}"))
        }
        (Bytes(left), Bytes(right)) => {
            text_bytes(left.len().checked_add(right.len()))?;
            Bytes([&**left, &**right].concat().into())
        }
        (List(left), List(right)) => {
            if left.is_empty() {
                return Ok(args[1].clone());
            }
            elements(left.len() + right.len())?;
            Value::list(left.iter().chain(right.iter()).cloned().collect())
        }
        (Duration(left), Duration(right)) => time::duration_or_overflow(left.checked_add(*right)),
        (Duration(nanos), Moment(moment)) | (Moment(moment), Duration(nanos)) => moment.plus(*nanos),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn subtract(args: &[Value], _: &mut Budget) -> Answer {
    use Value::*;
    Ok(match (&args[0], &args[1]) {
        (Int(left), Int(right)) => int_or(left.checked_sub(*right), INT_OVERFLOW),
        (Uint(left), Uint(right)) => uint_or(left.checked_sub(*right), UINT_OVERFLOW),
        (Double(left), Double(right)) => Double(left - right),
        (Duration(left), Duration(right)) => time::duration_or_overflow(left.checked_sub(*right)),
        (Moment(moment), Duration(nanos)) => match nanos.checked_neg() {
            Some(nanos) => moment.plus(nanos),
            None => Value::error(INT_OVERFLOW),
        },
        (Moment(left), Moment(right)) => time::duration_or_overflow(left.since(right)),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn multiply(args: &[Value], _: &mut Budget) -> Answer {
    use Value::*;
    Ok(match (&args[0], &args[1]) {
        (Int(left), Int(right)) => int_or(left.checked_mul(*right), INT_OVERFLOW),
        (Uint(left), Uint(right)) => uint_or(left.checked_mul(*right), UINT_OVERFLOW),
        (Double(left), Double(right)) => Double(left * right),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn divide(args: &[Value], _: &mut Budget) -> Answer {
    use Value::*;
    let by_zero = "division by zero";
    Ok(match (&args[0], &args[1]) {
        (Int(_), Int(0)) | (Uint(_), Uint(0)) => Value::error(by_zero),
        (Int(left), Int(right)) => int_or(left.checked_div(*right), INT_OVERFLOW),
        (Uint(left), Uint(right)) => uint_or(left.checked_div(*right), UINT_OVERFLOW),
        (Double(left), Double(right)) => Double(left / right),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn modulo(args: &[Value], _: &mut Budget) -> Answer {
    use Value::*;
    Ok(match (&args[0], &args[1]) {
        (Int(_), Int(0)) | (Uint(_), Uint(0)) => Value::error("modulus by zero"),
        (Int(left), Int(right)) => int_or(left.checked_rem(*right), INT_OVERFLOW),
        (Uint(left), Uint(right)) => uint_or(left.checked_rem(*right), UINT_OVERFLOW),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn negate(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Int(value) => int_or(value.checked_neg(), INT_OVERFLOW),
        Value::Double(value) => Value::Double(-value),
        Value::Duration(nanos) => time::duration_or_overflow(nanos.checked_neg()),
        _ => Value::no_such_overload(),
    })
}

fn ordered(args: &[Value], holds: fn(Ordering) -> bool) -> Answer {
    Ok(match compare(&args[0], &args[1]) {
        Ok(order) => Value::Bool(holds(order)),
        Err(error) => error,
    })
}

pub(crate) fn less(args: &[Value], _: &mut Budget) -> Answer {
    ordered(args, Ordering::is_lt)
}

pub(crate) fn less_equals(args: &[Value], _: &mut Budget) -> Answer {
    ordered(args, Ordering::is_le)
}

pub(crate) fn greater(args: &[Value], _: &mut Budget) -> Answer {
    ordered(args, Ordering::is_gt)
}

pub(crate) fn greater_equals(args: &[Value], _: &mut Budget) -> Answer {
    ordered(args, Ordering::is_ge)
}

pub(crate) fn within(args: &[Value], budget: &mut Budget) -> Answer {
    Ok(match &args[1] {
        Value::List(list) => Value::Bool(contains(list, &args[0], budget)?),
        Value::Map(map) => Value::Bool(map.contains(&args[0])),
        _ => Value::error(NO_SUCH_OVERLOAD),
    })
}

/// Elements that cannot be compared are not the one.
pub(crate) fn contains(list: &[Value], element: &Value, budget: &mut Budget) -> Result<bool, Halt> {
    for other in list {
        if same(element, other, budget)? == Equality::Equal {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn size(args: &[Value], _: &mut Budget) -> Answer {
    Ok(args[0].size().map_or_else(Value::no_such_overload, |size| Value::Int(size as i64)))
}
