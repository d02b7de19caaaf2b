//! Manifests as people write them: YAML and JSON texts become located values, and located values
//! become typed objects.
//!
//! The crate is pure: it takes text and does no I/O. Every problem it reports knows the file, the
//! line, the column and the field, so that people can mend what is wrong without searching.
//!
//! ```
//! use serde::Deserialize;
//! use supercargo_manifest::{Source, UnknownFields, decode, read};
//!
//! #[derive(Deserialize)]
//! struct Toleration {
//!     key: String,
//! }
//!
//! let source = Source::new("toleration.yaml", "kye: dedicated\n");
//! let documents = read(&source)?;
//! let problems = decode::<Toleration>(&source, &documents[0], "", UnknownFields::Deny)
//!     .err()
//!     .expect("kye is not a field");
//! assert!(problems.to_string().contains("hint: did you mean key?"));
//! # Ok::<(), supercargo_manifest::Problems>(())
//! ```
//!
//! Invariants:
//!
//! - No text makes this crate panic, overflow the stack or use memory without bound.
//! - No value is nested deeper than [`MAX_DEPTH`].
//! - Numbers keep the text they were written with; nothing is rounded before a type asks for it.

mod base64;
mod clip;
mod decode;
mod duplicates;
mod duration;
mod excerpt;
mod json;
mod nearest;
mod number;
#[cfg(test)]
mod outline;
mod path;
mod problem;
mod secrets;
mod value;
mod yaml;

pub use base64::Base64;
pub use clip::{MAX_FOREIGN_TEXT_BYTES, clip};
pub use decode::{UnknownFields, decode, decode_in_part};
pub use duration::Duration;
pub use nearest::nearest;
pub use problem::{Problem, Problems, Severity};
pub use secrets::REDACTED;
pub use value::{Entry, Location, Source, Value, ValueKind};

/// How deep lists and maps may be nested in each other.
pub const MAX_DEPTH: usize = 128;

/// What some editors put before the text; it is no part of it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads all documents of a text.
///
/// The text is JSON (one document, or several one after another, as in JSON lines) or a YAML
/// stream. Empty documents are skipped.
///
/// # Errors
///
/// The first mistake in syntax, or all keys that are written twice.
pub fn read(source: &Source) -> Result<Vec<Value>, Problems> {
    let begins_like_json =
        source.text.trim_start_matches(BYTE_ORDER_MARK).trim_start().starts_with(['{', '[']);
    if !begins_like_json {
        return yaml::read(source);
    }
    json::read(source).or_else(|failure| match failure {
        json::JsonFailure::Duplicates(problems) => Err(problems),
        json::JsonFailure::Syntax(error) => yaml::read(source)
            .map_err(|problems| if error.looks_like_yaml { problems } else { error.problem.into() }),
    })
}
