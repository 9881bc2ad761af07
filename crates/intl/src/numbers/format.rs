//! Numbers as texts: digits and separators are ICU4X's, what surrounds them is composed here from its patterns.

use super::affixes::NumberAffixes;
use super::settings::{NumberNotation, NumberSettings, NumberStyle};
use crate::digits::NumericValue;
use crate::failure::IntlError;
use crate::locales::with_numbers;
use crate::parts::{TextPart, collected, push, push_spaced};
use crate::tables::LocaleTable;
use fixed_decimal::{Decimal, Sign};
use icu_decimal::options::{
    CompactDecimalFormatterOptions, DecimalFormatterOptions, GroupingStrategy,
};
use icu_decimal::{CompactDecimalFormatter, DecimalFormatter};
use icu_plurals::{PluralOperands, PluralRules};

/// Signs, separators and digits of a locale.
#[derive(Debug)]
pub(crate) struct DecimalSymbols {
    pub(crate) digits: [char; 10],
    pub(crate) decimal: String,
}

/// A number with its sign apart: prefix and suffix belong outside of what surrounds the number.
pub(crate) struct SignedParts {
    pub(crate) sign: Sign,
    pub(crate) number: Vec<TextPart>,
    /// By which names in the plural are chosen.
    pub(crate) operands: PluralOperands,
}

#[derive(Debug)]
pub(crate) struct NumberFormatter {
    settings: NumberSettings,
    decimal: DecimalFormatter,
    compact: Option<CompactDecimalFormatter>,
    affixes: NumberAffixes,
    pub(crate) plural_rules: PluralRules,
    not_a_number: &'static str,
    infinity: &'static str,
    exponential: &'static str,
    /// In place of ICU4X's.
    decimal_separator: Option<&'static str>,
    group_separator: Option<&'static str>,
}

impl NumberFormatter {
    pub(crate) fn new(settings: NumberSettings) -> Result<Self, IntlError> {
        let locale = with_numbers(&settings.locale, &settings.numbering_system);
        let grouping = match settings.grouping.as_str() {
            "false" => GroupingStrategy::Never,
            "always" => GroupingStrategy::Always,
            "min2" => GroupingStrategy::Min2,
            _ => GroupingStrategy::Auto,
        };
        // An exponent is no number of thousands.
        let grouping = match settings.notation {
            NumberNotation::Scientific | NumberNotation::Engineering => GroupingStrategy::Never,
            NumberNotation::Standard
            | NumberNotation::CompactShort
            | NumberNotation::CompactLong => grouping,
        };
        let options = DecimalFormatterOptions::from(grouping);
        let compact_options = CompactDecimalFormatterOptions::from(grouping);
        let decimal =
            DecimalFormatter::try_new((&locale).into(), options).map_err(IntlError::no_data)?;
        let compact = match settings.notation {
            NumberNotation::CompactShort => {
                Some(CompactDecimalFormatter::try_new_short((&locale).into(), compact_options))
            }
            NumberNotation::CompactLong => {
                Some(CompactDecimalFormatter::try_new_long((&locale).into(), compact_options))
            }
            NumberNotation::Standard | NumberNotation::Scientific | NumberNotation::Engineering => {
                None
            }
        };
        let table = LocaleTable::for_locale(&locale.id);
        let symbol = |name: &str, default| {
            let of = |system: &str| table.get(&format!("{name}:{system}"));
            of(&settings.numbering_system).or_else(|| of("latn")).unwrap_or(default)
        };
        let own = |name: &str| table.get(&format!("{name}:{}", settings.numbering_system));
        let currency_group =
            if settings.style == NumberStyle::Currency { own("cgrp") } else { None };
        Ok(Self {
            decimal_separator: own("dec"),
            group_separator: currency_group.or_else(|| own("grp")),
            not_a_number: symbol("nan", "NaN"),
            infinity: symbol("inf", "∞"),
            exponential: symbol("exp", "E"),
            compact: compact.transpose().map_err(IntlError::no_data)?,
            affixes: NumberAffixes::new(&settings, &locale, own("pct"))?,
            plural_rules: PluralRules::try_new_cardinal((&locale).into())
                .map_err(IntlError::no_data)?,
            decimal,
            settings,
        })
    }

    pub(crate) fn format(&self, value: &NumericValue) -> Result<Vec<TextPart>, IntlError> {
        let signed = match value {
            NumericValue::NotANumber => {
                self.unusual(Sign::None, TextPart::new("nan", self.not_a_number))
            }
            NumericValue::Infinity(sign) => {
                self.unusual(*sign, TextPart::new("infinity", self.infinity))
            }
            NumericValue::Finite(value) => {
                let mut value = value.clone();
                if self.settings.style == NumberStyle::Percent {
                    value.absolute.multiply_pow10(2);
                }
                self.finite(&value)?
            }
        };
        Ok(self.affixes.apply(signed, |sign| self.sign_texts(sign), &self.plural_rules))
    }

    fn unusual(&self, sign: Sign, part: TextPart) -> SignedParts {
        let is_nan = part.kind == "nan";
        let sign = self.shown_sign(sign, is_nan);
        SignedParts {
            sign,
            number: vec![part],
            operands: PluralOperands::from(&Decimal::from(100).absolute),
        }
    }

    fn finite(&self, value: &Decimal) -> Result<SignedParts, IntlError> {
        match (self.settings.notation, &self.compact) {
            (NumberNotation::CompactShort | NumberNotation::CompactLong, Some(compact)) => {
                self.compacted(value, compact)
            }
            (NumberNotation::Scientific, _) => Ok(self.exponential(value, 1)),
            (NumberNotation::Engineering, _) => Ok(self.exponential(value, 3)),
            (
                NumberNotation::Standard
                | NumberNotation::CompactShort
                | NumberNotation::CompactLong,
                _,
            ) => {
                let rounded = self.settings.digits.round(value);
                Ok(self.signed(
                    &rounded,
                    self.plain_parts(&rounded),
                    PluralOperands::from(&rounded.absolute),
                ))
            }
        }
    }

    fn signed(
        &self,
        rounded: &Decimal,
        number: Vec<TextPart>,
        operands: PluralOperands,
    ) -> SignedParts {
        SignedParts {
            sign: self.shown_sign(rounded.sign, rounded.absolute.is_zero()),
            number,
            operands,
        }
    }

    /// The parts of a number without its sign.
    pub(crate) fn plain_parts(&self, value: &Decimal) -> Vec<TextPart> {
        let unsigned = value.clone().with_sign(Sign::None);
        let mut parts = vec![];
        for part in collected(&self.decimal.format(&unsigned), "literal") {
            push(&mut parts, self.with_own_separators(part));
        }
        parts
    }

    fn with_own_separators(&self, mut part: TextPart) -> TextPart {
        let own = match part.kind {
            "decimal" => self.decimal_separator,
            "group" => self.group_separator,
            _ => None,
        };
        if let Some(own) = own {
            own.clone_into(&mut part.value);
        }
        part
    }

    fn compacted(
        &self,
        value: &Decimal,
        compact: &CompactDecimalFormatter,
    ) -> Result<SignedParts, IntlError> {
        let scaled = |exponent: u8| {
            let mut value = value.clone();
            value.absolute.multiply_pow10(-i16::from(exponent));
            self.settings.digits.round(&value)
        };
        let exponent_at = |magnitude: i16| compact.compact_exponent_for_magnitude(magnitude);
        let mut exponent = exponent_at(value.absolute.nonzero_magnitude_start());
        let mut rounded = scaled(exponent);
        // 999,999 rounds to 1,000 thousand, which is a million.
        let after =
            exponent_at(rounded.absolute.nonzero_magnitude_start().saturating_add(exponent.into()));
        if after != exponent {
            exponent = after;
            rounded = scaled(exponent);
        }
        let unsigned = rounded.clone().with_sign(Sign::None);
        let text = compact.format_with_exponent(&unsigned, exponent).map_err(IntlError::no_data)?;
        let mut parts = vec![];
        for part in collected(&text, "rest") {
            if part.kind == "rest" {
                push_spaced(&mut parts, "compact", &part.value);
            } else {
                push(&mut parts, self.with_own_separators(part));
            }
        }
        let operands = PluralOperands::from_significand_and_exponent(&rounded.absolute, exponent);
        Ok(self.signed(&rounded, parts, operands))
    }

    /// The number as a mantissa and a power of ten whose exponent is a multiple of `step`.
    fn exponential(&self, value: &Decimal, step: i16) -> SignedParts {
        let scale = |magnitude: i16| {
            let exponent = magnitude.div_euclid(step) * step;
            let mut value = value.clone();
            value.absolute.multiply_pow10(-exponent);
            (self.settings.digits.round(&value), exponent)
        };
        let magnitude =
            if value.absolute.is_zero() { 0 } else { value.absolute.nonzero_magnitude_start() };
        let (mut rounded, mut exponent) = scale(magnitude);
        if rounded.absolute.nonzero_magnitude_start() >= step {
            (rounded, exponent) = scale(exponent + rounded.absolute.nonzero_magnitude_start());
        }
        let mut parts = self.plain_parts(&rounded);
        push(&mut parts, TextPart::new("exponentSeparator", self.exponential));
        if exponent < 0 {
            let (prefix, _) = self.sign_texts(Sign::Negative);
            push(&mut parts, TextPart::new("exponentMinusSign", prefix));
        }
        let digits = self.decimal.format(&Decimal::from(exponent.unsigned_abs())).to_string();
        push(&mut parts, TextPart::new("exponentInteger", digits));
        self.signed(&rounded, parts, PluralOperands::from(&rounded.absolute))
    }

    fn shown_sign(&self, sign: Sign, is_zero: bool) -> Sign {
        let is_negative = sign == Sign::Negative;
        match (self.settings.sign.as_str(), is_negative, is_zero) {
            ("never", _, _)
            | ("exceptZero" | "negative", _, true)
            | ("auto" | "negative", false, _) => Sign::None,
            (_, true, _) => Sign::Negative,
            (_, false, _) => Sign::Positive,
        }
    }

    /// What is written before and after a number with this sign.
    fn sign_texts(&self, sign: Sign) -> (String, String) {
        let one = Decimal::from(1).with_sign(sign);
        let parts = collected(&self.decimal.format(&one), "literal");
        let is_number = |part: &TextPart| part.kind == "integer";
        let at = parts.iter().position(is_number).unwrap_or(0);
        let text = |parts: &[TextPart]| parts.iter().map(|part| part.value.as_str()).collect();
        (text(&parts[..at]), text(&parts[at + 1..]))
    }
}

/// The numbering system that a locale uses.
pub(crate) fn default_numbering_system(locale: &str) -> Result<String, IntlError> {
    let id = with_numbers(locale, "").id;
    Ok(LocaleTable::for_locale(&id).get("nu").unwrap_or("latn").to_owned())
}

/// Digits and the decimal separator, for dates.
pub(crate) fn decimal_symbols(locale: &icu_locale::Locale) -> Result<DecimalSymbols, IntlError> {
    let options = DecimalFormatterOptions::from(GroupingStrategy::Never);
    let formatter =
        DecimalFormatter::try_new(locale.into(), options).map_err(IntlError::no_data)?;
    let text = |value: &Decimal| formatter.format(value).to_string();
    let mut digits = ['0'; 10];
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = text(&Decimal::from(at)).chars().next().unwrap_or('0');
    }
    let mut half = Decimal::from(15);
    half.absolute.multiply_pow10(-1);
    let decimal = text(&half).chars().filter(|it| !digits.contains(it)).collect();
    Ok(DecimalSymbols { digits, decimal })
}
