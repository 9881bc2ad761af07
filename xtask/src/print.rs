//! The only place of this tool that writes to the terminal.

/// Tells the user something.
#[expect(clippy::print_stdout, reason = "telling the user is what this function is for")]
pub(crate) fn print_line(line: &str) {
    println!("{line}");
}

/// Tells the user what went wrong.
#[expect(clippy::print_stderr, reason = "telling the user is what this function is for")]
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
