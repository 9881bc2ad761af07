//! Compares numbers by their exact values, not by their float approximations.

use serde_json::Number;
use std::cmp::Ordering;

/// A number, as an integer if it is one of manageable size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ExactNumber {
    Whole(i128),
    /// A fraction, or beyond [`WHOLE_MAX`].
    Float(f64),
}

/// Floats from here on are compared as floats; all integers of JSON values lie far below. 2^100.
const WHOLE_MAX: f64 = 1_267_650_600_228_229_401_496_703_205_376.0;

pub(crate) fn exact(number: &Number) -> ExactNumber {
    if let Some(whole) = number.as_i128() {
        return ExactNumber::Whole(whole);
    }
    let float = number.as_f64().unwrap_or(f64::MAX);
    match float.fract() == 0.0 && float.abs() < WHOLE_MAX {
        true => ExactNumber::Whole(float as i128),
        false => ExactNumber::Float(float),
    }
}

pub(crate) fn is_whole(number: &Number) -> bool {
    match exact(number) {
        ExactNumber::Whole(_) => true,
        ExactNumber::Float(float) => float.fract() == 0.0,
    }
}

/// Whether a number was written without a fraction, as far as is known: integers beyond 64 bits
/// are read as floats.
pub(crate) fn is_written_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|float| float.abs() >= u64::MAX as f64)
}

/// The order of two numbers: `1` equals `1.0`, and 2^53 + 1 does not equal 2^53.
pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    match (exact(a), exact(b)) {
        (ExactNumber::Whole(a), ExactNumber::Whole(b)) => a.cmp(&b),
        (ExactNumber::Float(a), ExactNumber::Float(b)) => a.total_cmp(&b),
        (ExactNumber::Whole(a), ExactNumber::Float(b)) => whole_with_float(a, b),
        (ExactNumber::Float(a), ExactNumber::Whole(b)) => whole_with_float(b, a).reverse(),
    }
}

/// A float that is not [`ExactNumber::Whole`] never equals an integer.
fn whole_with_float(whole: i128, float: f64) -> Ordering {
    // Beyond the range of i128 the cast saturates, which is still beyond every integer here.
    match whole <= float.floor() as i128 {
        true => Ordering::Less,
        false => Ordering::Greater,
    }
}

/// Whether `number` is `divisor` some whole number of times, by their decimal digits: 0.3 is a
/// multiple of 0.1, which as floats it is not. `divisor` is above zero.
pub(crate) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let (number, divisor) = (decimal(number), decimal(divisor));
    if number.digits == 0 {
        return true;
    }
    // The digits of `number` end in no zero: with fewer places than `divisor` they cannot be a multiple.
    let Ok(shift) = u32::try_from(number.exponent - divisor.exponent) else { return false };
    // Digits are below 2^64, so no product exceeds 128 bits.
    let modulus = u128::from(divisor.digits);
    let scale = power_of_ten(shift, modulus);
    let rest = u128::from(number.digits) % modulus;
    (rest * scale).is_multiple_of(modulus)
}

/// `digits` times ten to the `exponent`; the digits end in no zero.
struct DecimalNumber {
    digits: u64,
    exponent: i32,
}

fn decimal(number: &Number) -> DecimalNumber {
    let (mut digits, mut exponent) = match number.as_i128() {
        Some(whole) => (u64::try_from(whole.unsigned_abs()).unwrap_or(u64::MAX), 0),
        None => float_digits(number.as_f64().unwrap_or(f64::MAX)),
    };
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        exponent += 1;
    }
    DecimalNumber { digits, exponent }
}

/// The shortest digits that mean `float`, at most 17 of them.
fn float_digits(float: f64) -> (u64, i32) {
    let text = format!("{:e}", float.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}").parse().unwrap_or(u64::MAX);
    let n_places = i32::try_from(fraction.len()).unwrap_or(0);
    (digits, exponent.parse::<i32>().unwrap_or(0) - n_places)
}

fn power_of_ten(exponent: u32, modulus: u128) -> u128 {
    let (mut power, mut base, mut left) = (1 % modulus, 10 % modulus, exponent);
    while left > 0 {
        if left % 2 == 1 {
            power = power * base % modulus;
        }
        base = base * base % modulus;
        left /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn number(text: &str) -> Number {
        let Value::Number(number) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
        number
    }

    #[test]
    fn numbers_are_ordered_by_what_they_are() {
        let ascending = [
            "-1e300",
            "-1e40",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "1e-300",
            "0.5",
            "1",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775807",
            "18446744073709551615",
            "1e20",
            "1e40",
            "1e300",
        ];
        for (a_idx, a) in ascending.iter().enumerate() {
            for (b_idx, b) in ascending.iter().enumerate() {
                assert_eq!(compare(&number(a), &number(b)), a_idx.cmp(&b_idx), "{a} {b}");
            }
        }
        for (a, b) in [("1", "1.0"), ("0", "-0.0"), ("100", "1e2"), ("1e40", "10e39")] {
            assert_eq!(compare(&number(a), &number(b)), Ordering::Equal, "{a} {b}");
        }
    }

    #[test]
    fn multiples_go_by_decimal_digits() {
        let multiples = [
            ("0.3", "0.1"),
            ("4.35", "0.01"),
            ("0", "7"),
            ("-0.0", "0.3"),
            ("-9", "3"),
            ("1e308", "0.5"),
            ("1e308", "1e-308"),
            ("18446744073709551615", "5"),
            ("18446744073709551615", "18446744073709551615"),
            ("9", "1.5"),
            ("12e1", "40"),
            ("0.0075", "0.0001"),
        ];
        for (n, divisor) in multiples {
            assert!(is_multiple(&number(n), &number(divisor)), "{n} {divisor}");
        }
        let others = [
            ("1e308", "0.123456789"),
            ("0.35", "0.1"),
            ("1", "2"),
            ("1e-308", "1e308"),
            ("0.00751", "0.0001"),
            ("9007199254740993", "2"),
            ("5e-324", "1"),
        ];
        for (n, divisor) in others {
            assert!(!is_multiple(&number(n), &number(divisor)), "{n} {divisor}");
        }
    }

    #[test]
    fn what_has_no_fraction_is_whole() {
        for (text, expected) in [("1", true), ("1.0", true), ("1e300", true), ("1.5", false)] {
            assert_eq!(is_whole(&number(text)), expected, "{text}");
        }
    }
}
