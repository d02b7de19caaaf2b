//! Quantities that are written back as they came.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

use crate::{Name, Quantity, quantity::QuantityError};

/// An amount, and how it was written: what is allocated is told in the form in which it was asked for or offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceQuantity {
    written: Name,
    amount: Quantity,
}

impl DeviceQuantity {
    /// A whole number, written with a binary suffix where it has one.
    pub fn from_binary(value: i64) -> Self {
        let written = canonical(Quantity::from_value(value), Form::Binary);
        Self { written: written.into(), amount: Quantity::from_value(value) }
    }

    /// The amount.
    pub fn amount(&self) -> Quantity {
        self.amount
    }

    /// As it was written.
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl FromStr for DeviceQuantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Ok(Self { amount: text.parse()?, written: text.into() })
    }
}

impl<'de> Deserialize<'de> for DeviceQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

/// A text, or a number that was not put in quotes; null is nothing, as in Kubernetes.
struct Written;

impl Visitor<'_> for Written {
    type Value = DeviceQuantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 40Gi")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DeviceQuantity, E> {
        text.trim().parse().map_err(|error: QuantityError| {
            // The manifest crate shows such a last line as the hint of the problem.
            E::custom(format_args!("{error}\nhint: {}", error.hint()))
        })
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<DeviceQuantity, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<DeviceQuantity, E> {
        self.visit_str("0")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<DeviceQuantity, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<DeviceQuantity, E> {
        self.visit_str(&value.to_string())
    }
}

/// As Kubernetes writes it: in the form in which it came, with the largest suffix that leaves no fraction.
impl fmt::Display for DeviceQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical(self.amount, Form::of(&self.written)))
    }
}

impl Serialize for DeviceQuantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

impl Form {
    fn of(text: &str) -> Self {
        let suffix =
            text.trim_start_matches(|letter: char| letter.is_ascii_digit() || "+-.".contains(letter));
        match suffix.as_bytes() {
            [_, b'i', ..] => Self::Binary,
            [b'e' | b'E', _, ..] => Self::Exponent,
            _ => Self::Decimal,
        }
    }
}

const NANOS: i128 = 1_000_000_000;

fn canonical(amount: Quantity, form: Form) -> String {
    let nanos = amount.nanos();
    if nanos == 0 {
        return "0".to_owned();
    }
    let is_whole = nanos % NANOS == 0;
    if form == Form::Binary && is_whole && (nanos / NANOS).abs() >= 1024 {
        let (number, suffix) = shortened(nanos / NANOS, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
        return format!("{number}{suffix}");
    }
    let (number, steps) = {
        let mut number = nanos;
        let mut steps = -3;
        while number % 1000 == 0 {
            number /= 1000;
            steps += 1;
        }
        (number, steps)
    };
    let suffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    match suffixes.get((steps + 3) as usize) {
        Some(suffix) if form != Form::Exponent => format!("{number}{suffix}"),
        _ if steps == 0 => number.to_string(),
        _ => format!("{number}e{}", steps * 3),
    }
}

fn shortened<'s>(number: i128, by: i128, suffixes: &[&'s str]) -> (i128, &'s str) {
    let mut number = number;
    let mut place = 0;
    while number % by == 0 && place + 1 < suffixes.len() {
        number /= by;
        place += 1;
    }
    (number, suffixes[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_back_in_its_form() {
        for (written, shown) in [
            ("1024Mi", "1Gi"),
            ("1500Mi", "1500Mi"),
            ("10737418240", "10737418240"),
            ("1000", "1k"),
            ("0.5Gi", "512Mi"),
            ("512", "512"),
            ("1000Ki", "1000Ki"),
            ("1e3", "1e3"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("0", "0"),
            // Less than 1024 has no binary suffix.
            ("0.5Ki", "512"),
            ("0.9765625Ki", "1k"),
            ("5e0", "5"),
        ] {
            assert_eq!(written.parse::<DeviceQuantity>().unwrap().to_string(), shown, "{written}");
        }
        assert_eq!(DeviceQuantity::from_binary(5 << 30).to_string(), "5Gi");
    }
}
