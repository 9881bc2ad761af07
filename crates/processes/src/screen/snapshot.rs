//! A screen at one moment, in terms that do not require a terminal emulator.

use crate::output::OutputSeq;
use crate::spec::PtySize;

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenSnapshot {
    /// Its size.
    pub size: PtySize,
    /// From top to bottom.
    pub rows: Vec<ScreenRow>,
    /// The position of the next character.
    pub cursor: CursorPosition,
    /// The title that the program has set.
    pub title: String,
    /// Whether a program uses the alternate screen, which restores the previous content when it ends.
    pub is_alternate: bool,
    /// How many rows the scrollback contains.
    pub scrollback_rows: usize,
    /// How many of them are included here.
    pub rows_back: usize,
    /// The input modes that the program has set.
    pub modes: TerminalModes,
    /// The last piece of output that it includes.
    pub seq: OutputSeq,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenRow {
    /// The text, without trailing blanks.
    pub text: String,
    /// Whether the next row continues the same line.
    pub is_wrapped: bool,
    /// Runs of cells with a style that is not the default.
    pub runs: Vec<CellRun>,
}

/// Consecutive cells of a row with the same style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRun {
    /// The first column, counted from 0.
    pub column: u16,
    /// The number of columns.
    pub columns: u16,
    /// Their style.
    pub look: CellStyle,
}

/// The style of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one attribute of a terminal's cell")]
pub struct CellStyle {
    /// The colour of the text.
    pub foreground: CellColor,
    /// The colour behind it.
    pub background: CellColor,
    /// Bold.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Text and background colours exchanged.
    pub inverse: bool,
}

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellColor {
    /// The terminal's default colour.
    #[default]
    Usual,
    /// One of the 256 palette colours.
    Index(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// The position of the next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPosition {
    /// Counted from 0.
    pub row: u16,
    /// Counted from 0.
    pub column: u16,
    /// Whether the cursor is visible.
    pub is_visible: bool,
}

/// The input modes that a program has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one mode of a terminal")]
pub struct TerminalModes {
    /// Arrows are sent as `ESC O A` instead of `ESC [ A`.
    pub application_cursor: bool,
    /// Likewise the keys of the number pad.
    pub application_keypad: bool,
    /// Pasted text is enclosed in `ESC [200~` and `ESC [201~`.
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
        // Cells that were overwritten with blanks are blank.
        text: text.trim_end_matches(' ').to_owned(),
        is_wrapped: screen.row_wrapped(row),
        runs: runs(screen, row, size.columns),
    });
    ScreenSnapshot {
        size,
        rows: rows.collect(),
        cursor: CursorPosition {
            row,
            // Behind the last column the cursor is shown in it.
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
