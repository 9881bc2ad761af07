//! The only module of this tool that writes to the terminal.

/// Prints a message.
#[expect(clippy::print_stdout, reason = "telling the user is what this function is for")]
pub(crate) fn print_line(line: &str) {
    println!("{line}");
}

/// Prints an error.
#[expect(clippy::print_stderr, reason = "telling the user is what this function is for")]
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
