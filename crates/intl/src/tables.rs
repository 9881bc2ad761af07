//! The table of CLDR's patterns that `data/generate.mjs` writes.

use icu_locale::{LanguageIdentifier, LocaleExpander};

/// Lines, sorted by locale: `@locale parent`, then what differs from the parent.
const TABLE: &str = include_str!("../data/patterns.txt");

/// Longest chain of parents in CLDR is four; a table with a loop must not hang.
const PARENTS_MAX: usize = 8;

/// The lines of one locale and of its parents, nearest first.
#[derive(Debug)]
pub(crate) struct LocaleTable(Vec<&'static str>);

impl LocaleTable {
    /// The table for a locale that is [available](is_available); that of the root if it is not.
    pub(crate) fn for_locale(locale: &LanguageIdentifier) -> Self {
        let mut blocks = vec![];
        let mut next = name_in_table(locale).or_else(|| block("und").map(|_| "und".to_owned()));
        while let Some((name, (parent, lines))) =
            next.take().and_then(|name| block(&name).map(|found| (name, found)))
        {
            blocks.push(lines);
            if name != "und" && blocks.len() < PARENTS_MAX {
                next = Some(if parent.is_empty() { "und".to_owned() } else { parent.to_owned() });
            }
        }
        Self(blocks)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'static str> {
        let of = |lines: &&'static str| {
            lines.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        };
        self.0.iter().find_map(of).filter(|value| !value.is_empty())
    }

    /// Every key with its value, sorted by key.
    pub(crate) fn entries(&self) -> Vec<(&'static str, &'static str)> {
        let mut entries: Vec<(&'static str, &'static str)> = vec![];
        for lines in &self.0 {
            for (key, value) in lines.lines().filter_map(|line| line.split_once('=')) {
                if let Err(at) = entries.binary_search_by(|(known, _)| (*known).cmp(key)) {
                    entries.insert(at, (key, value));
                }
            }
        }
        entries.retain(|(_, value)| !value.is_empty());
        entries
    }
}

/// A line before the first locale.
fn header(name: &str) -> &'static str {
    let head = TABLE.split_once("\n@").map_or(TABLE, |(head, _)| head);
    let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_default()
}

/// The parent and the lines of a locale.
fn block(name: &str) -> Option<(&'static str, &'static str)> {
    let (mut from, mut to) = (TABLE.find("\n@").map_or(TABLE.len(), |at| at + 1), TABLE.len());
    while from < to {
        let middle = from + (to - from) / 2;
        let middle = TABLE.floor_char_boundary(middle);
        let start = TABLE[from..middle].rfind("\n@").map_or(from, |at| from + at + 1);
        let end = TABLE[start + 1..].find("\n@").map_or(TABLE.len(), |at| start + at + 2);
        let (head, lines) = TABLE[start + 1..end].split_once('\n')?;
        let (locale, parent) = head.split_once(' ').unwrap_or((head, ""));
        match locale.cmp(name) {
            std::cmp::Ordering::Equal => return Some((parent, lines)),
            std::cmp::Ordering::Less => from = end,
            std::cmp::Ordering::Greater => to = start,
        }
    }
    None
}

/// Under what name the table has a locale, if it does. `zh-TW` is there as `zh-Hant`.
fn name_in_table(locale: &LanguageIdentifier) -> Option<String> {
    let mut likely = locale.clone();
    likely.variants.clear();
    let exact = likely.to_string();
    if block(&exact).is_some() {
        return Some(exact);
    }
    LocaleExpander::new_extended().maximize(&mut likely);
    let full = likely.to_string();
    let mut candidates = vec![full];
    if let Some(script) = likely.script {
        candidates.push(format!("{}-{script}", likely.language));
    }
    if locale.script.is_none()
        && let Some(region) = likely.region
    {
        candidates.push(format!("{}-{region}", likely.language));
    }
    let is_likely_script = {
        let mut plain = LanguageIdentifier { script: None, region: None, ..likely.clone() };
        LocaleExpander::new_extended().maximize(&mut plain);
        plain.script == likely.script
    };
    if is_likely_script {
        candidates.push(likely.language.to_string());
    }
    candidates.into_iter().find(|name| name != "und" && block(name).is_some())
}

/// Whether there is data of just this locale: `de`, `de-AT`, `de-DE` and `zh-TW` are available, `de-US` is not.
pub(crate) fn is_available(locale: &LanguageIdentifier) -> bool {
    if locale.language.is_unknown() || !locale.variants.is_empty() {
        return false;
    }
    let exact = locale.to_string();
    if block(&exact).is_some() || header("default content").split(' ').any(|it| it == exact) {
        return true;
    }
    // zh-TW means zh-Hant-TW; sr-Latn-RS uses the table of sr-Latn.
    let (None, Some(region)) = (locale.script, locale.region) else { return false };
    let mut likely = locale.clone();
    LocaleExpander::new_extended().maximize(&mut likely);
    let full = likely.to_string();
    let mut short = LanguageIdentifier { region: None, script: None, ..locale.clone() };
    LocaleExpander::new_extended().maximize(&mut short);
    let is_known_region =
        block(&full).is_some() || header("default content").split(' ').any(|it| it == full);
    is_known_region && likely.region == Some(region)
}

/// Whether the region of a locale uses the 12-hour clock.
pub(crate) fn prefers_12_hours(locale: &LanguageIdentifier) -> bool {
    let mut likely = locale.clone();
    LocaleExpander::new_extended().maximize(&mut likely);
    let Some(region) = likely.region else { return false };
    let named = format!("{}-{region}", likely.language);
    let has = |list: &str, name: &str| header(list).split(' ').any(|it| it == name);
    let is_exception = has("24-hour clock", &named);
    !is_exception && (has("12-hour clock", region.as_str()) || has("12-hour clock", &named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_of_the_table_is_found_and_its_parents_are_there() {
        let mut n_locales = 0;
        for head in TABLE.lines().filter_map(|line| line.strip_prefix('@')) {
            let (name, parent) = head.split_once(' ').unwrap_or((head, ""));
            assert!(block(name).is_some(), "{name}");
            assert!(parent.is_empty() || block(parent).is_some(), "{name} has the parent {parent}");
            n_locales += 1;
        }
        assert!(n_locales > 400, "{n_locales}");
        assert!(block("xx").is_none());
    }

    #[test]
    fn regions_count_if_cldr_names_them() {
        let is = |tag: &str| is_available(&tag.parse().unwrap());
        assert_eq!(["de", "de-DE", "de-AT", "zh-TW", "zh-CN", "en-US", "pt-BR"].map(is), [true; 7]);
        assert_eq!(["de-US", "en-XX", "tlh", "und", "xx"].map(is), [false; 5]);
    }
}
