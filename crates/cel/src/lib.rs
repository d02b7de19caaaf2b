//! CEL expressions that select devices (`spec.devices.requests[].exactly.selectors[].cel` of a ResourceClaim, `spec.selectors` of a
//! DeviceClass), as kube-scheduler 1.36 evaluates them: the same libraries, types, results and costs.
//!
//! An expression is compiled once and evaluated for many devices. Nothing here knows the time, and no text makes it panic, call itself
//! without end or use more than its budget.
//!
//! ```
//! use supercargo_cel::{DeviceFacts, DeviceFact, DeviceSelector};
//!
//! let selector = DeviceSelector::compile(r#"device.attributes["gpu.example.com"].model == "a100""#)?;
//! let mut facts = DeviceFacts::new("gpu.example.com", false);
//! facts.attribute("model", DeviceFact::Text("a100"))?;
//! assert_eq!(selector.evaluate(&facts.build()).result, Ok(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod amount;
mod ast;
mod budget;
mod checker;
mod cost;
mod declarations;
mod estimate;
mod eval;
mod functions;
mod go_regex;
mod go_text;
mod issues;
mod lexer;
mod literals;
mod macros;
mod parser;
mod plan;
mod semver;
mod types;
mod unify;
mod validators;
mod value;

use amount::Amount;
use budget::Halt;
use eval::{Evaluator, OUTERMOST};
use issues::{Issues, SourceText};
use plan::Node;
use semver::Semver;
use std::{fmt, sync::Arc};
use types::Type;
use value::{MapValue, Value};

/// What one evaluation may cost.
pub const COST_LIMIT: u64 = 1_000_000;

/// What the API server takes as a new selector.
pub const LONGEST_EXPRESSION_BYTES: usize = 10 * 1024;

/// A compiled expression.
#[derive(Debug)]
pub struct DeviceSelector {
    program: Node,
    ids: usize,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SelectorDefect {
    /// In what way.
    pub kind: SelectorDefectKind,
    /// In the reference's words where it has some.
    pub message: String,
}

/// In what way an expression cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SelectorDefectKind {
    /// It is no expression, its types do not fit, or a literal in it is wrong.
    Invalid,
    /// It is an expression, but not a condition.
    NotACondition,
}

impl fmt::Display for SelectorDefect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for SelectorDefect {}

/// What came of an evaluation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evaluated {
    /// Whether the device is selected.
    pub result: Result<bool, EvaluationError>,
    /// In the reference's units.
    pub cost: u64,
}

/// Why there is no answer for a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EvaluationError {
    /// In what way.
    pub kind: EvaluationErrorKind,
    /// In the reference's words where it has some.
    pub message: String,
}

/// In what way an evaluation failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EvaluationErrorKind {
    /// Something in it failed: a key that is not there, a type that does not fit, a division by zero.
    Failed,
    /// The value is no bool.
    NotABool,
    /// It costs more than it may.
    TooExpensive,
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}

impl DeviceSelector {
    /// Parses, checks and plans the expression.
    ///
    /// # Errors
    /// What is wrong with it; all that is found, with lines and columns.
    pub fn compile(expression: &str) -> Result<Self, SelectorDefect> {
        let checked = Self::check(expression)?;
        let of = checked.type_of(&checked.root);
        if !matches!(of, Type::Bool | Type::Any) {
            let message = format!("must evaluate to bool or the unknown type, not {}", of.as_result());
            return Err(SelectorDefect { kind: SelectorDefectKind::NotACondition, message });
        }
        let program = plan::plan(&checked).map_err(|why| SelectorDefect {
            kind: SelectorDefectKind::Invalid,
            message: format!("program instantiation failed: {why}"),
        })?;
        Ok(Self { program, ids: checked.offsets.len() })
    }

    fn check(expression: &str) -> Result<checker::Checked, SelectorDefect> {
        let mut issues = Issues::default();
        let checked = parser::parse(expression, &mut issues)
            .and_then(|parsed| checker::check(parsed, &mut issues))
            .inspect(|checked| validators::validate(checked, &mut issues));
        match checked {
            Some(checked) if issues.is_empty() => Ok(checked),
            _ => Err(SelectorDefect {
                kind: SelectorDefectKind::Invalid,
                message: format!("compilation failed: {}", issues.display(&SourceText::new(expression))),
            }),
        }
    }

    /// The most that the expression can cost, as the API server estimates it: it takes new selectors up to [`COST_LIMIT`], and
    /// up to [`LONGEST_EXPRESSION_BYTES`].
    ///
    /// # Errors
    /// If it does not compile.
    pub fn estimated_cost(expression: &str) -> Result<u64, SelectorDefect> {
        Self::compile(expression)?;
        Self::check(expression).map(|checked| estimate::largest_cost(&checked))
    }

    /// Whether the device is selected.
    #[must_use]
    pub fn evaluate(&self, device: &SelectableDevice) -> Evaluated {
        let mut evaluator = Evaluator::new(&device.value, self.ids, COST_LIMIT);
        let result = evaluator.eval(&self.program, OUTERMOST);
        let cost = evaluator.tracker.cost();
        let failed = |kind, message: String| Err(EvaluationError { kind, message });
        let result = match result {
            Ok(Value::Bool(selected)) => Ok(selected),
            Ok(Value::Error(message)) => failed(EvaluationErrorKind::Failed, message.to_string()),
            Ok(other) => failed(EvaluationErrorKind::NotABool, not_a_bool(&other)),
            Err(Halt::Internal(message)) => failed(EvaluationErrorKind::Failed, message),
            Err(Halt::TooExpensive) => failed(
                EvaluationErrorKind::TooExpensive,
                "operation cancelled: actual cost limit exceeded".to_owned(),
            ),
        };
        Evaluated { result, cost }
    }
}

fn not_a_bool(value: &Value) -> String {
    let why = match value {
        Value::Text(_) => "unsupported native conversion from string to 'bool'".to_owned(),
        Value::Int(_) => "unsupported type conversion from 'int' to bool".to_owned(),
        Value::Uint(_) => "unsupported type conversion from 'uint' to bool".to_owned(),
        Value::Double(_) => "type conversion error from Double to 'bool'".to_owned(),
        Value::Bytes(_) => "type conversion error from Bytes to 'bool'".to_owned(),
        Value::List(_) => "type conversion error from list to 'bool'".to_owned(),
        Value::Map(_) => "type conversion error from map to 'bool'".to_owned(),
        Value::Semver(_) => "type conversion error from 'Semver' to 'bool'".to_owned(),
        Value::Amount(..) => "type conversion error from 'Quantity' to 'bool'".to_owned(),
        other => format!("type conversion error from '{}' to 'bool'", other.type_name()),
    };
    format!("CEL result of type {} could not be converted to bool: {why}", value.type_name())
}

/// The value of a device's attribute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeviceFact<'a> {
    /// A whole number.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// A text.
    Text(&'a str),
    /// A semantic version.
    Version(&'a str),
    /// None of these; no selector can be evaluated.
    Unsupported,
}

/// What is known of a device, from which a [`SelectableDevice`] is made.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    driver: Arc<str>,
    allow_multiple_allocations: bool,
    attributes: MapValue,
    capacity: MapValue,
}

/// A device as expressions see it.
#[derive(Clone, Debug)]
pub struct SelectableDevice {
    value: Value,
}

impl DeviceFacts {
    /// A device that has nothing yet.
    #[must_use]
    pub fn new(driver: &str, allow_multiple_allocations: bool) -> Self {
        let driver = driver.into();
        let empty = MapValue { default: Some(Value::Map(Arc::default())), ..MapValue::default() };
        Self { driver, allow_multiple_allocations, attributes: empty.clone(), capacity: empty }
    }

    /// Adds an attribute. One without a domain is in that of the driver.
    ///
    /// # Errors
    /// If it has no value, or its version is none: then the reference evaluates nothing for this device.
    pub fn attribute(&mut self, name: &str, fact: DeviceFact<'_>) -> Result<(), EvaluationError> {
        let failed = |why: &str| EvaluationError {
            kind: EvaluationErrorKind::Failed,
            message: format!("attribute {name}: {why}"),
        };
        let value = match fact {
            DeviceFact::Int(value) => Value::Int(value),
            DeviceFact::Bool(value) => Value::Bool(value),
            DeviceFact::Text(text) => Value::text(text),
            DeviceFact::Version(text) => {
                let version =
                    Semver::parse(text).map_err(|why| failed(&format!("parse semantic version: {why}")))?;
                Value::Semver(Arc::new(version))
            }
            DeviceFact::Unsupported => return Err(failed("unsupported attribute value")),
        };
        insert(&mut self.attributes, &self.driver, name, value);
        Ok(())
    }

    /// Adds a capacity, as it is written. What is no quantity counts as nothing.
    pub fn capacity(&mut self, name: &str, quantity: &str) {
        let amount = Amount::parse(quantity).unwrap_or(Amount::Scaled { value: 0, scale: 0 });
        insert(&mut self.capacity, &self.driver, name, Value::Amount(Arc::new(amount), false));
    }

    /// The device as expressions see it.
    #[must_use]
    pub fn build(self) -> SelectableDevice {
        let mut device = MapValue::default();
        device.insert(Value::text("driver"), Value::Text(self.driver));
        device.insert(Value::text("allowMultipleAllocations"), Value::Bool(self.allow_multiple_allocations));
        device.insert(Value::text("attributes"), Value::Map(Arc::new(self.attributes)));
        device.insert(Value::text("capacity"), Value::Map(Arc::new(self.capacity)));
        SelectableDevice { value: Value::Map(Arc::new(device)) }
    }
}

/// By domain, then by name.
fn insert(domains: &mut MapValue, driver: &str, name: &str, value: Value) {
    let (domain, name) = name.split_once('/').unwrap_or((driver, name));
    let domain = Value::text(domain);
    let mut inner = match domains.contains(&domain).then(|| domains.find(&domain)).flatten() {
        Some(Value::Map(inner)) => inner.clone(),
        _ => Arc::default(),
    };
    Arc::make_mut(&mut inner).insert(Value::text(name), value);
    domains.insert(domain, Value::Map(inner));
}
