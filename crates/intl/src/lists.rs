//! `Intl.ListFormat`.

use crate::bag::OptionsBag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::failure::IntlError;
use crate::locales::ResolvedLocale;
use crate::parts::{collected, joined, to_json};
use icu_list::ListFormatter;
use icu_list::options::{ListFormatterOptions, ListLength};
use icu_locale::Locale;
use serde::{Deserialize, Serialize};
use serde_json::json;

thread_local! {
    static FORMATTERS: FormatterCache<ListFormatter> = const { FormatterCache::new() };
}

#[derive(Debug, Serialize, Deserialize)]
struct ListSettings {
    locale: String,
    kind: String,
    style: String,
}

pub(crate) fn answer_lists(what: &str, first: &str, second: &str) -> Result<String, IntlError> {
    if what == "new" {
        let bag = OptionsBag::parse(second)?;
        bag.check_matcher()?;
        let locale = ResolvedLocale::resolve(first)?;
        let kind = bag.choice("type", &["conjunction", "disjunction", "unit"])?;
        let style = bag.choice("style", &["long", "short", "narrow"])?;
        let settings =
            ListSettings { locale: locale.id.to_string(), kind: kind.into(), style: style.into() };
        build(&settings)?;
        return Ok(created(
            &settings,
            &json!({ "locale": locale.tag(), "type": kind, "style": style }),
        ));
    }
    let formatter = FORMATTERS.with(|it| it.get(first, |text| build(&read_settings(text)?)))?;
    let items: Vec<String> = serde_json::from_str(second)
        .map_err(|_| IntlError::type_error("a list of texts is needed"))?;
    let parts = collected(&formatter.format(items.iter().map(String::as_str)), "literal");
    Ok(if what == "parts" { to_json(&parts) } else { joined(&parts) })
}

fn build(settings: &ListSettings) -> Result<ListFormatter, IntlError> {
    let locale: Locale = settings.locale.parse().map_err(IntlError::no_data)?;
    let options = ListFormatterOptions::default().with_length(match settings.style.as_str() {
        "short" => ListLength::Short,
        "narrow" => ListLength::Narrow,
        _ => ListLength::Wide,
    });
    match settings.kind.as_str() {
        "disjunction" => ListFormatter::try_new_or((&locale).into(), options),
        "unit" => ListFormatter::try_new_unit((&locale).into(), options),
        _ => ListFormatter::try_new_and((&locale).into(), options),
    }
    .map_err(IntlError::no_data)
}
