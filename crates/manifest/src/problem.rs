//! Problems, told so that people can mend them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use crate::excerpt;
use crate::secrets::without_passwords;
use crate::value::{Location, Source};

/// How bad a problem is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Worth a look, yet things go on.
    Warning,
    /// Things cannot go on.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// Something that is wrong, where it is, and how to mend it.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// The text it is in.
    pub source: Option<Source>,
    /// The place in that text.
    pub at: Option<Location>,
    /// The field, such as `spec.containers[0].image`; may be empty.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    /// How bad it is.
    pub severity: Severity,
}

impl Problem {
    /// A problem that stops things.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            source: None,
            at: None,
            path: String::new(),
            message: shown(message),
            hint: None,
            severity: Severity::Error,
        }
    }

    /// A problem that is only worth a look.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Tells where the problem is.
    #[must_use]
    pub fn at(mut self, source: &Source, at: Location) -> Self {
        self.source = Some(source.clone());
        self.at = Some(at);
        self
    }

    /// Tells in which field the problem is.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Tells how to mend it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shown(hint));
        self
    }
}

/// What is wrong with a value is often told with the value.
fn shown(text: impl Into<String>) -> String {
    let text = text.into();
    match without_passwords(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown,
    }
}

/// Without colour and without a final line break.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity)?;
        match (&self.source, self.at) {
            (Some(source), Some(at)) => write!(f, "{}:{}:{}: ", source.name, at.line, at.column)?,
            (Some(source), None) => write!(f, "{}: ", source.name)?,
            (None, _) => {}
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let (Some(source), Some(at)) = (&self.source, self.at) {
            excerpt::write(f, &source.text, at)?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Error for Problem {}

/// All that is wrong, in the order of the text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Adds one more.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One after another.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Whether any of them stops things.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// One after another with an empty line between; a long list is cut.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN: usize = 50;
        for (index, problem) in self.0.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.0.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\n… and {more} more"),
        }
    }
}

impl Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        Self(problems.into_iter().collect())
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        self.0.extend(problems);
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests;
