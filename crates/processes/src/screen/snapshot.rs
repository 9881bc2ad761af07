//! A screen at one moment, in words that need no terminal to be understood.

use crate::output::OutputSeq;
use crate::spec::PtySize;

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenSnapshot {
    /// How large it is.
    pub size: PtySize,
    /// From top to bottom.
    pub rows: Vec<ScreenRow>,
    /// Where the next character comes.
    pub cursor: CursorPosition,
    /// What the program calls itself.
    pub title: String,
    /// Whether a program has the whole screen for itself and gives it back as it was.
    pub is_alternate: bool,
    /// How many rows are kept above.
    pub scrollback_rows: usize,
    /// How many of them are shown here.
    pub rows_back: usize,
    /// What the program wants to hear.
    pub modes: TerminalModes,
    /// The last piece of output that it shows.
    pub seq: OutputSeq,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenRow {
    /// What it says, without blanks at its end.
    pub text: String,
    /// Whether the next row is the rest of the same line.
    pub is_wrapped: bool,
    /// Stretches that do not look as usual.
    pub runs: Vec<CellRun>,
}

/// Some cells of a row that look the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRun {
    /// The first, counted from 0.
    pub column: u16,
    /// How many.
    pub columns: u16,
    /// How they look.
    pub look: CellStyle,
}

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one attribute of a terminal's cell")]
pub struct CellStyle {
    /// The colour of the text.
    pub foreground: CellColor,
    /// The colour behind it.
    pub background: CellColor,
    /// Strong.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Slanted.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Text and background exchanged.
    pub inverse: bool,
}

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellColor {
    /// The terminal's own.
    #[default]
    Usual,
    /// One of its 256.
    Index(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// Where the next character comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPosition {
    /// Counted from 0.
    pub row: u16,
    /// Counted from 0.
    pub column: u16,
    /// Whether it is shown.
    pub is_visible: bool,
}

/// What a program wants to hear from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one mode of a terminal")]
pub struct TerminalModes {
    /// Arrows are sent as `ESC O A` instead of `ESC [ A`.
    pub application_cursor: bool,
    /// Likewise the keys of the number pad.
    pub application_keypad: bool,
    /// Pasted text stands between `ESC [200~` and `ESC [201~`.
    pub bracketed_paste: bool,
    /// The mouse is reported.
    pub mouse: bool,
}

pub(super) fn take_snapshot(
    screen: &vt100::Screen,
    size: PtySize,
    title: String,
    seq: OutputSeq,
) -> ScreenSnapshot {
    let (row, column) = screen.cursor_position();
    let texts = screen.rows(0, size.columns);
    let rows = (0_u16..).zip(texts).map(|(row, text)| ScreenRow {
        // Cells that were written over with blanks are blank.
        text: text.trim_end_matches(' ').to_owned(),
        is_wrapped: screen.row_wrapped(row),
        runs: runs(screen, row, size.columns),
    });
    ScreenSnapshot {
        size,
        rows: rows.collect(),
        cursor: CursorPosition {
            row,
            // Behind the last column it waits on it.
            column: column.min(size.columns - 1),
            is_visible: !screen.hide_cursor(),
        },
        title,
        is_alternate: screen.alternate_screen(),
        scrollback_rows: screen.scrollback_len(),
        rows_back: screen.scrollback(),
        modes: TerminalModes {
            application_cursor: screen.application_cursor(),
            application_keypad: screen.application_keypad(),
            bracketed_paste: screen.bracketed_paste(),
            mouse: screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None,
        },
        seq,
    }
}

fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = vec![];
    for column in 0..columns {
        let look = screen.cell(row, column).map(cell_style).unwrap_or_default();
        match runs.last_mut() {
            Some(run) if run.look == look => run.columns += 1,
            Some(_) | None => runs.push(CellRun { column, columns: 1, look }),
        }
    }
    runs.retain(|run| run.look != CellStyle::default());
    runs
}

fn cell_style(cell: &vt100::Cell) -> CellStyle {
    CellStyle {
        foreground: color(cell.fgcolor()),
        background: color(cell.bgcolor()),
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        underline: cell.underline(),
        inverse: cell.inverse(),
    }
}

const fn color(color: vt100::Color) -> CellColor {
    match color {
        vt100::Color::Default => CellColor::Usual,
        vt100::Color::Idx(index) => CellColor::Index(index),
        vt100::Color::Rgb(red, green, blue) => CellColor::Rgb(red, green, blue),
    }
}
