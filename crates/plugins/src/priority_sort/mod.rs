//! Orders the queue: the more important pod first, among equals the one that came first.

use supercargo_framework::points::{QueueSort, QueuedPod};

/// The plugin's name.
pub const NAME: &str = "PrioritySort";

/// The plugin.
pub struct PrioritySort;

impl QueueSort for PrioritySort {
    fn before(&self, one: &QueuedPod, other: &QueuedPod) -> bool {
        let (p1, p2) = (one.pod.spec.priority, other.pod.spec.priority);
        p1 > p2 || (p1 == p2 && one.arrival < other.arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::testing::pod;

    #[test]
    fn by_priority_then_by_arrival() {
        let queued =
            |priority: i32, arrival: u64| QueuedPod { pod: pod("p").priority(priority).pod(), arrival };
        // (one, other, whether one comes first)
        let cases = [
            (queued(10, 2), queued(5, 1), true),
            (queued(5, 1), queued(10, 2), false),
            (queued(5, 1), queued(5, 2), true),
            (queued(5, 2), queued(5, 1), false),
            (queued(5, 1), queued(5, 1), false),
            (queued(-1, 1), queued(0, 2), false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(PrioritySort.before(&one, &other), expected, "{one:?} {other:?}");
        }
    }
}
