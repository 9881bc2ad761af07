//! `Intl.NumberFormat`.

mod affixes;
mod format;
mod settings;
mod units;

pub(crate) use format::decimal_symbols;
pub(crate) use settings::{check_numbering_system, numbering_system};

use crate::bag::OptionsBag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::digits::NumericValue;
use crate::failure::IntlError;
use crate::parts::{joined, to_json};
use format::NumberFormatter;

thread_local! {
    static FORMATTERS: FormatterCache<NumberFormatter> = const { FormatterCache::new() };
}

pub(crate) fn answer_numbers(what: &str, first: &str, second: &str) -> Result<String, IntlError> {
    if what == "new" {
        let (settings, shown) = settings::read(first, &OptionsBag::parse(second)?)?;
        // What has no data fails when it is made, not when it is first used.
        NumberFormatter::new(settings.clone())?;
        return Ok(created(&settings, &shown));
    }
    let formatter =
        FORMATTERS.with(|it| it.get(first, |text| NumberFormatter::new(read_settings(text)?)))?;
    let parts = formatter.format(&NumericValue::parse(second)?)?;
    Ok(if what == "parts" { to_json(&parts) } else { joined(&parts) })
}
