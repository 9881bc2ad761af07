//! Time zones: offsets from the compiled-in time zone database.

use crate::failure::{IntlError, quoted};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Longest name that is looked up.
const NAME_BYTES_MAX: usize = 64;

/// Names of universal time, all shown as `UTC`.
const UTC_NAMES: &[&str] = &[
    "UTC",
    "Etc/UTC",
    "Etc/GMT",
    "GMT",
    "Etc/UCT",
    "Etc/Universal",
    "Etc/Zulu",
    "UCT",
    "Universal",
    "Zulu",
];

/// Days of 400 years: after them the calendar and its weekdays repeat.
const CYCLE_MS: i64 = 146_097 * 86_400_000;

/// Times that the database answers for; others are moved by whole cycles.
const LAST_MS: i64 = 250_000_000_000_000;
const FIRST_MS: i64 = -250_000_000_000_000;

#[derive(Debug, Clone)]
pub(crate) enum TimeZoneId {
    Utc,
    /// Seconds east of Greenwich.
    Offset(i32),
    Named(TimeZone),
}

/// A zone, and the name that `resolvedOptions` shows.
pub(crate) fn find(name: &str) -> Result<(TimeZoneId, String), IntlError> {
    if let Some(seconds) = offset_of(name) {
        return Ok((TimeZoneId::Offset(seconds), offset_name(seconds)));
    }
    if UTC_NAMES.iter().any(|it| it.eq_ignore_ascii_case(name)) {
        return Ok((TimeZoneId::Utc, "UTC".to_owned()));
    }
    let is_name = name.len() <= NAME_BYTES_MAX && name.is_ascii();
    let found = is_name.then(|| TimeZoneDatabase::bundled().get(name).ok()).flatten();
    let known = found.and_then(|zone| {
        zone.iana_name().map(str::to_owned).map(|name| (TimeZoneId::Named(zone), name))
    });
    known.ok_or_else(|| IntlError::range(format!("Invalid time zone specified: {}", quoted(name))))
}

/// `+01:00`, `-0530`, `+01`.
fn offset_of(name: &str) -> Option<i32> {
    let sign = match name.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = &name[1..];
    let (hours, minutes) = match (digits.len(), digits.as_bytes().get(2)) {
        (2, _) => (digits, "0"),
        (4, _) if digits.is_ascii() => digits.split_at(2),
        (5, Some(b':')) => (&digits[..2], &digits[3..]),
        _ => return None,
    };
    let are_digits = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(hours) || !are_digits(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn offset_name(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

impl TimeZoneId {
    /// Seconds east of Greenwich at a time.
    pub(crate) fn offset_at(&self, time_ms: i64) -> i32 {
        let zone = match self {
            Self::Utc => return 0,
            Self::Offset(seconds) => return *seconds,
            Self::Named(zone) => zone,
        };
        let cycles = match time_ms {
            ..FIRST_MS => (FIRST_MS - time_ms) / CYCLE_MS + 1,
            LAST_MS.. => -((time_ms - LAST_MS) / CYCLE_MS + 1),
            _ => 0,
        };
        let moved = Timestamp::from_millisecond(time_ms + cycles * CYCLE_MS);
        moved.map_or(0, |time| zone.to_offset(time).seconds())
    }
}

/// Every name of the database, sorted, as `Intl.supportedValuesOf` shows them.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = TimeZoneDatabase::bundled()
        .available()
        .map(|it| it.as_str().to_owned())
        .filter(|it| is_place(it))
        .collect();
    names.push("UTC".to_owned());
    names.sort();
    names
}

fn is_place(name: &str) -> bool {
    let areas = [
        "Africa/",
        "America/",
        "Antarctica/",
        "Arctic/",
        "Asia/",
        "Atlantic/",
        "Australia/",
        "Europe/",
        "Indian/",
        "Pacific/",
    ];
    areas.iter().any(|area| name.starts_with(area))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_the_database_writes_them() {
        let shown = |name: &str| find(name).map(|(_, shown)| shown).ok();
        assert_eq!(shown("europe/berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(shown("gmt").as_deref(), Some("UTC"));
        assert_eq!(shown("-0530").as_deref(), Some("-05:30"));
        assert_eq!(
            ["Europe/Nowhere", "", "+24:00", "+1", "CET+1", "+é1"].map(shown),
            [const { None }; 6]
        );
    }

    #[test]
    fn summer_time_goes_on_in_times_that_the_database_does_not_reach() {
        let (berlin, _) = find("Europe/Berlin").unwrap();
        assert_eq!(berlin.offset_at(1_785_000_000_000), 7_200);
        assert_eq!(berlin.offset_at(1_785_000_000_000 + 100 * CYCLE_MS), 7_200);
        assert_eq!(berlin.offset_at(-8_640_000_000_000_000), 3_208);
    }
}
