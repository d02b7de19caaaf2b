//! Optional values.

use crate::{
    budget::{Budget, Halt},
    value::Value,
};

type Answer = Result<Value, Halt>;

pub(crate) fn of(args: &[Value], _: &mut Budget) -> Answer {
    Ok(Value::some(args[0].clone()))
}

pub(crate) fn of_non_zero(args: &[Value], _: &mut Budget) -> Answer {
    Ok(if args[0].is_zero() { Value::Optional(None) } else { Value::some(args[0].clone()) })
}

pub(crate) fn none(_: &[Value], _: &mut Budget) -> Answer {
    Ok(Value::Optional(None))
}

pub(crate) fn value(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Optional(Some(value)) => (**value).clone(),
        Value::Optional(None) => Value::error("optional.none() dereference"),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn has_value(args: &[Value], _: &mut Budget) -> Answer {
    Ok(match &args[0] {
        Value::Optional(value) => Value::Bool(value.is_some()),
        _ => Value::no_such_overload(),
    })
}

fn end(args: &[Value], pick: fn(&[Value]) -> Option<&Value>) -> Answer {
    Ok(match &args[0] {
        Value::List(list) => pick(list).map_or(Value::Optional(None), |value| Value::some(value.clone())),
        _ => Value::no_such_overload(),
    })
}

pub(crate) fn first(args: &[Value], _: &mut Budget) -> Answer {
    end(args, <[Value]>::first)
}

pub(crate) fn last(args: &[Value], _: &mut Budget) -> Answer {
    end(args, <[Value]>::last)
}

pub(crate) fn unwrap(args: &[Value], _: &mut Budget) -> Answer {
    let Value::List(list) = &args[0] else { return Ok(Value::no_such_overload()) };
    let mut values = Vec::new();
    for element in list.iter() {
        match element {
            Value::Optional(Some(value)) => values.push((**value).clone()),
            Value::Optional(None) => {}
            other => return Ok(Value::error(format!("value of type {} is not optional", other.type_name()))),
        }
    }
    Ok(Value::list(values))
}
