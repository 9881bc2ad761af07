//! `Intl.DateTimeFormat`, for the Gregorian calendar.

mod fields;
mod format;
mod periods;
mod settings;
mod skeleton;
pub(crate) mod zones;

use crate::bag::OptionsBag;
use crate::cache::{FormatterCache, created, read_settings};
use crate::failure::IntlError;
use crate::parts::{joined, to_json};
use format::DateFormatter;

thread_local! {
    static FORMATTERS: FormatterCache<DateFormatter> = const { FormatterCache::new() };
}

/// Milliseconds that a `Date` can have, on both sides of 1970.
const TIME_MS_MAX: f64 = 8.64e15;

pub(crate) fn answer_dates(what: &str, first: &str, second: &str) -> Result<String, IntlError> {
    if what == "new" {
        let (settings, shown) = settings::read(first, &OptionsBag::parse(second)?)?;
        DateFormatter::new(settings.clone())?;
        return Ok(created(&settings, &shown));
    }
    let formatter =
        FORMATTERS.with(|it| it.get(first, |text| DateFormatter::new(read_settings(text)?)))?;
    let time: f64 = second.parse().unwrap_or(f64::NAN);
    if !time.is_finite() || time.abs() > TIME_MS_MAX {
        return Err(IntlError::range("Invalid time value"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "between the bounds of a date")]
    let parts = formatter.format(time.floor() as i64)?;
    Ok(if what == "parts" { to_json(&parts) } else { joined(&parts) })
}
