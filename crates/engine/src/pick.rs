//! The choice among the nodes with the highest total.

use supercargo_model::random::Random;

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

/// Reservoir sampling of one out of so many, without looking at each: the k-th takes the place of its predecessors with
/// a chance of 1 in k, so the one after k that does so next is known from a single number.
pub(crate) fn reservoir(count: usize, seed: u64) -> Option<usize> {
    let mut random = Random(seed);
    let mut next = (count > 0).then_some(1_u128)?;
    let mut chosen = next;
    while next <= count as u128 {
        chosen = next;
        // The chance that none of k+1 … m takes the place is k / m.
        let chance = u128::from(random.number()) + 1;
        next = (next << 64) / chance + 1;
    }
    Some(chosen as usize - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_the_highest_total_are_best() {
        assert_eq!(best(&[1, 5, 3]), [1]);
        assert_eq!(best(&[3, 9, 9, 1, 9]), [1, 2, 4]);
        assert_eq!(best(&[-5, -2]), [1]);
        assert!(best(&[]).is_empty());
    }

    #[test]
    fn the_same_seed_chooses_the_same() {
        assert_eq!(reservoir(3, 42), reservoir(3, 42));
        assert_eq!(reservoir(1, 42), Some(0));
        assert_eq!(reservoir(0, 42), None);
    }

    #[test]
    fn every_one_is_as_likely() {
        for count in [2, 5, 7] {
            let mut taken = vec![0_u32; count];
            let rounds = 20_000 * count as u64;
            for seed in 0..rounds {
                taken[reservoir(count, Random(seed).number()).unwrap()] += 1;
            }
            for times in &taken {
                // 20,000 expected; the standard deviation is below 142, so 5 of them are 710.
                assert!(times.abs_diff(20_000) < 710, "{taken:?}");
            }
        }
    }
}
