//! Compares the host with results that `node/record.mjs` recorded; the first line names the versions. Differences by
//! design or by CLDR version are listed in `node/differences.txt` and asserted, so that an upgrade of either side shows.

use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const RECORDED: &str = include_str!("node/recorded.jsonl");
const DIFFERENCES: &str = include_str!("node/differences.txt");

/// Returns our result for a recorded case.
fn ours(
    service: &str,
    locale: &str,
    options: &Value,
    value: &str,
) -> Result<Value, intl::IntlError> {
    let locales = serde_json::to_string(&[locale]).unwrap();
    let (kind, what) = service.split_once('.').unwrap_or((service, "text"));
    let new = if matches!(kind, "compare" | "collator") {
        "collator".into()
    } else {
        format!("{kind}.new")
    };
    let created = intl::answer_request(&new, &locales, &options.to_string())?;
    let (settings, shown) = created.split_once('\n').unwrap();
    if what == "resolved" {
        return Ok(serde_json::from_str(shown).unwrap());
    }
    if kind == "compare" {
        return Ok(Value::String(sorted(
            settings,
            &serde_json::from_str::<Vec<String>>(value).unwrap(),
        )));
    }
    let answer = intl::answer_request(&format!("{kind}.{what}"), settings, value)?;
    Ok(if what == "parts" { serde_json::from_str(&answer).unwrap() } else { Value::String(answer) })
}

fn sorted(settings: &str, words: &[String]) -> String {
    let mut words = words.to_vec();
    let compare = |left: &str, right: &str| intl::compare(settings, left, right).unwrap();
    words.sort_by(|left, right| compare(left, right));
    let mut text = words[0].clone();
    for pair in words.windows(2) {
        let sign = if compare(&pair[0], &pair[1]) == Ordering::Equal { "=" } else { "<" };
        write!(text, " {sign} {}", pair[1]).unwrap();
    }
    text
}

/// Converts Node's result by the rules in which the host differs in all cases.
fn by_our_rules(service: &str, locale: &str, options: &Value, mut theirs: Value) -> Value {
    if let Some(shown) = theirs.as_object_mut() {
        // Time zones have the name of the time zone database, not ICU's older name.
        if shown.get("timeZone").is_some_and(|it| it == "Asia/Calcutta") {
            shown.insert("timeZone".into(), "Asia/Kolkata".into());
        }
        // For `hour12: true` where 24 hours are usual, Node's ICU uses hours 0 to 11; ECMA-402 has 12 to 11 but in Japan.
        if shown.get("hourCycle").is_some_and(|it| it == "h11") && locale != "ja" {
            shown.insert("hourCycle".into(), "h12".into());
        }
        // Node's ICU takes the first letter of a quoted "de" for a day.
        if service == "date.resolved"
            && options.get("dateStyle").is_none()
            && options.get("day").is_none()
        {
            shown.remove("day");
        }
        // Node's services report different locales; ours all report the same one.
        if matches!(service, "plural.resolved" | "collator.resolved") {
            shown.insert("locale".into(), locale.into());
        }
        // This version of V8 reports the rounding options of NumberFormat only.
        if service == "plural.resolved" {
            for (name, value) in [
                ("roundingMode", "halfExpand"),
                ("roundingPriority", "auto"),
                ("trailingZeroDisplay", "auto"),
            ] {
                shown.insert(name.into(), value.into());
            }
            shown.insert("roundingIncrement".into(), 1.into());
        }
    }
    // V8 replaces the narrow space in `format` but not in `formatToParts`; our parts join to the same text as `format`.
    if service == "date.parts" {
        return serde_json::from_str(&theirs.to_string().replace('\u{202f}', " ")).unwrap();
    }
    theirs
}

/// Returns the cases with a different result, in the format of `differences.txt`.
fn differing() -> BTreeMap<String, String> {
    let mut differing = BTreeMap::new();
    for line in RECORDED.lines().skip(1) {
        let (service, locale, options, value, theirs): (String, String, Value, String, Value) =
            serde_json::from_str(line).unwrap();
        let ours = match ours(&service, &locale, &options, &value) {
            Ok(ours) => ours,
            Err(failure) => Value::String(format!("{failure:?}")),
        };
        let theirs = by_our_rules(&service, &locale, &options, theirs);
        if ours != theirs {
            let value = if service == "compare" { "" } else { value.as_str() };
            let case = format!("{service} {locale} {options} {value}");
            differing.insert(case, format!("{ours} not {theirs}"));
        }
    }
    differing
}

/// Returns the listed differences; a line that begins with `#` gives the reason for those that follow.
fn listed() -> BTreeMap<String, String> {
    let lines = DIFFERENCES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once(" -> ").unwrap())
        .map(|(case, what)| (case.into(), what.into()))
        .collect()
}

#[test]
fn answers_are_nodes_but_for_the_listed_differences() {
    let (differing, listed) = (differing(), listed());
    let mut report = String::new();
    for (case, what) in differing.iter().filter(|(case, what)| listed.get(*case) != Some(*what)) {
        writeln!(report, "{case} -> {what}").unwrap();
    }
    for case in listed.keys().filter(|case| !differing.contains_key(*case)) {
        writeln!(report, "no longer differs: {case}").unwrap();
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn the_recording_is_of_the_versions_that_the_documentation_names() {
    let versions: Value = serde_json::from_str(RECORDED.lines().next().unwrap()).unwrap();
    let named = |name: &str| versions[name].as_str().unwrap().to_owned();
    assert_eq!([named("icu"), named("cldr"), named("tz")], ["78.2", "48.0", "2025c"]);
    assert!(RECORDED.lines().count() > 3_000);
}
