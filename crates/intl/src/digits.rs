//! How many digits a number is shown with (ECMA-402, SetNumberFormatDigitOptions and FormatNumericToString).

use crate::bag::OptionsBag;
use crate::failure::IntlError;
use fixed_decimal::{Decimal, RoundingIncrement, Sign, SignedRoundingMode, UnsignedRoundingMode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Limit of the fraction digits that can be requested.
const FRACTION_DIGITS_MAX: u8 = 100;

const ROUNDING_MODES: &[&str] = &[
    "halfExpand",
    "ceil",
    "floor",
    "expand",
    "trunc",
    "halfCeil",
    "halfFloor",
    "halfTrunc",
    "halfEven",
];
const ROUNDING_INCREMENTS: &[u16] =
    &[1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000];

/// Which of the two limits decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RoundingType {
    Fraction,
    Significant,
    More,
    Less,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DigitSettings {
    pub(crate) integer: u8,
    fraction: Option<(u8, u8)>,
    significant: Option<(u8, u8)>,
    pub(crate) rounding: RoundingType,
    mode: String,
    increment: u16,
    strip_if_integer: bool,
}

impl DigitSettings {
    /// Reads the options. `defaults` are the least and most fraction digits.
    pub(crate) fn read(
        bag: &OptionsBag,
        defaults: (u8, u8),
        is_compact: bool,
    ) -> Result<Self, IntlError> {
        let integer = bag.integer("minimumIntegerDigits", 1, 21)?.unwrap_or(1);
        let increment = read_increment(bag)?;
        let mode = bag.choice("roundingMode", ROUNDING_MODES)?.to_owned();
        let priority =
            bag.choice("roundingPriority", &["auto", "morePrecision", "lessPrecision"])?;
        let trailing = bag.choice("trailingZeroDisplay", &["auto", "stripIfInteger"])?;
        let defaults = if increment == 1 { defaults } else { (defaults.0, defaults.0) };

        let has_significant =
            bag.has("minimumSignificantDigits") || bag.has("maximumSignificantDigits");
        let has_fraction = bag.has("minimumFractionDigits") || bag.has("maximumFractionDigits");
        let (mut needs_significant, mut needs_fraction) = (true, true);
        if priority == "auto" {
            needs_significant = has_significant;
            needs_fraction = !has_significant && (has_fraction || !is_compact);
        }
        let significant = if needs_significant { Some(read_significant(bag)?) } else { None };
        let fraction = if needs_fraction { Some(read_fraction(bag, defaults)?) } else { None };
        let mut settings = Self {
            integer,
            fraction,
            significant,
            rounding: RoundingType::Fraction,
            mode,
            increment,
            strip_if_integer: trailing == "stripIfInteger",
        };
        settings.rounding = match (needs_significant, needs_fraction, priority) {
            (false, false, _) => {
                settings.fraction = Some((0, 0));
                settings.significant = Some((1, 2));
                RoundingType::More
            }
            (_, _, "morePrecision") => RoundingType::More,
            (_, _, "lessPrecision") => RoundingType::Less,
            (true, _, _) => RoundingType::Significant,
            (false, true, _) => RoundingType::Fraction,
        };
        if increment != 1 {
            if settings.rounding != RoundingType::Fraction {
                return Err(IntlError::type_error("roundingIncrement value is invalid."));
            }
            if settings.fraction.is_some_and(|(least, most)| least != most) {
                return Err(IntlError::range("roundingIncrement value is out of range."));
            }
        }
        Ok(settings)
    }

    /// The lines of `resolvedOptions` before `useGrouping`.
    pub(crate) fn add_resolved_options(&self, shown: &mut Map<String, Value>) {
        shown.insert("minimumIntegerDigits".into(), json!(self.integer));
        if let Some((least, most)) = self.fraction {
            shown.insert("minimumFractionDigits".into(), json!(least));
            shown.insert("maximumFractionDigits".into(), json!(most));
        }
        if let Some((least, most)) = self.significant {
            shown.insert("minimumSignificantDigits".into(), json!(least));
            shown.insert("maximumSignificantDigits".into(), json!(most));
        }
    }

    /// The lines of `resolvedOptions` at the end.
    pub(crate) fn show_rounding(&self, shown: &mut Map<String, Value>) {
        let priority = match self.rounding {
            RoundingType::Fraction | RoundingType::Significant => "auto",
            RoundingType::More => "morePrecision",
            RoundingType::Less => "lessPrecision",
        };
        shown.insert("roundingIncrement".into(), json!(self.increment));
        shown.insert("roundingMode".into(), json!(self.mode));
        shown.insert("roundingPriority".into(), json!(priority));
        let trailing = if self.strip_if_integer { "stripIfInteger" } else { "auto" };
        shown.insert("trailingZeroDisplay".into(), json!(trailing));
    }

    /// The number with the digits that are shown.
    pub(crate) fn round(&self, value: &Decimal) -> Decimal {
        let mut rounded = match (self.rounding, self.fraction, self.significant) {
            (RoundingType::Fraction, Some(fraction), _) => self.to_fraction(value, fraction),
            (RoundingType::Significant, _, Some(significant)) => {
                self.to_significant(value, significant)
            }
            (RoundingType::More | RoundingType::Less, Some(fraction), Some(significant)) => {
                let by_fraction = -i16::from(fraction.1);
                let by_significant = significant_position(value, significant.1);
                let takes_significant = match self.rounding {
                    RoundingType::More => by_significant <= by_fraction,
                    RoundingType::Less | RoundingType::Fraction | RoundingType::Significant => {
                        by_significant > by_fraction
                    }
                };
                if takes_significant {
                    self.to_significant(value, significant)
                } else {
                    self.to_fraction(value, fraction)
                }
            }
            _ => value.clone(),
        };
        if self.strip_if_integer {
            rounded.absolute.trim_end_if_integer();
        }
        rounded.absolute.pad_start(i16::from(self.integer));
        rounded
    }

    fn to_fraction(&self, value: &Decimal, (least, most): (u8, u8)) -> Decimal {
        let (increment, tens) = match self.increment {
            1 | 10 | 100 | 1000 => (RoundingIncrement::MultiplesOf1, self.increment.ilog10()),
            2 | 20 | 200 | 2000 => (RoundingIncrement::MultiplesOf2, self.increment.ilog10()),
            5 | 50 | 500 | 5000 => (RoundingIncrement::MultiplesOf5, self.increment.ilog10()),
            other => (RoundingIncrement::MultiplesOf25, other.ilog10() - 1),
        };
        let tens = i16::try_from(tens).expect("there are four digits at most");
        let mut rounded = value.clone();
        rounded.round_with_mode_and_increment(
            tens - i16::from(most),
            self.signed_mode(),
            increment,
        );
        shown_from(rounded, least)
    }

    fn to_significant(&self, value: &Decimal, (least, most): (u8, u8)) -> Decimal {
        let mut rounded = value.clone();
        rounded.round_with_mode(significant_position(value, most), self.signed_mode());
        let start = rounded.absolute.nonzero_magnitude_start();
        let fraction = (i16::from(least) - 1 - start).clamp(0, 130);
        shown_from(rounded, u8::try_from(fraction).expect("it is between bounds"))
    }

    fn signed_mode(&self) -> SignedRoundingMode {
        let unsigned = SignedRoundingMode::Unsigned;
        match self.mode.as_str() {
            "ceil" => SignedRoundingMode::Ceil,
            "floor" => SignedRoundingMode::Floor,
            "expand" => unsigned(UnsignedRoundingMode::Expand),
            "trunc" => unsigned(UnsignedRoundingMode::Trunc),
            "halfCeil" => SignedRoundingMode::HalfCeil,
            "halfFloor" => SignedRoundingMode::HalfFloor,
            "halfTrunc" => unsigned(UnsignedRoundingMode::HalfTrunc),
            "halfEven" => unsigned(UnsignedRoundingMode::HalfEven),
            _ => unsigned(UnsignedRoundingMode::HalfExpand),
        }
    }
}

/// Without trailing zeros, but with at least this many fraction digits.
fn shown_from(mut value: Decimal, fraction: u8) -> Decimal {
    value.absolute.trim_end();
    value.absolute.trim_start();
    value.absolute.pad_end(-i16::from(fraction));
    value
}

fn significant_position(value: &Decimal, most: u8) -> i16 {
    value.absolute.nonzero_magnitude_start().saturating_sub(i16::from(most) - 1)
}

fn read_increment(bag: &OptionsBag) -> Result<u16, IntlError> {
    let Some(text) = bag.get("roundingIncrement") else { return Ok(1) };
    let value = text.parse::<f64>().unwrap_or(f64::NAN).floor();
    let found = ROUNDING_INCREMENTS.iter().find(|it| f64::from(**it) == value);
    found.copied().ok_or_else(|| IntlError::range("roundingIncrement value is out of range."))
}

fn read_significant(bag: &OptionsBag) -> Result<(u8, u8), IntlError> {
    let least = bag.integer("minimumSignificantDigits", 1, 21)?.unwrap_or(1);
    let most = bag.integer("maximumSignificantDigits", least, 21)?.unwrap_or(21);
    Ok((least, most))
}

fn read_fraction(
    bag: &OptionsBag,
    (default_least, default_most): (u8, u8),
) -> Result<(u8, u8), IntlError> {
    let least = bag.integer("minimumFractionDigits", 0, FRACTION_DIGITS_MAX)?;
    let most = bag.integer("maximumFractionDigits", 0, FRACTION_DIGITS_MAX)?;
    match (least, most) {
        (None, None) => Ok((default_least, default_most)),
        (Some(least), None) => Ok((least, default_most.max(least))),
        (None, Some(most)) => Ok((default_least.min(most), most)),
        (Some(least), Some(most)) if least > most => {
            Err(IntlError::range("maximumFractionDigits value is out of range."))
        }
        (Some(least), Some(most)) => Ok((least, most)),
    }
}

/// A number as it is formatted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NumericValue {
    Finite(Decimal),
    Infinity(Sign),
    NotANumber,
}

/// Most digits of a number: those of a double are 309 before the point and 1,074 after it.
const NUMBER_DIGITS_MAX: usize = 4_000;

impl NumericValue {
    /// Reads a number as JavaScript reads texts: `StringNumericLiteral`.
    pub(crate) fn parse(text: &str) -> Result<Self, IntlError> {
        let text = text.trim_matches(|it: char| it.is_whitespace() || it == '\u{feff}');
        let (sign, digits) = match text.as_bytes().first() {
            Some(b'-') => (Sign::Negative, &text[1..]),
            Some(b'+') => (Sign::None, &text[1..]),
            _ => (Sign::None, text),
        };
        if digits == "Infinity" {
            return Ok(Self::Infinity(sign));
        }
        if text.is_empty() {
            return Ok(Self::Finite(Decimal::from(0)));
        }
        if let Some(value) = other_base(text) {
            return Ok(value);
        }
        if digits.len() > NUMBER_DIGITS_MAX {
            let allowed =
                format!("a number of more than {NUMBER_DIGITS_MAX} digits cannot be formatted");
            return if is_decimal(digits) {
                Err(IntlError::range(allowed))
            } else {
                Ok(Self::NotANumber)
            };
        }
        if !is_decimal(digits) {
            return Ok(Self::NotANumber);
        }
        Ok(match plain_decimal(digits) {
            Some(value) => Self::Finite(value.with_sign(sign)),
            None => Self::Infinity(sign),
        })
    }
}

/// `12`, `12.`, `.5`, `1e9`.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.map(|it| it.strip_prefix(['+', '-']).unwrap_or(it));
    are_digits(whole)
        && are_digits(fraction)
        && whole.len() + fraction.len() > 0
        && exponent.is_none_or(|it| !it.is_empty() && are_digits(it))
}

/// The value of such a text; `None` if it is too large for a double.
fn plain_decimal(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa =
        if fraction.is_empty() { format!("0{whole}") } else { format!("0{whole}.{fraction}") };
    let mut value = Decimal::try_from_str(&mantissa).ok()?;
    if value.absolute.is_zero() {
        return Some(Decimal::from(0));
    }
    let exponent: i64 =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
    let magnitude = exponent.saturating_add(i64::from(value.absolute.nonzero_magnitude_start()));
    if magnitude > 4_000 {
        return None;
    }
    if magnitude < -4_000 {
        return Some(Decimal::from(0));
    }
    value.absolute.multiply_pow10(i16::try_from(exponent).ok()?);
    value.absolute.trim_start();
    Some(value)
}

/// `0x1f`, `0b101`, `0o17`.
fn other_base(text: &str) -> Option<NumericValue> {
    let base = match text.as_bytes().get(..2)? {
        b"0x" | b"0X" => 16,
        b"0b" | b"0B" => 2,
        b"0o" | b"0O" => 8,
        _ => return None,
    };
    Some(match u128::from_str_radix(&text[2..], base) {
        Ok(value) if !text[2..].starts_with('+') => NumericValue::Finite(Decimal::from(value)),
        _ => NumericValue::NotANumber,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match NumericValue::parse(text).unwrap() {
            NumericValue::Finite(value) => value.to_string(),
            other @ (NumericValue::NotANumber | NumericValue::Infinity(_)) => format!("{other:?}"),
        }
    }

    #[test]
    fn numbers_are_read_as_javascript_reads_them() {
        assert_eq!(read("1e21"), "1000000000000000000000");
        assert_eq!(read(" 1.50 "), "1.50");
        assert_eq!(read("-5e-7"), "-0.0000005");
        assert_eq!(["", "0x1F", "12.", ".5", "-0"].map(read), ["0", "31", "12", "0.5", "-0"]);
        assert_eq!(read("-Infinity"), "Infinity(Negative)");
        assert_eq!(["1,5", "abc", "1e", ".", "--1", "0x"].map(read), ["NotANumber"; 6]);
        assert_eq!(read("1e99999999999999999999"), "Infinity(None)");
        assert!(NumericValue::parse(&"9".repeat(5_000)).is_err());
    }
}
