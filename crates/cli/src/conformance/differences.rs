//! Where our answer is not kube-scheduler's, for people to read.

use supercargo_sim::conformance::Mismatch;

use crate::{
    failure::Failure,
    output::Console,
    style::{harmless, paint},
};

/// How many are shown.
const MAX_SHOWN: usize = 20;
/// How long an answer may be before it is cut, as whole lists of nodes are.
const MAX_ANSWER_CHARS: usize = 600;

/// The first differences, and how many there are.
#[derive(Default)]
pub(super) struct Differences {
    shown: Vec<(String, Mismatch)>,
    count: usize,
}

impl Differences {
    /// Adds the differences of one scenario.
    pub(super) fn extend(&mut self, scenario: &str, more: &[Mismatch]) {
        self.count += more.len();
        let room = MAX_SHOWN - self.shown.len();
        self.shown.extend(more.iter().take(room).map(|difference| (scenario.to_owned(), difference.clone())));
    }

    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        for (scenario, difference) in &self.shown {
            let mut place = vec![difference.pod.as_str()];
            let node = difference.node.as_ref().map(|node| format!("node {node}"));
            place.extend(node.as_deref());
            place.push(&difference.what);
            if !scenario.is_empty() {
                place.insert(0, scenario);
            }
            let title = harmless(&place.join(" · "));
            console.line(paint(console.palette.heading, title))?;
            console.hanging("  expected  ", "            ", &cut(&difference.expected))?;
            console.hanging("  got       ", "            ", &cut(&difference.got))?;
        }
        match self.count - self.shown.len() {
            0 => {}
            more => console.line(format!("… and {more} more"))?,
        }
        if self.count > 0 {
            console.line("")?;
        }
        Ok(())
    }
}

fn cut(answer: &str) -> String {
    let mut cut: String = answer.chars().take(MAX_ANSWER_CHARS).collect();
    if cut.len() < answer.len() {
        cut.push('…');
    }
    cut
}
