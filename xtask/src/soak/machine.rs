//! Describes when and on which machine a figure was measured.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine in one line: processors, memory, kernel.
pub(super) fn describe() -> String {
    let line = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches([' ', '\t', ':']).trim().to_owned()
    };
    let n_processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let model = line("/proc/cpuinfo", "model name");
    let memory_kb: u64 =
        line("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{n_processors} × {model}, {} GB, Linux {}", memory_kb >> 20, kernel.trim())
}

/// The present date and time, such as `2026-11-18 20:15`, in UTC.
#[expect(clippy::disallowed_methods, reason = "a record of a run needs the real time")]
pub(super) fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_and_time(now.as_secs())
}

fn date_and_time(seconds: u64) -> String {
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute) = (second_of_day / 3_600, second_of_day / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Year, month and day of a number of days after 1970-01-01, by counting from 0000-03-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_a_date_and_a_time() {
        assert_eq!(date_and_time(0), "1970-01-01 00:00");
        assert_eq!(date_and_time(951_868_799), "2000-02-29 23:59");
        assert_eq!(date_and_time(1_795_032_901), "2026-11-18 20:15");
    }
}
