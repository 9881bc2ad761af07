//! The examples of the documentation work.

/// Returns the output of an example.
#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "an example is a program of its own, and a test stops when it cannot go on"
)]
fn shown(example: &str) -> String {
    // Cargo builds examples before tests, in a folder next to that of the tests.
    let here = std::env::current_exe().unwrap();
    let example = here.parent().unwrap().parent().unwrap().join("examples").join(example);
    let output = std::process::Command::new(example).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_that_embeds_the_engine_gets_its_value() {
    assert_eq!(shown("embed"), "42\n");
}

#[test]
fn a_closure_answers_what_a_program_asks() {
    let expected = "mail.send? {\"to\":\"ann\"}\n\
                    mail.send? {\"to\":\"eve\"}\n\
                    two mails\n\
                    Tool \"mail.send\" requires approval but the request was declined by the user.\n\
                    \"ann\"\n";
    assert_eq!(shown("execute"), expected);
}

#[test]
fn a_pause_outlives_the_engine_that_it_was_made_by() {
    assert_eq!(shown("pause_and_resume"), "Order for real?\n{\"pieces\":6}\n");
}

#[test]
fn a_model_is_told_how_to_work_and_what_there_is() {
    let text = shown("describe");
    for part in
        ["tools.search(", "tools.describe.tool(", "## Available connections\n\n- `tools.shop`\n"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}
