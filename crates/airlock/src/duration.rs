//! Durations as people write them: `500ms`, `5s`, `2m`, `1h`, `1m30s`.

use std::time::Duration;

/// Longest duration that is accepted; a longer one is probably a mistake.
pub(crate) const DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Longest retention that is accepted: ten years.
const LONG_MAX: Duration = Duration::from_secs(3_653 * 24 * 3_600);

/// Parses a duration; the error is a sentence for a person.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let whole = any(text)?;
    if whole > DURATION_MAX { Err(too_long()) } else { Ok(whole) }
}

/// Like `parse`, for retention times.
pub(crate) fn parse_long(text: &str) -> Result<Duration, String> {
    let whole = any(text)?;
    if whole > LONG_MAX { Err("at most ten years, 3653d".into()) } else { Ok(whole) }
}

fn any(text: &str) -> Result<Duration, String> {
    let mut whole = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let n_digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(n_digits);
        let n_letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(n_letters);
        whole = whole.checked_add(part(number, unit)?).ok_or_else(too_long)?;
        rest = after;
    }
    if whole.is_zero() {
        return Err("a duration is longer than nothing, such as 500ms or 5s".into());
    }
    Ok(whole)
}

fn part(number: &str, unit: &str) -> Result<Duration, String> {
    let amount: f64 =
        number.parse().map_err(|_| "write a number and a unit, such as 500ms or 5s".to_owned())?;
    let seconds = match unit {
        "ms" => amount / 1_000.0,
        "s" => amount,
        "m" | "min" => amount * 60.0,
        "h" => amount * 3_600.0,
        "d" => amount * 24.0 * 3_600.0,
        "" => return Err(format!("{number} of what? Write {number}ms, {number}s or {number}m")),
        _ => return Err(format!("there is no unit {unit}; use ms, s, m, h or d")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| too_long())
}

fn too_long() -> String {
    format!("at most {} days", DURATION_MAX.as_secs() / (24 * 3_600))
}

/// Formats a duration for people: `40ms`, `1.2s`, `3m05s`, `2h03m`, `4d01h`.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_two_units_at_most() {
        let shown = |ms| format_duration(Duration::from_millis(ms));
        let cases = [
            (40, "40ms"),
            (1_250, "1.2s"),
            (185_000, "3m05s"),
            (7_380_000, "2h03m"),
            (349_200_000, "4d01h"),
        ];
        for (ms, expected) in cases {
            assert_eq!(shown(ms), expected);
        }
    }

    #[test]
    fn durations_mean_what_they_say() {
        let cases = [
            ("500ms", 500),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1d12h", 129_600_000),
            (" 3s ", 3_000),
        ];
        for (text, ms) in cases {
            assert_eq!((text, parse(text)), (text, Ok(Duration::from_millis(ms))));
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_advice() {
        let cases = [
            ("", "a duration is longer than nothing, such as 500ms or 5s"),
            ("0s", "a duration is longer than nothing, such as 500ms or 5s"),
            ("5", "5 of what? Write 5ms, 5s or 5m"),
            ("5y", "there is no unit y; use ms, s, m, h or d"),
            ("s", "write a number and a unit, such as 500ms or 5s"),
            ("-1s", "write a number and a unit, such as 500ms or 5s"),
            ("1.2.3s", "write a number and a unit, such as 500ms or 5s"),
            ("5é", "5 of what? Write 5ms, 5s or 5m"),
            ("99999h", "at most 30 days"),
            (&"9".repeat(400), "99"),
        ];
        for (text, advice) in cases {
            let refused = parse(text).unwrap_err();
            assert!(refused.starts_with(advice), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_kept_may_be_kept_for_long() {
        assert_eq!(parse_long("90d"), Ok(Duration::from_secs(90 * 24 * 3_600)));
        assert_eq!(parse_long("4000d"), Err("at most ten years, 3653d".to_owned()));
        assert_eq!(parse("90d"), Err(too_long()));
    }
}
