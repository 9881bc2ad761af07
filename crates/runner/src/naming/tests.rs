//! Which expressions are named, without an engine.

use super::stack::{StackTop, UserFrame, user_frames};
use super::*;
use proptest::prelude::*;

const OPENING: &str = "(async () => {";

fn source(text: &str) -> ProgramSource {
    ProgramSource::new(text, OPENING.len(), vec![], "tools.*")
}

/// The rewritten form of `message` at a column of the second line of a program.
fn named(text: &str, message: &str, column: usize) -> String {
    let stack = format!("    at <anonymous> (program.js:2:{column})\n");
    source(&format!("\n{text}")).name_error("TypeError", message, &stack).message
}

#[test]
fn places_are_those_that_the_engine_notes() {
    let not_a_function = |text: &str, column| named(text, "not a function", column);
    assert_eq!(not_a_function("a.b( )", 6), "a.b is not a function");
    assert_eq!(not_a_function("a.b(\"x y\")(1)", 3), "a.b or a.b(...) is not a function");
    assert_eq!(not_a_function("a.b(/* c */ 1)", 13), "a.b is not a function");
    assert_eq!(not_a_function("a /* x y */ (1)", 13), "a is not a function");
    // If no callable expression has the position, none is named.
    assert_eq!(not_a_function("a.b(c)", 1), "not a function");
    assert_eq!(not_a_function("a.b(c)", 999), "not a function");
    assert_eq!(not_a_function("`x y`(1)", 1), "not a function");
}

#[test]
fn names_are_short_or_absent() {
    let long = "x".repeat(200);
    assert_eq!(named(&format!("{long}()"), "not a function", 1), "not a function");
    let chain = format!("a{}()", ".b()".repeat(500));
    let column = chain.len() - 4 - 2;
    assert_eq!(named(&chain, "not a function", column), "not a function");
    let arguments = format!("a(({}))", "1 + ".repeat(100) + "1");
    assert_eq!(named(&arguments, "not a function", arguments.len() - 2), "a is not a function");
}

#[test]
fn stacks_are_read_as_the_engine_writes_them() {
    let stack = "    at map (native)\n    at f (g (program.js:9:9) (program.js:2:3)\n    at x (airlock:prelude:1:1)\n    at program.js:4:5\n";
    let first = UserFrame { function: Some("f (g (program.js:9:9)"), line: 2, column: 3 };
    assert_eq!(StackTop::from_stack(stack), StackTop { native: Some("map"), user: Some(first) });
    let second = UserFrame { function: None, line: 4, column: 5 };
    assert_eq!(user_frames(stack).collect::<Vec<_>>(), [first, second]);
    let ours = "    at set (airlock:prelude:3:1)\n    at f (program.js:2:3)\n";
    assert_eq!(
        StackTop::from_stack(ours).user,
        None,
        "an error of ours names nothing of the program's"
    );
}

#[test]
fn columns_are_characters_and_know_nothing_of_what_was_put_in() {
    let text = "const é = '€'; let a;return ( a)";
    let stack = |line: &str| source(text).name_error("Error", "m", line).frames;
    assert_eq!(stack("    at f (program.js:1:48)\n"), "    at f (program.js:1:22)");
    assert_eq!(stack("    at f (program.js:1:99)\n"), "    at f (program.js:1:1)");
    assert_eq!(
        ProgramSource::unknown_names().name_error("Error", "m", "    at program.js:7:9\n").frames,
        "    at program.js:7:9"
    );
}

#[test]
fn a_text_without_blanks_is_searched_in_one_pass() {
    // Searching back to the beginning for every token would take minutes.
    for piece in ["1+1,", "()=>{},", "''(0),"] {
        let text = piece.repeat(30_000) + "1";
        assert!(named(&text, "not a function", 100_000).ends_with("not a function"), "{piece}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_stack_and_a_message_say_there_is_an_answer(
        text in "[a-c.()\\[\\]{}=,;'\"`/ \né€]{0,60}",
        message in "(not a function|value is not iterable|cannot read property '[a-z]*' of null|[ -~]{0,30})",
        line in 0_usize..5,
        column in 0_usize..80,
        raw in "[ -~\n]{0,60}",
    ) {
        let places = source(&text);
        for name in ["TypeError", "ReferenceError", "RangeError"] {
            let stack = format!("    at f (program.js:{line}:{column})\n{raw}");
            let said = places.name_error(name, &message, &stack);
            prop_assert_eq!(places.name_error(name, &message, &stack), said, "the same again");
            let _ = places.name_error(name, &message, &raw);
        }
    }
}
