//! Turns program text as people and models write it into the body of an async function. Pure.
//!
//! Fences and types are removed, and the value that the program means to return gets its `return`. Lines
//! stay where they were, so that stacks name the user's own lines.

mod accessors;
mod decorators;
mod depth;
mod edit;
mod fence;
mod interactive;
mod lower;
mod recover;
pub(crate) mod scopes;
mod strip;
mod supers;

#[cfg(test)]
mod tests;

pub(crate) use edit::skip_trivia;
pub(crate) use interactive::interactive;
use lifecycle::ValueConvention;
use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::SourceType;
use protocols::execbox::CODE_BYTES_MAX;
pub(crate) use recover::RETURN;
use std::borrow::Cow;
use std::fmt;

/// The text to run: the body of an async function, parsed separately, so that it cannot end the function
/// early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnableText(pub String);

/// Why a text is no valid program, and where, as the user counts lines and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxProblem {
    /// The message, one sentence.
    pub message: String,
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
}

impl fmt::Display for SyntaxProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.message, self.line, self.column)
    }
}

impl std::error::Error for SyntaxProblem {}

/// Prepares a program for execution.
pub fn prepare(source: &str, convention: ValueConvention) -> Result<RunnableText, SyntaxProblem> {
    check_size(source)?;
    let text = fence::unfenced(source, convention);
    if let Some(at) = depth::too_deep(&text) {
        return Err(problem(&text, at, "the program is nested too deeply"));
    }
    let allocator = Allocator::default();
    let program = parse(&allocator, &text)?;
    recover::check_modules(&text, &program)?;
    decorators::refuse_decorators(&text, &program)?;
    match strip::strip(&text, &program)? {
        strip::StripOutcome::Unchanged => finish(&text, &program, None, convention),
        strip::StripOutcome::Blanked(bytes) => finish(&text, &program, Some(bytes), convention),
        strip::StripOutcome::NeedsCode { blanked, edits } => {
            prepare_javascript(&with_code(&text, &blanked, edits)?, convention)
        }
    }
}

/// By how many columns [`prepare`] has shifted the first line to the right.
pub(crate) fn first_line_shift(prepared: &str) -> usize {
    if prepared.starts_with(recover::RETURN) { recover::RETURN.len() } else { 0 }
}

/// The beginning of texts that an older version rewrote with other lines. None is produced any more, but
/// journals contain some.
const REWRITTEN: &str = "/* rewritten */";

/// Whether the lines of a prepared text are those of the user's text.
pub(crate) fn has_users_lines(prepared: &str) -> bool {
    !prepared.trim_start_matches(recover::RETURN).starts_with(REWRITTEN)
}

/// Limit of a text after code is inserted into it. Each member of an enum repeats the enum's name twice.
const JAVASCRIPT_BYTES_MAX: usize = 4 * CODE_BYTES_MAX;

/// Inserts the code that types stood for. `blanked` is `text` without its types, with the same length in bytes.
fn with_code(
    text: &str,
    blanked: &[u8],
    edits: Vec<edit::TextEdit>,
) -> Result<String, SyntaxProblem> {
    let javascript = edit::carry_out(blanked, edits);
    if javascript.len() > JAVASCRIPT_BYTES_MAX {
        let message = format!("a program has at most {JAVASCRIPT_BYTES_MAX} bytes as JavaScript");
        return Err(problem(text, 0, message));
    }
    String::from_utf8(javascript)
        .map_err(|_| problem(text, 0, "the program's types could not be removed"))
}

/// A text into which code was inserted is another text, with other positions.
fn prepare_javascript(
    text: &str,
    convention: ValueConvention,
) -> Result<RunnableText, SyntaxProblem> {
    let allocator = Allocator::default();
    let program = parse(&allocator, text)?;
    recover::check_modules(text, &program)?;
    finish(text, &program, None, convention)
}

/// Adds the program's `return`. `blanked` is the text without types, with the same length in bytes.
fn finish(
    text: &str,
    program: &Program<'_>,
    blanked: Option<Vec<u8>>,
    convention: ValueConvention,
) -> Result<RunnableText, SyntaxProblem> {
    let plan = recover::plan(text, program, convention)?;
    let blanked = blanked.map_or(Cow::Borrowed(text.as_bytes()), Cow::Owned);
    String::from_utf8(plan.carry_out(text, blanked))
        .map(RunnableText)
        .map_err(|_| problem(text, 0, "the program's types could not be removed"))
}

/// Parses the text as TypeScript, a superset of JavaScript, with `await` and `return` anywhere.
fn parse<'a>(allocator: &'a Allocator, text: &'a str) -> Result<Program<'a>, SyntaxProblem> {
    let parsed = parse_as(allocator, text, SourceType::ts());
    if !parsed.panicked && parsed.diagnostics.is_empty() {
        return Ok(parsed.program);
    }
    let Some(first) = parsed.diagnostics.iter().next() else {
        return Err(problem(text, 0, "the program cannot be parsed"));
    };
    let at = first.labels.first().map_or(text.len(), |label| label.offset() as usize);
    Err(problem(text, at, first.message.to_string()))
}

/// Parses a text that [`prepare`] has made. `None` if it cannot be parsed.
pub(crate) fn parse_prepared<'a>(allocator: &'a Allocator, text: &'a str) -> Option<Program<'a>> {
    let parsed = parse_as(allocator, text, SourceType::ts());
    (!parsed.panicked && parsed.diagnostics.is_empty()).then_some(parsed.program)
}

fn parse_as<'a>(allocator: &'a Allocator, text: &'a str, language: SourceType) -> ParserReturn<'a> {
    let read = |language| {
        let options =
            ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
        Parser::new(allocator, text, language).with_options(options).parse()
    };
    read_script_or_module(read, language)
}

/// Parses the text as a script and, if that fails, as a module. In a script `await` may be a name, so that
/// `await {` and `for await` outside a function are errors there; programs run as if inside an async
/// function.
fn read_script_or_module<'a>(
    read: impl Fn(SourceType) -> ParserReturn<'a>,
    language: SourceType,
) -> ParserReturn<'a> {
    const FOR_AWAIT: &str = "`for await` loops are only allowed within async functions";
    let is_good = |parsed: &ParserReturn<'_>| !parsed.panicked && parsed.diagnostics.is_empty();
    let script = read(language);
    if is_good(&script) {
        return script;
    }
    let module = read(language.with_module(true));
    let is_about_await = !script.panicked
        && script.diagnostics.iter().all(|found| found.message.starts_with(FOR_AWAIT));
    // If both fail, users expect the errors of the script.
    if is_good(&module) || is_about_await { module } else { script }
}

fn check_size(source: &str) -> Result<(), SyntaxProblem> {
    if source.len() > CODE_BYTES_MAX {
        return Err(problem("", 0, format!("a program has at most {CODE_BYTES_MAX} bytes")));
    }
    // The engine takes its source as a C string.
    match source.find('\0') {
        Some(at) => Err(problem(source, at, "a program cannot contain the character NUL")),
        None => Ok(()),
    }
}

/// A problem at a byte of `text`, whose lines are the user's.
fn problem(text: &str, at: usize, message: impl Into<String>) -> SyntaxProblem {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    SyntaxProblem {
        message: message.into(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}
