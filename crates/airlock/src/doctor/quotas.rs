//! The quotas that a server here would enforce.

use super::{DoctorFinding, FindingMark, configured_files};
use engine::QuotaSettings;
use lifecycle::{CallerName, QuotaKind, QuotaLimits};
use std::path::Path;

/// Callers with quotas of their own that the report names. The others are counted: a configuration may have a thousand.
const NAMED_CALLERS_MAX: usize = 20;

/// One line for all callers, and one for each that has quotas of its own.
pub(super) fn check_quotas(data_dir: &Path) -> Vec<DoctorFinding> {
    // Errors in the files are reported with the files.
    let settings = configured_files(data_dir).and_then(|files| sources::quotas(&files));
    settings.map(|settings| lines(&settings)).unwrap_or_default()
}

fn lines(settings: &QuotaSettings) -> Vec<DoctorFinding> {
    let finding = |text: String| DoctorFinding { mark: FindingMark::Good, text };
    let usual = format!("quotas of a caller: {}", values(&settings.usual, QuotaKind::ALL.iter()));
    let own = settings.callers.iter().take(NAMED_CALLERS_MAX);
    let own = own.map(|(caller, quotas)| finding(own_line(caller, quotas, &settings.usual)));
    let n_more = settings.callers.len().saturating_sub(NAMED_CALLERS_MAX);
    let more = (n_more > 0)
        .then(|| finding(format!("quotas of {n_more} more callers differ from these as well")));
    [finding(usual)].into_iter().chain(own).chain(more).collect()
}

/// The differences from the quotas of all callers.
fn own_line(caller: &CallerName, quotas: &QuotaLimits, usual: &QuotaLimits) -> String {
    let differs = |kind: &&QuotaKind| quotas.value(**kind) != usual.value(**kind);
    let values = values(quotas, QuotaKind::ALL.iter().filter(differs));
    let values = if values.is_empty() { "as of every caller".to_owned() } else { values };
    format!("quotas of the token {caller}: {values}")
}

fn values<'a>(quotas: &QuotaLimits, kinds: impl Iterator<Item = &'a QuotaKind>) -> String {
    let values: Vec<_> = kinds.map(|kind| format!("{kind} {}", quotas.value(*kind))).collect();
    values.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_listed_for_all_callers_and_for_those_with_their_own() {
        let mut settings =
            QuotaSettings { usual: QuotaLimits::usual(2), ..QuotaSettings::default() };
        let texts = |settings: &QuotaSettings| -> Vec<String> {
            lines(settings).into_iter().map(|finding| finding.text).collect()
        };
        let usual = "quotas of a caller: running_max 20000, waiting_max 1000000, cpu_seconds_per_hour_max 3600, \
                     held_runners_max 128";
        assert_eq!(texts(&settings), [usual]);
        let own = QuotaLimits { running_max: 3, held_runners_max: 2, ..settings.usual };
        settings.callers.insert(CallerName("ci".into()), own);
        let expected = "quotas of the token ci: running_max 3, held_runners_max 2";
        assert_eq!(texts(&settings), [usual, expected]);
        for n in 0..NAMED_CALLERS_MAX {
            settings.callers.insert(CallerName(format!("d{n:02}")), own);
        }
        let shown = texts(&settings);
        assert_eq!(shown.len(), NAMED_CALLERS_MAX + 2);
        assert_eq!(shown.last().unwrap(), "quotas of 1 more callers differ from these as well");
    }
}
