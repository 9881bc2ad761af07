//! The line editor: history, multi-line input, colours, and completions from the server.

use super::dot_commands;
use super::scan::{TokenKind, is_open, pieces};
use client::repl::ReplClient;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Handle;

/// The text before the cursor.
const PROMPT: &str = "> ";

/// Entries of the history file.
const HISTORY_MAX: usize = 1_000;

/// How long a server may take for completions: then none are offered.
const COMPLETION_TIME_MAX: Duration = Duration::from_millis(500);

/// A prompt.
pub(super) struct ReplPrompt {
    editor: Editor<PromptHelper, FileHistory>,
    history: Option<PathBuf>,
}

/// A result of the prompt.
pub(super) enum PromptLine {
    Text(String),
    /// The input ended after this incomplete text.
    Last(String),
    /// Ctrl-C: the typed text is discarded.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    Over,
}

impl ReplPrompt {
    pub(super) fn new(
        client: &ReplClient,
        runtime: &Handle,
        history: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY_MAX)?
            .build();
        let mut editor = Editor::with_config(config)?;
        let (client, runtime) = (client.clone(), runtime.clone());
        editor.set_helper(Some(PromptHelper { client, runtime, unfinished: RefCell::default() }));
        if let Some(file) = &history {
            // The file does not exist before the first session.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history })
    }

    pub(super) fn read(&mut self) -> anyhow::Result<PromptLine> {
        match self.editor.readline(PROMPT) {
            Ok(text) => Ok(PromptLine::Text(text)),
            Err(ReadlineError::Interrupted) => Ok(PromptLine::Interrupted),
            Err(ReadlineError::Eof) => {
                Ok(self.unfinished().map_or(PromptLine::Over, PromptLine::Last))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The incomplete text of a file or a pipe. In a terminal the input cannot end in the middle of a text.
    fn unfinished(&self) -> Option<String> {
        let text = self.editor.helper()?.unfinished.take();
        (!text.is_empty() && !std::io::stdin().is_terminal()).then_some(text)
    }

    pub(super) fn remember(&mut self, text: &str) {
        // Failing to store a history entry is harmless.
        let _ = self.editor.add_history_entry(text);
    }

    /// Saves the history, if it has a file.
    pub(super) fn save(&mut self) {
        if let Some(file) = &self.history {
            let _ = self.editor.save_history(file);
        }
    }
}

/// Helps the line editor while a line is typed.
struct PromptHelper {
    client: ReplClient,
    runtime: Handle,
    /// The incomplete text that the next line continues, if there is one.
    unfinished: RefCell<String>,
}

impl Helper for PromptHelper {}

impl Hinter for PromptHelper {
    type Hint = String;
}

impl Completer for PromptHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..pos];
        let cursor = before.encode_utf16().count() as u64;
        let asked = self.client.complete(line, Some(cursor));
        let timed = async { tokio::time::timeout(COMPLETION_TIME_MAX, asked).await };
        let names = self.runtime.block_on(timed);
        let names = names.ok().and_then(Result::ok).unwrap_or_default();
        let begins = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
        let start = before.rfind(begins).map_or(0, |at| at + 1);
        let start = before.ceil_char_boundary(start);
        Ok((start, names))
    }
}

impl Highlighter for PromptHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        let mut shown = String::with_capacity(line.len() * 2);
        for piece in pieces(line) {
            match colour(piece.kind) {
                Some(colour) => shown.push_str(&format!("\x1b[{colour}m{}\x1b[0m", piece.text)),
                None => shown.push_str(piece.text),
            }
        }
        Cow::Owned(shown)
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

const fn colour(kind: TokenKind) -> Option<&'static str> {
    match kind {
        TokenKind::Plain => None,
        TokenKind::Keyword => Some("35"),
        TokenKind::Number => Some("33"),
        TokenKind::Text => Some("32"),
        TokenKind::Comment => Some("2"),
    }
}

impl Validator for PromptHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        // A dot command is always one line: its brackets are not counted.
        let goes_on = dot_commands::behind_dot(text).is_none() && is_open(text);
        *self.unfinished.borrow_mut() = if goes_on { text.to_owned() } else { String::new() };
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
