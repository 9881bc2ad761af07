//! Recorded results of execbox's own functions: normalized programs, printed lines, and truncated logs.

use crate::hosted::{done_with, logs};
use serde_json::{Value, json};

fn units(name: &str) -> Vec<Value> {
    let file = include_str!("../../../../tests/conformance/execbox/units.json");
    // One recorded line ends in an unpaired surrogate, which a Rust string cannot contain.
    let file = file.replace("\\ud83d\"", "\u{FFFD}\"");
    serde_json::from_str::<Value>(&file).unwrap()[name].as_array().unwrap().clone()
}

/// Programs that execbox breaks because it pastes text, and the values that they have here.
const BETTER: [(&str, i64); 2] = [("1 + 1;", 2), ("export default 1", 1)];

#[test]
fn a_text_means_what_it_means_to_execbox_or_better() {
    let told = |code: &str| {
        let done = done_with(code, &json!({}));
        (done["ok"].clone(), done["result"].clone(), done["error"]["code"].clone())
    };
    let cases = units("normalizeCode");
    for case in &cases {
        let (input, normalised) =
            (case["input"].as_str().unwrap(), case["value"].as_str().unwrap());
        let expected = match BETTER.iter().find(|(code, _)| *code == input) {
            Some((_, value)) => (json!(true), json!(value), json!(null)),
            // A function without arguments: this is what execbox calls.
            None => told(&format!("await ({normalised}\n)()")),
        };
        assert_eq!(told(input), expected, "{input}");
    }
    assert_eq!(cases.len(), 27);
}

#[test]
fn a_printed_line_reads_as_execbox_writes_it() {
    let cases = units("formatConsoleLine");
    for case in &cases {
        // The record is JSON, which has no `undefined`; the expected line shows where one was.
        let args = match (case["args"].as_str().unwrap(), case["value"].as_str().unwrap()) {
            ("[null,null]", "undefined null") => "[undefined,null]",
            (args, _) => args,
        };
        let line = logs(&format!("console.log(...{args})"), &json!({}));
        assert_eq!(line, json!([case["value"]]), "{args}");
    }
    assert_eq!(cases.len(), 9);
}

#[test]
fn too_many_lines_are_cut_as_execbox_cuts_them() {
    let cases = units("truncateLogs");
    for case in &cases {
        let (lines, max_lines, max_chars) = (&case["args"][0], &case["args"][1], &case["args"][2]);
        // We treat a negative limit as zero. Execbox drops lines from the end instead, which cannot be intended.
        let expected = if *max_lines == json!(-1) { json!([]) } else { case["value"].clone() };
        let code = format!("for (const line of {lines}) console.log(line)");
        let options = json!({"maxLogLines": max_lines, "maxLogChars": max_chars});
        assert_eq!(logs(&code, &options), expected, "{lines} {max_lines} {max_chars}");
    }
    assert_eq!(cases.len(), 8);
}

/// The name of a value in the record, its expression, and its encoding when it leaves the guest: a result is the
/// output of `JSON.stringify`, also where execbox's hosts would reject it from a tool.
const VALUES: [(&str, &str, Option<&str>); 22] = [
    ("null", "null", Some("null")),
    ("string", "'text'", Some("\"text\"")),
    ("nan", "NaN", Some("null")),
    ("inf", "Infinity", Some("null")),
    ("negzero", "-0", Some("0")),
    ("undefined", "undefined", Some("")),
    ("bigint", "1n", None),
    ("symbol", "Symbol('s')", Some("")),
    ("function", "() => 1", Some("")),
    ("date", "new Date(0)", Some("\"1970-01-01T00:00:00.000Z\"")),
    ("map", "new Map()", Some("{}")),
    ("class", "new (class A { x = 1 })()", Some("{\"x\":1}")),
    ("nullproto", "Object.assign(Object.create(null), { a: 1 })", Some("{\"a\":1}")),
    ("nestedUndefined", "{ a: undefined }", Some("{}")),
    ("sparse", "[1, , 2]", Some("[1,null,2]")),
    ("toJSON", "{ toJSON() { return 1 } }", Some("1")),
    ("symbolKey", "{ [Symbol('s')]: 1, a: 1 }", Some("{\"a\":1}")),
    ("nonEnumerableFn", "Object.defineProperty({}, 'f', { value() {} })", Some("{}")),
    ("cyclic", "(() => { const a = {}; a.a = a; return a })()", None),
    ("shared", "(() => { const a = {}; return [a, a] })()", Some("[{},{}]")),
    ("boxed", "new Number(1)", Some("1")),
    ("typed", "new Uint8Array(1)", Some("{\"0\":0}")),
];

#[test]
fn what_is_json_to_execbox_comes_out_and_the_rest_as_json_has_it_or_not_at_all() {
    let cases = units("isJsonSerializable");
    assert_eq!(cases.len(), VALUES.len());
    for (name, value, expected) in VALUES {
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        let done = done_with(&format!("return {{ value: {value} }}"), &json!({}));
        let told = done["result"]
            .as_object()
            .map(|result| result.get("value").map_or(String::new(), ToString::to_string));
        assert_eq!(told.as_deref(), expected, "{name}");
        if case["value"] == json!(true) {
            assert_eq!(done["ok"], json!(true), "{name}");
        }
        if expected.is_none() {
            assert_eq!(done["error"]["code"], "serialization_error", "{name}");
        }
    }
}
