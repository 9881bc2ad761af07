//! Describes why a program has no value. Codes are decided here and by the prelude's memory, never by guest text.

use crate::convert::NoJsonForm;
use crate::loops::{InsertionMark, unmarked_column};
use crate::session::PROGRAM_FILE_NAME;
use protocols::execbox::wire::Failed;

/// Longest message or stack that is passed on: an error is read by people.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The message of a plain host for a program whose value has no JSON.
pub(crate) const NO_JSON: &str = "Guest code returned a non-serializable value";

/// By how much positions in a program are shifted by the code that we insert.
#[derive(Debug, Default)]
pub(crate) struct PositionShifts {
    /// Columns of the first line, which our code before it shifts.
    pub(crate) first_line: usize,
    /// Insertions within the program.
    pub(crate) marks: Vec<InsertionMark>,
}

/// An uncaught error as the prelude saw it.
#[derive(Debug)]
pub(crate) struct DescribedError {
    pub(crate) code: String,
    /// Whether the code comes from a host, which may use any word.
    pub(crate) ours: bool,
    pub(crate) message: String,
    pub(crate) name: String,
    pub(crate) stack: String,
    /// Whether the stack is already in the form that is shown, and not as the engine wrote it.
    pub(crate) is_shown: bool,
}

impl DescribedError {
    /// The error in the wire format, with the user's own frames only.
    pub(crate) fn into_failed(self, shifts: &PositionShifts) -> Failed<'static> {
        let Self { code, ours: _, mut message, name, mut stack, is_shown } = self;
        cut(&mut message);
        cut(&mut stack);
        let stack = if is_shown { stack } else { frames(&stack, shifts) };
        Failed {
            code: code.into(),
            message: message.into(),
            name: (!name.is_empty()).then(|| name.into()),
            stack: (!stack.is_empty()).then(|| stack.into()),
            limit: None,
        }
    }
}

/// A failure that consists of a code and a message only.
pub(crate) fn plain(code: &'static str, message: impl Into<String>) -> Failed<'static> {
    let message = message.into().into();
    Failed { code: code.into(), message, name: None, stack: None, limit: None }
}

/// A program that could not be parsed.
pub(crate) fn syntax(message: impl Into<String>) -> Failed<'static> {
    Failed { name: Some("SyntaxError".into()), ..plain("runtime", message) }
}

/// The allowance of processor time is used up.
pub(crate) fn cpu_limit(ms: u64) -> Failed<'static> {
    let message = format!("used more than {ms} ms of processor time");
    Failed { limit: Some("cpu".into()), ..plain("timeout", message) }
}

/// A loop exceeded the limit of iterations.
pub(crate) fn rounds_limit(max: u64) -> Failed<'static> {
    let message = format!("went round one loop more than {max} times");
    Failed { limit: Some("rounds".into()), ..plain("limit_exceeded", message) }
}

/// A host's deadline has passed, in the fixed words of execbox.
pub(crate) fn deadline() -> Failed<'static> {
    Failed { limit: Some("total".into()), ..plain("timeout", "Execution timed out") }
}

/// The memory limit is reached.
pub(crate) fn memory_limit(bytes: u64) -> Failed<'static> {
    let message = format!("needed more than {bytes} bytes of memory");
    Failed { limit: Some("memory".into()), ..plain("memory_limit", message) }
}

/// The program's value has no JSON. `said` is the engine's message, if it threw.
pub(crate) fn serialization(why: &NoJsonForm, said: Option<&str>) -> Failed<'static> {
    let reason = match (why, said) {
        (NoJsonForm::Type(name), _) => format!("{name} has no JSON form"),
        (NoJsonForm::TooLarge(bytes, max), _) => {
            format!("{bytes} bytes are more than the {max} that fit a message")
        }
        (NoJsonForm::Threw, Some(said)) => said.to_owned(),
        (NoJsonForm::Threw, None) => "it has no JSON form".to_owned(),
    };
    let mut message = format!("the program's value cannot be turned into JSON: {reason}");
    cut(&mut message);
    plain("serialization", message)
}

/// The lines of a stack that are the user's, with columns as the user counts them: our frames are dropped,
/// and the columns of the first line are reduced by the length of our code before it.
pub(crate) fn frames(stack: &str, shifts: &PositionShifts) -> String {
    let mut shown = String::new();
    for line in stack.lines().filter(|line| line.contains(PROGRAM_FILE_NAME)) {
        if shown.len() + line.len() > TEXT_BYTES_MAX {
            break;
        }
        if !shown.is_empty() {
            shown.push('\n');
        }
        shown.push_str(&unshifted(line, shifts).unwrap_or_else(|| line.to_owned()));
    }
    shown
}

/// The lines of a guest-provided stack that name the program.
pub(crate) fn shown_frames(stack: &str) -> String {
    let mut shown = String::new();
    for line in stack.lines().filter(|line| line.contains(PROGRAM_FILE_NAME)) {
        if shown.len() + line.len() > TEXT_BYTES_MAX {
            break;
        }
        if !shown.is_empty() {
            shown.push('\n');
        }
        shown.push_str(line);
    }
    shown
}

/// The line number of the user's innermost frame.
pub(crate) fn first_line(stack: &str) -> Option<u32> {
    let frame = stack.lines().find(|line| line.contains(PROGRAM_FILE_NAME))?;
    let (_, place) = frame.split_once(PROGRAM_FILE_NAME)?;
    place.strip_prefix(':')?.split(':').next()?.parse().ok()
}

/// `at f (program.js:1:30)` with its column corrected for our code before it.
fn unshifted(line: &str, shifts: &PositionShifts) -> Option<String> {
    let file = format!("{PROGRAM_FILE_NAME}:");
    let (before, after) = line.split_once(&file)?;
    let (row, after) = after.split_once(':')?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (n, column): (usize, usize) = (row.parse().ok()?, after[..digits].parse().ok()?);
    let column = unmarked_column(&shifts.marks, n, column);
    let shift = if n == 1 { shifts.first_line } else { 0 };
    let column = column.saturating_sub(shift).max(1);
    Some(format!("{before}{file}{row}:{column}{}", &after[digits..]))
}

fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_frames_are_shown_and_the_first_lines_columns_are_right() {
        let stack = "    at f (program.js:1:30)\n    at apply (native)\n    at fire (airlock:prelude:200:7)\n    at <anonymous> (program.js:2:4)\n";
        assert_eq!(
            frames(stack, &PositionShifts { first_line: 14, marks: vec![] }),
            "    at f (program.js:1:16)\n    at <anonymous> (program.js:2:4)"
        );
    }

    #[test]
    fn a_stack_that_the_guest_wrote_cannot_break_the_reader() {
        for stack in
            ["program.js:1:", "program.js:1:99999999999999999999999", "program.js:1:é", "\n\n"]
        {
            let _ = frames(stack, &PositionShifts { first_line: 14, marks: vec![] });
        }
        assert_eq!(
            frames("program.js:1:3", &PositionShifts { first_line: 14, marks: vec![] }),
            "program.js:1:1"
        );
    }

    #[test]
    fn the_innermost_of_the_users_frames_has_the_line() {
        let stack = "    at call (airlock:prelude:9:1)\n    at f (program.js:3:30)\n    at program.js:7:1\n";
        assert_eq!(first_line(stack), Some(3));
        for stack in ["", "program.js", "program.js:", "program.js:99999999999:1", "program.js:é"]
        {
            assert_eq!(first_line(stack), None, "{stack}");
        }
    }
}
