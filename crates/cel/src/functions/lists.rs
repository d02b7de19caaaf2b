//! Lists, and lists taken as sets.

use crate::{
    budget::{Budget, Halt, elements},
    functions::operators::{self, contains},
    value::{Equality, Value, compare, is_comparable, same},
};
use std::{cmp::Ordering, sync::Arc};

type Answer = Result<Value, Halt>;

macro_rules! list {
    ($value:expr) => {
        match $value {
            Value::List(list) => list,
            _ => return Ok(Value::no_such_overload()),
        }
    };
}

pub(crate) fn is_sorted(args: &[Value], _: &mut Budget) -> Answer {
    let list = list!(&args[0]);
    let mut previous: Option<&Value> = None;
    for next in list.iter() {
        if !is_comparable(next) {
            return Ok(Value::no_such_overload());
        }
        if previous.is_some_and(|previous| matches!(compare(previous, next), Ok(Ordering::Greater))) {
            return Ok(Value::Bool(false));
        }
        previous = Some(next);
    }
    Ok(Value::Bool(true))
}

fn sum(args: &[Value], zero: Value, budget: &mut Budget) -> Answer {
    let mut total = zero;
    for next in list!(&args[0]).iter() {
        total = operators::add(&[total, next.clone()], budget)?;
        if total.is_error() {
            return Ok(total);
        }
    }
    Ok(total)
}

pub(crate) fn sum_ints(args: &[Value], budget: &mut Budget) -> Answer {
    sum(args, Value::Int(0), budget)
}

pub(crate) fn sum_uints(args: &[Value], budget: &mut Budget) -> Answer {
    sum(args, Value::Uint(0), budget)
}

pub(crate) fn sum_doubles(args: &[Value], budget: &mut Budget) -> Answer {
    sum(args, Value::Double(0.0), budget)
}

pub(crate) fn sum_durations(args: &[Value], budget: &mut Budget) -> Answer {
    sum(args, Value::Duration(0), budget)
}

fn extreme(args: &[Value], name: &str, replaced_if: Ordering) -> Answer {
    let mut best: Option<&Value> = None;
    for next in list!(&args[0]).iter() {
        if !is_comparable(next) {
            return Ok(Value::no_such_overload());
        }
        match best {
            None => best = Some(next),
            Some(known) if matches!(compare(known, next), Ok(order) if order == replaced_if) => {
                best = Some(next)
            }
            Some(_) => {}
        }
    }
    Ok(best.cloned().unwrap_or_else(|| Value::error(format!("{name} called on empty list"))))
}

pub(crate) fn max(args: &[Value], _: &mut Budget) -> Answer {
    extreme(args, "max", Ordering::Less)
}

pub(crate) fn min(args: &[Value], _: &mut Budget) -> Answer {
    extreme(args, "min", Ordering::Greater)
}

pub(crate) fn index_of(args: &[Value], budget: &mut Budget) -> Answer {
    for (place, element) in list!(&args[0]).iter().enumerate() {
        if same(element, &args[1], budget)? == Equality::Equal {
            return Ok(Value::Int(place as i64));
        }
    }
    Ok(Value::Int(-1))
}

pub(crate) fn last_index_of(args: &[Value], budget: &mut Budget) -> Answer {
    for (place, element) in list!(&args[0]).iter().enumerate().rev() {
        if same(element, &args[1], budget)? == Equality::Equal {
            return Ok(Value::Int(place as i64));
        }
    }
    Ok(Value::Int(-1))
}

pub(crate) fn slice(args: &[Value], _: &mut Budget) -> Answer {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return Ok(Value::no_such_overload());
    };
    let refused = |why: &str| Ok(Value::error(format!("cannot slice({start}, {end}), {why}")));
    if *start < 0 || *end < 0 {
        return refused("negative indexes not supported");
    }
    if start > end {
        return refused("start index must be less than or equal to end index");
    }
    if (list.len() as i64) < *end {
        return refused(&format!("list is length {}", list.len()));
    }
    Ok(Value::list(list[*start as usize..*end as usize].to_vec()))
}

pub(crate) fn flatten(args: &[Value], budget: &mut Budget) -> Answer {
    let list = list!(&args[0]);
    let depth = match args.get(1) {
        None => 1,
        Some(Value::Int(depth)) => *depth,
        Some(_) => return Ok(Value::no_such_overload()),
    };
    if depth < 0 {
        return Ok(Value::error("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, &mut flat, budget)?;
    Ok(Value::list(flat))
}

fn flatten_into(list: &[Value], depth: i64, flat: &mut Vec<Value>, budget: &mut Budget) -> Result<(), Halt> {
    for element in list {
        budget.step()?;
        match element {
            Value::List(inner) if depth > 0 => flatten_into(inner, depth - 1, flat, budget)?,
            other => flat.push(other.clone()),
        }
        elements(flat.len())?;
    }
    Ok(())
}

pub(crate) fn sort(args: &[Value], budget: &mut Budget) -> Answer {
    sort_by_keys(&[args[0].clone(), args[0].clone()], budget)
}

pub(crate) fn sort_by_keys(args: &[Value], _: &mut Budget) -> Answer {
    let (list, keys) = (list!(&args[0]), list!(&args[1]));
    if list.len() != keys.len() {
        return Ok(Value::error(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else { return Ok(args[0].clone()) };
    if !is_comparable(first) {
        return Ok(Value::error("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Ok(Value::error("list elements must have the same type"));
    }
    let mut places: Vec<usize> = (0..list.len()).collect();
    places.sort_by(|left, right| compare(&keys[*left], &keys[*right]).unwrap_or(Ordering::Equal));
    Ok(Value::list(places.into_iter().map(|place| list[place].clone()).collect()))
}

pub(crate) fn range(args: &[Value], _: &mut Budget) -> Answer {
    let Value::Int(end) = &args[0] else { return Ok(Value::no_such_overload()) };
    elements(usize::try_from((*end).max(0)).map_err(|_| Halt::TooExpensive)?)?;
    Ok(Value::list((0..*end).map(Value::Int).collect()))
}

pub(crate) fn reverse(args: &[Value], _: &mut Budget) -> Answer {
    Ok(Value::list(list!(&args[0]).iter().rev().cloned().collect()))
}

pub(crate) fn distinct(args: &[Value], budget: &mut Budget) -> Answer {
    let mut unique: Vec<Value> = Vec::new();
    'elements: for element in list!(&args[0]).iter() {
        for other in &unique {
            if same(element, other, budget)? == Equality::Equal {
                continue 'elements;
            }
        }
        unique.push(element.clone());
    }
    Ok(Value::list(unique))
}

fn all_in(list: &[Value], within: &[Value], budget: &mut Budget) -> Result<bool, Halt> {
    for element in list {
        if !contains(within, element, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn sets_contains(args: &[Value], budget: &mut Budget) -> Answer {
    let (list, part) = (list!(&args[0]), list!(&args[1]));
    Ok(Value::Bool(all_in(part, list, budget)?))
}

pub(crate) fn sets_equivalent(args: &[Value], budget: &mut Budget) -> Answer {
    let (left, right) = (list!(&args[0]), list!(&args[1]));
    Ok(Value::Bool(all_in(right, left, budget)? && all_in(left, right, budget)?))
}

pub(crate) fn sets_intersect(args: &[Value], budget: &mut Budget) -> Answer {
    let (left, right) = (list!(&args[0]), list!(&args[1]));
    for element in left.iter() {
        if contains(right, element, budget)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn inserted(map: &mut crate::value::MapValue, key: &Value, value: &Value) -> Option<Value> {
    if map.contains(key) {
        return Some(Value::error(format!("insert failed: key {} already exists", crate::eval::shown(key))));
    }
    elements(map.entries.len() + 1).err().map(|_| Value::error("insert failed: too many entries")).or_else(
        || {
            let taken = map.insert(key.clone(), value.clone());
            (!taken).then(|| Value::error(format!("unsupported key type: {}", key.type_name())))
        },
    )
}

pub(crate) fn insert_entry(args: &[Value], _: &mut Budget) -> Answer {
    let [Value::Map(map), key, value] = args else { return Ok(Value::no_such_overload()) };
    let mut map = (**map).clone();
    Ok(inserted(&mut map, key, value).unwrap_or(Value::Map(Arc::new(map))))
}

pub(crate) fn insert_map(args: &[Value], _: &mut Budget) -> Answer {
    let [Value::Map(map), Value::Map(more)] = args else { return Ok(Value::no_such_overload()) };
    let mut map = (**map).clone();
    for (key, value) in more.entries.values() {
        if let Some(error) = inserted(&mut map, key, value) {
            return Ok(error);
        }
    }
    Ok(Value::Map(Arc::new(map)))
}
