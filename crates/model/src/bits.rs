//! A set of small numbers, as bits.

use crate::work;

const BITS: usize = u64::BITS as usize;

/// A set of small numbers: places in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Whether a number is in.
    #[inline]
    pub fn contains(&self, number: usize) -> bool {
        self.words.get(number / BITS).is_some_and(|word| word >> (number % BITS) & 1 == 1)
    }

    /// Puts a number in.
    #[inline]
    pub fn insert(&mut self, number: usize) {
        let word = number / BITS;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % BITS);
    }

    /// Takes a number out; whether it was in.
    #[inline]
    pub fn remove(&mut self, number: usize) -> bool {
        let Some(word) = self.words.get_mut(number / BITS) else {
            return false;
        };
        let before = *word;
        *word &= !(1 << (number % BITS));
        *word != before
    }

    /// Puts a number in that is not, and takes one out that is.
    #[inline]
    pub fn toggle(&mut self, number: usize) {
        self.words_mut(number / BITS + 1)[number / BITS] ^= 1 << (number % BITS);
    }

    /// Takes all out, and keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Becomes the same as another set, and keeps the memory.
    pub fn set_to(&mut self, other: &Self) {
        work::done(other.words.len());
        self.words.clone_from(&other.words);
    }

    /// How many are in.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The n-th of the numbers, from low to high.
    pub fn nth(&self, mut n: usize) -> Option<usize> {
        for (i, word) in self.words.iter().enumerate() {
            let count = word.count_ones() as usize;
            if n < count {
                // Without the n lowest of its bits, the lowest is the one.
                let rest = (0..n).fold(*word, |rest, _| rest & (rest - 1));
                return Some(i * BITS + rest.trailing_zeros() as usize);
            }
            n -= count;
        }
        None
    }

    /// The bits, 64 a word, for loops that are compiled for vector units.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The same, to be changed, and so many of them at least.
    #[inline]
    pub fn words_mut(&mut self, at_least: usize) -> &mut [u64] {
        if self.words.len() < at_least {
            self.words.resize(at_least, 0);
        }
        &mut self.words
    }

    /// Whether none is in.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether some are in another set, too.
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(word, other)| word & other != 0)
    }

    /// Puts in all of another set.
    pub fn add_all(&mut self, other: &Self) {
        work::done(other.words.len());
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Takes out whatever is not in another set.
    pub fn keep_only(&mut self, other: &Self) {
        work::done(other.words.len());
        self.words.truncate(other.words.len());
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Takes out all of another set.
    pub fn take_out(&mut self, other: &Self) {
        work::done(other.words.len());
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// The numbers, from low to high.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let bit = left.trailing_zeros() as usize;
                    left &= left - 1;
                    i * BITS + bit
                })
            })
        })
    }

    /// Adds the same to the entries of a table at all numbers of the set. Full words are runs that vector units can add to.
    pub fn add_to(&self, table: &mut [f64], by: f64) {
        for (entries, word) in table.chunks_mut(BITS).zip(&self.words) {
            work::done(if *word == u64::MAX { BITS / 8 } else { word.count_ones() as usize });
            if *word == u64::MAX {
                entries.iter_mut().for_each(|entry| *entry += by);
                continue;
            }
            let mut left = *word;
            while left != 0 {
                entries[left.trailing_zeros() as usize] += by;
                left &= left - 1;
            }
        }
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut set = Self::default();
        for number in numbers {
            set.insert(number);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_different_lengths_are_combined() {
        let set = |numbers: &[usize]| numbers.iter().copied().collect::<Bits>();
        let after = |change: fn(&mut Bits, &Bits), one: &[usize], other: &[usize]| {
            let mut changed = set(one);
            change(&mut changed, &set(other));
            changed.iter().collect::<Vec<_>>()
        };
        assert_eq!(after(Bits::add_all, &[1], &[64, 200]), [1, 64, 200]);
        assert_eq!(after(Bits::keep_only, &[1, 64, 200], &[1, 64]), [1, 64]);
        assert_eq!(after(Bits::take_out, &[1, 64], &[64, 200]), [1]);
        assert_eq!(after(Bits::set_to, &[1, 64], &[200]), [200]);
        let meet = |one: &[usize], other: &[usize]| set(one).meets(&set(other));
        assert_eq!(
            [meet(&[1, 64], &[64, 200]), meet(&[1, 200], &[2, 64]), meet(&[200], &[])],
            [true, false, false]
        );
    }

    #[test]
    fn taking_out_tells_whether_it_was_in() {
        let mut set: Bits = [3, 70].into_iter().collect();
        assert_eq!([3, 3, 4, 70, 500].map(|number| set.remove(number)), [true, false, false, true, false]);
        assert!(set.is_empty());
    }

    #[test]
    fn entries_are_added_to_by_full_and_by_other_words() {
        let mut table = vec![1.0; 70];
        (0..66).filter(|n| *n != 65).collect::<Bits>().add_to(&mut table, 2.0);
        let expected: Vec<f64> = (0..70).map(|n| if n < 65 { 3.0 } else { 1.0 }).collect();
        assert_eq!(table, expected);
    }

    #[test]
    fn the_nth_is_found_across_words() {
        let set: Bits = [3, 5, 63, 64, 200].into_iter().collect();
        let found: Vec<Option<usize>> = (0..6).map(|n| set.nth(n)).collect();
        assert_eq!(found, [Some(3), Some(5), Some(63), Some(64), Some(200), None]);
        assert_eq!(Bits::default().nth(0), None);
    }
}
