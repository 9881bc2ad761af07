//! What crosses the wire about terminals: what stands on them, and waiting for it. Ours; codex has no such methods.

use super::{ByteChunk, TerminalSize};
use serde::{Deserialize, Serialize};

/// `process/screen`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenParams {
    /// Whose.
    pub process_id: String,
    /// Whether colours and the like are told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attributes: bool,
    /// How many rows above the usual ones the window begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrollback: Option<usize>,
    /// Whether to add what makes another terminal look the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paint: bool,
}

/// What `process/screen` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenResponse {
    /// How large it is.
    pub size: TerminalSize,
    /// What it says, row by row, without blanks at their ends.
    pub rows: Vec<String>,
    /// Which rows go on in the next one.
    pub wrapped: Vec<usize>,
    /// Where the next character comes.
    pub cursor: ScreenCursor,
    /// What the program calls itself.
    pub title: String,
    /// Whether a program has the whole screen for itself.
    pub alternate_screen: bool,
    /// What is kept above.
    pub scrollback: ScreenScrollback,
    /// What the program wants to hear.
    pub modes: ScreenModes,
    /// The last piece of output that it shows.
    pub seq: u64,
    /// For each row, what does not look as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<Vec<ScreenRun>>>,
    /// What makes another terminal look the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paint: Option<ByteChunk>,
}

/// Where the next character comes, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ScreenCursor {
    pub row: u16,
    pub col: u16,
    pub visible: bool,
}

/// Rows that have left the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenScrollback {
    /// How many are kept.
    pub rows: usize,
    /// How many of them are shown.
    pub offset: usize,
}

/// What a program wants to hear from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of terminals")]
#[expect(clippy::struct_excessive_bools, reason = "each is one mode of a terminal")]
pub struct ScreenModes {
    pub application_cursor: bool,
    pub application_keypad: bool,
    pub bracketed_paste: bool,
    pub mouse: bool,
}

/// Some cells that look the same, and not as usual.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of terminals")]
#[expect(clippy::struct_excessive_bools, reason = "each is one attribute of a terminal's cell")]
pub struct ScreenRun {
    pub col: u16,
    pub cols: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fg: Option<ScreenColor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bg: Option<ScreenColor>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dim: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
}

/// One of 256 colours, or `[red, green, blue]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the line above says it")]
pub enum ScreenColor {
    Index(u8),
    Rgb([u8; 3]),
}

/// `process/waitFor`: answered by the first of these that comes true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitForParams {
    /// Whose screen, or end.
    pub process_id: String,
    /// This stands on the screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Something that fits this stands on the screen; lines are parted by `\n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Nothing was said for so long, counted from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// It has ended. Its end answers in any case; alone, it is what is waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit: bool,
    /// How long to wait; an hour when not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What `process/waitFor` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitForResponse {
    /// What came true.
    pub reason: WaitForReason,
    /// What stood on the screen, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// How it ended, if it has.
    pub exit_code: Option<i32>,
    /// The last thing that had happened.
    pub seq: u64,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of what was asked for")]
pub enum WaitForReason {
    Text,
    Regex,
    Idle,
    Exit,
    Timeout,
}

/// `process/attach`: looks at a terminal that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachParams {
    /// What this client calls it.
    pub process_id: String,
    /// What it is called by everybody.
    pub name: String,
    /// Whether it is only looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Whether this client has a terminal of its own, which answers what the program asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_queries: bool,
    /// How large the window is that it is looked at in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
}

/// What `process/attach` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachResponse {
    /// What this client calls it.
    pub process_id: String,
    /// What makes a terminal look like it does now.
    pub paint: ByteChunk,
    /// What is told from here on comes after this.
    pub seq: u64,
    /// How large it is.
    pub size: TerminalSize,
}

/// What `process/terminals` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalsResponse {
    /// Those of this caller that have a name.
    pub terminals: Vec<SharedTerminal>,
}

/// A terminal that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedTerminal {
    /// Its name.
    pub name: String,
    /// The system's number of its process.
    pub pid: i32,
    /// How many look at it.
    pub viewers: u64,
    /// Whether its process has ended.
    pub exited: bool,
    /// How.
    pub exit_code: Option<i32>,
}
