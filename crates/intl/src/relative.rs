//! `Intl.RelativeTimeFormat`.

use crate::bag::OptionsBag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::digits::{DigitSettings, NumericValue};
use crate::failure::{IntlError, quoted};
use crate::locales::{ResolvedLocale, with_numbers};
use crate::numbers;
use crate::parts::{TextPart, collected, joined, to_json};
use crate::tags;
use fixed_decimal::Sign;
use icu_experimental::relativetime::options::Numeric as NumericOption;
use icu_experimental::relativetime::{RelativeTimeFormatter, RelativeTimeFormatterOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;

thread_local! {
    static FORMATTERS: FormatterCache<RelativeTimeFormatter> = const { FormatterCache::new() };
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RelativeSettings {
    locale: String,
    numbering_system: String,
    style: String,
    is_auto: bool,
}

pub(crate) fn answer_relative(what: &str, first: &str, second: &str) -> Result<String, IntlError> {
    if what == "new" {
        return new(first, &OptionsBag::parse(second)?);
    }
    let (unit, value) = second.split_once(' ').unwrap_or((second, ""));
    let unit = unit_of(unit)?;
    let NumericValue::Finite(mut value) = NumericValue::parse(value)? else {
        return Err(IntlError::range(
            "Value need to be finite number for Intl.RelativeTimeFormat.prototype.format()",
        ));
    };
    // With `numeric: "auto"`, ECMA-402 uses the text of 0 for -0, too: "today", not "0 days ago".
    if value.sign == Sign::Negative
        && value.absolute.is_zero()
        && read_settings::<RelativeSettings>(first)?.is_auto
    {
        value.sign = Sign::None;
    }
    let key = format!("{unit} {first}");
    let formatter = FORMATTERS.with(|it| it.get(&key, |_| build(&read_settings(first)?, unit)))?;
    let digits = DigitSettings::read(&OptionsBag::default(), (0, 3), false)?;
    let text = formatter.format(digits.round(&value));
    let parts: Vec<TextPart> = collected(&text, "literal");
    let with_unit = |part: TextPart| {
        let unit = (part.kind != "literal").then_some(unit);
        TextPart { unit, ..part }
    };
    let parts: Vec<TextPart> = parts.into_iter().map(with_unit).collect();
    Ok(if what == "parts" { to_json(&parts) } else { joined(&parts) })
}

fn new(locales: &str, bag: &OptionsBag) -> Result<String, IntlError> {
    bag.check_matcher()?;
    let mut locale = ResolvedLocale::resolve(locales)?;
    let numbering_system = numbers::numbering_system(&mut locale, bag)?;
    let style = bag.choice("style", &["long", "short", "narrow"])?;
    let numeric = bag.choice("numeric", &["always", "auto"])?;
    debug_assert!(tags::is_numbering_system(&numbering_system) || !numbering_system.is_empty());
    let settings = RelativeSettings {
        locale: locale.id.to_string(),
        numbering_system: numbering_system.clone(),
        style: style.into(),
        is_auto: numeric == "auto",
    };
    build(&settings, "day")?;
    let shown = json!({
        "locale": locale.tag(), "style": style, "numeric": numeric, "numberingSystem": numbering_system,
    });
    Ok(created(&settings, &shown))
}

fn unit_of(name: &str) -> Result<&'static str, IntlError> {
    let units = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let singular = name.strip_suffix('s').unwrap_or(name);
    let found = units.into_iter().find(|unit| *unit == singular);
    found.ok_or_else(|| {
        IntlError::range(format!("Invalid unit argument for format() {}", quoted(name)))
    })
}

fn build(settings: &RelativeSettings, unit: &str) -> Result<RelativeTimeFormatter, IntlError> {
    type New = RelativeTimeFormatter;
    let locale = with_numbers(&settings.locale, &settings.numbering_system);
    let numeric = if settings.is_auto { NumericOption::Auto } else { NumericOption::Always };
    let options = RelativeTimeFormatterOptions::default().with_numeric(numeric);
    let new = match (settings.style.as_str(), unit) {
        ("long", "second") => New::try_new_long_second,
        ("long", "minute") => New::try_new_long_minute,
        ("long", "hour") => New::try_new_long_hour,
        ("long", "day") => New::try_new_long_day,
        ("long", "week") => New::try_new_long_week,
        ("long", "month") => New::try_new_long_month,
        ("long", "quarter") => New::try_new_long_quarter,
        ("long", _) => New::try_new_long_year,
        ("short", "second") => New::try_new_short_second,
        ("short", "minute") => New::try_new_short_minute,
        ("short", "hour") => New::try_new_short_hour,
        ("short", "day") => New::try_new_short_day,
        ("short", "week") => New::try_new_short_week,
        ("short", "month") => New::try_new_short_month,
        ("short", "quarter") => New::try_new_short_quarter,
        ("short", _) => New::try_new_short_year,
        (_, "second") => New::try_new_narrow_second,
        (_, "minute") => New::try_new_narrow_minute,
        (_, "hour") => New::try_new_narrow_hour,
        (_, "day") => New::try_new_narrow_day,
        (_, "week") => New::try_new_narrow_week,
        (_, "month") => New::try_new_narrow_month,
        (_, "quarter") => New::try_new_narrow_quarter,
        (_, _) => New::try_new_narrow_year,
    };
    new((&locale).into(), options).map_err(IntlError::no_data)
}
