//! What an evaluation costs, counted as cel-go and Kubernetes do: each part of the program reports its value, calls find those of
//! their arguments among what was reported before, and cost what these are worth.

use crate::{
    ast::Id,
    budget::{Budget, Halt},
    plan::Node,
    value::Value,
};

pub(crate) const PER_CHARACTER: f64 = 0.1;
pub(crate) const PER_REGEX_CHARACTER: f64 = 0.25;
pub(crate) const LIST_CREATION: u64 = 10;
pub(crate) const MAP_CREATION: u64 = 30;

/// Kubernetes' functions that cost one unit whatever they are given.
#[rustfmt::skip]
pub(crate) const UNIT: &[&str] = &[
    "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast",
    "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan",
    "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch", "getScheme", "getHostname", "getHost", "getPort",
    "getEscapedPath", "getQuery",
];

#[derive(Debug)]
pub(crate) struct Tracker {
    cost: u64,
    limit: u64,
    reported: Vec<(Id, Value)>,
    /// By id: how often it is among those reported, so that nobody looks for what is not there.
    counts: Vec<u32>,
}

impl Tracker {
    pub(crate) fn new(ids: usize, limit: u64) -> Self {
        Self { cost: 0, limit, reported: Vec::new(), counts: vec![0; ids] }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    pub(crate) fn add(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    /// The reference takes back what it has just added, which can be nothing.
    pub(crate) fn take_back(&mut self, cost: u64) {
        self.cost = self.cost.wrapping_sub(cost);
    }

    pub(crate) fn report(&mut self, id: Id, value: &Value) -> Result<(), Halt> {
        self.counts[id as usize] += 1;
        self.reported.push((id, value.clone()));
        if self.cost > self.limit { Err(Halt::TooExpensive) } else { Ok(()) }
    }

    /// Nobody will ask for the value that was reported last, if it is this one's.
    pub(crate) fn forget(&mut self, id: Id) {
        if let Some(last) = self.reported.last_mut().filter(|last| last.0 == id) {
            last.1 = Value::Null;
        }
    }

    fn take(&mut self, id: Id) -> Option<Value> {
        if self.counts[id as usize] == 0 {
            return None;
        }
        while let Some((found, value)) = self.reported.pop() {
            self.counts[found as usize] -= 1;
            if found == id {
                return Some(value);
            }
        }
        None
    }

    /// Forgets what was reported since the id was, and it.
    pub(crate) fn drop_to(&mut self, id: Id) {
        self.take(id);
    }

    /// The arguments' values, the last of which was reported last; `None` if one is missing.
    pub(crate) fn take_args(&mut self, args: &[Node]) -> Option<Vec<Value>> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args.iter().rev() {
            values.push(self.take(arg.id())?);
        }
        values.reverse();
        Some(values)
    }
}

fn size(value: &Value) -> u64 {
    value.size().unwrap_or(1)
}

/// Of what is in an optional, too.
fn size_within(value: &Value) -> u64 {
    match value {
        Value::Optional(Some(inner)) => size_within(inner),
        other => size(other),
    }
}

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn regex_cost(text: u64, regex: u64) -> u64 {
    let text = ((1.0 + text as f64) * PER_CHARACTER).ceil() as u64;
    text.saturating_mul(scaled(regex, PER_REGEX_CHARACTER))
}

pub(crate) fn of_call(
    function: &str,
    overload: &str,
    args: &[Value],
    result: &Value,
    budget: &mut Budget,
) -> Result<u64, Halt> {
    if let Some(cost) = of_list_extension(overload, args, result) {
        return Ok(cost);
    }
    if let Some(cost) = of_kubernetes(function, overload, args, result, budget)? {
        return Ok(cost);
    }
    Ok(of_standard(overload, args))
}

fn of_list_extension(overload: &str, args: &[Value], result: &Value) -> Option<u64> {
    let allocating = |size: f64| size as u64 + 1 + LIST_CREATION;
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => allocating(size(result) as f64),
        "list_flatten" | "list_flatten_int" => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) => *depth as f64,
                _ => 1.0,
            };
            allocating(size(&args[0]) as f64 * depth)
        }
        "list_distinct" => allocating(compared_with_itself(&args[0])),
        "list_sets_contains_list" | "list_sets_intersects_list" => set_cost(args, 1.0),
        "list_sets_equivalent_list" => set_cost(args, 2.0),
        _ if overload.ends_with("_sort") => allocating(compared_with_itself(&args[0])),
        _ if overload.ends_with("_sortByAssociatedKeys") => allocating(compared_with_itself(&args[1])),
        _ => return None,
    })
}

fn compared_with_itself(list: &Value) -> f64 {
    let texts =
        matches!(list, Value::List(list) if matches!(list.first(), Some(Value::Text(_) | Value::Bytes(_))));
    let factor = if texts { 2.0 + PER_CHARACTER } else { 2.0 };
    let size = size(list);
    size.saturating_mul(size) as f64 * factor
}

fn set_cost(args: &[Value], factor: f64) -> u64 {
    let pairs = size(&args[0]).saturating_mul(size(&args[1]));
    1u64.saturating_add((pairs as f64 * factor) as u64)
}

fn of_kubernetes(
    function: &str,
    overload: &str,
    args: &[Value],
    result: &Value,
    budget: &mut Budget,
) -> Result<Option<u64>, Halt> {
    let characters = |factor: f64| args.first().map(|first| scaled(size(first), factor));
    Ok(match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => match args.first() {
            Some(first) => Some(traversal(first, budget)?),
            None => Some(0),
        },
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => characters(PER_CHARACTER),
        "ip" if overload == "cidr_ip" => Some(1),
        "ip" => characters(PER_CHARACTER),
        "replace" | "split" | "ip.isCanonical" => characters(2.0 * PER_CHARACTER),
        "join" => Some(scaled(size(result), 2.0 * PER_CHARACTER)),
        "find" | "findAll" => Some(regex_cost(size(&args[0]), size(&args[1]))),
        "containsIP" => {
            let network = size(&args[0]);
            let other = scaled(size(&args[1]), PER_CHARACTER);
            let parsed = if overload == "cidr_contains_ip_string" { other } else { 0 };
            Some(scaled(2 * network, PER_CHARACTER) + parsed)
        }
        "containsCIDR" => {
            let network = size(&args[0]);
            let other = scaled(size(&args[1]), PER_CHARACTER);
            let parsed = if overload == "cidr_contains_cidr_string" { other } else { 0 };
            Some(scaled(2 * network, PER_CHARACTER) + scaled(network, PER_CHARACTER) + 1 + parsed)
        }
        "validate" => match &args[0] {
            Value::Format(format) => Some(regex_cost(size(&args[1]), format.regex_length)),
            _ => None,
        },
        _ if UNIT.contains(&function) => Some(1),
        "_==_" => {
            use Value::*;
            matches!(args[0], Amount(..) | Ip(_) | Cidr(_) | Format(_) | Url(_) | Semver(_)).then_some(1)
        }
        _ => None,
    })
}

/// All of a value, looked at once.
fn traversal(value: &Value, budget: &mut Budget) -> Result<u64, Halt> {
    budget.step()?;
    Ok(match value {
        Value::Text(text) => (text.len() as f64 * PER_CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * PER_CHARACTER) as u64,
        Value::List(list) => {
            let mut cost = 0u64;
            for element in list.iter() {
                cost = cost.saturating_add(traversal(element, budget)?);
            }
            cost
        }
        Value::Map(map) => {
            let mut cost = 0u64;
            for (key, value) in map.entries.values() {
                cost = cost.saturating_add(traversal(key, budget)?).saturating_add(traversal(value, budget)?);
            }
            cost
        }
        _ => 1,
    })
}

fn of_standard(overload: &str, args: &[Value]) -> u64 {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => scaled(size_within(&args[0]), PER_CHARACTER),
        "in_list" => size_within(&args[1]),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => scaled(size_within(&args[0]).min(size_within(&args[1])), PER_CHARACTER),
        "add_string" | "add_bytes" => scaled(size_within(&args[0]) + size_within(&args[1]), PER_CHARACTER),
        "matches_string" => regex_cost(size_within(&args[0]), size_within(&args[1])),
        "contains_string" => {
            let text = scaled(size_within(&args[0]), PER_CHARACTER);
            text.saturating_mul(scaled(size_within(&args[1]), PER_CHARACTER))
        }
        _ => 1,
    }
}
