//! Parts of the day: in the morning, at noon, at night.

use crate::tables::LocaleTable;

/// The name of the part of the day that a time is in; `None` if the locale has none.
pub(crate) fn period_name(
    table: &LocaleTable,
    width: usize,
    hour: u8,
    is_exact: bool,
) -> Option<&'static str> {
    let rules = table.get("periods")?;
    let named = |period: &str| {
        let preferred = match width {
            4 => "w",
            5 => "n",
            _ => "a",
        };
        table.get(&format!("p:{preferred}:{period}"))
    };
    let at = |rule: &str| {
        let (period, exact) = rule.split_once('@')?;
        (is_exact && exact.parse::<u8>().ok()? % 24 == hour % 24).then_some(period).and_then(named)
    };
    let within = |rule: &str| {
        let (period, hours) = rule.split_once(':')?;
        let (from, before) = hours.split_once('-')?;
        let (from, before): (u8, u8) = (from.parse().ok()?, before.parse().ok()?);
        let is_in = if from < before {
            (from..before).contains(&hour)
        } else {
            hour >= from || hour < before
        };
        is_in.then_some(period).and_then(named)
    };
    rules.split(' ').find_map(at).or_else(|| rules.split(' ').find_map(within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_has_parts_that_differ_between_languages() {
        let of = |locale: &str, hour| {
            period_name(&LocaleTable::for_locale(&locale.parse().unwrap()), 4, hour, true)
                .unwrap_or_default()
        };
        assert_eq!(
            [0, 9, 12, 15, 22].map(|hour| of("en", hour)),
            ["midnight", "in the morning", "noon", "in the afternoon", "at night"]
        );
        assert_eq!(of("zh-TW", 7), "清晨");
    }
}
