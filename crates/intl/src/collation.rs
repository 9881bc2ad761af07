//! `Intl.Collator`.

use crate::bag::Bag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::failure::Failure;
use crate::locales::{ResolvedLocale, type_option};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering, CollationType};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale::{Locale, LocaleExpander};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

thread_local! {
    static COLLATORS: FormatterCache<CollatorBorrowed<'static>> = const { FormatterCache::new() };
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CollatorSettings {
    locale: String,
    collation: String,
    sensitivity: String,
    ignores_punctuation: bool,
    is_numeric: bool,
    case_first: String,
}

/// Orders other than a language's usual one that can be asked for.
const COLLATIONS: &[&str] = &[
    "compat", "dict", "emoji", "eor", "phonebk", "phonetic", "pinyin", "stroke", "trad", "zhuyin",
];

pub(crate) fn new(locales: &str, bag: &Bag) -> Result<String, Failure> {
    let usage = bag.choice("usage", &["sort", "search"])?;
    bag.check_matcher()?;
    let mut locale = ResolvedLocale::of(locales)?;
    let is_collation = |it: &str| COLLATIONS.contains(&it);
    let option = type_option(bag, "collation")?;
    let collation = locale.keyword("co", option, is_collation);
    let numeric = locale.keyword("kn", bag.get("numeric"), |it| it == "true" || it == "false");
    let is_case = |it: &str| matches!(it, "upper" | "lower" | "false");
    let case_option = bag.one_of("caseFirst", &["upper", "lower", "false"])?;
    let case_first = locale.keyword("kf", case_option, is_case).unwrap_or_else(|| "false".into());
    let sensitivity = bag.choice("sensitivity", &["variant", "base", "accent", "case"])?;
    let ignores = bag.boolean("ignorePunctuation").unwrap_or(locale.id.language.as_str() == "th");
    let settings = CollatorSettings {
        locale: locale.id.to_string(),
        collation: if usage == "search" {
            "search".into()
        } else {
            collation.clone().unwrap_or_default()
        },
        sensitivity: sensitivity.into(),
        ignores_punctuation: ignores,
        is_numeric: numeric.as_deref() == Some("true"),
        case_first,
    };
    build(&settings)?;
    let mut shown = Map::new();
    let mut add = |name: &str, value: Value| drop(shown.insert(name.into(), value));
    add("locale", json!(locale.tag()));
    add("usage", json!(usage));
    add("sensitivity", json!(sensitivity));
    add("ignorePunctuation", json!(ignores));
    add(
        "collation",
        json!(collation.filter(|_| usage == "sort").unwrap_or_else(|| "default".into())),
    );
    add("numeric", json!(settings.is_numeric));
    add("caseFirst", json!(settings.case_first));
    Ok(created(&settings, &Value::Object(shown)))
}

fn build(settings: &CollatorSettings) -> Result<CollatorBorrowed<'static>, Failure> {
    let mut locale: Locale = settings.locale.parse().map_err(Failure::no_data)?;
    // Orders for searching exist for languages in Latin letters; the others search by that of the root.
    let script = LocaleExpander::new_extended().get_likely_script(&locale.id);
    if settings.collation == "search" && script.is_none_or(|it| it.as_str() != "Latn") {
        locale = Locale::UNKNOWN;
    }
    let mut preferences = CollatorPreferences::from(&locale);
    preferences.collation_type = match settings.collation.as_str() {
        "compat" => Some(CollationType::Compat),
        "dict" => Some(CollationType::Dict),
        "emoji" => Some(CollationType::Emoji),
        "eor" => Some(CollationType::Eor),
        "phonebk" => Some(CollationType::Phonebk),
        "pinyin" => Some(CollationType::Pinyin),
        "search" => Some(CollationType::Search),
        "stroke" => Some(CollationType::Stroke),
        "trad" => Some(CollationType::Trad),
        "zhuyin" => Some(CollationType::Zhuyin),
        _ => None,
    };
    preferences.numeric_ordering = settings.is_numeric.then_some(CollationNumericOrdering::True);
    preferences.case_first = match settings.case_first.as_str() {
        "upper" => Some(CollationCaseFirst::Upper),
        "lower" => Some(CollationCaseFirst::Lower),
        _ => None,
    };
    let mut options = CollatorOptions::default();
    options.strength = Some(match settings.sensitivity.as_str() {
        "base" | "case" => Strength::Primary,
        "accent" => Strength::Secondary,
        _ => Strength::Tertiary,
    });
    options.case_level = (settings.sensitivity == "case").then_some(CaseLevel::On);
    options.alternate_handling = settings.ignores_punctuation.then_some(AlternateHandling::Shifted);
    Collator::try_new(preferences, options).map_err(Failure::no_data)
}

pub(crate) fn compare(settings: &str, left: &str, right: &str) -> Result<Ordering, Failure> {
    let collator = COLLATORS.with(|it| it.get(settings, |text| build(&read_settings(text)?)))?;
    Ok(collator.compare(left, right))
}
