//! The trait of a plugin.

use crate::{Args, Attributes, Nodes, Pod, Verdicts};

/// How preparing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreScore {
    /// Score comes next.
    Go,
    /// The plugin does not score this pod.
    Skip,
}

/// A plugin. It serves the steps that [`crate::plugin!`] names; the others are never called.
///
/// There may be several instances, and any of them may be replaced by a fresh one at any time: what a plugin keeps from one
/// pod to the next must not change its answers. For one pod, `pre_score`, `score` and `normalize` run one after another on
/// the same instance, so that what one of them keeps (in a `RefCell`, say) is there for the next.
pub trait Plugin: Sized + 'static {
    /// Reads the arguments and asks for attributes.
    ///
    /// # Errors
    /// What is wrong, to be told as an error of the configuration.
    fn new(args: Args<'_>, attributes: &mut Attributes) -> Result<Self, String>;

    /// Refuses nodes. What it says of a node must not depend on which others are asked about.
    ///
    /// # Errors
    /// What went wrong: it ends this pod's cycle, as in all steps.
    fn filter(&self, _pod: &Pod<'_>, _nodes: &Nodes<'_>, _verdicts: &mut Verdicts<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Looks at the feasible nodes before they are scored.
    ///
    /// # Errors
    /// What went wrong.
    fn pre_score(&self, _pod: &Pod<'_>, _nodes: &Nodes<'_>) -> Result<PreScore, String> {
        Ok(PreScore::Go)
    }

    /// Fills in a score for each row that is asked about: 0 to 100, or anything if it normalizes. Rows begin as 0.
    ///
    /// # Errors
    /// What went wrong.
    fn score(&self, _pod: &Pod<'_>, _nodes: &Nodes<'_>, _scores: &mut [i64]) -> Result<(), String> {
        Ok(())
    }

    /// Brings the scores of the rows that are asked about into 0 to 100.
    ///
    /// # Errors
    /// What went wrong.
    fn normalize(&self, _pod: &Pod<'_>, _nodes: &Nodes<'_>, _scores: &mut [i64]) -> Result<(), String> {
        Ok(())
    }
}
