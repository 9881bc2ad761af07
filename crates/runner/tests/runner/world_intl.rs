//! The guest's `Intl` and the methods that use it, as programs call them. `crates/intl` compares the results with those of
//! Node in thousands of cases.

use crate::guest::value;

/// Evaluates an expression in each of the 13 languages and returns the list of results.
fn each_language(look: &str) -> Vec<String> {
    let languages = r#"["en","de","fr","es","it","pt","nl","pl","ja","zh","ko","ar","hi"]"#;
    let list = value(&format!("{languages}.map((l) => `${{{look}}}`)"));
    serde_json::from_str(&list).unwrap()
}

#[test]
fn numbers_and_dates_are_those_of_thirteen_languages() {
    assert_eq!(
        each_language("new Intl.NumberFormat(l).format(1234567.5)"),
        [
            "1,234,567.5",
            "1.234.567,5",
            "1\u{202f}234\u{202f}567,5",
            "1.234.567,5",
            "1.234.567,5",
            "1.234.567,5",
            "1.234.567,5",
            "1\u{a0}234\u{a0}567,5",
            "1,234,567.5",
            "1,234,567.5",
            "1,234,567.5",
            "1,234,567.5",
            "12,34,567.5",
        ]
    );
    let date = "new Intl.DateTimeFormat(l, { dateStyle: 'full', timeZone: 'Asia/Tokyo' }).format(Date.UTC(2025, 10, 19, 21))";
    assert_eq!(
        each_language(date),
        [
            "Thursday, November 20, 2025",
            "Donnerstag, 20. November 2025",
            "jeudi 20 novembre 2025",
            "jueves, 20 de noviembre de 2025",
            "giovedì 20 novembre 2025",
            "quinta-feira, 20 de novembro de 2025",
            "donderdag 20 november 2025",
            "czwartek, 20 listopada 2025",
            "2025年11月20日木曜日",
            "2025年11月20日星期四",
            "2025년 11월 20일 목요일",
            "الخميس، 20 نوفمبر 2025",
            "गुरुवार, 20 नवंबर 2025",
        ]
    );
}

#[test]
fn relative_times_lists_plurals_and_orders_are_those_of_thirteen_languages() {
    let relative = "new Intl.RelativeTimeFormat(l, { numeric: 'auto' }).format(-1, 'day')";
    assert_eq!(
        each_language(relative),
        [
            "yesterday",
            "gestern",
            "hier",
            "ayer",
            "ieri",
            "ontem",
            "gisteren",
            "wczoraj",
            "昨日",
            "昨天",
            "어제",
            "أمس",
            "कल"
        ]
    );
    // A rounded number may be negative zero.
    let now = value("new Intl.RelativeTimeFormat('de', { numeric: 'auto' }).format(-0, 'day')");
    assert_eq!(now, "\"heute\"");
    let list = "new Intl.ListFormat(l).format(['a', 'b'])";
    assert_eq!(
        each_language(list),
        [
            "a and b",
            "a und b",
            "a et b",
            "a y b",
            "a e b",
            "a e b",
            "a en b",
            "a i b",
            "a、b",
            "a和b",
            "a 및 b",
            "a وb",
            "a और b",
        ]
    );
    let plural = "new Intl.PluralRules(l).select(2)";
    assert_eq!(
        each_language(plural),
        [
            "other", "other", "other", "other", "other", "other", "other", "few", "other", "other",
            "other", "two", "other",
        ]
    );
    let sorted =
        "['z', 'ä', 'a', '10', '9'].sort(new Intl.Collator(l, { numeric: true }).compare).join('')";
    assert_eq!(each_language(sorted), ["910aäz"; 13]);
}

#[test]
fn the_methods_of_other_objects_use_them() {
    for (look, expected) in [
        ("(1234.5).toLocaleString('de')", "1.234,5"),
        ("12345n.toLocaleString('de')", "12.345"),
        ("new Date(0).toLocaleString('de', { timeZone: 'Europe/Berlin' })", "1.1.1970, 01:00:00"),
        ("new Date(0).toLocaleDateString('fr')", "01/01/1970"),
        ("new Date(0).toLocaleTimeString('en-US', { timeZone: 'Asia/Kolkata' })", "5:30:00 AM"),
        ("new Date(0).toLocaleString()", "1/1/1970, 12:00:00 AM"),
        ("[1234.5, 2].toLocaleString('de')", "1.234,5,2"),
        ("new Float64Array([1234.5]).toLocaleString('de')", "1.234,5"),
        ("['Z', 'a', 'ä'].sort((a, b) => a.localeCompare(b, 'de')).join('')", "aäZ"),
        ("'i'.toLocaleUpperCase('tr') + 'I'.toLocaleLowerCase('tr')", "İı"),
    ] {
        assert_eq!(value(look), serde_json::to_string(expected).unwrap(), "{look}");
    }
}

#[test]
fn what_intl_lacks_is_absent_to_those_who_ask_and_says_so_to_those_who_call() {
    for missing in [
        "Intl.DisplayNames",
        "Intl.DurationFormat",
        "Intl.Segmenter",
        "new Intl.NumberFormat().formatRange",
        "new Intl.NumberFormat().formatRangeToParts",
        "new Intl.DateTimeFormat().formatRange",
        "new Intl.DateTimeFormat().formatRangeToParts",
        "new Intl.PluralRules().selectRange",
        "new Intl.Locale('de').getWeekInfo",
    ] {
        assert_eq!(value(&format!("typeof {missing}")), "\"undefined\"", "{missing}");
        let name = missing.rsplit('.').next().unwrap();
        let said = value(&format!(
            "const it = {missing}; let said; try {{ new it('en') }} catch (e) {{ said = [e instanceof TypeError, e.message] }} said"
        ));
        let (is_type_error, message): (bool, String) = serde_json::from_str(&said).unwrap();
        assert!(is_type_error, "{message}");
        assert!(message.starts_with("this host's Intl does not provide Intl."), "{message}");
        assert!(message.contains(&format!("{name}: ")), "{message}");
    }
}

#[test]
fn a_date_names_its_time_zone_as_in_node() {
    let whole = "\"Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)\"";
    assert_eq!(value("String(new Date(0))"), whole);
    assert_eq!(
        value("new Date(0).toTimeString()"),
        "\"00:00:00 GMT+0000 (Coordinated Universal Time)\""
    );
    assert_eq!(value("String(new Date(NaN))"), "\"Invalid Date\"");
}
