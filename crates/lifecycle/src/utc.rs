//! Times in UTC, formatted for people.

use crate::Timestamp;
use std::fmt;

const DAY_MS: i64 = 24 * 3_600_000;

/// A moment; shown as `2026-01-31T23:59:59Z`.
#[derive(Debug, Clone, Copy)]
pub struct UtcTime(i64);

impl From<Timestamp> for UtcTime {
    fn from(at: Timestamp) -> Self {
        Self(at.0)
    }
}

impl UtcTime {
    /// With its milliseconds: `2026-01-31T23:59:59.999Z`.
    pub fn exact(self) -> String {
        let [year, month, day] = self.date();
        format!("{year:04}-{month:02}-{day:02}T{}Z", self.time())
    }

    /// The time of the day with its milliseconds.
    pub fn time(self) -> String {
        let [hour, minute, second, ms] = self.clock();
        format!("{hour:02}:{minute:02}:{second:02}.{ms:03}")
    }

    const fn clock(self) -> [i64; 4] {
        let ms = self.0.rem_euclid(DAY_MS);
        [ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000]
    }

    /// Year, month and day. Years are counted from March, so that the leap day comes last.
    const fn date(self) -> [i64; 3] {
        const DAYS_TO_1970: i64 = 719_468; // from the first of March of the year 0
        let days = self.0.div_euclid(DAY_MS) + DAYS_TO_1970;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let year = 400 * era + year;
        if month < 10 { [year, month + 3, day] } else { [year + 1, month - 9, day] }
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([year, month, day], [hour, minute, second, _]) = (self.date(), self.clock());
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_as_the_calendar_has_them() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59Z"),
            (1_772_323_200_000, "2026-03-01T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ];
        for (ms, expected) in cases {
            assert_eq!(UtcTime(ms).to_string(), expected);
        }
        assert_eq!(UtcTime(951_782_400_007).exact(), "2000-02-29T00:00:00.007Z");
        assert_eq!(UtcTime(1_735_689_599_007).time(), "23:59:59.007");
    }

    #[test]
    fn the_ends_of_time_are_moments_too() {
        for ms in [i64::MIN, i64::MAX] {
            assert!(UtcTime(ms).to_string().ends_with('Z'));
        }
    }
}
