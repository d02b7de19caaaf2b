//! Hopeless pods that are more important than others, and so many that trying them never ends: the others are tried, too.

use std::{collections::BTreeMap, time::Duration};

use supercargo_engine::{AttemptFailure, QueueSettings, Refusal, Removal, SchedulingQueue};
use supercargo_framework::{
    event::Change,
    preemption::{Claim, Nominations},
};
use supercargo_model::testing::{Builder, pod};

use crate::support::default_profile;

const SECOND: Duration = Duration::from_secs(1);
/// What an attempt at a hopeless pod takes, and at another.
const HOPELESS_TAKES: Duration = Duration::from_millis(50);
const OTHER_TAKES: Duration = Duration::from_millis(1);

/// A queue whose pods are tried one after another. Who is named `hopeless` is refused, or `brief`, and then deleted; all
/// others get a node.
struct Attempts {
    queue: SchedulingQueue,
    nominations: Nominations,
    now: Duration,
    /// When each of the others had its turn.
    placed: BTreeMap<String, Duration>,
    spent_on_hopeless: Duration,
}

impl Attempts {
    fn new() -> Self {
        let queue = SchedulingQueue::new([default_profile().queue_rules()], QueueSettings::default());
        let (nominations, placed) = (Nominations::default(), BTreeMap::new());
        Self { queue, nominations, now: Duration::ZERO, placed, spent_on_hopeless: Duration::ZERO }
    }

    fn add(&mut self, pods: impl IntoIterator<Item = Builder>) {
        for pod in pods {
            self.queue.add(pod.pod(), &mut self.nominations, self.now);
        }
    }

    /// Tries pods until a moment, while a pod is deleted four times a second: room that could help anybody.
    fn run_until(&mut self, end: Duration) {
        let gone = pod("gone").container(&[("cpu", "1")]).on("n").pod();
        let mut deletion = self.now;
        while self.now < end {
            while deletion <= self.now {
                self.queue.happened(&Change::Pod(Some(&gone), None).happened(), self.now);
                deletion += SECOND / 4;
            }
            let Some(popped) = self.queue.pop(self.now) else {
                self.now += SECOND / 10;
                continue;
            };
            if popped.pod.name.starts_with("brief") {
                self.now += HOPELESS_TAKES;
                self.queue.turn_ended(self.now);
                self.queue.remove(&popped.pod.uid, Removal::Deleted, &mut self.nominations, self.now);
                self.queue.done(&popped.pod.uid);
            } else if popped.pod.name.starts_with("hopeless") {
                self.now += HOPELESS_TAKES;
                self.queue.turn_ended(self.now);
                self.spent_on_hopeless += HOPELESS_TAKES;
                let refusal = Refusal { plugins: ["NodeResourcesFit".into()].into(), ..Refusal::default() };
                let failure = AttemptFailure::Refused(refusal);
                self.queue.park(&popped.pod.uid, failure, Claim::Kept, &mut self.nominations, self.now);
            } else {
                self.now += OTHER_TAKES;
                self.queue.turn_ended(self.now);
                self.placed.insert(popped.pod.name.to_string(), self.now);
                self.queue.bound(&popped);
            }
        }
    }
}

fn hopeless(i: usize) -> Builder {
    pod(&format!("hopeless-{i}")).priority(1000).container(&[("cpu", "1")])
}

fn low(i: usize) -> Builder {
    pod(&format!("low-{i:03}")).container(&[("cpu", "1")])
}

#[test]
fn three_thousand_hopeless_pods_that_are_tried_again_without_end_then_the_others_are_tried_in_time() {
    let mut attempts = Attempts::new();
    // 3,000 × 50 ms: to try all of them takes 150 s, and they come back after 10.
    attempts.add((0..3000).map(hopeless));
    attempts.run_until(160 * SECOND);
    attempts.add((0..100).map(low));
    attempts.run_until(280 * SECOND);
    assert_eq!(attempts.placed.len(), 100);
    // Each waits for 15 s, and the first that is let in after it for the attempt that is under way. From then on there is
    // as much time for the others as for the hopeless: 50 of the others for one of these.
    let (first, last) = (attempts.placed["low-000"], attempts.placed["low-099"]);
    assert!(first <= 160 * SECOND + 17 * SECOND, "{first:?}");
    assert!(last <= first + SECOND, "{last:?}");
    // The hopeless still have their turns.
    assert!(attempts.spent_on_hopeless >= 270 * SECOND, "{:?}", attempts.spent_on_hopeless);
}

#[test]
fn ever_new_hopeless_pods_then_the_others_get_an_eighth_of_the_time_after_a_minute() {
    let mut attempts = Attempts::new();
    attempts.add((0..300).map(low));
    // Twenty a second are all that can be tried.
    for second in 0..90 {
        attempts.add((0..25).map(|i| pod(&format!("brief-{}", second * 25 + i)).priority(1000)));
        let now = attempts.now;
        attempts.run_until(now + SECOND);
        assert!(second >= 50 || attempts.placed.is_empty(), "the more important go first: {second}");
    }
    // After each of 50 ms there are 6 ms for the others, of 1 ms each: 300 have had their turns after 2.5 s.
    assert_eq!(attempts.placed.len(), 300);
}

#[test]
fn a_scheduler_that_keeps_up_follows_priorities_alone() {
    let mut attempts = Attempts::new();
    attempts.add((0..100).map(low));
    attempts.add((0..100).map(|i| pod(&format!("high-{i}")).priority(1000)));
    // Nobody is tried for an hour: it is not the more important pods that the others wait for.
    attempts.now += 3600 * SECOND;
    attempts.run_until(3601 * SECOND);
    let highest =
        attempts.placed.iter().filter(|(name, _)| name.starts_with("high")).map(|(_, at)| *at).max();
    let lowest = attempts.placed.iter().filter(|(name, _)| name.starts_with("low")).map(|(_, at)| *at).min();
    assert!(highest < lowest, "{highest:?} {lowest:?}");
}
