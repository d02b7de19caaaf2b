//! Amounts of a resource, as Kubernetes writes them: `500m`, `2Gi`, `1e3`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// An exact amount of a resource; no floating point is involved.
///
/// It counts billionths, the finest step Kubernetes knows: anything finer is rounded away from
/// zero, under the theory that who asks for something should get something. Amounts with a binary
/// suffix end at 2^63-1, as in Kubernetes; all others are exact up to about 1.7e29 and end there.
///
/// ```
/// # use supercargo_model::quantity::Quantity;
/// let half: Quantity = "500m".parse()?;
/// assert_eq!((half.value(), half.milli_value()), (1, 500));
/// # Ok::<(), supercargo_model::quantity::QuantityError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A whole number.
    pub const fn from_value(value: i64) -> Self {
        Self { nanos: value as i128 * NANOS_PER_UNIT }
    }

    /// A number of thousandths.
    pub const fn from_milli(milli: i64) -> Self {
        Self { nanos: milli as i128 * NANOS_PER_MILLI }
    }

    /// The amount, rounded away from zero to a whole number.
    ///
    /// What does not fit becomes the nearest number that does. (Kubernetes lets it overflow there,
    /// so that `50E` of memory become none.)
    pub fn value(self) -> i64 {
        self.count(NANOS_PER_UNIT)
    }

    /// The amount in thousandths, rounded and bounded as [`value`](Self::value) is.
    pub fn milli_value(self) -> i64 {
        self.count(NANOS_PER_MILLI)
    }

    /// The amount, if it is a whole number that fits.
    pub fn as_whole(self) -> Option<i64> {
        let is_whole = self.nanos % NANOS_PER_UNIT == 0;
        i64::try_from(self.nanos / NANOS_PER_UNIT).ok().filter(|_| is_whole)
    }

    fn count(self, nanos_per_step: i128) -> i64 {
        let away_from_zero = i128::from(self.nanos % nanos_per_step != 0) * self.nanos.signum();
        let steps = self.nanos / nanos_per_step + away_from_zero;
        i64::try_from(steps).unwrap_or(if steps < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount in billionths, the finest step there is.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// Whether this is nothing.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The sum, or the largest amount there is.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }

    /// The difference, which can be negative, or the smallest amount there is.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos) }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::of(text);
        match Scale::of(parts.suffix) {
            _ if text.is_empty() => Err(QuantityError::new(text, Flaw::Empty)),
            None => Err(QuantityError::new(text, parts.flaw())),
            // Kubernetes takes a missing number for 0, except where it has to look closely.
            Some(Scale::Decimal(exponent)) if parts.has_no_digits() && exponent < -9 => {
                Err(QuantityError::new(text, Flaw::NoNumber))
            }
            Some(scale) => {
                let magnitude = scale.nanos(parts.whole, parts.fraction);
                Ok(Self { nanos: if parts.negative { -magnitude } else { magnitude } })
            }
        }
    }
}

/// The pieces of a quantity's text, of which each may be empty.
struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Self {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        Self { negative: text.starts_with('-'), whole, fraction, suffix }
    }

    fn has_no_digits(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// What is wrong when the suffix is.
    fn flaw(&self) -> Flaw {
        if self.has_no_digits() { Flaw::NoNumber } else { Flaw::UnknownSuffix }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Scale {
    /// A power of ten.
    Decimal(i64),
    /// A power of two.
    Binary(u32),
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => Self::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }

    fn nanos(self, whole: &str, fraction: &str) -> i128 {
        match self {
            Self::Decimal(exponent) => decimal_nanos(whole, fraction, exponent),
            Self::Binary(bits) => binary_nanos(whole, fraction, bits),
        }
    }
}

/// Moves the point by the exponent and nine more digits, and rounds up what is still behind it.
fn decimal_nanos(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let shift = exponent.saturating_add(9).saturating_sub_unsigned(fraction.len() as u64);
    let digits = || whole.bytes().chain(fraction.bytes());
    let behind = usize::try_from(shift.min(0).unsigned_abs()).unwrap_or(usize::MAX);
    let kept = (whole.len() + fraction.len()).saturating_sub(behind);
    let rest = i128::from(digits().skip(kept).any(|digit| digit != b'0'));
    let zeros = u32::try_from(shift.max(0)).unwrap_or(u32::MAX);
    integer(digits().take(kept)).saturating_mul(10_i128.saturating_pow(zeros)).saturating_add(rest)
}

fn binary_nanos(whole: &str, fraction: &str, bits: u32) -> i128 {
    const MOST_NANOS: i128 = i64::MAX as i128 * NANOS_PER_UNIT;
    let nanos_per_unit = NANOS_PER_UNIT << bits;
    // Long division from the last digit on: no fraction is too long to be exact.
    let (below_whole, remainder) = fraction.bytes().rev().fold((0, false), |(nanos, remainder), digit| {
        let tenfold = i128::from(digit - b'0') * nanos_per_unit + nanos;
        (tenfold / 10, remainder || tenfold % 10 != 0)
    });
    integer(whole.bytes())
        .saturating_mul(nanos_per_unit)
        .saturating_add(below_whole + i128::from(remainder))
        .min(MOST_NANOS)
}

fn integer(digits: impl Iterator<Item = u8>) -> i128 {
    digits.fold(0, |sum: i128, digit| sum.saturating_mul(10).saturating_add(i128::from(digit - b'0')))
}

/// The shortest form with a decimal suffix: `1500m`, `2k`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        if self.is_zero() {
            return f.write_str("0");
        }
        let mut number = self.nanos;
        let mut suffixes = SUFFIXES.iter();
        let mut suffix = suffixes.next();
        while number % 1000 == 0
            && let Some(larger) = suffixes.next()
        {
            number /= 1000;
            suffix = Some(larger);
        }
        write!(f, "{number}{}", suffix.unwrap_or(&""))
    }
}

/// Accepts strings and numbers; null is nothing, as in Kubernetes.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 500m or 2Gi")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(|error: QuantityError| {
            // The manifest crate shows such a last line as the hint of the problem.
            E::custom(format_args!("{error}\nhint: {}", error.hint()))
        })
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_value(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity { nanos: i128::from(value) * NANOS_PER_UNIT })
    }

    /// By way of the shortest decimal text, which is what was written: `0.1` stays a tenth.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Quantity, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuantityError {
    text: String,
    flaw: Flaw,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    Empty,
    NoNumber,
    UnknownSuffix,
}

impl QuantityError {
    fn new(text: &str, flaw: Flaw) -> Self {
        Self { text: text.to_owned(), flaw }
    }

    /// How to write it instead.
    pub fn hint(&self) -> String {
        self.respelled().unwrap_or_else(|| {
            "write a number and maybe one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, such as 500m or 2Gi"
                .to_owned()
        })
    }

    /// The same amount in a spelling that Kubernetes takes, if it is plain what was meant.
    fn respelled(&self) -> Option<String> {
        let compact: String = self.text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
        if compact.is_empty() {
            return None;
        }
        if compact.parse::<Quantity>().is_ok() {
            return Some(format!("did you mean {compact}?"));
        }
        let parts = Parts::of(&compact);
        if parts.has_no_digits() {
            return None;
        }
        let number = compact.strip_suffix(parts.suffix)?;
        let letter = match parts.suffix.to_ascii_lowercase().as_str() {
            "k" | "ki" | "kb" | "kib" => "k",
            "mb" | "mi" | "mib" => "M",
            "g" | "gi" | "gb" | "gib" => "G",
            "t" | "ti" | "tb" | "tib" => "T",
            "p" | "pi" | "pb" | "pib" => "P",
            "ei" | "eb" | "eib" => "E",
            _ => return None,
        };
        Some(format!("did you mean {number}{letter} or {number}{}i?", letter.to_ascii_uppercase()))
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A quantity is short; of anything long the beginning is enough to find it.
        const SHOWN_CHARS: usize = 40;
        let mut shown: String = self.text.chars().take(SHOWN_CHARS).collect();
        if shown.len() < self.text.len() {
            shown.push('…');
        }
        match self.flaw {
            Flaw::Empty => write!(f, "an empty text is not a quantity"),
            Flaw::NoNumber => write!(f, "{shown:?} is not a quantity: it has no number"),
            Flaw::UnknownSuffix => write!(f, "{shown:?} is not a quantity"),
        }
    }
}

impl Error for QuantityError {}

#[cfg(test)]
mod tests;
