//! The only module that prints. Values go to stdout, everything else to stderr; colours and the escaping of control
//! characters are for terminals.

use crate::VerbExit;
use clap::error::{ContextKind, ContextValue};
use lifecycle::{Failure, FailureCode, Json, LogLevel};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use tools::scrub::{self, ScrubbedWriter};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The program's value, one line of JSON.
pub(crate) fn value(value: &Json) {
    let is_terminal = io::stdout().is_terminal();
    output_line(&rendered_value(value.as_text(), is_terminal));
}

/// A line the program printed.
pub(crate) fn log(level: LogLevel, text: &str) {
    let is_terminal = io::stderr().is_terminal();
    line(&mut io::stderr().lock(), &rendered_log(level, text, is_terminal));
}

/// The failure of a program on a server.
pub(crate) fn failure(failure: &Failure) {
    let is_terminal = io::stderr().is_terminal();
    line(&mut io::stderr().lock(), &rendered_failure(failure, is_terminal, false));
}

/// The failure of a program that ran here, where options of the command line set its limits.
pub(crate) fn local_failure(failure: &Failure) {
    let is_terminal = io::stderr().is_terminal();
    line(&mut io::stderr().lock(), &rendered_failure(failure, is_terminal, true));
}

/// A question, with the cursor after it.
pub(crate) fn question(message: &str, asks: &str) {
    prompt(&format!("\n{}\n\n{} ", tamed(message), bold(asks)));
}

/// A prompt of Airlock, with the cursor after it.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    // An error here means that stderr is closed, so it cannot be reported.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Whether a person can read a question and type an answer.
pub(crate) fn is_somebody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether stderr is a terminal on which a line can be redrawn.
pub(crate) fn can_redraw() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Replaces the line of the cursor with a text.
pub(crate) fn redraw(text: &str) {
    prompt(&format!("\r\u{1b}[2K{text}"));
}

/// The number of columns of the terminal; a default where it is unknown.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0.into())
}

/// A tool's result: text as it is, anything else as JSON on several lines.
pub(crate) fn result(value: &Json) {
    let shown = rendered_result(value.as_text());
    let shown = if io::stdout().is_terminal() { tamed(&shown) } else { shown };
    output_line(&shown);
}

/// A line without our name before it, for scripts that match on it.
pub(crate) fn bare_note(text: &str) {
    line(&mut io::stderr().lock(), &tamed(text));
}

/// An error in the common format: `error: ` and what happened; lines that begin with `hint: ` give advice.
pub(crate) fn error(text: &str) {
    let word = if io::stderr().is_terminal() { bold("error") } else { "error".to_owned() };
    line(&mut io::stderr().lock(), &format!("{word}: {text}"));
}

/// A message from Airlock that is not an error.
pub(crate) fn print_note(text: &str) {
    line(&mut io::stderr().lock(), &format!("airlock: {text}"));
}

/// The output of an evaluator, without the control characters that could steer the terminal.
pub(crate) fn printed(text: &str) {
    let is_terminal = io::stdout().is_terminal();
    let shown: Vec<String> = text.lines().map(tamed).collect();
    let shown = if is_terminal { shown.join("\n") } else { text.to_owned() };
    output_line(&shown);
}

/// A value of an evaluator.
pub(crate) fn print_evaluated(json: &str) {
    let is_terminal = io::stdout().is_terminal();
    output_line(&rendered_value(json, is_terminal));
}

/// The error of an evaluation.
pub(crate) fn complaint(text: &str) {
    let is_terminal = io::stderr().is_terminal();
    let shown: Vec<String> = text.lines().map(tamed).collect();
    let shown = if is_terminal { shown.join("\n") } else { text.to_owned() };
    line(&mut io::stderr().lock(), &shown);
}

/// A message from Airlock that is the verb's result.
pub(crate) fn report(text: &str) {
    output_line(text);
}

/// A verb's result for programs, one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) {
    report(&serde_json::to_string(value).expect("texts, numbers and lists can be written as JSON"));
}

/// One of a verb's results: a line of JSON for programs, or one of text.
pub(crate) fn print_result<T: serde::Serialize>(
    is_json: bool,
    value: &T,
    line: impl FnOnce(&T) -> String,
) {
    match is_json {
        true => json(value),
        false => report(&line(value)),
    }
}

/// Help and version on stdout, errors of the command line on stderr.
pub(crate) fn usage(mut refused: clap::Error) -> VerbExit {
    suggest_verbs(&mut refused);
    // As for a closed pipe below.
    let _ = refused.print();
    if refused.exit_code() == 0 { VerbExit::Good } else { VerbExit::Usage }
}

/// Like `usage`, for Executor's command line, which has one code for every error.
pub(crate) fn usage_as_executor(refused: &clap::Error) -> VerbExit {
    let _ = refused.print();
    if refused.exit_code() == 0 { VerbExit::Good } else { VerbExit::Failed }
}

/// Verbs of other programs, with the verbs that do the same here.
const FOREIGN_VERBS: [(&[&str], &[&str]); 7] = [
    (&["ls", "list", "ps"], &["executions list", "tools sources"]),
    (&["login", "signin"], &["sign-in"]),
    (&["start", "up", "daemon"], &["serve"]),
    (&["down", "shutdown", "quit", "kill"], &["stop"]),
    (&["log", "tail"], &["logs"]),
    (&["info", "health", "version"], &["status"]),
    (&["tool", "search"], &["tools search"]),
];

/// A shorter word resembles too many verbs: clap takes `ls` for `repl-server`.
const LIKE_VERB_CHARS_MIN: usize = 3;

/// Replaces clap's suggestions for an unknown verb where ours are better.
fn suggest_verbs(refused: &mut clap::Error) {
    let Some(ContextValue::String(typed)) = refused.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let known = FOREIGN_VERBS.iter().find(|(words, _)| words.contains(&typed.as_str()));
    let is_short = typed.chars().count() < LIKE_VERB_CHARS_MIN;
    if known.is_none() && !is_short {
        return;
    }
    refused.remove(ContextKind::Suggested);
    refused.remove(ContextKind::SuggestedSubcommand);
    if let Some((_, verbs)) = known {
        let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        refused.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(verbs));
    }
}

/// Errors only. A client that leaves in mid-call is an error to rmcp; to us it is a client that left.
const USUAL_LOG: &str = "error,rmcp=off";

/// Sends the log to stderr. `AIRLOCK_LOG` sets its level; by default only errors.
/// `AIRLOCK_MCP_DEBUG=1`, or Executor's `EXECUTOR_MCP_DEBUG=1`, adds the messages and actions of the MCP endpoint.
pub(crate) fn start_tracing() {
    let wanted = std::env::var("AIRLOCK_LOG").ok().and_then(|wanted| wanted.parse().ok());
    let filter: Targets = wanted.unwrap_or_else(|| USUAL_LOG.parse().expect("levels and targets"));
    let is_set =
        |name: &str| std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let filter = match is_set("AIRLOCK_MCP_DEBUG") || is_set("EXECUTOR_MCP_DEBUG") {
        true => filter.with_target("mcp", tracing::Level::DEBUG),
        false => filter,
    };
    // A panic message may contain secrets.
    std::panic::set_hook(Box::new(|panic| line(&mut io::stderr().lock(), &panic.to_string())));
    let lines = tracing_subscriber::fmt::layer().with_writer(|| ScrubbedWriter(io::stderr()));
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// A line of a result that may be long; after an error the caller should stop writing.
pub(crate) fn write_line(text: &str) -> io::Result<()> {
    let written = io::stdout().lock().write_all(format!("{text}\n").as_bytes());
    written.inspect_err(note_output_error)
}

/// Why a part of the output is missing where its reader expects it, such as a full disk.
static OUTPUT_ERROR: OnceLock<String> = OnceLock::new();

/// Records why a line is missing in stdout. A closed pipe (`airlock run … | head -1`) only means that the reader has
/// enough.
fn note_output_error(error: &io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        OUTPUT_ERROR.get_or_init(|| error.to_string());
    }
}

/// The exit of a verb whose output is incomplete: scripts must not take a part for the whole.
pub(crate) fn checked_output(exit: VerbExit) -> VerbExit {
    let Some(why) = OUTPUT_ERROR.get() else { return exit };
    error(&format!("could not write the output: {why}"));
    if exit == VerbExit::Good { VerbExit::Failed } else { exit }
}

fn output_line(text: &str) {
    if let Err(error) = write_text(&mut io::stdout().lock(), text) {
        note_output_error(&error);
    }
}

fn line(to: &mut impl io::Write, text: &str) {
    // An error here means that stderr is closed, so it cannot be reported.
    let _ = write_text(to, text);
}

/// One write per line, so that lines of two processes never mix.
fn write_text(to: &mut impl io::Write, text: &str) -> io::Result<()> {
    let text = scrub::scrub_text(text);
    to.write_all(format!("{text}\n").as_bytes()).and_then(|()| to.flush())
}

fn rendered_value(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if !is_terminal || !text.chars().any(is_wild) {
        return Cow::Borrowed(text);
    }
    // In valid JSON these occur in strings only, where an escape means the same.
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_wild(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Deeper JSON stays on one line: it would be unreadable, and the indentation would grow without bound.
const INDENTED_DEPTH_MAX: usize = 50;

fn rendered_result(text: &str) -> String {
    // A string with half a surrogate pair has no plain text: its JSON is shown.
    if let Ok(plain) = serde_json::from_str::<String>(text) {
        return plain;
    }
    let mut depth = 0_usize;
    let deepest = text.bytes().fold(0, |deepest: usize, byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest.max(depth)
    });
    if deepest > INDENTED_DEPTH_MAX {
        return text.to_owned();
    }
    let mut pretty = lifecycle::TruncatedText::with_chars_max(usize::MAX);
    lifecycle::pretty(text, &mut pretty);
    pretty.done()
}

fn rendered_log(level: LogLevel, text: &str, is_terminal: bool) -> String {
    if !is_terminal {
        return text.to_owned();
    }
    if !wants_colours() {
        return tamed(text);
    }
    let colour = match level {
        LogLevel::Debug => "2",
        LogLevel::Log | LogLevel::Info => return tamed(text),
        LogLevel::Warn => "33",
        LogLevel::Error => "31",
    };
    format!("\u{1b}[{colour}m{}\u{1b}[0m", tamed(text))
}

/// A failure's message with its class in front.
pub(crate) fn failure_with_class(failure: &Failure) -> String {
    match &failure.name {
        Some(name) if !failure.message.starts_with(name.as_str()) => {
            format!("{name}: {}", failure.message)
        }
        Some(_) | None => failure.message.clone(),
    }
}

/// Deepest indentation of what belongs to an error.
const INDENT_MAX: usize = 40;

fn rendered_failure(failure: &Failure, is_terminal: bool, ran_here: bool) -> String {
    // The plain class adds nothing to the prefix.
    let is_plain = failure.name.as_deref() == Some("Error");
    let named = if is_plain { failure.message.clone() } else { failure_with_class(failure) };
    let word = if is_terminal { bold("error") } else { "error".to_owned() };
    let mut shown = format!("{word}: {}", tamed(&named));
    for line in failure.stack.iter().flat_map(|stack| stack.lines()) {
        // Frames are indented already, and those of a cause deeper than those of the error.
        let indent = match line.len() - line.trim_start().len() {
            0 => 4,
            indent => indent.min(INDENT_MAX),
        };
        let _ = write!(shown, "\n{}{}", " ".repeat(indent), tamed(line.trim()));
    }
    if let Some(hint) = hint(failure, ran_here) {
        let _ = write!(shown, "\n{hint}");
    }
    shown
}

/// Advice for a person at a terminal.
fn hint(failure: &Failure, ran_here: bool) -> Option<&'static str> {
    match failure.code {
        FailureCode::Timeout if ran_here && failure.message.contains("of processor time") => {
            Some("hint: a higher --cpu or --timeout gives it more processor time")
        }
        FailureCode::Timeout if ran_here && failure.message.contains("ran longer than") => {
            Some("hint: --timeout gives it more time")
        }
        // The limit was not set by an option: the clock does not advance, the program was cancelled, or a server set
        // the limit.
        FailureCode::Timeout => None,
        FailureCode::SourceUnavailable => {
            Some("hint: `airlock source list` shows what is wrong with its source; try again later")
        }
        FailureCode::Stuck => Some("hint: it awaits a promise that nothing settles"),
        FailureCode::Runtime
        | FailureCode::MemoryLimit
        | FailureCode::LimitExceeded
        | FailureCode::Serialization
        | FailureCode::Validation
        | FailureCode::Tool
        | FailureCode::ToolNotFound
        | FailureCode::Refused
        | FailureCode::Declined
        | FailureCode::QuestionCancelled
        | FailureCode::InDoubt
        | FailureCode::Internal => None,
    }
}

pub(crate) fn bold(text: &str) -> String {
    match wants_colours() {
        true => format!("\u{1b}[1m{text}\u{1b}[0m"),
        false => text.to_owned(),
    }
}

/// Whether the environment and the terminal allow colours.
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The text with escapes for characters that could move the cursor or reverse the line: a program must not be able to
/// redraw the question that is asked about it.
pub(crate) fn tamed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_wild(c) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Control characters, and characters that change the direction of writing or are invisible.
fn is_wild(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    fn what_a_crash_prints_holds_no_secret() {
        const CRASHES: &str = "AIRLOCK_TEST_CRASHES";
        let secret = "canary-Crash/8Bn+Vx2";
        if std::env::var_os(CRASHES).is_some() {
            start_tracing();
            scrub::learn(secret);
            panic!("broken by {secret}");
        }
        // In a separate process: the hook is for the whole process.
        let name = "print::tests::what_a_crash_prints_holds_no_secret";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args([name, "--exact", "--nocapture"]).env(CRASHES, "1").output();
        let told = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
        assert!(told.contains("broken by [redacted]") && !told.contains(secret), "{told}");
    }

    #[test]
    fn a_value_is_printed_as_it_is_unless_it_could_steer_a_terminal() {
        let text = "{\"a\":\"\u{9b}31m\u{202e}x\"}";
        assert_eq!(rendered_value(text, false), text);
        assert_eq!(rendered_value(text, true), r#"{"a":"\u009b31m\u202ex"}"#);
        assert_eq!(rendered_value("[1, \"é\"]", true), "[1, \"é\"]");
    }

    #[test]
    fn a_result_is_read_by_people() {
        assert_eq!(rendered_result(r#""a\nb""#), "a\nb");
        assert_eq!(
            rendered_result(r#"{"z":[1],"a":{}}"#),
            "{\n  \"z\": [\n    1\n  ],\n  \"a\": {}\n}"
        );
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(rendered_result(&deep), deep);
    }

    #[test]
    fn log_lines_have_colours_on_a_terminal_only() {
        assert_eq!(rendered_log(LogLevel::Error, "no", false), "no");
        assert_eq!(rendered_log(LogLevel::Error, "no", true), "\u{1b}[31mno\u{1b}[0m");
        assert_eq!(rendered_log(LogLevel::Log, "a\tb", true), "a\tb");
    }

    #[test]
    fn a_program_cannot_redraw_the_screen() {
        let shown = rendered_log(LogLevel::Log, "\u{1b}[2J\rApprove?", true);
        assert_eq!(shown, "\\u{1b}[2J\\u{d}Approve?");
    }

    #[test]
    fn a_failure_shows_class_message_lines_and_a_hint() {
        let thrown = Failure {
            name: Some("TypeError".into()),
            stack: Some("    at f (program:2:3)\n    at program:5:1\n".into()),
            ..Failure::new(FailureCode::Runtime, "x is not a function")
        };
        let expected =
            "error: TypeError: x is not a function\n    at f (program:2:3)\n    at program:5:1";
        assert_eq!(rendered_failure(&thrown, false, true), expected);
        let caused = Failure {
            stack: Some("    at program:5:1\n  [cause]: Error: m\n      at program:2:3".into()),
            ..Failure::new(FailureCode::Runtime, "x")
        };
        let expected = "error: x\n    at program:5:1\n  [cause]: Error: m\n      at program:2:3";
        assert_eq!(rendered_failure(&caused, false, true), expected);
        let late = Failure::new(FailureCode::Timeout, "The program ran longer than 5 ms.");
        let expected =
            "error: The program ran longer than 5 ms.\nhint: --timeout gives it more time";
        assert_eq!(rendered_failure(&late, false, true), expected);
        let busy = Failure::new(
            FailureCode::Timeout,
            "The program used more than 5 ms of processor time.",
        );
        assert!(rendered_failure(&busy, false, true).contains("\nhint: a higher --cpu"));
        for failure in [&late, &busy] {
            let shown = rendered_failure(failure, false, false);
            assert_eq!(shown, format!("error: {}", failure.message), "a server's limit");
        }
        let waiting = Failure::new(
            FailureCode::Timeout,
            "the program waits for a clock that does not advance",
        );
        assert!(!rendered_failure(&waiting, false, true).contains("hint"));
    }
}
