//! `Intl.PluralRules`.

use crate::bag::OptionsBag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::digits::{DigitSettings, NumericValue};
use crate::failure::IntlError;
use crate::locales::ResolvedLocale;
use icu_locale::Locale;
use icu_plurals::{PluralCategory, PluralRules};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

thread_local! {
    static RULES: FormatterCache<(PluralSettings, PluralRules)> = const { FormatterCache::new() };
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PluralSettings {
    locale: String,
    kind: String,
    digits: DigitSettings,
}

pub(crate) fn answer_plurals(what: &str, first: &str, second: &str) -> Result<String, IntlError> {
    if what == "new" {
        return new(first, &OptionsBag::parse(second)?);
    }
    let rules = RULES.with(|it| it.get(first, |text| build(read_settings(text)?)))?;
    Ok(match NumericValue::parse(second)? {
        NumericValue::Finite(value) => {
            let rounded = rules.0.digits.round(&value);
            name_of(rules.1.category_for(&rounded)).to_owned()
        }
        NumericValue::Infinity(_) | NumericValue::NotANumber => "other".to_owned(),
    })
}

fn new(locales: &str, bag: &OptionsBag) -> Result<String, IntlError> {
    bag.check_matcher()?;
    let locale = ResolvedLocale::resolve(locales)?;
    let kind = bag.choice("type", &["cardinal", "ordinal"])?;
    let digits = DigitSettings::read(bag, (0, 3), false)?;
    let settings = PluralSettings { locale: locale.id.to_string(), kind: kind.into(), digits };
    let (settings, rules) = build(settings)?;
    let mut shown = Map::new();
    shown.insert("locale".into(), json!(locale.tag()));
    shown.insert("type".into(), json!(kind));
    settings.digits.add_resolved_options(&mut shown);
    let order = ["few", "many", "one", "two", "zero", "other"];
    let mut names: Vec<&str> = rules.categories().map(name_of).collect();
    names.sort_by_key(|name| order.iter().position(|it| it == name));
    shown.insert("pluralCategories".into(), json!(names));
    settings.digits.show_rounding(&mut shown);
    Ok(created(&settings, &Value::Object(shown)))
}

fn build(settings: PluralSettings) -> Result<(PluralSettings, PluralRules), IntlError> {
    let mut locale: Locale = settings.locale.parse().map_err(IntlError::no_data)?;
    // Rules belong to a language, in every script: Serbian in Latin letters would get those of the root.
    locale.id.script = None;
    let rules = match settings.kind.as_str() {
        "ordinal" => PluralRules::try_new_ordinal((&locale).into()),
        _ => PluralRules::try_new_cardinal((&locale).into()),
    };
    Ok((settings, rules.map_err(IntlError::no_data)?))
}

const fn name_of(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}
