//! `Intl.Collator`.

use crate::bag::OptionsBag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::failure::IntlError;
use crate::locales::{ResolvedLocale, type_option};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering, CollationType};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale::Locale;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

thread_local! {
    static COLLATORS: FormatterCache<UsableCollator> = const { FormatterCache::new() };
}

/// A collator, and whether it is for searching.
struct UsableCollator {
    collator: CollatorBorrowed<'static>,
    searches: bool,
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

/// Orders that can be requested, other than a language's default.
const COLLATIONS: &[&str] = &[
    "compat", "dict", "emoji", "eor", "phonebk", "phonetic", "pinyin", "stroke", "trad", "zhuyin",
];

pub(crate) fn new(locales: &str, bag: &OptionsBag) -> Result<String, IntlError> {
    let usage = bag.choice("usage", &["sort", "search"])?;
    bag.check_matcher()?;
    let mut locale = ResolvedLocale::resolve(locales)?;
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

/// How a language searches. Its own order for searching is not among ICU4X's data; where this is the same, it takes its place.
enum SearchOrder {
    /// That of the root.
    Root,
    /// The one in which the language sorts.
    Sorting,
    /// The one of German telephone books: "ä" is "ae".
    PhoneBook,
}

fn search_order(locale: &Locale) -> Result<SearchOrder, IntlError> {
    match locale.id.language.as_str() {
        "en" | "fr" | "it" | "pt" | "nl" | "pl" | "ja" | "zh" | "ko" | "hi" | "ar" | "cs"
        | "he" | "ru" => Ok(SearchOrder::Root),
        "es" | "sv" | "da" | "fi" | "nb" | "no" | "tr" => Ok(SearchOrder::Sorting),
        "de" => Ok(SearchOrder::PhoneBook),
        other => Err(IntlError::missing(format!(
            "the order in which {other} is searched: use usage: \"sort\""
        ))),
    }
}

/// Whether texts with this letter are searched in another order than they are sorted in, in every language: Arabic
/// letters that are searched as others, such as an alef with a hamza.
fn is_searched_otherwise(c: char) -> bool {
    matches!(u32::from(c),
        0x622..=0x626 | 0x629 | 0x649 | 0x66e..=0x6d5 | 0x6ee | 0x6ef | 0x6fa..=0x6ff
        | 0x750..=0x77f | 0x8a0..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfefc)
}

fn build(settings: &CollatorSettings) -> Result<UsableCollator, IntlError> {
    let mut locale: Locale = settings.locale.parse().map_err(IntlError::no_data)?;
    let searches = settings.collation == "search";
    let mut collation = settings.collation.as_str();
    if searches {
        collation = "";
        match search_order(&locale)? {
            SearchOrder::Root => locale = Locale::UNKNOWN,
            SearchOrder::Sorting => {}
            SearchOrder::PhoneBook => {
                // Austria has another, and searches by this one.
                (locale, collation) = (icu_locale::locale!("de"), "phonebk");
            }
        }
    }
    let mut preferences = CollatorPreferences::from(&locale);
    preferences.collation_type = match collation {
        "compat" => Some(CollationType::Compat),
        "dict" => Some(CollationType::Dict),
        "emoji" => Some(CollationType::Emoji),
        "eor" => Some(CollationType::Eor),
        "phonebk" => Some(CollationType::Phonebk),
        "pinyin" => Some(CollationType::Pinyin),
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
    let collator = Collator::try_new(preferences, options).map_err(IntlError::no_data)?;
    Ok(UsableCollator { collator, searches })
}

pub(crate) fn compare(settings: &str, left: &str, right: &str) -> Result<Ordering, IntlError> {
    let usable = COLLATORS.with(|it| it.get(settings, |text| build(&read_settings(text)?)))?;
    if usable.searches && left.chars().chain(right.chars()).any(is_searched_otherwise) {
        return Err(IntlError::missing(
            "the order in which texts with such Arabic letters are searched: use usage: \"sort\"",
        ));
    }
    Ok(usable.collator.compare(left, right))
}
