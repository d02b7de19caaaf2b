//! The choice among the nodes with the highest total.

use crate::random::Random;

/// How to choose among equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// All are equally likely, by the cycle's seed.
    #[default]
    Random,
    /// The first in node order.
    First,
}

/// The places of the highest total.
pub(crate) fn best(totals: &[i64]) -> Vec<usize> {
    let highest = totals.iter().max();
    (0..totals.len()).filter(|i| Some(&totals[*i]) == highest).collect()
}

/// Reservoir sampling of one: the k-th takes the place of its predecessors with a chance of 1 in k.
pub(crate) fn reservoir(items: &[usize], seed: u64) -> Option<usize> {
    let mut random = Random::new(seed);
    let mut chosen = None;
    for (item, k) in items.iter().zip(1..) {
        if random.below(k) == 0 {
            chosen = Some(*item);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_the_highest_total_are_best() {
        assert_eq!(best(&[1, 5, 3]), [1]);
        assert_eq!(best(&[3, 9, 9, 1, 9]), [1, 2, 4]);
        assert_eq!(best(&[-5, -2]), [1]);
        assert_eq!(best(&[]), []);
    }

    #[test]
    fn the_same_seed_chooses_the_same() {
        let items = [3, 5, 8];
        assert_eq!(reservoir(&items, 42), reservoir(&items, 42));
        assert_eq!(reservoir(&[7], 42), Some(7));
        assert_eq!(reservoir(&[], 42), None);
    }

    #[test]
    fn every_one_is_as_likely() {
        let mut taken = [0_u32; 5];
        for seed in 0..100_000 {
            taken[reservoir(&[0, 1, 2, 3, 4], seed).unwrap()] += 1;
        }
        for count in taken {
            // 20,000 expected; the standard deviation is 126, so 5 of them are 632.
            assert!(count.abs_diff(20_000) < 632, "{taken:?}");
        }
    }
}
