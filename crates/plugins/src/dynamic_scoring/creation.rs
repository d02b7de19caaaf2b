//! When a node was made: bounds in time, some of which move with the clock.

use std::time::Duration;

use serde::Deserialize;
use supercargo_manifest as manifest;
use supercargo_model::Timestamp;

/// How a node's creation is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Operator {
    /// Later than a moment.
    After,
    /// Earlier than a moment.
    Before,
    /// Newer than a span.
    Since,
    /// Older than a span.
    Ago,
}

/// A bound as it is written: with `value`, or with `values` as the other expressions have them.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Written {
    operator: Operator,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    values: Vec<String>,
}

/// A bound of a node's creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreationBound {
    After(Timestamp),
    Before(Timestamp),
    Since(Duration),
    Ago(Duration),
}

impl Written {
    /// The bound; or what is wrong with its value.
    pub(super) fn read(&self) -> Result<CreationBound, String> {
        let value = match (&self.value, &*self.values) {
            (Some(value), []) | (None, [value]) => value,
            _ => return Err("expected exactly one value".to_owned()),
        };
        Ok(match self.operator {
            Operator::After => CreationBound::After(moment(value)?),
            Operator::Before => CreationBound::Before(moment(value)?),
            Operator::Since => CreationBound::Since(span(value)?),
            Operator::Ago => CreationBound::Ago(span(value)?),
        })
    }
}

fn moment(value: &str) -> Result<Timestamp, String> {
    value.parse().map_err(|_| format!("{value:?} is not a time such as 2020-12-05T06:27:42Z"))
}

fn span(value: &str) -> Result<Duration, String> {
    let span = value.parse::<manifest::Duration>()?;
    span.to_std().ok_or_else(|| format!("{span} lies in the future: the span must not be negative"))
}

impl CreationBound {
    /// Whether it moves with the clock.
    pub(super) fn is_relative(self) -> bool {
        matches!(self, Self::Since(_) | Self::Ago(_))
    }
}

/// Whether a node that was made then lies within bounds, or outside of them if they are turned round. A node that does
/// not say when it was made lies nowhere.
pub(super) fn lies_within(bounds: &[CreationBound], created: Option<Timestamp>, now: Timestamp) -> bool {
    if bounds.is_empty() {
        return true;
    }
    let Some(created) = created else { return false };
    let before = |span: Duration| now.saturating_sub(span).unwrap_or(Timestamp::MIN);
    let lower = bounds.iter().filter_map(|bound| match *bound {
        CreationBound::After(moment) => Some(moment),
        CreationBound::Since(span) => Some(before(span)),
        CreationBound::Before(_) | CreationBound::Ago(_) => None,
    });
    let upper = bounds.iter().filter_map(|bound| match *bound {
        CreationBound::Before(moment) => Some(moment),
        CreationBound::Ago(span) => Some(before(span)),
        CreationBound::After(_) | CreationBound::Since(_) => None,
    });
    match (lower.max(), upper.min()) {
        (Some(lower), Some(upper)) if upper > lower => lower < created && created < upper,
        (Some(lower), Some(upper)) => created < upper || lower < created,
        (lower, upper) => {
            lower.is_none_or(|lower| lower < created) && upper.is_none_or(|upper| created < upper)
        }
    }
}
