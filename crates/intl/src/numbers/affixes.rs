//! What surrounds a number: sign, currency, percent sign, unit.

use super::format::SignedParts;
use super::settings::{NumberSettings, NumberStyle, currency_type};
use super::units;
use crate::failure::IntlError;
use crate::parts::{TextPart, push, push_spaced};
use crate::tables::LocaleTable;
use fixed_decimal::Sign;
use icu_experimental::dimension::provider::currency::essentials::{
    CurrencyEssentials, CurrencyEssentialsV1,
};
use icu_experimental::dimension::provider::currency::extended::CurrencyExtendedDataV1;
use icu_experimental::dimension::provider::currency::patterns::CurrencyPatternsDataV1;
use icu_experimental::dimension::provider::currency::symbols::{
    CurrencySymbolWidth, CurrencySymbolsV1,
};
use icu_experimental::dimension::provider::percent::DecimalPercentV1;
use icu_experimental::dimension::provider::units::display_names::UnitsDisplayNames;
use icu_experimental::provider::Baked;
use icu_locale::Locale;
use icu_pattern::{
    DoublePlaceholderKey, DoublePlaceholderPattern, PatternItem, SinglePlaceholderPattern,
};
use icu_plurals::PluralRules;
use icu_provider::marker::{DataMarkerExt as _, ErasedMarker};
use icu_provider::prelude::*;

#[derive(Debug)]
pub(crate) enum NumberAffixes {
    None,
    /// With the sign of the digits, if it is not that of Latin ones.
    Percent(DataPayload<DecimalPercentV1>, Option<&'static str>),
    Symbol {
        essentials: DataPayload<CurrencyEssentialsV1>,
        symbol: CurrencyText,
        is_accounting: bool,
    },
    Name {
        patterns: DataPayload<CurrencyPatternsDataV1>,
        names: Option<DataPayload<CurrencyExtendedDataV1>>,
        code: String,
    },
    Unit(DataPayload<ErasedMarker<UnitsDisplayNames<'static>>>),
}

/// A currency's symbol or code, and whether letters would touch the number.
#[derive(Debug)]
pub(crate) struct CurrencyText {
    text: String,
    starts_with_letter: bool,
    ends_with_letter: bool,
}

impl NumberAffixes {
    pub(crate) fn new(
        settings: &NumberSettings,
        locale: &Locale,
        percent_sign: Option<&'static str>,
    ) -> Result<Self, IntlError> {
        match settings.style {
            NumberStyle::Decimal => Ok(Self::None),
            NumberStyle::Percent => {
                let data = DecimalPercentV1::make_locale(locale.into());
                Ok(Self::Percent(load(DataIdentifierBorrowed::for_locale(&data))?, percent_sign))
            }
            NumberStyle::Unit => {
                units::load(locale, &settings.unit, &settings.unit_display).map(Self::Unit)
            }
            NumberStyle::Currency if settings.currency_display == "name" => {
                Self::currency_name(locale, &settings.currency)
            }
            NumberStyle::Currency => Self::currency_symbol(settings, locale),
        }
    }

    fn currency_name(locale: &Locale, code: &str) -> Result<Self, IntlError> {
        let data = CurrencyPatternsDataV1::make_locale(locale.into());
        let patterns = load(DataIdentifierBorrowed::for_locale(&data))?;
        let data = CurrencyExtendedDataV1::make_locale(locale.into());
        let attributes =
            DataMarkerAttributes::try_from_str(code).map_err(|_| IntlError::no_data(code))?;
        let id = DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, &data);
        Ok(Self::Name { patterns, names: load(id).ok(), code: code.to_owned() })
    }

    fn currency_symbol(settings: &NumberSettings, locale: &Locale) -> Result<Self, IntlError> {
        let data = CurrencyEssentialsV1::make_locale(locale.into());
        let system = DataMarkerAttributes::try_from_str(&settings.numbering_system);
        let with_system = system.ok().and_then(|system| {
            load(DataIdentifierBorrowed::for_marker_attributes_and_locale(system, &data)).ok()
        });
        let essentials = match with_system {
            Some(found) => found,
            None => load(DataIdentifierBorrowed::for_locale(&data))?,
        };
        let symbol = symbol_of(settings, locale)?;
        Ok(Self::Symbol { essentials, symbol, is_accounting: settings.is_accounting })
    }

    /// Puts sign, currency, percent sign or unit around a number.
    pub(crate) fn apply(
        &self,
        signed: SignedParts,
        sign_texts: impl Fn(Sign) -> (String, String),
        plural_rules: &PluralRules,
    ) -> Vec<TextPart> {
        let SignedParts { mut sign, number, operands } = signed;
        let mut inner = vec![];
        match self {
            Self::None => inner = number,
            Self::Percent(data, percent_sign) => {
                let data = data.get();
                if sign == Sign::None {
                    single(&mut inner, &data.unsigned_pattern, &number, "percentSign");
                } else {
                    let texts = sign_texts(sign);
                    inner = percent_with_sign(&data.signed_pattern, &number, sign, &texts);
                }
                set_percent_sign(&mut inner, *percent_sign);
                return inner;
            }
            Self::Symbol { essentials, symbol, is_accounting } => {
                let (pattern, explicit) =
                    currency_pattern(essentials.get(), symbol, *is_accounting, sign);
                if explicit {
                    sign = Sign::None;
                }
                let currency = TextPart::new("currency", symbol.text.as_str());
                double(&mut inner, pattern, &number, &[currency]);
                if explicit {
                    mark_minus_sign(&mut inner, &sign_texts(Sign::Negative));
                }
            }
            Self::Name { patterns, names, code } => {
                let name = names
                    .as_ref()
                    .map_or(code.as_str(), |names| names.get().get(operands, plural_rules));
                let currency = TextPart::new("currency", name);
                double(
                    &mut inner,
                    patterns.get().get(operands, plural_rules),
                    &number,
                    &[currency],
                );
            }
            Self::Unit(names) => {
                single(&mut inner, names.get().get(operands, plural_rules), &number, "unit")
            }
        }
        with_sign(inner, sign, &sign_texts(sign))
    }
}

fn load<M: DataMarker>(id: DataIdentifierBorrowed<'_>) -> Result<DataPayload<M>, IntlError>
where
    Baked: DataProvider<M>,
{
    let mut metadata = DataRequestMetadata::default();
    metadata.silent = true; // what is missing is looked for elsewhere
    let request = DataRequest { id, metadata };
    Baked.load(request).map(|response| response.payload).map_err(IntlError::no_data)
}

fn symbol_of(settings: &NumberSettings, locale: &Locale) -> Result<CurrencyText, IntlError> {
    let code = settings.currency.as_str();
    let as_code =
        CurrencyText { text: code.to_owned(), starts_with_letter: true, ends_with_letter: true };
    let width = match settings.currency_display.as_str() {
        "code" => return Ok(as_code),
        "narrowSymbol" => CurrencySymbolWidth::Narrow,
        _ => {
            let codes = LocaleTable::for_locale(&locale.id).get("codes").unwrap_or_default();
            if codes.split(' ').any(|it| it == code) {
                return Ok(as_code);
            }
            CurrencySymbolWidth::Short
        }
    };
    let data = CurrencySymbolsV1::make_locale(locale.into());
    let mut buffer = Default::default();
    let attributes = CurrencySymbolsV1::make_attributes(currency_type(code)?, width, &mut buffer);
    let id = DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, &data);
    let Ok(found) = load::<CurrencySymbolsV1>(id) else { return Ok(as_code) };
    let symbol = found.get();
    Ok(CurrencyText {
        text: symbol.as_str().to_owned(),
        starts_with_letter: symbol.starts_with_letter(),
        ends_with_letter: symbol.ends_with_letter(),
    })
}

/// The pattern, and whether it contains the minus sign.
fn currency_pattern<'a>(
    essentials: &'a CurrencyEssentials<'_>,
    symbol: &CurrencyText,
    is_accounting: bool,
    sign: Sign,
) -> (&'a DoublePlaceholderPattern, bool) {
    let (first, last) = (symbol.starts_with_letter, symbol.ends_with_letter);
    let negative = match (sign, is_accounting) {
        (Sign::Negative, true) => essentials.get_negative_accounting(first, last),
        (Sign::Negative, false) => essentials.get_negative(first, last),
        (Sign::None | Sign::Positive, _) => None,
    };
    match (negative, is_accounting) {
        (Some(pattern), _) => (pattern, true),
        (None, true) => (essentials.get_positive_accounting(first, last), false),
        (None, false) => (essentials.get_positive(first, last), false),
    }
}

fn double(
    parts: &mut Vec<TextPart>,
    pattern: &DoublePlaceholderPattern,
    number: &[TextPart],
    other: &[TextPart],
) {
    for item in pattern.iter() {
        match item {
            PatternItem::Placeholder(DoublePlaceholderKey::Place0) => {
                number.iter().for_each(|part| push(parts, part.clone()));
            }
            PatternItem::Placeholder(DoublePlaceholderKey::Place1) => {
                other.iter().for_each(|part| push(parts, part.clone()));
            }
            PatternItem::Literal(text) => push(parts, TextPart::literal(text)),
        }
    }
}

fn single(
    parts: &mut Vec<TextPart>,
    pattern: &SinglePlaceholderPattern,
    number: &[TextPart],
    kind: &'static str,
) {
    for item in pattern.iter() {
        match item {
            PatternItem::Placeholder(_) => number.iter().for_each(|part| push(parts, part.clone())),
            PatternItem::Literal(text) => push_spaced(parts, kind, text),
        }
    }
}

fn percent_with_sign(
    pattern: &DoublePlaceholderPattern,
    number: &[TextPart],
    sign: Sign,
    (prefix, suffix): &(String, String),
) -> Vec<TextPart> {
    let mut parts = vec![];
    let text = TextPart::new(sign_kind(sign), format!("{prefix}{suffix}"));
    double(&mut parts, pattern, number, &[text]);
    let mut named = vec![];
    for part in parts {
        if part.kind == "literal" {
            push_spaced(&mut named, "percentSign", &part.value);
        } else {
            push(&mut named, part);
        }
    }
    named
}

fn set_percent_sign(parts: &mut [TextPart], percent_sign: Option<&str>) {
    let Some(percent_sign) = percent_sign else { return };
    for part in parts.iter_mut().filter(|part| part.kind == "percentSign") {
        percent_sign.clone_into(&mut part.value);
    }
}

fn sign_kind(sign: Sign) -> &'static str {
    if sign == Sign::Negative { "minusSign" } else { "plusSign" }
}

fn with_sign(
    inner: Vec<TextPart>,
    sign: Sign,
    (prefix, suffix): &(String, String),
) -> Vec<TextPart> {
    if sign == Sign::None {
        return inner;
    }
    let mut parts = vec![];
    push(&mut parts, TextPart::new(sign_kind(sign), prefix.as_str()));
    inner.into_iter().for_each(|part| push(&mut parts, part));
    push(&mut parts, TextPart::new(sign_kind(sign), suffix.as_str()));
    parts
}

/// In an explicitly negative pattern the sign is part of a literal.
fn mark_minus_sign(parts: &mut Vec<TextPart>, (prefix, _): &(String, String)) {
    let mut marked = vec![];
    for part in std::mem::take(parts) {
        match part.value.split_once(prefix.as_str()) {
            Some((before, after)) if part.kind == "literal" && !prefix.is_empty() => {
                push(&mut marked, TextPart::literal(before));
                push(&mut marked, TextPart::new("minusSign", prefix.as_str()));
                push(&mut marked, TextPart::literal(after));
            }
            _ => push(&mut marked, part),
        }
    }
    *parts = marked;
}
