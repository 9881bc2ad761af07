//! Language tags: canonical forms, and the choice among the requested ones (ECMA-402, section 9).

use crate::bag::OptionsBag;
use crate::failure::{IntlError, quoted};
use crate::parts::to_json;
use crate::tables;
use icu_locale::extensions::unicode::{Key, Value};
use icu_locale::{LanguageIdentifier, Locale, LocaleCanonicalizer};
use serde_json::json;

/// The locale of a guest that requests none, or only unknown ones.
const DEFAULT: &str = "en-US";

/// Longest tag that is read: registered ones are far shorter.
const TAG_BYTES_MAX: usize = 200;

/// Most tags in one list.
const TAGS_MAX: usize = 1_000;

pub(crate) fn answer_locales(what: &str, first: &str, second: &str) -> Result<String, IntlError> {
    match what {
        "canonical" => Ok(to_json(&tags(&requested(first)?))),
        "supported" => {
            OptionsBag::parse(second)?.check_matcher()?;
            let mut found = requested(first)?;
            found.retain(|locale| available_prefix(&locale.id).is_some());
            Ok(to_json(&tags(&found)))
        }
        "maximize" | "minimize" => {
            let mut locale = canonical(first)?;
            let expander = icu_locale::LocaleExpander::new_extended();
            if what == "maximize" {
                expander.maximize(&mut locale.id);
            } else {
                expander.minimize(&mut locale.id);
            }
            Ok(locale.to_string())
        }
        "describe" => describe(&with_options(canonical(first)?, &OptionsBag::parse(second)?)?),
        _ => Err(IntlError::range("Intl has no such request")),
    }
}

fn tags(locales: &[Locale]) -> Vec<String> {
    locales.iter().map(ToString::to_string).collect()
}

/// A tag with the options of `Intl.Locale`.
fn with_options(mut locale: Locale, bag: &OptionsBag) -> Result<Locale, IntlError> {
    let invalid =
        |name: &str| IntlError::range(format!("Incorrect locale information provided: {name}"));
    if let Some(text) = bag.get("language") {
        locale.id.language = text.parse().map_err(|_| invalid("language"))?;
    }
    if let Some(text) = bag.get("script") {
        locale.id.script = Some(text.parse().map_err(|_| invalid("script"))?);
    }
    if let Some(text) = bag.get("region") {
        locale.id.region = Some(text.parse().map_err(|_| invalid("region"))?);
    }
    bag.one_of("hourCycle", &["h11", "h12", "h23", "h24"])?;
    bag.one_of("caseFirst", &["upper", "lower", "false"])?;
    let keywords = [
        ("ca", type_option(bag, "calendar")?),
        ("co", type_option(bag, "collation")?),
        ("hc", bag.get("hourCycle")),
        ("kf", bag.get("caseFirst")),
        ("kn", bag.get("numeric")),
        ("nu", type_option(bag, "numberingSystem")?),
    ];
    for (key, text) in keywords {
        if let Some(text) = text {
            let value = Value::try_from_str(text).map_err(|_| invalid(key))?;
            locale.extensions.unicode.keywords.set(key.parse().expect("keys are ours"), value);
        }
    }
    canonical(&locale.to_string())
}

/// What `Intl.Locale` shows.
fn describe(locale: &Locale) -> Result<String, IntlError> {
    let keyword = |key: &str| locale_keyword(locale, key);
    Ok(json!({
        "tag": locale.to_string(),
        "baseName": locale.id.to_string(),
        "language": locale.id.language.as_str(),
        "script": locale.id.script.map(|it| it.as_str().to_owned()),
        "region": locale.id.region.map(|it| it.as_str().to_owned()),
        "calendar": keyword("ca"),
        "collation": keyword("co"),
        "hourCycle": keyword("hc"),
        "caseFirst": keyword("kf"),
        "numeric": keyword("kn"),
        "numberingSystem": keyword("nu"),
    })
    .to_string())
}

/// A tag in its canonical form.
pub(crate) fn canonical(tag: &str) -> Result<Locale, IntlError> {
    let parsed = (tag.len() <= TAG_BYTES_MAX).then(|| Locale::try_from_str(tag).ok()).flatten();
    let known = parsed.filter(|it| !it.id.language.is_unknown() || tag.starts_with("und"));
    let Some(mut locale) = known else {
        return Err(IntlError::range(format!(
            "Incorrect locale information provided: {}",
            quoted(tag)
        )));
    };
    LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
    Ok(locale)
}

/// The tags of a list in JSON, in canonical form, each once.
pub(crate) fn requested(json: &str) -> Result<Vec<Locale>, IntlError> {
    if json.is_empty() {
        return Ok(vec![]);
    }
    let list: Vec<String> =
        serde_json::from_str(json).map_err(|_| IntlError::type_error("locales must be texts"))?;
    if list.len() > TAGS_MAX {
        return Err(IntlError::range(format!("more than {TAGS_MAX} locales")));
    }
    let mut locales = vec![];
    for tag in list {
        let locale = canonical(&tag)?;
        if !locales.contains(&locale) {
            locales.push(locale);
        }
    }
    Ok(locales)
}

/// The longest beginning of a tag of which there is data.
fn available_prefix(locale: &LanguageIdentifier) -> Option<LanguageIdentifier> {
    let mut candidate = locale.clone();
    loop {
        if tables::is_available(&candidate) {
            return Some(candidate);
        }
        if !candidate.variants.is_empty() {
            candidate.variants.clear();
        } else if candidate.region.take().is_none() && candidate.script.take().is_none() {
            return None;
        }
    }
}

/// The locale that is taken.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedLocale {
    /// Of the tag: language, script, region.
    pub(crate) id: LanguageIdentifier,
    /// The requested tag, whose keywords are considered.
    asked: Locale,
    /// Keywords that count, as `resolvedOptions().locale` shows them.
    shown: Vec<(String, String)>,
}

impl ResolvedLocale {
    /// The first of the requested locales that is available.
    pub(crate) fn resolve(locales_json: &str) -> Result<Self, IntlError> {
        let requested = requested(locales_json)?;
        let found =
            requested.into_iter().find_map(|it| available_prefix(&it.id).map(|id| (id, it)));
        let (id, asked) = match found {
            Some(found) => found,
            None => {
                let default: Locale = DEFAULT.parse().expect("the default is a tag");
                (default.id.clone(), default)
            }
        };
        Ok(Self { id, asked, shown: vec![] })
    }

    /// The value of a keyword: that of the option, otherwise that of the tag, if it is valid. Shown in the tag if it is the
    /// tag's.
    pub(crate) fn keyword(
        &mut self,
        key: &str,
        option: Option<&str>,
        is_valid: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let in_tag = locale_keyword(&self.asked, key).filter(|value| is_valid(value));
        let option = option.filter(|value| is_valid(value));
        if let Some(option) = option {
            if in_tag.as_deref() == Some(option) {
                self.shown.push((key.to_owned(), option.to_owned()));
            }
            return Some(option.to_owned());
        }
        if let Some(value) = &in_tag {
            self.shown.push((key.to_owned(), value.clone()));
        }
        in_tag
    }

    /// What a keyword of the tag is, without counting it.
    pub(crate) fn asked_keyword(&self, key: &str) -> Option<String> {
        locale_keyword(&self.asked, key)
    }

    /// The tag that `resolvedOptions().locale` shows.
    pub(crate) fn tag(&self) -> String {
        let mut shown = self.shown.clone();
        shown.sort();
        let keywords = shown.iter().map(|(key, value)| match value.as_str() {
            "true" => format!("-{key}"),
            value => format!("-{key}-{value}"),
        });
        let keywords: String = keywords.collect();
        let extension = if keywords.is_empty() { "" } else { "-u" };
        format!("{}{extension}{keywords}", self.id)
    }

    /// The locale by which ICU4X finds data.
    pub(crate) fn data(&self, numbering_system: &str) -> Locale {
        with_numbers(&self.id.to_string(), numbering_system)
    }
}

/// A locale with a numbering system; that of the default if the text is no tag.
pub(crate) fn with_numbers(id: &str, numbering_system: &str) -> Locale {
    let mut locale: Locale = id.parse().unwrap_or_else(|_| DEFAULT.parse().expect("a tag"));
    if let Ok(value) = Value::try_from_str(numbering_system) {
        let key: Key = "nu".parse().expect("a key");
        locale.extensions.unicode.keywords.set(key, value);
    }
    locale
}

fn locale_keyword(locale: &Locale, key: &str) -> Option<String> {
    let key: Key = key.parse().expect("keys are ours");
    let value = locale.extensions.unicode.keywords.get(&key)?.to_string();
    Some(if value.is_empty() { "true".to_owned() } else { value })
}

/// The value of an option for a keyword must have a keyword's form.
pub(crate) fn type_option<'a>(
    bag: &'a OptionsBag,
    name: &str,
) -> Result<Option<&'a str>, IntlError> {
    let Some(value) = bag.get(name) else { return Ok(None) };
    let is_subtag =
        |it: &str| (3..=8).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_alphanumeric());
    if value.split('-').all(is_subtag) {
        Ok(Some(value))
    } else {
        Err(IntlError::range(format!("Invalid {name} : {}", quoted(value))))
    }
}
