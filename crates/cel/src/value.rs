//! What expressions have as values, an error being one of them: how they are equal, ordered and sized as in cel-go.

use crate::{
    amount::Amount,
    budget::{Budget, Halt},
    functions::{formats::NamedFormat, net::Cidr, time::Moment, url::Url},
    semver::Semver,
};
use core::net::IpAddr;
use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<Vec<Value>>),
    Map(Arc<MapValue>),
    /// A type, by the name that the reference has for it at run time.
    Type(&'static str),
    Optional(Option<Arc<Value>>),
    /// Nanoseconds.
    Duration(i64),
    Moment(Moment),
    /// With what arithmetic gave: the reference tells those from others when it compares them.
    Amount(Arc<Amount>, Computed),
    Semver(Arc<Semver>),
    Url(Arc<Url>),
    Ip(IpAddr),
    Cidr(Cidr),
    Format(&'static NamedFormat),
    Error(Arc<str>),
}

pub(crate) type Computed = bool;

/// What can be the key of a map. Whole numbers of all kinds are the same keys, as they are equal.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Key {
    Null,
    Bool(bool),
    Number(i128),
    /// The bits of a number that is not whole.
    Fraction(u64),
    Text(Arc<str>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MapValue {
    /// In the order of keys; the reference has none. With the key as it was written.
    pub(crate) entries: BTreeMap<Key, (Value, Value)>,
    /// What is found for keys that are not there.
    pub(crate) default: Option<Value>,
}

/// Equality can fail: some of the reference's values refuse to be compared with others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Equality {
    Equal,
    Different,
    NoSuchOverload,
}

pub(crate) const NO_SUCH_OVERLOAD: &str = "no such overload";

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn error(message: impl Into<Arc<str>>) -> Self {
        Self::Error(message.into())
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::error(NO_SUCH_OVERLOAD)
    }

    pub(crate) fn list(elements: Vec<Self>) -> Self {
        Self::List(Arc::new(elements))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Moment(_) => "google.protobuf.Timestamp",
            Self::Amount(..) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Error(_) => "error",
        }
    }

    /// What Go has as a string for it: types are strings there too.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Type(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Null => Key::Null,
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Number(i128::from(*value)),
            Self::Uint(value) => Key::Number(i128::from(*value)),
            Self::Double(value) => match whole(*value) {
                Some(whole) => Key::Number(whole),
                None => Key::Fraction(value.to_bits()),
            },
            Self::Text(text) => Key::Text(text.clone()),
            _ => return None,
        })
    }

    /// The size that the reference's costs are about; `None` for what has none.
    pub(crate) fn size(&self) -> Option<u64> {
        Some(match self {
            Self::Text(text) => characters(text),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(elements) => elements.len() as u64,
            Self::Map(map) => map.entries.len() as u64,
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => u64::from(cidr.bits).div_ceil(8),
            _ => return None,
        })
    }

    /// What `has`, `size()` and others ask of the value's type.
    pub(crate) fn has_receiver(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Duration(_) | Self::Moment(_))
    }

    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(elements) => elements.is_empty(),
            Self::Map(map) => map.entries.is_empty(),
            Self::Duration(nanos) => *nanos == 0,
            Self::Moment(moment) => moment.is_go_zero(),
            _ => false,
        }
    }
}

pub(crate) fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

fn whole(value: f64) -> Option<i128> {
    // Beyond these it equals no whole number of CEL's.
    let within = (-9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&value);
    (within && value.fract() == 0.0).then_some(value as i128)
}

impl MapValue {
    pub(crate) fn find(&self, key: &Value) -> Option<&Value> {
        let found = key.key().and_then(|key| self.entries.get(&key)).map(|(_, value)| value);
        found.or(self.default.as_ref())
    }

    pub(crate) fn contains(&self, key: &Value) -> bool {
        key.key().is_some_and(|key| self.entries.contains_key(&key))
    }

    pub(crate) fn insert(&mut self, key: Value, value: Value) -> bool {
        match key.key() {
            Some(at) => {
                self.entries.insert(at, (key, value));
                true
            }
            None => false,
        }
    }
}

/// `==` between two values, null being equal to itself alone.
pub(crate) fn equal(left: &Value, right: &Value, budget: &mut Budget) -> Result<Equality, Halt> {
    let nulls = (matches!(left, Value::Null), matches!(right, Value::Null));
    match nulls {
        (false, false) => same(left, right, budget),
        (left, right) => Ok(Equality::of(left == right)),
    }
}

impl Equality {
    pub(crate) fn of(equal: bool) -> Self {
        if equal { Self::Equal } else { Self::Different }
    }

    pub(crate) fn value(self) -> Value {
        match self {
            Self::Equal => Value::Bool(true),
            Self::Different => Value::Bool(false),
            Self::NoSuchOverload => Value::no_such_overload(),
        }
    }
}

/// The left value's own idea of equality.
pub(crate) fn same(left: &Value, right: &Value, budget: &mut Budget) -> Result<Equality, Halt> {
    use Value::*;
    budget.step()?;
    Ok(match (left, right) {
        (Null, other) => Equality::of(matches!(other, Null)),
        (Bool(left), Bool(right)) => Equality::of(left == right),
        (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
            Equality::of(numbers(left, right) == Some(Ordering::Equal))
        }
        (Text(left), Text(right)) => {
            budget.steps(left.len().min(right.len()) as u64 / 64)?;
            Equality::of(left == right)
        }
        (Bytes(left), Bytes(right)) => Equality::of(left == right),
        (Type(left), Type(right)) => Equality::of(left == right),
        (Duration(left), Duration(right)) => Equality::of(left == right),
        (Moment(left), Moment(right)) => Equality::of(left.instant() == right.instant()),
        (List(left), List(right)) => return lists(left, right, budget),
        (Map(left), Map(right)) => return maps(left, right, budget),
        (Optional(left), Optional(right)) => match (left, right) {
            (None, None) => Equality::Equal,
            (Some(left), Some(right)) => return same(left, right, budget),
            _ => Equality::Different,
        },
        // What was computed cannot be on the right.
        (Amount(left, _), Amount(right, false)) => Equality::of(left.compare(right) == Ordering::Equal),
        (Semver(left), Semver(right)) => Equality::of(left.compare(right) == Ordering::Equal),
        (Url(left), Url(right)) => Equality::of(left.to_string() == right.to_string()),
        (Ip(left), Ip(right)) => Equality::of(left == right),
        (Cidr(left), Cidr(right)) => Equality::of(left == right),
        (Format(left), Format(right)) => Equality::of(left.shown == right.shown),
        (Amount(..) | Semver(_) | Url(_) | Ip(_) | Cidr(_) | Format(_), _) => Equality::NoSuchOverload,
        _ => Equality::Different,
    })
}

/// Elements that cannot be compared do not make a difference.
fn lists(left: &[Value], right: &[Value], budget: &mut Budget) -> Result<Equality, Halt> {
    if left.len() != right.len() {
        return Ok(Equality::Different);
    }
    for (left, right) in left.iter().zip(right) {
        if equal(left, right, budget)? == Equality::Different {
            return Ok(Equality::Different);
        }
    }
    Ok(Equality::Equal)
}

fn maps(left: &MapValue, right: &MapValue, budget: &mut Budget) -> Result<Equality, Halt> {
    if left.entries.len() != right.entries.len() {
        return Ok(Equality::Different);
    }
    for (key, value) in left.entries.values() {
        let Some(other) = right.find(key) else { return Ok(Equality::Different) };
        if equal(value, other, budget)? == Equality::Different {
            return Ok(Equality::Different);
        }
    }
    Ok(Equality::Equal)
}

/// `None` if one of them is no number.
fn numbers(left: &Value, right: &Value) -> Option<Ordering> {
    use Value::{Double, Int, Uint};
    Some(match (left, right) {
        (Int(left), Int(right)) => left.cmp(right),
        (Uint(left), Uint(right)) => left.cmp(right),
        (Int(left), Uint(right)) => i128::from(*left).cmp(&i128::from(*right)),
        (Uint(left), Int(right)) => i128::from(*left).cmp(&i128::from(*right)),
        (Double(left), Double(right)) => left.partial_cmp(right)?,
        (Double(left), Int(right)) => double_and_int(*left, *right)?,
        (Double(left), Uint(right)) => double_and_uint(*left, *right)?,
        (Int(left), Double(right)) => double_and_int(*right, *left)?.reverse(),
        (Uint(left), Double(right)) => double_and_uint(*right, *left)?.reverse(),
        _ => return None,
    })
}

fn double_and_int(double: f64, int: i64) -> Option<Ordering> {
    if double < i64::MIN as f64 {
        return Some(Ordering::Less);
    }
    if double > i64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    double.partial_cmp(&(int as f64))
}

fn double_and_uint(double: f64, uint: u64) -> Option<Ordering> {
    if double < 0.0 {
        return Some(Ordering::Less);
    }
    if double > u64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    double.partial_cmp(&(uint as f64))
}

/// The order of two values, or the error that there is none.
pub(crate) fn compare(left: &Value, right: &Value) -> Result<Ordering, Value> {
    use Value::*;
    let nan = |value: &Value| matches!(value, Double(value) if value.is_nan());
    match (left, right) {
        (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
            if nan(left) || nan(right) {
                return Err(Value::error("NaN values cannot be ordered"));
            }
            numbers(left, right).ok_or_else(Value::no_such_overload)
        }
        (Bool(left), Bool(right)) => Ok(left.cmp(right)),
        (Text(left), Text(right)) => Ok(left.as_bytes().cmp(right.as_bytes())),
        (Bytes(left), Bytes(right)) => Ok(left.cmp(right)),
        (Duration(left), Duration(right)) => Ok(left.cmp(right)),
        (Moment(left), Moment(right)) => Ok(left.instant().cmp(&right.instant())),
        _ => Err(Value::no_such_overload()),
    }
}

/// Values of these types can be ordered, if not with each other.
pub(crate) fn is_comparable(value: &Value) -> bool {
    use Value::*;
    matches!(value, Bool(_) | Int(_) | Uint(_) | Double(_) | Text(_) | Bytes(_) | Duration(_) | Moment(_))
}
