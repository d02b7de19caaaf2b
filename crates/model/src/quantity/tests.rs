use proptest::prelude::*;

use super::*;

const MAX: i64 = i64::MAX;
const MIN: i64 = i64::MIN;

fn check(text: &str, value: i64, milli_value: i64) {
    let quantity: Quantity = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((quantity.value(), quantity.milli_value()), (value, milli_value), "{text:?}");
}

#[test]
fn amounts() {
    for (text, value, milli_value) in [
        // Zero in all its forms.
        ("0", 0, 0),
        ("-0", 0, 0),
        ("+0", 0, 0),
        ("000", 0, 0),
        ("0.0", 0, 0),
        ("0n", 0, 0),
        ("0u", 0, 0),
        ("0m", 0, 0),
        ("0k", 0, 0),
        ("0Ki", 0, 0),
        ("0E", 0, 0),
        ("0Ei", 0, 0),
        ("0e99999", 0, 0),
        ("0e-99999", 0, 0),
        // Whole numbers.
        ("1", 1, 1000),
        ("+1", 1, 1000),
        ("-1", -1, -1000),
        ("007", 7, 7000),
        ("100", 100, 100_000),
        // Decimal suffixes.
        ("5n", 1, 1),
        ("4u", 1, 1),
        ("3m", 1, 3),
        ("500m", 1, 500),
        ("1000m", 1, 1000),
        ("1001m", 2, 1001),
        ("8k", 8000, 8_000_000),
        ("50k", 50_000, 50_000_000),
        ("7M", 7_000_000, 7_000_000_000),
        ("6G", 6_000_000_000, 6_000_000_000_000),
        ("5T", 5_000_000_000_000, 5_000_000_000_000_000),
        ("2P", 2_000_000_000_000_000, 2_000_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000, MAX),
        // Binary suffixes.
        ("1Ki", 1 << 10, 1024 * 1000),
        ("8Ki", 8 << 10, 8192 * 1000),
        ("7Mi", 7 << 20, (7 << 20) * 1000),
        ("6Gi", 6 << 30, (6 << 30) * 1000),
        ("5Ti", 5 << 40, (5 << 40) * 1000),
        ("4Pi", 4 << 50, (4 << 50) * 1000),
        ("3Ei", 3 << 60, MAX),
        ("-2Gi", -2 << 30, (-2 << 30) * 1000),
        ("+2Gi", 2 << 30, (2 << 30) * 1000),
        // Exponents; E alone is exa.
        ("1e3", 1000, 1_000_000),
        ("1E3", 1000, 1_000_000),
        ("1e+3", 1000, 1_000_000),
        ("1E-3", 1, 1),
        ("1e0", 1, 1000),
        ("1e-0", 1, 1000),
        ("12e6", 12_000_000, 12_000_000_000),
        ("1.3E+6", 1_300_000, 1_300_000_000),
        ("1e14", 100_000_000_000_000, 100_000_000_000_000_000),
        ("1.7E18", 1_700_000_000_000_000_000, MAX),
        ("1.01E", 1_010_000_000_000_000_000, MAX),
        // Fractions.
        ("0.5", 1, 500),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("1.G", 1_000_000_000, 1_000_000_000_000),
        ("-.5", -1, -500),
        ("0.001", 1, 1),
        (".001", 1, 1),
        ("0.0005k", 1, 500),
        (".0001k", 1, 100),
        ("9.01", 10, 9010),
        ("8.1k", 8100, 8_100_000),
        ("100.035k", 100_035, 100_035_000),
        ("7.123456M", 7_123_456, 7_123_456_000),
        ("6.987654321G", 6_987_654_321, 6_987_654_321_000),
        ("0.5e-1", 1, 50),
        ("1.5", 2, 1500),
        ("-1.5", -2, -1500),
        ("0.1m", 1, 1),
        ("-0.1m", -1, -1),
        ("2000.1m", 3, 2001),
        // Binary fractions: 1.5 * 1024 = 1536; 0.05 * 2^30 = 53687091.2; 100.035 * 1024 = 102435.84.
        ("1.5Ki", 1536, 1_536_000),
        (".5Mi", 524_288, 524_288_000),
        ("1.Ki", 1024, 1_024_000),
        ("0.05Gi", 53_687_092, 53_687_091_200),
        ("-0.05Gi", -53_687_092, -53_687_091_200),
        ("100.035Ki", 102_436, 102_435_840),
        ("0.025Ti", 27_487_790_695, 27_487_790_694_400),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        // The edges of 64 bits. Thousandths run out at 9223372036854775.807.
        ("9223372036854775807", MAX, MAX),
        ("9223372036854775808", MAX, MAX),
        ("-9223372036854775808", MIN, MIN),
        ("-9223372036854775809", MIN, MIN),
        ("9223372036854775807m", 9_223_372_036_854_776, MAX),
        ("9223372036854775806m", 9_223_372_036_854_776, MAX - 1),
        ("9223372036854775.807", 9_223_372_036_854_776, MAX),
        ("9223372036854775.808", 9_223_372_036_854_776, MAX),
        ("9223372036854776", 9_223_372_036_854_776, MAX),
        ("-9223372036854776", -9_223_372_036_854_776, MIN),
        ("7Ei", 7 << 60, MAX),
        ("8Ei", MAX, MAX),
        ("9Ei", MAX, MAX),
        ("-9Ei", -MAX, MIN),
        ("9223372036854775807Ki", MAX, MAX),
        ("12E", MAX, MAX),
        ("50E", MAX, MAX),
        ("-50E", MIN, MIN),
        ("1e30", MAX, MAX),
        ("1e9223372036854775807", MAX, MAX),
        ("-1e30", MIN, MIN),
        ("1e-9223372036854775808", 1, 1),
        ("99999999999999999999999999999999999999999999999999", MAX, MAX),
        // Kubernetes takes a missing number for 0.
        ("+", 0, 0),
        ("-", 0, 0),
        (".", 0, 0),
        ("-.", 0, 0),
        ("Ki", 0, 0),
        ("m", 0, 0),
        ("e5", 0, 0),
        (".e-9", 0, 0),
    ] {
        check(text, value, milli_value);
    }
}

#[test]
fn finer_than_a_billionth_is_rounded_away_from_zero() {
    for (text, nanos) in [
        ("3.001n", 4),
        ("-3.001n", -4),
        ("1.1E-9", 2),
        ("0.0000000001", 1),
        ("-0.0000000001", -1),
        ("0.0000000005", 1),
        ("0.00000000050", 1),
        ("0.5e-9", 1),
        ("0.9n", 1),
        ("1e-1000", 1),
        ("0.00000012345", 124),
        ("0.00000012354", 124),
        ("0.000000123", 123),
        ("1.000000000000000000000000000000", 1_000_000_000),
        ("1.000000000000000000000000000001", 1_000_000_001),
        // 10^-12 * 1024 = 1.024 billionths.
        ("0.000000000001Ki", 2),
        ("1.0000000000000000000000000000000000000000Ki", 1024 * NANOS_PER_UNIT),
        ("1.0000000000000000000000000000000000000001Ki", 1024 * NANOS_PER_UNIT + 1),
    ] {
        assert_eq!(text.parse(), Ok(Quantity { nanos }), "{text:?}");
    }
}

#[test]
fn texts_that_are_no_quantities() {
    let suffixes = "write a number and maybe one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, such as 500m or 2Gi";
    for (text, message, hint) in [
        ("", "an empty text is not a quantity", suffixes),
        ("1x", r#""1x" is not a quantity"#, suffixes),
        ("aoeu", r#""aoeu" is not a quantity: it has no number"#, suffixes),
        ("1.1.M", r#""1.1.M" is not a quantity"#, suffixes),
        ("1+1.0M", r#""1+1.0M" is not a quantity"#, suffixes),
        ("0.1mi", r#""0.1mi" is not a quantity"#, "did you mean 0.1M or 0.1Mi?"),
        ("0.1am", r#""0.1am" is not a quantity"#, suffixes),
        (".5i", r#"".5i" is not a quantity"#, suffixes),
        ("1i", r#""1i" is not a quantity"#, suffixes),
        ("-3.01i", r#""-3.01i" is not a quantity"#, suffixes),
        ("-3.01e-", r#""-3.01e-" is not a quantity"#, suffixes),
        ("1e", r#""1e" is not a quantity"#, suffixes),
        ("1E+", r#""1E+" is not a quantity"#, suffixes),
        ("1e1.5", r#""1e1.5" is not a quantity"#, suffixes),
        ("1e5k", r#""1e5k" is not a quantity"#, suffixes),
        ("1e99999999999999999999", r#""1e99999999999999999999" is not a quantity"#, suffixes),
        ("--1", r#""--1" is not a quantity: it has no number"#, suffixes),
        ("0x10", r#""0x10" is not a quantity"#, suffixes),
        ("e-10", r#""e-10" is not a quantity: it has no number"#, suffixes),
        (" 1", r#"" 1" is not a quantity: it has no number"#, "did you mean 1?"),
        ("1 ", r#""1 " is not a quantity"#, "did you mean 1?"),
        ("2 Gi", r#""2 Gi" is not a quantity"#, "did you mean 2Gi?"),
        ("1_000", r#""1_000" is not a quantity"#, "did you mean 1000?"),
        ("1GB", r#""1GB" is not a quantity"#, "did you mean 1G or 1Gi?"),
        ("1.5gib", r#""1.5gib" is not a quantity"#, "did you mean 1.5G or 1.5Gi?"),
        ("10K", r#""10K" is not a quantity"#, "did you mean 10k or 10Ki?"),
        ("64 mb", r#""64 mb" is not a quantity"#, "did you mean 64M or 64Mi?"),
        ("3TB", r#""3TB" is not a quantity"#, "did you mean 3T or 3Ti?"),
        ("2pi", r#""2pi" is not a quantity"#, "did you mean 2P or 2Pi?"),
        ("1EB", r#""1EB" is not a quantity"#, "did you mean 1E or 1Ei?"),
        ("１", r#""１" is not a quantity: it has no number"#, suffixes),
    ] {
        let error = text.parse::<Quantity>().expect_err(text);
        assert_eq!((error.to_string().as_str(), error.hint().as_str()), (message, hint));
    }
    let long = "9x".repeat(1000).parse::<Quantity>().expect_err("no quantity").to_string();
    assert!(long.len() < 100, "{long}");
}

#[test]
fn shown_with_the_largest_decimal_suffix() {
    for (text, shown) in [
        ("0", "0"),
        ("0Ki", "0"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("2000", "2k"),
        ("1024", "1024"),
        ("1Gi", "1073741824"),
        ("0.1n", "1n"),
        ("-0.05", "-50m"),
        ("50E", "50E"),
        ("1e21", "1000E"),
        ("1500u", "1500u"),
    ] {
        let quantity: Quantity = text.parse().expect(text);
        assert_eq!(quantity.to_string(), shown, "{text:?}");
    }
}

#[test]
fn read_from_json() {
    for (text, nanos) in [
        (r#""500m""#, 500 * NANOS_PER_MILLI),
        (r#"" 2k ""#, 2000 * NANOS_PER_UNIT),
        ("3", 3 * NANOS_PER_UNIT),
        ("-3", -3 * NANOS_PER_UNIT),
        ("18446744073709551615", i128::from(u64::MAX) * NANOS_PER_UNIT),
        ("0.1", 100 * NANOS_PER_MILLI),
        ("1e3", 1000 * NANOS_PER_UNIT),
        ("1e-300", 1),
        ("null", 0),
    ] {
        assert_eq!(serde_json::from_str::<Quantity>(text).expect(text), Quantity { nanos }, "{text}");
    }
    for (text, message) in [
        (r#""1GB""#, "\"1GB\" is not a quantity\nhint: did you mean 1G or 1Gi?"),
        ("true", "invalid type: boolean `true`, expected a quantity such as 500m or 2Gi"),
        ("[]", "invalid type: sequence, expected a quantity such as 500m or 2Gi"),
    ] {
        let error = serde_json::from_str::<Quantity>(text).expect_err(text).to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn sums_and_constants() {
    let sum = Quantity::from_milli(1500).saturating_add(Quantity::from_value(2));
    assert_eq!(Ok(sum), "3.5".parse());
    assert!(Quantity::ZERO.is_zero() && Quantity::default().is_zero() && !sum.is_zero());
    let most = Quantity { nanos: i128::MAX };
    assert_eq!(most.saturating_add(sum), most);
    assert!(Quantity::from_milli(1) < Quantity::from_value(1));
    assert_eq!(Quantity { nanos: i128::MIN }.value(), MIN);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*", near in "[+-]?[0-9.]{0,50}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,20}") {
        for text in [text, near] {
            if let Err(error) = text.parse::<Quantity>() {
                prop_assert!(!error.to_string().is_empty() && !error.hint().is_empty());
            }
        }
    }

    #[test]
    fn whole_numbers_come_back(number: i64) {
        prop_assert_eq!(number.to_string().parse::<Quantity>().map(Quantity::value), Ok(number));
        prop_assert_eq!(Quantity::from_value(number).value(), number);
        prop_assert_eq!(Quantity::from_milli(number).milli_value(), number);
    }

    #[test]
    fn what_is_shown_reads_as_the_same(nanos: i128) {
        let quantity = Quantity { nanos: nanos.max(-i128::MAX) };
        prop_assert_eq!(quantity.to_string().parse(), Ok(quantity));
    }
}
