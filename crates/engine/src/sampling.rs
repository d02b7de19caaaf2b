//! How many feasible nodes are enough.

/// The adaptive percentage never falls below this.
const MIN_PERCENTAGE: usize = 5;
const MAX_PERCENTAGE: usize = 100;

/// How many feasible nodes end the search among so many nodes. A percentage of 0 adapts: 50% at 100 nodes, falling to
/// 10% at 5,000. At least `minimum` are looked for, where there are as many.
pub fn nodes_to_find(percentage: i32, nodes: usize, minimum: usize) -> usize {
    if nodes < minimum {
        return nodes;
    }
    let percentage = match usize::try_from(percentage) {
        Ok(0) | Err(_) => 50_usize.saturating_sub(nodes / 125).max(MIN_PERCENTAGE),
        Ok(given) => given.min(MAX_PERCENTAGE),
    };
    (nodes * percentage / 100).max(minimum)
}
