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

/// Turns one after another, each of which is told how long it takes.
struct Turns {
    queue: SchedulingQueue,
    nominations: Nominations,
    now: Duration,
    came: usize,
}

impl Turns {
    /// All of a priority, each named by it.
    fn add(&mut self, name: &str, priority: i32, count: usize) {
        for _ in 0..count {
            self.came += 1;
            let pod = pod(&format!("{name}-{}", self.came)).priority(priority);
            self.queue.add(pod.container(&[("cpu", "1")]).pod(), &mut self.nominations, self.now);
        }
    }

    fn delete(&mut self, name: &str) {
        let uid =
            self.queue.pending().map(|pending| pending.pod.uid.clone()).find(|uid| uid.starts_with(name));
        let uid = uid.unwrap_or_else(|| panic!("{name} waits"));
        self.queue.remove(&uid, Removal::Deleted, &mut self.nominations, self.now);
    }

    /// How many turns in a row were whose. Those named `again` are refused and come back at once, all others get a node;
    /// for those named `new`, the next comes at once.
    fn run(&mut self, turns: usize, again_takes: Duration) -> Vec<(usize, String)> {
        let mut whose: Vec<(usize, String)> = Vec::new();
        for _ in 0..turns {
            let popped = self.queue.pop(self.now).expect("somebody waits");
            let uid = &popped.pod.uid;
            let name = popped.pod.name.split('-').next().unwrap();
            self.now += match name {
                "again" => again_takes,
                "new" => SECOND,
                _ => 3 * SECOND,
            };
            self.queue.turn_ended(self.now);
            if name == "again" {
                let refusal = Refusal { plugins: ["NodeResourcesFit".into()].into(), ..Refusal::default() };
                let failure = AttemptFailure::Refused(refusal);
                self.queue.park(uid, failure, Claim::Kept, &mut self.nominations, self.now);
                self.queue.activate([&**uid], self.now);
            } else {
                self.queue.remove(uid, Removal::Deleted, &mut self.nominations, self.now);
                self.queue.done(uid);
            }
            if name == "new" {
                self.add("new", 1000, 1);
            }
            match whose.last_mut().filter(|(_, last)| last == name) {
                Some((count, _)) => *count += 1,
                None => whose.push((1, name.to_owned())),
            }
        }
        whose
    }
}

fn turns() -> Turns {
    let queue = SchedulingQueue::new([default_profile().queue_rules()], QueueSettings::default());
    Turns { queue, nominations: Nominations::default(), now: Duration::ZERO, came: 0 }
}

fn told(whose: &[(usize, String)]) -> String {
    whose.iter().map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn whose_turn_it_is_while_more_important_pods_never_end() {
    let ms = Duration::from_millis;
    // (the more important ones, how long one of those takes that are tried again, whose turns come); each other pod takes 3 s
    let cases = [
        // After 15 s, of which 10 are owed: 10 − 3 = 7, 4, 1, 0. From then on one for one.
        ("again", ms(1000), "15 again, 4 low, 1 again, 1 low, 1 again, 1 low"),
        // They have waited for long enough after 15.2 s, but it is looked every second only, after 1.2 s here, 13 times.
        ("again", ms(400), "39 again, 4 low, 1 again, 1 low"),
        // Of a minute an eighth is owed: 7.5 − 3 = 4.5, 1.5, 0; and then of a second.
        ("new", ms(1000), "60 new, 3 low, 1 new, 1 low, 1 new, 1 low"),
    ];
    for (important, takes, expected) in cases {
        let mut turns = turns();
        turns.add("low", 0, 10);
        turns.add(important, 1000, 1);
        let count = expected.split(", ").map(|run| run.split_once(' ').unwrap().0.parse::<usize>().unwrap());
        let count = count.sum();
        assert_eq!(told(&turns.run(count, takes)), expected, "{takes:?}");
    }
}

#[test]
fn a_pod_waits_from_when_it_came() {
    let mut turns = turns();
    turns.add("again", 1000, 1);
    assert_eq!(told(&turns.run(5, SECOND)), "5 again");
    turns.add("early", 0, 1);
    assert_eq!(told(&turns.run(3, SECOND)), "3 again");
    turns.add("late", 0, 1);
    // After 5 + 15 = 20 s, and 8 + 15 = 23; by then 3 s have gone to the first.
    assert_eq!(told(&turns.run(15, SECOND)), "12 again, 1 early, 1 late, 1 again");
}

#[test]
fn whoever_comes_in_the_place_of_one_who_waited_for_long_has_not_waited() {
    let mut turns = turns();
    turns.add("low", 0, 1);
    turns.add("deleted", 0, 1);
    turns.add("again", 1000, 1);
    assert_eq!(told(&turns.run(16, SECOND)), "15 again, 1 low");
    turns.delete("deleted");
    turns.add("young", 0, 1);
    assert_eq!(told(&turns.run(16, SECOND)), "15 again, 1 young");
}

#[test]
fn a_turn_that_comes_by_itself_is_not_taken_off_what_is_owed() {
    let mut turns = turns();
    turns.add("middle", 500, 5);
    turns.add("new", 1000, 1);
    // 60 / 8 − 3 = 4.5 s are owed.
    assert_eq!(told(&turns.run(61, SECOND)), "60 new, 1 middle");
    turns.delete("new");
    // Nobody is more important: 4.5 + 3 / 8 = 4.875.
    assert_eq!(told(&turns.run(1, SECOND)), "1 middle");
    turns.add("new", 1000, 1);
    // 1.875, 0.
    assert_eq!(told(&turns.run(3, SECOND)), "2 middle, 1 new");
}
