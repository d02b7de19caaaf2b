//! The error of one attempt to decode, before it becomes a problem.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::nearest;
use crate::path::Path;
use crate::problem::Problem;
use crate::value::{Location, Value};

/// What went wrong, and with which value once that is known.
#[derive(Debug)]
pub(super) struct DecodeError<'v>(Box<Details<'v>>);

#[derive(Debug)]
pub(super) struct Details<'v> {
    message: String,
    hint: Option<String>,
    /// Set when the error is that a struct lacks this field.
    pub(super) missing_field: Option<&'static str>,
    /// The value to leave out so that decoding can go on.
    pub(super) culprit: Option<&'v Value>,
    at: Option<Location>,
    path: String,
}

impl<'v> std::ops::Deref for DecodeError<'v> {
    type Target = Details<'v>;

    fn deref(&self) -> &Details<'v> {
        &self.0
    }
}

impl<'v> DecodeError<'v> {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            message: message.into(),
            hint: None,
            missing_field: None,
            culprit: None,
            at: None,
            path: String::new(),
        }))
    }

    pub(super) fn hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.0.hint = hint.map(Into::into);
        self
    }

    /// Ties the error to a value, unless it is already tied to one further in.
    pub(super) fn locate(mut self, culprit: &'v Value, at: Location, path: &Path<'_>) -> Self {
        if self.0.culprit.is_none() {
            self.0.culprit = Some(culprit);
            self.0.at = Some(at);
            self.0.path = path.to_string();
        }
        self
    }

    pub(super) fn into_problem(self) -> Problem {
        let details = *self.0;
        Problem { at: details.at, path: details.path, hint: details.hint, ..Problem::error(details.message) }
    }
}

/// The hint for a name that is not among the known ones.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    nearest(name, known.iter().copied()).map(|nearest| format!("did you mean {nearest}?"))
}

/// A value in words: `the number 5`, `the string "a"`.
fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(bool) => format!("the boolean {bool}"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Char(c) => format!("the string {:?}", c.to_string()),
        Unexpected::Str(text) => format!("the string {text:?}"),
        Unexpected::Bytes(_) => "bytes".to_owned(),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map | Unexpected::NewtypeStruct => "a map".to_owned(),
        Unexpected::Enum | Unexpected::UnitVariant => "a name".to_owned(),
        Unexpected::NewtypeVariant | Unexpected::TupleVariant | Unexpected::StructVariant => {
            "a map of one entry".to_owned()
        }
        Unexpected::Other(other) => other.to_owned(),
    }
}

impl Error for DecodeError<'_> {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.rsplit_once("\nhint: ") {
            Some((message, hint)) => Self::new(message).hint(Some(hint)),
            None => Self::new(message),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {length} of them"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let allowed = expected.join(", ");
        Self::new(format!("{variant:?} is not one of {allowed}")).hint(did_you_mean(variant, expected))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("there is no field {field} here")).hint(did_you_mean(field, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        let mut error = Self::new(format!("the field {field} is missing"));
        error.0.missing_field = Some(field);
        error
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the field {field} is set twice"))
    }
}

impl std::error::Error for DecodeError<'_> {}

impl fmt::Display for DecodeError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
