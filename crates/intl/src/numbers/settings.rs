//! Options of `Intl.NumberFormat` (ECMA-402, section 15.1).

use super::format::default_numbering_system;
use crate::bag::OptionsBag;
use crate::digits::DigitSettings;
use crate::failure::{IntlError, quoted};
use crate::locales::{ResolvedLocale, type_option};
use crate::tags;
use icu_experimental::provider::Baked;
use icu_locale::preferences::extensions::unicode::keywords::CurrencyType;
use icu_provider::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NumberStyle {
    Decimal,
    Percent,
    Currency,
    Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NumberNotation {
    Standard,
    Scientific,
    Engineering,
    CompactShort,
    CompactLong,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NumberSettings {
    /// Language, script and region, by which data are found.
    pub(crate) locale: String,
    pub(crate) numbering_system: String,
    pub(crate) style: NumberStyle,
    pub(crate) notation: NumberNotation,
    pub(crate) currency: String,
    pub(crate) currency_display: String,
    pub(crate) is_accounting: bool,
    pub(crate) unit: String,
    pub(crate) unit_display: String,
    pub(crate) grouping: String,
    pub(crate) sign: String,
    pub(crate) digits: DigitSettings,
}

/// The settings of a plain decimal number.
pub(crate) fn plain(
    locale: &ResolvedLocale,
    numbering_system: &str,
) -> Result<NumberSettings, IntlError> {
    Ok(NumberSettings {
        locale: locale.id.to_string(),
        numbering_system: numbering_system.to_owned(),
        style: NumberStyle::Decimal,
        notation: NumberNotation::Standard,
        currency: String::new(),
        currency_display: "symbol".into(),
        is_accounting: false,
        unit: String::new(),
        unit_display: "short".into(),
        grouping: "auto".into(),
        sign: "auto".into(),
        digits: DigitSettings::read(&OptionsBag::default(), (0, 3), false)?,
    })
}

/// Refuses digits that this host has not: others in their place would be wrong in silence.
pub(crate) fn check_numbering_system(
    locale: &ResolvedLocale,
    option: Option<&str>,
) -> Result<(), IntlError> {
    let wanted = option.map(str::to_owned).or_else(|| locale.asked_keyword("nu"));
    match wanted.filter(|name| tags::is_missing_numbering_system(name)) {
        Some(name) => Err(IntlError::missing(format!("the digits of the numbering system {name}"))),
        None => Ok(()),
    }
}

/// The numbering system of a formatter.
pub(crate) fn numbering_system(
    locale: &mut ResolvedLocale,
    bag: &OptionsBag,
) -> Result<String, IntlError> {
    let option = type_option(bag, "numberingSystem")?;
    check_numbering_system(locale, option)?;
    let chosen = locale.keyword("nu", option, tags::is_numbering_system);
    chosen.map_or_else(|| default_numbering_system(&locale.id.to_string()), Ok)
}

/// Reads the options; returns the settings and what `resolvedOptions` shows.
pub(crate) fn read(locales: &str, bag: &OptionsBag) -> Result<(NumberSettings, Value), IntlError> {
    bag.check_matcher()?;
    let mut locale = ResolvedLocale::resolve(locales)?;
    let mut settings = plain(&locale, "latn")?;
    settings.numbering_system = numbering_system(&mut locale, bag)?;
    read_style(&mut settings, bag)?;
    let notation = bag.choice("notation", &["standard", "scientific", "engineering", "compact"])?;
    let compact = bag.choice("compactDisplay", &["short", "long"])?;
    settings.notation = match (notation, compact) {
        ("scientific", _) => NumberNotation::Scientific,
        ("engineering", _) => NumberNotation::Engineering,
        ("compact", "short") => NumberNotation::CompactShort,
        ("compact", _) => NumberNotation::CompactLong,
        _ => NumberNotation::Standard,
    };
    let is_compact = notation == "compact";
    let defaults = match settings.style {
        NumberStyle::Currency if notation == "standard" => {
            let digits = currency_digits(&settings.currency)?;
            (digits, digits)
        }
        NumberStyle::Percent => (0, 0),
        NumberStyle::Currency | NumberStyle::Decimal | NumberStyle::Unit => (0, 3),
    };
    settings.digits = DigitSettings::read(bag, defaults, is_compact)?;
    settings.grouping = read_grouping(bag, if is_compact { "min2" } else { "auto" })?;
    settings.sign = bag
        .choice("signDisplay", &["auto", "never", "always", "exceptZero", "negative"])?
        .to_owned();
    let shown = resolved_options(&locale, &settings, notation, compact);
    Ok((settings, shown))
}

fn read_style(settings: &mut NumberSettings, bag: &OptionsBag) -> Result<(), IntlError> {
    let style = bag.choice("style", &["decimal", "percent", "currency", "unit"])?;
    let currency = bag.get("currency");
    if let Some(code) =
        currency.filter(|it| it.len() != 3 || !it.bytes().all(|b| b.is_ascii_alphabetic()))
    {
        return Err(IntlError::range(format!("Invalid currency code : {}", quoted(code))));
    }
    let display = bag.choice("currencyDisplay", &["symbol", "code", "narrowSymbol", "name"])?;
    let sign = bag.choice("currencySign", &["standard", "accounting"])?;
    let unit = bag.get("unit");
    if let Some(unit) = unit {
        check_unit(unit)?;
    }
    let unit_display = bag.choice("unitDisplay", &["short", "narrow", "long"])?;
    settings.style = match style {
        "percent" => NumberStyle::Percent,
        "currency" => NumberStyle::Currency,
        "unit" => NumberStyle::Unit,
        _ => NumberStyle::Decimal,
    };
    settings.currency_display = display.into();
    settings.is_accounting = sign == "accounting";
    settings.unit_display = unit_display.into();
    if settings.style == NumberStyle::Currency {
        let code = currency.ok_or_else(|| {
            IntlError::type_error("Currency code is required with currency style.")
        })?;
        settings.currency = code.to_ascii_uppercase();
    }
    if settings.style == NumberStyle::Unit {
        settings.unit = unit
            .ok_or_else(|| IntlError::type_error("Unit is required with unit style."))?
            .to_owned();
    }
    Ok(())
}

/// A unit must be one of ECMA-402's, and one that we have.
fn check_unit(unit: &str) -> Result<(), IntlError> {
    let is_known = |it: &str| tags::UNITS.contains(&it) || tags::MISSING_UNITS.contains(&it);
    let is_pair =
        unit.split_once("-per-").is_some_and(|(left, right)| is_known(left) && is_known(right));
    if tags::UNITS.contains(&unit) {
        Ok(())
    } else if is_known(unit) || is_pair {
        Err(IntlError::missing(format!(
            "the unit {unit}: format the number and append the unit yourself. Units that it has: {}",
            tags::UNITS.join(", ")
        )))
    } else {
        Err(IntlError::range(format!(
            "Invalid unit argument for Intl.NumberFormat() {}",
            quoted(unit)
        )))
    }
}

fn read_grouping(bag: &OptionsBag, default: &str) -> Result<String, IntlError> {
    Ok(match bag.get("useGrouping") {
        None | Some("true" | "false") => default,
        // What the prelude writes for `false`: no text of a guest's gets here as it is.
        Some("=false") => "false",
        Some(it @ ("min2" | "auto" | "always")) => it,
        Some(other) => return Err(IntlError::option(other, "useGrouping")),
    }
    .to_owned())
}

/// How many fraction digits a currency has.
fn currency_digits(code: &str) -> Result<u8, IntlError> {
    use icu_experimental::dimension::provider::currency::fractions::CurrencyFractionsV1;
    let currency = currency_type(code)?;
    let fractions: DataResponse<CurrencyFractionsV1> =
        Baked.load(DataRequest::default()).map_err(IntlError::no_data)?;
    Ok(fractions.payload.get().resolve(currency).digits)
}

pub(crate) fn currency_type(code: &str) -> Result<CurrencyType, IntlError> {
    code.parse().map_err(|_| IntlError::range(format!("Invalid currency code : {}", quoted(code))))
}

fn resolved_options(
    locale: &ResolvedLocale,
    settings: &NumberSettings,
    notation: &str,
    compact: &str,
) -> Value {
    let mut shown = Map::new();
    let mut add = |name: &str, value: Value| drop(shown.insert(name.into(), value));
    add("locale", json!(locale.tag()));
    add("numberingSystem", json!(settings.numbering_system));
    match settings.style {
        NumberStyle::Decimal => add("style", json!("decimal")),
        NumberStyle::Percent => add("style", json!("percent")),
        NumberStyle::Currency => {
            add("style", json!("currency"));
            add("currency", json!(settings.currency));
            add("currencyDisplay", json!(settings.currency_display));
            add(
                "currencySign",
                json!(if settings.is_accounting { "accounting" } else { "standard" }),
            );
        }
        NumberStyle::Unit => {
            add("style", json!("unit"));
            add("unit", json!(settings.unit));
            add("unitDisplay", json!(settings.unit_display));
        }
    }
    settings.digits.add_resolved_options(&mut shown);
    let grouping = &settings.grouping;
    shown.insert(
        "useGrouping".into(),
        if grouping == "false" { json!(false) } else { json!(grouping) },
    );
    shown.insert("notation".into(), json!(notation));
    if notation == "compact" {
        shown.insert("compactDisplay".into(), json!(compact));
    }
    shown.insert("signDisplay".into(), json!(settings.sign));
    settings.digits.show_rounding(&mut shown);
    Value::Object(shown)
}
