//! Small answers of execbox's own code, recorded: what becomes of a text, of a printed line, of too many lines.

use crate::hosted::{done_with, logs};
use serde_json::{Value, json};

fn units(name: &str) -> Vec<Value> {
    let file = include_str!("../../../../tests/conformance/execbox/units.json");
    // One recorded line ends in half a surrogate pair, which is no text of ours.
    let file = file.replace("\\ud83d\"", "\u{FFFD}\"");
    serde_json::from_str::<Value>(&file).unwrap()[name].as_array().unwrap().clone()
}

/// Where execbox pastes text and so breaks programs that mean something.
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
            // A function of no arguments: that is what execbox calls.
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
        // The record is JSON, which has no undefined; its line tells where one was.
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
        // Fewer lines than none are none; execbox drops lines from the end then, which nobody can mean.
        let expected = if *max_lines == json!(-1) { json!([]) } else { case["value"].clone() };
        let code = format!("for (const line of {lines}) console.log(line)");
        let options = json!({"maxLogLines": max_lines, "maxLogChars": max_chars});
        assert_eq!(logs(&code, &options), expected, "{lines} {max_lines} {max_chars}");
    }
    assert_eq!(cases.len(), 8);
}
