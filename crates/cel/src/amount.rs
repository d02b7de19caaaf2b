//! Quantities as Kubernetes computes with them. Whether one is an integer depends on how it was written, so the number is
//! kept as it was: digits and a scale, or a decimal that was too long for that.

use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Amount {
    /// `value * 10^scale`.
    Scaled { value: i64, scale: i32 },
    /// `value * 10^-9`, in whole billionths; beyond them it saturates.
    Decimal { billionths: i128 },
}

const NANO: i32 = -9;
/// Digits that surely fit.
const MOST_DIGITS: i32 = 18;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Base {
    Decimal,
    Binary,
}

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";

impl Amount {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(WRONG_FORMAT);
        }
        let parts = Parts::of(text)?;
        let (base, exponent) = suffix(parts.suffix).ok_or(WRONG_SUFFIX)?;
        let digits = (parts.whole.len() + parts.fraction.len()) as i32;
        let (precision, mantissa, mut scale) = match base {
            Base::Decimal => (MOST_DIGITS - digits, 1, exponent),
            Base::Binary if parts.fraction.is_empty() => {
                let precision = 15 - parts.whole.len() as i32 - (exponent as f32 * 3.0 / 10.0) as i32 - 1;
                (precision, 1i64 << exponent, 0)
            }
            Base::Binary => (-1, 1, 0),
        };
        if precision >= 0 {
            scale = scale.saturating_sub(parts.fraction.len() as i32);
            if scale >= NANO {
                let shifted = format!("{}{}", parts.whole, parts.fraction);
                let value: i64 = shifted.parse().map_err(|_| WRONG_NUMBER)?;
                if let Some(value) = value.checked_mul(mantissa) {
                    let value = if parts.negative { -value } else { value };
                    return Ok(Self::Scaled { value, scale });
                }
            }
        }
        Ok(parts.decimal(base, exponent))
    }

    fn billionths(self) -> i128 {
        match self {
            Self::Decimal { billionths } => billionths,
            Self::Scaled { value, scale } => {
                let value = i128::from(value);
                let power = u32::try_from(scale.saturating_sub(NANO)).unwrap_or(0).min(39);
                match 10i128.checked_pow(power).and_then(|factor| value.checked_mul(factor)) {
                    Some(billionths) => billionths,
                    None if value < 0 => i128::MIN,
                    None => i128::MAX,
                }
            }
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        if let (Self::Scaled { value: left, scale: of_left }, Self::Scaled { value: right, scale: of_right }) =
            (self, other)
            && of_left == of_right
        {
            return left.cmp(right);
        }
        self.billionths().cmp(&other.billionths())
    }

    pub(crate) fn sign(&self) -> i64 {
        match self {
            Self::Scaled { value, .. } => value.signum(),
            Self::Decimal { billionths } => billionths.signum() as i64,
        }
    }

    /// Only what was written without a fraction, and fits.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Scaled { value, scale } if *scale >= 0 => scaled_up(*value, *scale),
            _ => None,
        }
    }

    pub(crate) fn as_float(&self) -> f64 {
        let (base, exponent) = match self {
            Self::Scaled { value, scale } => (*value as f64, *scale),
            Self::Decimal { billionths } => (*billionths as f64, NANO),
        };
        if exponent == 0 { base } else { base * power_of_ten(exponent) }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        if let (
            Self::Scaled { value: left, scale: of_left },
            Self::Scaled { value: right, scale: of_right },
        ) = (*self, *other)
        {
            if right == 0 {
                return *self;
            }
            if left == 0 {
                return *other;
            }
            let scale = of_left.min(of_right);
            let sum = scaled_up(left, of_left - scale)
                .zip(scaled_up(right, of_right - scale))
                .and_then(|(left, right)| left.checked_add(right));
            if let Some(value) = sum {
                return Self::Scaled { value, scale };
            }
        }
        Self::Decimal { billionths: self.billionths().saturating_add(other.billionths()) }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(&match *other {
            Self::Scaled { value, scale } if value != i64::MIN => Self::Scaled { value: -value, scale },
            other => Self::Decimal { billionths: other.billionths().saturating_neg() },
        })
    }
}

fn scaled_up(value: i64, scale: i32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    10i64.checked_pow(u32::try_from(scale).ok()?).and_then(|factor| value.checked_mul(factor))
}

fn power_of_ten(exponent: i32) -> f64 {
    // Correctly rounded, which repeated multiplication is not.
    format!("1e{exponent}").parse().unwrap_or(f64::INFINITY)
}

struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Result<Self, &'static str> {
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text).trim_start_matches('0');
        let (whole, rest) = digits(unsigned);
        let whole = if whole.is_empty() { "0" } else { whole };
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
        let behind = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if !digits(behind).1.is_empty() {
            return Err(WRONG_FORMAT);
        }
        Ok(Self { negative, whole, fraction, suffix })
    }

    /// Rounded up to billionths.
    fn decimal(&self, base: Base, exponent: i32) -> Amount {
        // 30 digits are beyond everything that is told apart.
        let mut number: i128 = 0;
        let mut scale: i32 = 0;
        let mut inexact = false;
        for (place, digit) in self.whole.bytes().chain(self.fraction.bytes()).enumerate() {
            if number > 10i128.pow(30) {
                inexact |= digit != b'0';
                if place < self.whole.len() {
                    scale += 1;
                }
                continue;
            }
            number = number * 10 + i128::from(digit - b'0');
            if place >= self.whole.len() {
                scale -= 1;
            }
        }
        let billionths = match base {
            Base::Decimal => shifted(number, scale.saturating_add(exponent).saturating_sub(NANO), inexact),
            Base::Binary => {
                let largest = i128::from(i64::MAX) * 1_000_000_000;
                match number.checked_mul(1 << exponent.clamp(0, 60)) {
                    Some(number) => shifted(number, scale.saturating_sub(NANO), inexact).min(largest),
                    None => largest,
                }
            }
        };
        Amount::Decimal { billionths: if self.negative { -billionths } else { billionths } }
    }
}

/// `number * 10^by`, rounded up.
fn shifted(number: i128, by: i32, inexact: bool) -> i128 {
    if number == 0 {
        return i128::from(inexact);
    }
    if by >= 0 {
        let factor = 10i128.checked_pow(by.unsigned_abs().min(39));
        return factor.and_then(|factor| number.checked_mul(factor)).unwrap_or(i128::MAX);
    }
    match 10i128.checked_pow(by.unsigned_abs()) {
        Some(divisor) => number / divisor + i128::from(number % divisor != 0 || inexact),
        None => 1,
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The base and the power of ten or two.
fn suffix(text: &str) -> Option<(Base, i32)> {
    Some(match text {
        "n" => (Base::Decimal, -9),
        "u" => (Base::Decimal, -6),
        "m" => (Base::Decimal, -3),
        "" => (Base::Decimal, 0),
        "k" => (Base::Decimal, 3),
        "M" => (Base::Decimal, 6),
        "G" => (Base::Decimal, 9),
        "T" => (Base::Decimal, 12),
        "P" => (Base::Decimal, 15),
        "E" => (Base::Decimal, 18),
        "Ki" => (Base::Binary, 10),
        "Mi" => (Base::Binary, 20),
        "Gi" => (Base::Binary, 30),
        "Ti" => (Base::Binary, 40),
        "Pi" => (Base::Binary, 50),
        "Ei" => (Base::Binary, 60),
        _ => {
            let exponent = text.strip_prefix(['e', 'E'])?;
            let exponent: i64 = exponent.parse().ok()?;
            (Base::Decimal, i32::try_from(exponent).ok()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    #[test]
    fn whether_it_is_an_integer_depends_on_how_it_is_written() {
        for (text, integer) in [
            ("0", Some(0)),
            ("40Gi", Some(40 << 30)),
            ("1500M", Some(1_500_000_000)),
            ("1e3", Some(1000)),
            ("-5", Some(-5)),
            // The value is whole, but what is kept has a fraction.
            ("1.0", None),
            ("1000m", None),
            // Too many digits, and too large.
            ("1000000000000000000000", None),
            ("1e30", None),
            ("0.5Gi", None),
        ] {
            assert_eq!(amount(text).as_integer(), integer, "{text}");
        }
    }

    #[test]
    fn amounts_are_ordered_whatever_their_form() {
        for (left, right, order) in [
            ("1Gi", "1024Mi", Ordering::Equal),
            ("1k", "1000", Ordering::Equal),
            ("1.5Gi", "1536Mi", Ordering::Equal),
            ("100m", "0.1", Ordering::Equal),
            // One billionth is the least there is.
            ("0.1n", "1n", Ordering::Equal),
            ("1e100", "1e18", Ordering::Greater),
            ("-1e100", "-1e18", Ordering::Less),
            ("999999999999999999999", "1E", Ordering::Greater),
        ] {
            assert_eq!(amount(left).compare(&amount(right)), order, "{left} and {right}");
        }
    }

    #[test]
    fn sums_keep_the_finer_scale() {
        // 1000 + 0.5 is 10005 tenths.
        assert_eq!(amount("1k").plus(&amount("0.5")), Amount::Scaled { value: 10005, scale: -1 });
        assert_eq!(amount("108").minus(&amount("8")), Amount::Scaled { value: 100, scale: 0 });
        let beyond = amount("9223372036854775807").plus(&amount("1"));
        assert_eq!(beyond, Amount::Decimal { billionths: (i128::from(i64::MAX) + 1) * 1_000_000_000 });
    }

    #[test]
    fn what_is_no_quantity_is_told_why() {
        for (text, why) in [
            ("", WRONG_FORMAT),
            ("10GB", WRONG_FORMAT),
            ("1 ", WRONG_FORMAT),
            ("1ki", WRONG_SUFFIX),
            ("1e", WRONG_SUFFIX),
            ("é", WRONG_FORMAT),
        ] {
            assert_eq!(Amount::parse(text), Err(why), "{text:?}");
        }
    }
}
