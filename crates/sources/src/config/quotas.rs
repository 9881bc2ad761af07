//! `[quotas]`: what each caller may use concurrently.

use engine::QuotaSettings;
use lifecycle::{CallerName, QuotaKind};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of callers with individual quotas: there are at most as many tokens.
const CALLERS_MAX: usize = 1_000;

/// Quotas for all callers, and for some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasConfig {
    /// Running executions, including those that wait for a runner.
    pub running_max: Option<u64>,
    /// Executions that wait for people or timers.
    pub waiting_max: Option<u64>,
    /// Processor time of programs per hour.
    pub cpu_seconds_per_hour_max: Option<u64>,
    /// Runners held by execbox channels and REPL sessions.
    pub held_runners_max: Option<u64>,
    /// Quotas of single callers, by the name of their token.
    pub callers: BTreeMap<String, CallerQuotas>,
}

/// Quotas of one caller that differ from the general ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallerQuotas {
    /// As in [`QuotasConfig`].
    pub running_max: Option<u64>,
    /// As in [`QuotasConfig`].
    pub waiting_max: Option<u64>,
    /// As in [`QuotasConfig`].
    pub cpu_seconds_per_hour_max: Option<u64>,
    /// As in [`QuotasConfig`].
    pub held_runners_max: Option<u64>,
}

impl QuotasConfig {
    pub(super) fn check_values(&self) -> Result<(), String> {
        self.usual().check_values("quotas")?;
        if self.callers.len() > CALLERS_MAX {
            return Err(format!("quotas.callers: there are {CALLERS_MAX} at most"));
        }
        let mut callers = self.callers.iter();
        callers
            .try_for_each(|(name, quotas)| quotas.check_values(&format!("quotas.callers.{name}")))
    }

    pub(super) fn merged_over(self, other: Self) -> Self {
        let usual = self.usual().merged_over(other.usual());
        let mut callers = other.callers;
        for (name, quotas) in self.callers {
            let before = callers.remove(&name).unwrap_or_default();
            callers.insert(name, quotas.merged_over(before));
        }
        let CallerQuotas { running_max, waiting_max, .. } = usual;
        let CallerQuotas { cpu_seconds_per_hour_max, held_runners_max, .. } = usual;
        Self { running_max, waiting_max, cpu_seconds_per_hour_max, held_runners_max, callers }
    }

    /// The defaults with these quotas in place.
    #[must_use]
    pub fn settings(&self) -> QuotaSettings {
        let usual = self.usual().on(QuotaSettings::default().usual);
        let callers = self.callers.iter();
        let callers =
            callers.map(|(name, quotas)| (CallerName::of_token(name), quotas.on(usual))).collect();
        QuotaSettings { usual, callers }
    }

    const fn usual(&self) -> CallerQuotas {
        CallerQuotas {
            running_max: self.running_max,
            waiting_max: self.waiting_max,
            cpu_seconds_per_hour_max: self.cpu_seconds_per_hour_max,
            held_runners_max: self.held_runners_max,
        }
    }
}

impl CallerQuotas {
    fn check_values(&self, section: &str) -> Result<(), String> {
        let numbers = [
            (QuotaKind::Running, self.running_max),
            (QuotaKind::Waiting, self.waiting_max),
            (QuotaKind::CpuSeconds, self.cpu_seconds_per_hour_max),
            (QuotaKind::HeldRunners, self.held_runners_max),
        ];
        match numbers.iter().find(|(_, number)| *number == Some(0)) {
            Some((kind, _)) => Err(format!("{section}.{kind} is 1 or more")),
            None => Ok(()),
        }
    }

    fn merged_over(self, other: Self) -> Self {
        Self {
            running_max: self.running_max.or(other.running_max),
            waiting_max: self.waiting_max.or(other.waiting_max),
            cpu_seconds_per_hour_max: self
                .cpu_seconds_per_hour_max
                .or(other.cpu_seconds_per_hour_max),
            held_runners_max: self.held_runners_max.or(other.held_runners_max),
        }
    }

    fn on(self, usual: lifecycle::QuotaLimits) -> lifecycle::QuotaLimits {
        lifecycle::QuotaLimits {
            running_max: self.running_max.unwrap_or(usual.running_max),
            waiting_max: self.waiting_max.unwrap_or(usual.waiting_max),
            cpu_seconds_per_hour_max: self
                .cpu_seconds_per_hour_max
                .unwrap_or(usual.cpu_seconds_per_hour_max),
            held_runners_max: self.held_runners_max.unwrap_or(usual.held_runners_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ConfigDocument;
    use lifecycle::CallerName;

    #[test]
    fn a_caller_has_its_own_quotas_and_else_those_of_all() {
        let user =
            "[quotas]\nrunning_max = 9\nwaiting_max = 8\n[quotas.callers.ci]\nrunning_max = 3\n";
        let other = "[quotas]\nwaiting_max = 5\n[quotas.callers.ci]\nheld_runners_max = 2\n";
        let merged =
            ConfigDocument::parse(user).unwrap().merged_over(ConfigDocument::parse(other).unwrap());
        let settings = merged.quotas.settings();
        let of = |name: &str| {
            let quotas = settings.for_caller(&CallerName(name.into()));
            (quotas.running_max, quotas.waiting_max, quotas.held_runners_max)
        };
        let held = ConfigDocument::default().quotas.settings().usual.held_runners_max;
        assert_eq!((of("ann"), of("ci")), ((9, 8, held), (3, 8, 2)));
    }

    #[test]
    fn a_quota_of_nothing_is_refused() {
        let wrong = |text: &str| ConfigDocument::parse(text).unwrap_err();
        assert_eq!(wrong("[quotas]\nwaiting_max = 0\n"), "quotas.waiting_max is 1 or more");
        assert_eq!(
            wrong("[quotas.callers.ci]\nrunning_max = 0\n"),
            "quotas.callers.ci.running_max is 1 or more"
        );
    }
}
