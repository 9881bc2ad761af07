//! The content of a terminal, maintained by an emulator that processes all output of a program.

mod character_sets;
mod flood;
mod query_detector;
mod snapshot;
mod translate;

#[cfg(test)]
mod tests;

pub(crate) use query_detector::QueryDetector;
pub use snapshot::{
    CellColor, CellRun, CellStyle, CursorPosition, ScreenRow, ScreenSnapshot, TerminalModes,
};

use crate::output::OutputSeq;
use crate::spec::PtySize;
use bytes::Bytes;
use query_detector::QueryAnswers;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use translate::{ScreenEmulator, SequenceTranslator};

/// Rows that are retained after they have scrolled off the top of a screen: some pages, at most a few MB.
pub const SCROLLBACK_ROWS_MAX: usize = 1_000;

/// The largest screen that is emulated, 8 MB. A larger terminal is shown up to this size.
const ROWS_MAX: u16 = 400;
const COLUMNS_MAX: u16 = 600;

/// Limit of the output that a screen collects before it processes it: all of its rows, if they are not very
/// long.
const UNHEARD_BYTES_MAX: usize = 256 << 10;

/// Limit of a title.
const TITLE_BYTES_MAX: usize = 512;

/// The content of a terminal.
pub struct TerminalScreen {
    size: PtySize,
    /// `None` while no output was processed: most terminals are read as bytes, and many are idle.
    parts: Option<Box<ScreenParts>>,
    /// The last piece of output that was processed or collected.
    heard: OutputSeq,
    /// Output that was collected and not processed yet.
    unheard: Vec<Bytes>,
}

struct ScreenParts {
    emulator: vt100::Parser<ScreenMessage>,
    translator: SequenceTranslator,
}

/// Settings that a program sends to the client of its screen.
#[derive(Default)]
struct ScreenMessage {
    title: String,
    answers: QueryAnswers,
}

impl vt100::Callbacks for ScreenMessage {
    fn set_window_title(&mut self, _screen: &mut vt100::Screen, title: &[u8]) {
        let title = &title[..title.len().min(TITLE_BYTES_MAX)];
        self.title = String::from_utf8_lossy(title).into_owned();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        mark: Option<u8>,
        other_mark: Option<u8>,
        numbers: &[&[u16]],
        last: char,
    ) {
        if other_mark.is_none() {
            self.answers.control(screen, mark, numbers, last);
        }
    }

    fn unhandled_osc(&mut self, _screen: &mut vt100::Screen, parts: &[&[u8]]) {
        self.answers.string(parts);
    }
}

impl std::fmt::Debug for TerminalScreen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { size, parts, heard, .. } = self;
        let is_kept = parts.is_some();
        f.debug_struct("Screen")
            .field("size", size)
            .field("heard", heard)
            .field("is_kept", &is_kept)
            .finish()
    }
}

impl TerminalScreen {
    /// Creates an empty screen.
    pub fn new(size: PtySize) -> Self {
        Self { size: bounded(size), parts: None, heard: 0, unheard: vec![] }
    }

    /// The last piece of output that was processed or collected.
    pub const fn heard(&self) -> OutputSeq {
        self.heard
    }

    /// Collects pieces of output, the last of which has this number. It processes no more of them than it
    /// must before further ones arrive: of much output, most is never visible.
    pub(crate) fn skim(&mut self, seq: OutputSeq, pieces: &[Bytes]) {
        self.heard = seq;
        self.unheard.extend_from_slice(pieces);
        let rows_kept = SCROLLBACK_ROWS_MAX + usize::from(self.size.rows);
        let Some(unseen) = flood::unseen(&self.unheard, rows_kept) else { return self.finish() };
        self.apply_noted(unseen.start);
        // Lines that scroll only a part of the screen leave other content.
        let ScreenParts { emulator, translator } = self.parts();
        if !translator.scrolls_all(emulator) {
            return self.finish();
        }
        skip(&mut self.unheard, unseen.len());
        // Long lines are processed now, to limit the collected bytes.
        if self.unheard.iter().map(Bytes::len).sum::<usize>() > UNHEARD_BYTES_MAX {
            self.finish();
        }
    }

    /// Processes this many of the collected bytes.
    fn apply_noted(&mut self, n_bytes: usize) {
        for piece in skip(&mut self.unheard, n_bytes) {
            self.apply_bytes(&piece);
        }
    }

    /// Processes all collected bytes.
    pub(crate) fn finish(&mut self) {
        for piece in std::mem::take(&mut self.unheard) {
            self.apply_bytes(&piece);
        }
    }

    /// Processes these bytes.
    pub fn apply_bytes(&mut self, bytes: &[u8]) {
        let parts = self.parts();
        let ScreenParts { emulator, translator } = parts;
        // The emulator is a third-party crate: a panic in it must cost one screen, not the server.
        let said = catch_unwind(AssertUnwindSafe(|| translator.translate_bytes(bytes, emulator)));
        if said.is_err() {
            tracing::warn!("the terminal emulator panicked on its input; its screen was reset");
            self.parts = None;
        }
    }

    /// Changes its size to the terminal's new size.
    pub fn resize(&mut self, size: PtySize) {
        self.size = bounded(size);
        let (rows, columns) = numbers(self.size);
        let Some(parts) = &mut self.parts else { return };
        let resized = catch_unwind(AssertUnwindSafe(|| parts.emulator.set_size(rows, columns)));
        parts.translator.forget_regions();
        if resized.is_err() {
            self.parts = None;
        }
    }

    /// Its present size.
    pub const fn size(&self) -> PtySize {
        self.size
    }

    /// The visible text. A wrapped line is one line.
    pub fn visible_text(&mut self) -> String {
        self.parts().emulator.screen().contents()
    }

    /// The visible content, or what was visible `rows_back` rows before.
    pub fn snapshot(&mut self, rows_back: usize) -> ScreenSnapshot {
        let (size, seq) = (self.size, self.heard);
        let ScreenParts { emulator, .. } = self.parts();
        let title = emulator.callbacks().title.clone();
        let screen = emulator.screen_mut();
        screen.set_scrollback(rows_back);
        let snapshot = snapshot::take_snapshot(screen, size, title, seq);
        screen.set_scrollback(0);
        snapshot
    }

    /// Output that makes another terminal show the same content and accept the same keys.
    pub fn paint(&mut self) -> Vec<u8> {
        let ScreenParts { emulator, .. } = self.parts();
        let screen = emulator.screen();
        let alternate = if screen.alternate_screen() { "\x1b[?1049h" } else { "\x1b[?1049l" };
        let title = &emulator.callbacks().title;
        let title = if title.is_empty() { String::new() } else { format!("\x1b]2;{title}\x07") };
        [alternate, &title, &screen.state_formatted()].concat().into_bytes()
    }

    /// Takes the answers to the program's queries since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        match &mut self.parts {
            Some(parts) => parts.emulator.callbacks_mut().answers.take(),
            None => vec![],
        }
    }

    fn parts(&mut self) -> &mut ScreenParts {
        let (rows, columns) = numbers(self.size);
        self.parts.get_or_insert_with(|| {
            let told = ScreenMessage::default();
            let emulator =
                vt100::Parser::new_with_callbacks(rows, columns, SCROLLBACK_ROWS_MAX, told);
            Box::new(ScreenParts { emulator, translator: SequenceTranslator::default() })
        })
    }
}

/// Removes this many bytes from the front.
fn skip(pieces: &mut Vec<Bytes>, mut n_bytes: usize) -> Vec<Bytes> {
    let mut n_whole = 0;
    while let Some(piece) = pieces.get(n_whole).filter(|piece| piece.len() <= n_bytes) {
        n_bytes -= piece.len();
        n_whole += 1;
    }
    let mut taken: Vec<Bytes> = pieces.drain(..n_whole).collect();
    if let Some(piece) = pieces.first_mut().filter(|_| n_bytes > 0) {
        taken.push(piece.split_to(n_bytes));
    }
    taken
}

fn bounded(size: PtySize) -> PtySize {
    PtySize { rows: size.rows.clamp(1, ROWS_MAX), columns: size.columns.clamp(1, COLUMNS_MAX) }
}

fn numbers(size: PtySize) -> (NonZeroU16, NonZeroU16) {
    let number = |n: u16| NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN);
    (number(size.rows), number(size.columns))
}

impl ScreenEmulator for vt100::Parser<ScreenMessage> {
    fn process(&mut self, bytes: &[u8]) {
        Self::process(self, bytes);
    }

    fn cursor(&self) -> (u16, u16) {
        self.screen().cursor_position()
    }

    fn is_alternate(&self) -> bool {
        self.screen().alternate_screen()
    }

    fn size(&self) -> (u16, u16) {
        let (rows, columns) = self.screen().size();
        (rows.get(), columns.get())
    }

    fn clear_scrollback(&mut self) {
        self.screen_mut().clear_scrollback();
    }
}
