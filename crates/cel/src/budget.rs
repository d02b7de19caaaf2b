//! What one evaluation may use. Costs are the reference's; steps and sizes are bounded besides, because what is cheap by its count
//! can still be endless: comparing lists of lists of lists, text that doubles.

use crate::go_regex;
use regex::Regex;

/// Evaluation cannot go on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Halt {
    /// The cost limit, or one of ours.
    TooExpensive,
    /// Where the reference's evaluation panics.
    Internal(String),
}

#[derive(Debug)]
pub(crate) struct Budget {
    steps: u64,
    /// The last regular expression that was no literal: in a comprehension it is mostly the same.
    regex: Option<(String, Result<Regex, String>)>,
}

/// To compile a regular expression takes as long as so many steps.
const REGEX_STEPS: u64 = 2000;
const REGEX_STEPS_PER_BYTE: u64 = 100;

const MOST_STEPS: u64 = 5_000_000;
pub(crate) const MOST_ELEMENTS: usize = 2_000_000;
pub(crate) const LONGEST_TEXT_BYTES: usize = 16 << 20;

impl Budget {
    pub(crate) fn new() -> Self {
        Self { steps: MOST_STEPS, regex: None }
    }

    /// The compiled expression, or what is wrong with it.
    pub(crate) fn regex(&mut self, pattern: &str) -> Result<Result<Regex, String>, Halt> {
        if let Some((known, regex)) = &self.regex
            && known == pattern
        {
            return Ok(regex.clone());
        }
        self.steps(REGEX_STEPS + REGEX_STEPS_PER_BYTE * pattern.len() as u64)?;
        let regex = go_regex::compile(pattern);
        self.regex = Some((pattern.to_owned(), regex.clone()));
        Ok(regex)
    }

    pub(crate) fn step(&mut self) -> Result<(), Halt> {
        self.steps(1)
    }

    pub(crate) fn steps(&mut self, count: u64) -> Result<(), Halt> {
        self.steps = self.steps.checked_sub(count).ok_or(Halt::TooExpensive)?;
        Ok(())
    }
}

pub(crate) fn elements(count: usize) -> Result<usize, Halt> {
    if count > MOST_ELEMENTS { Err(Halt::TooExpensive) } else { Ok(count) }
}

pub(crate) fn text_bytes(count: Option<usize>) -> Result<usize, Halt> {
    count.filter(|count| *count <= LONGEST_TEXT_BYTES).ok_or(Halt::TooExpensive)
}
