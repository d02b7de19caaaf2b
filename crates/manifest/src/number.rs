//! What the text of a number means, by the rules of JSON and of the YAML that Kubernetes reads.

use std::borrow::Cow;

/// Whether an unquoted YAML scalar is a number.
pub(crate) fn is_yaml_number(text: &str) -> bool {
    if not_finite(text).is_some() {
        return true;
    }
    // Only these first characters make Kubernetes' YAML library consider a number at all.
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return false;
    }
    // `1e999` overflows to infinity and stays a string there.
    integer(text).is_some() || has_decimal_form(text) && float(text).is_some_and(f64::is_finite)
}

/// The number as an integer, if it is written as one: `42`, `0x2a`, `0o52`, `052`, `0b101010`, `1_000`.
pub(crate) fn integer(text: &str) -> Option<i128> {
    let text = without_underscores(text);
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, &*text),
    };
    let magnitude = magnitude(digits)?;
    Some(if negative { -magnitude } else { magnitude })
}

fn magnitude(digits: &str) -> Option<i128> {
    let in_base = |digits: &str, base| {
        let clean = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_alphanumeric());
        clean.then(|| i128::from_str_radix(digits, base).ok()).flatten()
    };
    let Some(rest) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) else {
        return in_base(digits, 10);
    };
    match rest.as_bytes()[0] {
        b'x' | b'X' => in_base(&rest[1..], 16),
        b'o' | b'O' => in_base(&rest[1..], 8),
        b'b' | b'B' => in_base(&rest[1..], 2),
        // `0644` is octal, yet `089` cannot be.
        _ => in_base(rest, 8).or_else(|| in_base(rest, 10)),
    }
}

/// The number as a float; infinite when it is too large for one.
pub(crate) fn float(text: &str) -> Option<f64> {
    if let Some(special) = not_finite(text) {
        return Some(special);
    }
    if let Some(integer) = integer(text) {
        return Some(integer as f64);
    }
    let text = without_underscores(text);
    has_decimal_form(&text).then(|| text.parse().ok()).flatten()
}

fn not_finite(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Whether the text is digits with an optional sign, point and exponent, and nothing else.
fn has_decimal_form(text: &str) -> bool {
    let text = without_underscores(text);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction) && mantissa.len() > 1,
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa_fits && exponent_fits
}

fn without_underscores(text: &str) -> Cow<'_, str> {
    if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_numbers() {
        for (text, number) in [
            ("0", Some(0.0)),
            ("-12", Some(-12.0)),
            ("+7", Some(7.0)),
            ("0x1F", Some(31.0)),
            ("-0x10", Some(-16.0)),
            ("0o17", Some(15.0)),
            ("017", Some(15.0)),
            ("089", Some(89.0)),
            ("0b101", Some(5.0)),
            ("1_000", Some(1000.0)),
            ("1.5", Some(1.5)),
            ("1.", Some(1.0)),
            (".5", Some(0.5)),
            ("-.5e1", Some(-5.0)),
            ("1e3", Some(1000.0)),
            ("1E+3", Some(1000.0)),
            ("123456789012345678901234567890", Some(123456789012345678901234567890.0)),
            (".inf", Some(f64::INFINITY)),
            ("-.INF", Some(f64::NEG_INFINITY)),
            ("", None),
            (".", None),
            ("-", None),
            ("+", None),
            ("0x", None),
            ("0b2", None),
            ("_1", None),
            ("1e", None),
            ("e1", None),
            ("1.2.3", None),
            ("10m", None),
            ("1e999", None),
            ("inf", None),
            ("+inf", None),
            ("nan", None),
            ("--1", None),
            ("0x-1", None),
            ("2024-01-01", None),
            ("1:30", None),
        ] {
            let found = is_yaml_number(text).then(|| float(text).expect(text));
            assert_eq!(found, number, "{text:?}");
        }
        assert!(is_yaml_number(".nan"));
    }

    #[test]
    fn integers() {
        for (text, expected) in [
            ("9223372036854775808", Some(9_223_372_036_854_775_808)),
            ("-0", Some(0)),
            ("1.0", None),
            ("1e3", None),
            ("999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(integer(text), expected, "{text:?}");
        }
    }
}
