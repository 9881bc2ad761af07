//! Points in time in query strings: milliseconds, a duration before now, or a date.

use lifecycle::Timestamp;

const DAY_MS: i64 = 24 * 3_600_000;

/// Parses a point in time. The error continues "the query's since is …".
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Ok(ms) = text.parse::<i64>() {
        return Ok(Timestamp(ms));
    }
    let unit = text.find(|c: char| !c.is_ascii_digit()).map(|at| text.split_at(at));
    let ago = unit.and_then(|(number, unit)| {
        let ms = match unit {
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => DAY_MS,
            _ => return None,
        };
        number.parse::<i64>().ok()?.checked_mul(ms)
    });
    if let Some(ago) = ago {
        return Ok(Timestamp(now.0.saturating_sub(ago)));
    }
    date(text).map(Timestamp).ok_or_else(|| {
        "neither a time before now (90m, 2h, 7d), nor a date in UTC (2026-01-31, \
         2026-01-31T12:00:00Z), nor milliseconds since 1970"
            .into()
    })
}

/// `2026-01-31`, `2026-01-31T12:00Z` or `2026-01-31T12:00:00Z`, in UTC.
fn date(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time.strip_suffix('Z')?)),
        None => (text, None),
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = match time {
        None => [0; 3],
        Some(time) if time.matches(':').count() == 1 => numbers(&format!("{time}:00"), ':')?,
        Some(time) => numbers(time, ':')?,
    };
    let is_good = (1..=9_999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let ms = (hour * 3_600 + minute * 60 + second) * 1_000;
    is_good.then(|| days_since_1970(year, month, day) * DAY_MS + ms)
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let parts: Vec<_> = text.split(between).collect();
    let is_digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !parts.iter().all(is_digits) {
        return None;
    }
    let numbers: Vec<i64> = parts.iter().map_while(|part| part.parse().ok()).collect();
    numbers.try_into().ok()
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Years begin in March, so that the leap day is the last day.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400;
    days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::UtcTime;

    #[test]
    fn a_time_is_given_in_milliseconds_before_now_or_as_a_date() {
        let now = Timestamp(1_800_000_000_000);
        assert_eq!(parse("1700000000000", now), Ok(Timestamp(1_700_000_000_000)));
        assert_eq!(parse("90m", now), Ok(Timestamp(now.0 - 90 * 60_000)));
        assert_eq!(parse("7d", now), Ok(Timestamp(now.0 - 7 * DAY_MS)));
        for text in ["2000-02-29T00:00:00Z", "2024-12-31T23:59:59Z", "1969-12-31T23:59:59Z"] {
            assert_eq!(UtcTime::from(parse(text, now).unwrap()).to_string(), text);
        }
        assert_eq!(parse("2026-03-01", now), Ok(Timestamp(1_772_323_200_000)));
        assert_eq!(parse("2026-03-01T00:01Z", now), Ok(Timestamp(1_772_323_260_000)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "2", "h", "2w", "2026-02-29", "2026-13-01", "2026-01-01T25:00Z", "now"] {
            let expected = text == "2";
            assert_eq!(parse(text, Timestamp(0)).is_ok(), expected, "{text}");
        }
        assert!(parse("2026-01-01T12:00", Timestamp(0)).is_err(), "no time zone");
        assert!(parse("2026-+1-01", Timestamp(0)).is_err());
    }
}
