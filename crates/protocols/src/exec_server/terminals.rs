//! Messages about terminals: their screens, and waiting for their content. An extension of ours; codex has
//! no such methods.

use super::{ByteChunk, TerminalSize};
use serde::{Deserialize, Serialize};

/// Parameters of `process/screen`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenParams {
    /// The process's id.
    pub process_id: String,
    /// Whether to include colours and other styles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attributes: bool,
    /// By how many rows to scroll back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrollback: Option<usize>,
    /// Whether to include output that restores the screen in another terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paint: bool,
}

/// The result of `process/screen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenResponse {
    /// The size of the terminal.
    pub size: TerminalSize,
    /// The text of each row, without trailing blanks.
    pub rows: Vec<String>,
    /// The rows that continue in the next one.
    pub wrapped: Vec<usize>,
    /// The position of the cursor.
    pub cursor: ScreenCursor,
    /// The title that the program has set.
    pub title: String,
    /// Whether the alternate screen is active.
    pub alternate_screen: bool,
    /// The state of the scrollback.
    pub scrollback: ScreenScrollback,
    /// The terminal's input modes.
    pub modes: ScreenModes,
    /// The last piece of output that the screen includes.
    pub seq: u64,
    /// For each row, the runs with a style that is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<Vec<ScreenRun>>>,
    /// Output that restores the screen in another terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paint: Option<ByteChunk>,
}

/// The position of the cursor, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ScreenCursor {
    pub row: u16,
    pub col: u16,
    pub visible: bool,
}

/// Rows that have scrolled off the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenScrollback {
    /// The number of retained rows.
    pub rows: usize,
    /// The number of rows that are included.
    pub offset: usize,
}

/// The input modes that a program has set.
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

/// Consecutive cells with the same style that is not the default.
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

/// One of the 256 palette colours, or `[red, green, blue]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the line above says it")]
pub enum ScreenColor {
    Index(u8),
    Rgb([u8; 3]),
}

/// Parameters of `process/waitFor`: answered when the first of these conditions holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitForParams {
    /// The process's id.
    pub process_id: String,
    /// This text is on the screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A match of this pattern is on the screen; lines are separated by `\n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// No output for this time, counted from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// The process has ended. Its end always answers; this waits for nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit: bool,
    /// The timeout; an hour by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The result of `process/waitFor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitForResponse {
    /// The condition that held.
    pub reason: WaitForReason,
    /// The matching text on the screen, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// The exit code, if it has ended.
    pub exit_code: Option<i32>,
    /// The number of the last event.
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

/// Parameters of `process/attach`: views a terminal that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachParams {
    /// This client's id for the process.
    pub process_id: String,
    /// The terminal's shared name.
    pub name: String,
    /// Whether to view it only, without input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Whether this client has its own terminal, which answers the program's queries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_queries: bool,
    /// The size of the client's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
}

/// The result of `process/attach`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachResponse {
    /// This client's id for the process.
    pub process_id: String,
    /// Output that restores the present screen in a terminal.
    pub paint: ByteChunk,
    /// Later output has larger numbers than this.
    pub seq: u64,
    /// The size of the terminal.
    pub size: TerminalSize,
}

/// The result of `process/terminals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalsResponse {
    /// The caller's terminals that have a name.
    pub terminals: Vec<SharedTerminal>,
}

/// A terminal that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedTerminal {
    /// The terminal's name.
    pub name: String,
    /// The process number.
    pub pid: i32,
    /// The number of viewers.
    pub viewers: u64,
    /// Whether its process has ended.
    pub exited: bool,
    /// The exit code, if it has ended.
    pub exit_code: Option<i32>,
}
