//! Typed objects out of located values, with every problem and not only the first.
//!
//! serde stops at the first error. So the value that caused it is left out and the document is
//! decoded again, until it decodes or nothing more can be left out. Types therefore need to know
//! nothing about locations: an ordinary error of an ordinary `Deserialize` is enough.

mod deserializer;
mod error;

use std::cell::RefCell;
use std::collections::HashSet;

use serde::de::DeserializeOwned;

use crate::path::Path;
use crate::problem::{Problem, Problems};
use crate::value::{Location, Source, Value};
use deserializer::ValueDeserializer;
use error::DecodeError;

/// How to treat fields that the type does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownFields {
    /// Pass over them, as for objects that a newer Kubernetes wrote.
    Ignore,
    /// Report each, as for texts that people write.
    Deny,
}

/// Decodes a typed thing out of a located value; `path` is the field path of `value` itself (empty
/// for a document).
///
/// - A null field of a struct counts as absent, as in Kubernetes.
/// - A type may raise any error; it is reported at the value it was raised for. If the message ends
///   with a line that begins with `hint: `, that line becomes the hint.
///
/// # Errors
///
/// All problems of the value, in the order of the text.
pub fn decode<T: DeserializeOwned>(
    source: &Source,
    value: &Value,
    path: &str,
    unknown: UnknownFields,
) -> Result<T, Problems> {
    match decode_in_part(source, value, path, unknown) {
        (Some(decoded), problems) if problems.is_empty() => Ok(decoded),
        (_, problems) => Err(problems),
    }
}

/// The same; if there are problems, along with what is decoded without the values that cause them, as if these were absent.
/// `None` if nothing can be left out, or too much would have to be.
pub fn decode_in_part<T: DeserializeOwned>(
    source: &Source,
    value: &Value,
    path: &str,
    unknown: UnknownFields,
) -> (Option<T>, Problems) {
    // Each round decodes everything anew; people do not read more problems than this anyway.
    const MAX_ROUNDS: usize = 100;
    let root = Path::Root(path);
    let mut findings = Findings { source, known: HashSet::new(), problems: Problems::default() };
    let mut pass = Pass { unknown, left_out: HashSet::new(), unknown_fields: RefCell::default() };
    let mut decoded = None;
    for _ in 0..MAX_ROUNDS {
        let result = T::deserialize(ValueDeserializer { value, path: &root, pass: &pass });
        let unknown_fields = pass.unknown_fields.take();
        unknown_fields.into_iter().for_each(|problem| findings.add(problem));
        let error = match result {
            Ok(whole) => {
                decoded = Some(whole);
                break;
            }
            Err(error) => error.locate(value, value.at, &root),
        };
        let culprit = error.culprit.unwrap_or(value);
        if !pass.explains(&error, culprit) {
            findings.add(error.into_problem());
        }
        if std::ptr::eq(culprit, value) || !pass.left_out.insert(culprit) {
            break;
        }
    }
    findings.problems.0.sort_by_key(|problem| problem.at);
    (decoded, findings.problems)
}

/// The problems found so far, each once.
struct Findings<'s> {
    source: &'s Source,
    known: HashSet<(Option<Location>, String, String)>,
    problems: Problems,
}

impl Findings<'_> {
    fn add(&mut self, mut problem: Problem) {
        let identity = (problem.at, problem.path.clone(), problem.message.clone());
        if self.known.insert(identity) {
            problem.source = Some(self.source.clone());
            self.problems.push(problem);
        }
    }
}

/// One attempt to decode a document.
struct Pass {
    unknown: UnknownFields,
    /// Values that caused an error already, told apart by their address.
    left_out: HashSet<*const Value>,
    unknown_fields: RefCell<Vec<Problem>>,
}

impl Pass {
    fn leaves_out(&self, value: &Value) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&std::ptr::from_ref(value))
    }

    /// Whether an error may come only from what was left out, and so says nothing about the text.
    fn explains(&self, error: &DecodeError<'_>, culprit: &Value) -> bool {
        match &error.missing_field {
            Some(field) => culprit.get(field).is_some_and(|value| self.leaves_out(value)),
            None => self.leaves_out_within(culprit),
        }
    }

    fn leaves_out_within(&self, value: &Value) -> bool {
        let within = |inner: &Value| self.leaves_out(inner) || self.leaves_out_within(inner);
        value.items().iter().any(within) || value.entries().iter().any(|entry| within(&entry.value))
    }
}

#[cfg(test)]
mod tests;
