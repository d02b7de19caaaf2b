//! Numbers from a seed: uids, generated names and faults are the same in every run with that seed.

use supercargo_model::random::Random;

/// What is up to chance in a server.
#[derive(Debug)]
pub(crate) struct ServerRandom(Random);

/// What generated names end in: no vowels, so that no words appear, and nothing that looks alike.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_SUFFIX_LETTERS: usize = 5;

impl ServerRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.number()
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        // 53 bits are what a double holds exactly.
        ((self.next() >> 11) as f64) < share * (1u64 << 53) as f64
    }

    /// A uid in the form of a random UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// What follows a `generateName`.
    pub(crate) fn name_suffix(&mut self) -> String {
        let mut bits = self.next();
        let letters = NAME_LETTERS.len() as u64;
        (0..NAME_SUFFIX_LETTERS)
            .map(|_| {
                let letter = NAME_LETTERS[(bits % letters) as usize];
                bits /= letters;
                char::from(letter)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself() {
        let (mut one, mut other) = (ServerRandom::new(7), ServerRandom::new(7));
        assert_eq!((one.uid(), one.name_suffix()), (other.uid(), other.name_suffix()));
        assert_eq!(one.uid().len(), 36);
        let hits = (0..10_000).filter(|_| one.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!one.chance(0.0) && one.chance(1.0));
    }
}
