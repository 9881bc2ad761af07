//! The engine's stacks: a line for each frame, the innermost first.

use crate::session::PROGRAM_FILE_NAME;

/// Longest stack that is passed on.
pub(super) const STACK_BYTES_MAX: usize = 64 << 10;

/// A frame of the program, with positions in the text that the engine compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserFrame<'s> {
    /// The name of the function; `None` if the engine names none.
    pub(super) function: Option<&'s str>,
    pub(super) line: usize,
    /// In bytes, from 1.
    pub(super) column: usize,
}

/// Where an error was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StackTop<'s> {
    /// The built-in function that created it; `None` if the program's own code did.
    pub(super) native: Option<&'s str>,
    /// The innermost frame of the program; `None` if a frame of ours is further in.
    pub(super) user: Option<UserFrame<'s>>,
}

impl<'s> StackTop<'s> {
    pub(super) fn from_stack(stack: &'s str) -> Self {
        let mut native = None;
        for line in stack.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(frame) = read(line) {
                return Self { native, user: Some(frame) };
            }
            let Some(function) =
                line.trim().strip_prefix("at ").and_then(|it| it.strip_suffix(" (native)"))
            else {
                break;
            };
            native = native.or(Some(function));
        }
        Self { native, user: None }
    }
}

/// The program's frames, the innermost first.
pub(super) fn user_frames(stack: &str) -> impl Iterator<Item = UserFrame<'_>> {
    stack.lines().filter_map(read)
}

/// A frame in the form that is shown.
pub(super) fn written(function: Option<&str>, line: usize, column: usize) -> String {
    match function {
        Some(function) => format!("    at {function} ({PROGRAM_FILE_NAME}:{line}:{column})"),
        None => format!("    at {PROGRAM_FILE_NAME}:{line}:{column}"),
    }
}

/// `    at f (program.js:1:30)`, or without a function `    at program.js:1:30`.
fn read(line: &str) -> Option<UserFrame<'_>> {
    let line = line.trim().strip_prefix("at ")?;
    let (function, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((function, place)) => (Some(function), place),
        None => (None, line),
    };
    let place = place.strip_prefix(PROGRAM_FILE_NAME)?.strip_prefix(':')?;
    let (line, column) = place.split_once(':')?;
    Some(UserFrame { function, line: line.parse().ok()?, column: column.parse().ok()? })
}
