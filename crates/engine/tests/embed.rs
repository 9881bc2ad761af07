//! The example in the documentation works.

#[test]
#[expect(clippy::disallowed_methods, reason = "the example is a program of its own")]
fn a_program_that_embeds_the_engine_gets_its_value() {
    // Cargo builds examples before tests, beside the folder of the tests.
    let here = std::env::current_exe().unwrap();
    let example = here.parent().unwrap().parent().unwrap().join("examples/embed");
    let output = std::process::Command::new(example).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}
