//! The message of an uncaught error, in Node's wording. The engine reports only `not a function`; the
//! expression that is not a function is found in the program, at the position that the error's stack names.
//! Pure: the same program and error give the same text.

mod functions;
mod hints;
mod known;
mod operations;
mod phrases;
mod redeclared;
mod render;
mod stack;

#[cfg(test)]
mod tests;

use crate::loops::{InsertionMark, unmarked_column};
use crate::prepare;
pub(crate) use functions::add_to;
pub(crate) use hints::module as module_hint;
use operations::{EnginePlace, FoundOperation, OperationSearch, WantedOperation};
use oxc_allocator::Allocator;
use phrases::RewordedMessage;
use stack::{StackTop, UserFrame};
use std::cell::OnceCell;

/// The first version of the guest's globals in which errors name expressions: journals of older ones
/// contain the engine's wording.
pub(crate) const PRELUDE_VERSION_MIN: u32 = 2;

/// Largest program that is parsed again to name an expression in it.
const NAMED_TEXT_BYTES_MAX: usize = 256 << 10;

/// A program that runs, and the position of its text in the text that the engine compiled.
#[derive(Debug)]
pub(crate) struct ProgramSource {
    /// `None` if a position may refer to any of several texts.
    text: Option<String>,
    /// Bytes of the compiled text's first line before the program.
    opening_bytes: usize,
    /// What was inserted into the program to count its loops.
    marks: Vec<InsertionMark>,
    /// Where the `return` of the last expression was inserted, if one was.
    inserted_return: OnceCell<Option<usize>>,
    /// How the program refers to its tools, for hints.
    outside: String,
}

/// The message of one error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedError {
    pub(crate) message: String,
    /// Its frames in the program, with lines and columns as the user counts them.
    pub(crate) frames: String,
}

impl ProgramSource {
    pub(crate) fn new(
        text: &str,
        opening_bytes: usize,
        marks: Vec<InsertionMark>,
        outside: impl Into<String>,
    ) -> Self {
        let (text, outside) = (Some(text.to_owned()), outside.into());
        Self { text, opening_bytes, marks, inserted_return: OnceCell::new(), outside }
    }

    /// A program without a text: messages are reworded, positions stay the engine's.
    pub(crate) fn unknown_names() -> Self {
        let outside = "tools.*".to_owned();
        Self {
            text: None,
            opening_bytes: 0,
            marks: vec![],
            inserted_return: OnceCell::new(),
            outside,
        }
    }

    /// The text, if it is not too long to be parsed again.
    fn readable(&self) -> Option<&str> {
        self.text.as_deref().filter(|text| text.len() <= NAMED_TEXT_BYTES_MAX)
    }

    /// The error's message as Node words it, and its frames. `name` is the error's class, `stack` the engine's own.
    pub(crate) fn name_error(&self, name: &str, message: &str, stack: &str) -> NamedError {
        let top = StackTop::from_stack(stack);
        let found = phrases::phrase(name, message, &top).map(|phrase| self.carry_out(phrase, &top));
        let (better, place) = found.unwrap_or_default();
        let hint = hints::global(name, message, &self.outside);
        let message = better.unwrap_or_else(|| message.to_owned());
        let message = hint.map_or(message.clone(), |hint| format!("{message}: {hint}"));
        NamedError { message, frames: self.frames(stack, &top, place) }
    }

    /// The text for a phrase, and the byte of the program at which the error occurred.
    fn carry_out(
        &self,
        phrase: RewordedMessage<'_>,
        top: &StackTop<'_>,
    ) -> (Option<String>, Option<usize>) {
        let wanted = match phrase {
            RewordedMessage::Text(text) => return (Some(text), None),
            RewordedMessage::Import(specifier) => return self.name_import(specifier),
            RewordedMessage::Redeclaration => return self.name_redeclared(),
            RewordedMessage::Operation(wanted) => wanted,
        };
        if matches!(wanted, WantedOperation::NewError { .. }) && self.is_at_class(top) {
            return (None, None);
        }
        let found = self.search(&wanted, top);
        let place = found.first().map(|found| found.at);
        let names: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
        (phrases::sentence(&wanted, &names), place)
    }

    fn search(&self, wanted: &WantedOperation<'_>, top: &StackTop<'_>) -> Vec<FoundOperation> {
        let Some(frame) = top.user else { return vec![] };
        let Some(text) = self.readable() else { return vec![] };
        let allocator = Allocator::default();
        let Some(program) = prepare::parse_prepared(&allocator, text) else { return vec![] };
        let mut found = OperationSearch::run(text, &program, self.engine_place(frame), wanted);
        if found.len() > 1 && wanted.is_call() {
            let known = known::KnownFunctions::from_program(&program);
            found.retain(|found| !known.has(&found.text));
        }
        if wanted.is_call() {
            found.dedup_by(|a, b| a.text == b.text);
        }
        let n_max = wanted.names_max().unwrap_or(usize::MAX);
        let is_unclear = found.len() > n_max;
        if is_unclear { vec![] } else { found }
    }

    /// Whether an error has the position of its class: then there is no operation to find.
    fn is_at_class(&self, top: &StackTop<'_>) -> bool {
        let at = top.user.and_then(|frame| self.engine_place(frame).offset);
        let text = self.text.as_deref().unwrap_or_default();
        let rest = at.and_then(|at| text.get(at..)).unwrap_or_default();
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest, |end| &rest[..end]);
        word.ends_with("Error")
    }

    /// `import("fs")` is refused without a stack: its position is that of the only such expression.
    fn name_import(&self, specifier: &str) -> (Option<String>, Option<usize>) {
        let text = format!(
            "import(\"{specifier}\") is not available: {}",
            hints::module(specifier, &self.outside)
        );
        let allocator = Allocator::default();
        let program = self.readable().and_then(|text| prepare::parse_prepared(&allocator, text));
        let places = program.map(|program| operations::imports(&program, specifier));
        let place =
            places.filter(|places| places.len() == 1).and_then(|places| places.first().copied());
        (Some(text), place)
    }

    /// The engine records no position but the end of the program.
    fn name_redeclared(&self) -> (Option<String>, Option<usize>) {
        let allocator = Allocator::default();
        let program = self.readable().and_then(|text| prepare::parse_prepared(&allocator, text));
        let found = program.and_then(|program| redeclared::redeclared(&program));
        found.map_or((None, None), |(name, at)| {
            (Some(format!("Identifier '{name}' has already been declared")), Some(at))
        })
    }

    fn engine_place(&self, frame: UserFrame<'_>) -> EnginePlace {
        let column = unmarked_column(&self.marks, frame.line, frame.column);
        let margin = (column == 1).then(|| self.line_bytes(frame.line)).flatten();
        EnginePlace { margin, offset: self.offset(frame.line, column) }
    }

    /// The byte of the program for a position in the compiled text, without its marks; `None` before the
    /// program.
    fn offset(&self, line: usize, column: usize) -> Option<usize> {
        let text = self.text.as_deref()?;
        let at = if line == 1 {
            // On the first line the engine counts columns from 1 for names, and from 0 for other tokens:
            // the column that it reports is the byte before, which is never a part of a name.
            let after = (column + 1).checked_sub(self.opening_bytes + 1)?;
            let is_name = after > 0
                && text.as_bytes().get(after - 1).is_some_and(|byte| operations::is_word(*byte));
            if is_name { after - 1 } else { after }
        } else {
            line_start(text, line)? + column.checked_sub(1)?
        };
        (at <= text.len()).then_some(at)
    }

    /// Where a line begins and ends.
    fn line_bytes(&self, line: usize) -> Option<(usize, usize)> {
        let text = self.text.as_deref()?;
        let start = line_start(text, line)?;
        Some((start, text[start..].find('\n').map_or(text.len(), |length| start + length)))
    }

    /// Line and column as the user counts them, in characters and without insertions.
    fn users_place(&self, at: usize) -> (usize, usize) {
        let text = self.text.as_deref().unwrap_or_default();
        let at = text.floor_char_boundary(at);
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[..start].matches('\n').count() + 1;
        let column = text[start..at].chars().count();
        let inserted = self.inserted_return().filter(|inserted| (start..at).contains(inserted));
        let column = column.saturating_sub(inserted.map_or(0, |_| prepare::RETURN.len()));
        (line, column + 1)
    }

    fn inserted_return(&self) -> Option<usize> {
        *self.inserted_return.get_or_init(|| {
            let text = self.text.as_deref()?;
            if text.starts_with(prepare::RETURN) {
                return Some(0);
            }
            let text = self.readable().filter(|text| text.contains(prepare::RETURN))?;
            let allocator = Allocator::default();
            let program = prepare::parse_prepared(&allocator, text)?;
            operations::last_return(&program)
                .map(|at| at.saturating_sub(1))
                .filter(|at| text[*at..].starts_with(prepare::RETURN))
        })
    }

    /// `place` is the actual position of the innermost frame, if the program's text shows it.
    fn frames(&self, stack: &str, top: &StackTop<'_>, place: Option<usize>) -> String {
        let mut shown = String::new();
        let mut place = place;
        if top.user.is_none()
            && let Some(at) = place.take()
        {
            let (line, column) = self.users_place(at);
            shown = stack::written(None, line, column);
        }
        for frame in stack::user_frames(stack) {
            let at = place.take().or_else(|| {
                let column = unmarked_column(&self.marks, frame.line, frame.column);
                self.offset(frame.line, column)
            });
            let (line, column) = match at {
                Some(at) => self.users_place(at),
                None if self.text.is_none() => (frame.line, frame.column),
                // A position before the program is the program's beginning.
                None => (frame.line, 1),
            };
            let line = stack::written(frame.function, line, column);
            if shown.len() + line.len() > stack::STACK_BYTES_MAX {
                break;
            }
            if !shown.is_empty() {
                shown.push('\n');
            }
            shown.push_str(&line);
        }
        shown
    }
}

/// Where a line begins, counted from 1.
fn line_start(text: &str, line: usize) -> Option<usize> {
    match line {
        0 => None,
        1 => Some(0),
        _ => text.match_indices('\n').nth(line - 2).map(|(at, _)| at + 1),
    }
}
