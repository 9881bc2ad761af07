//! `toLocaleUpperCase` and `toLocaleLowerCase` for the languages with special rules for letters.

use crate::failure::IntlError;
use crate::locales;
use icu_casemap::CaseMapper;

pub(crate) fn answer_cases(what: &str, locales: &str, text: &str) -> Result<String, IntlError> {
    let requested = locales::requested(locales)?;
    let locale =
        requested.first().map_or(icu_locale::LanguageIdentifier::UNKNOWN, |it| it.id.clone());
    let mapper = CaseMapper::new();
    Ok(match what {
        "upper" => mapper.uppercase_to_string(text, &locale),
        _ => mapper.lowercase_to_string(text, &locale),
    }
    .into_owned())
}
