//! Translates sequences that our emulator does not support into ones that it does: line drawing, tab stops,
//! inserting, writing at the edge without wrapping. Everything else passes unchanged.

use super::character_sets::{CharacterSets, drawn};
use memchr::memchr3;
use unicode_width::UnicodeWidthChar as _;

/// The longest sequence that is interpreted as a whole; a longer one is none that we translate, and passes.
const SEQUENCE_BYTES_MAX: usize = 64;

const ESC: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;
const TAB: u8 = 9;

/// The target of a translator.
pub(super) trait ScreenEmulator {
    fn process(&mut self, bytes: &[u8]);
    /// Row and column of the cursor, counted from 0; behind the last column, the width itself.
    fn cursor(&self) -> (u16, u16);
    fn size(&self) -> (u16, u16);
    fn is_alternate(&self) -> bool;
    fn clear_scrollback(&mut self);

    fn column(&self) -> u16 {
        self.cursor().1
    }
}

/// The state of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    Text,
    /// Within a sequence that is being collected.
    Sequence,
    /// Within a string, such as a title; and whether its last byte may begin its end.
    String {
        is_ending: bool,
    },
}

#[derive(Debug)]
pub(super) struct SequenceTranslator {
    at: EscapeState,
    held: Vec<u8>,
    /// The first bytes of an incomplete letter, if letters are processed one by one.
    begun: Vec<u8>,
    letters: CharacterSets,
    saved: CharacterSets,
    inserts: bool,
    wraps: bool,
    /// Whether only a part of the screen scrolls; the second is for the alternate screen.
    has_region: [bool; 2],
    /// The tab stops, if they are not every eighth column.
    tabs: Option<Vec<u16>>,
}

impl Default for SequenceTranslator {
    fn default() -> Self {
        let letters = CharacterSets::default();
        Self {
            at: EscapeState::Text,
            held: vec![],
            begun: vec![],
            letters,
            saved: letters,
            inserts: false,
            wraps: true,
            has_region: [false; 2],
            tabs: None,
        }
    }
}

impl SequenceTranslator {
    /// Passes these bytes to the emulator.
    pub(super) fn translate_bytes(&mut self, mut bytes: &[u8], to: &mut impl ScreenEmulator) {
        while !bytes.is_empty() {
            let n = match self.at {
                EscapeState::Text => self.translate_text(bytes, to),
                EscapeState::Sequence => self.sequence(bytes, to),
                EscapeState::String { is_ending } => self.string(bytes, is_ending, to),
            };
            bytes = &bytes[n..];
        }
    }

    /// Whether printing lines eventually scrolls all previous content away.
    pub(super) fn scrolls_all(&self, to: &impl ScreenEmulator) -> bool {
        !self.has_region[usize::from(to.is_alternate())]
    }

    /// A screen of another size scrolls as a whole.
    pub(super) const fn forget_regions(&mut self) {
        self.has_region = [false; 2];
    }

    /// Processes text up to the next relevant sequence; returns its length.
    fn translate_text(&mut self, bytes: &[u8], to: &mut impl ScreenEmulator) -> usize {
        let end = match self.is_plain() {
            true => plain_end(bytes),
            false => text_end(bytes),
        };
        if end > 0 || !self.begun.is_empty() {
            self.write(&bytes[..end], end == bytes.len(), to);
        }
        match bytes.get(end) {
            None => end,
            Some(&ESC) => {
                self.at = EscapeState::Sequence;
                self.held.clear();
                self.held.push(ESC);
                end + 1
            }
            Some(&shift) => {
                self.letters.is_shifted = shift == SHIFT_OUT;
                end + 1
            }
        }
    }

    /// Whether letters are written unchanged.
    const fn is_plain(&self) -> bool {
        !self.letters.are_drawn() && !self.inserts && self.wraps && self.tabs.is_none()
    }

    /// Writes a text, which may continue if nothing else came after it.
    fn write(&mut self, text: &[u8], goes_on: bool, to: &mut impl ScreenEmulator) {
        if self.is_plain() {
            return to.process(text);
        }
        let begun = std::mem::take(&mut self.begun);
        let whole = if begun.is_empty() { text } else { &[&begun, text].concat() };
        let mut pieces = whole.utf8_chunks().peekable();
        while let Some(piece) = pieces.next() {
            piece.valid().chars().for_each(|c| self.write_char(c, to));
            if goes_on && pieces.peek().is_none() && is_begun(piece.invalid()) {
                self.begun = piece.invalid().to_vec();
            } else {
                to.process(piece.invalid());
            }
        }
    }

    fn write_char(&self, c: char, to: &mut impl ScreenEmulator) {
        if c == char::from(TAB) && self.tabs.is_some() {
            let column = self.tab_after(to.column(), to.size().1);
            return go_to_column(column, to);
        }
        let c = if self.letters.are_drawn() { drawn(c) } else { c };
        let (_, columns) = to.size();
        let width = c.width().unwrap_or(1);
        if !self.wraps && width > 1 && usize::from(to.column()) + width > columns.into() {
            // It does not fit, and there is no other row.
            return;
        }
        if self.inserts && !c.is_control() {
            to.process(format!("\x1b[{width}@").as_bytes());
        }
        to.process(c.encode_utf8(&mut [0; 4]).as_bytes());
        if !self.wraps && to.column() >= columns {
            go_to_column(columns - 1, to);
        }
    }

    /// Collects bytes until their sequence is complete; returns how many it took.
    fn sequence(&mut self, bytes: &[u8], to: &mut impl ScreenEmulator) -> usize {
        let byte = bytes[0];
        if !(0x20..0x7f).contains(&byte) || self.held.len() >= SEQUENCE_BYTES_MAX {
            // The emulator handles a sequence that is broken off.
            self.pass(to);
            return 0;
        }
        self.held.push(byte);
        let is_whole = match self.held.get(1) {
            Some(b'[') => self.held.len() > 2 && byte >= 0x40,
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                self.pass(to);
                self.at = EscapeState::String { is_ending: false };
                return 1;
            }
            _ => byte >= 0x30,
        };
        if is_whole {
            self.at = EscapeState::Text;
            let held = std::mem::take(&mut self.held);
            match &held[1..] {
                [b'[', parameters @ .., last] => self.control(parameters, *last, &held, to),
                rest => self.escape(rest, &held, to),
            }
            self.held = held;
        }
        1
    }

    fn pass(&mut self, to: &mut impl ScreenEmulator) {
        to.process(&self.held);
        self.at = EscapeState::Text;
    }

    /// Passes a string up to its end: a bell, a cancel, or `ESC \`.
    fn string(&mut self, bytes: &[u8], is_ending: bool, to: &mut impl ScreenEmulator) -> usize {
        if is_ending {
            to.process(&bytes[..1]);
            // Any other byte after ESC begins another sequence, which is passed to the emulator
            // untranslated.
            self.at = EscapeState::Text;
            return 1;
        }
        let is_end = |byte: &u8| matches!(*byte, ESC | 0x07 | 0x18 | 0x1a);
        let end = bytes.iter().position(is_end);
        let n = end.map_or(bytes.len(), |end| end + 1);
        to.process(&bytes[..n]);
        if let Some(end) = end {
            self.at = match bytes[end] {
                ESC => EscapeState::String { is_ending: true },
                _ => EscapeState::Text,
            };
        }
        n
    }

    /// A sequence of `ESC` without a bracket.
    fn escape(&mut self, rest: &[u8], whole: &[u8], to: &mut impl ScreenEmulator) {
        match rest {
            [b'(', set] => self.letters.is_drawing[0] = *set == b'0',
            [b')', set] => self.letters.is_drawing[1] = *set == b'0',
            b"D" => to.process(b"\n"),
            b"E" => to.process(b"\r\n"),
            b"H" => self.set_tab(to),
            b"#8" => {
                self.has_region[usize::from(to.is_alternate())] = false;
                fill(to);
            }
            b"7" => {
                self.saved = self.letters;
                to.process(whole);
            }
            b"8" => {
                self.letters = self.saved;
                to.process(whole);
            }
            b"c" => {
                *self = Self::default();
                to.process(whole);
            }
            _ => to.process(whole),
        }
    }

    /// A sequence of `ESC [`.
    fn control(&mut self, parameters: &[u8], last: u8, whole: &[u8], to: &mut impl ScreenEmulator) {
        let number = || first_number(parameters).max(1);
        match (parameters, last) {
            (b"", b's') => self.escape(b"7", b"\x1b7", to),
            (b"", b'u') => self.escape(b"8", b"\x1b8", to),
            (b"4", b'h' | b'l') => self.inserts = last == b'h',
            (b"3", b'J') => to.clear_scrollback(),
            (b"!", b'p') => self.soften(to),
            (b"" | b"0", b'g') => self.clear_tab(to),
            (b"3", b'g') => self.tabs = Some(vec![]),
            ([b'?', modes @ ..], b'h' | b'l') => self.modes(modes, last, whole, to),
            (_, b'I') => {
                let (mut column, columns) = (to.column(), to.size().1);
                for _ in 0..number().min(columns) {
                    column = self.tab_after(column, columns);
                }
                go_to_column(column, to);
            }
            (_, b'Z') => {
                let (mut column, columns) = (to.column().min(to.size().1 - 1), to.size().1);
                for _ in 0..number().min(columns) {
                    column = self.tab_before(column);
                }
                go_to_column(column, to);
            }
            (_, b'r') => self.set_region(parameters, whole, to),
            (_, b'a') => to.process(format!("\x1b[{}C", number()).as_bytes()),
            (_, b'A' | b'B' | b'd') => go_vertically(whole, to),
            (_, b'e') => go_vertically(format!("\x1b[{}B", number()).as_bytes(), to),
            // A few bytes must not produce a million characters: programs repeat a character within one
            // line only.
            (_, b'b') => {
                let n = number().min(to.size().1);
                to.process(format!("\x1b[{n}b").as_bytes());
            }
            _ => to.process(whole),
        }
    }

    /// Modes that are set or reset together.
    fn modes(&mut self, modes: &[u8], last: u8, whole: &[u8], to: &mut impl ScreenEmulator) {
        let is_set = last == b'h';
        let (cursor, was_alternate) = (to.cursor(), to.is_alternate());
        let mut gives_cursor_back = false;
        for mode in modes.split(|byte| *byte == b';') {
            match (mode, is_set) {
                (b"7", _) => self.wraps = is_set,
                (b"1048", true) => self.escape(b"7", b"\x1b7", to),
                (b"1048", false) => self.escape(b"8", b"\x1b8", to),
                (b"1047", true) => to.process(b"\x1b[?47h"),
                (b"1047", false) => to.process(b"\x1b[2J\x1b[?47l"),
                (b"1049", true) => self.has_region[1] = false,
                (b"1049", false) => gives_cursor_back = true,
                _ => {}
            }
        }
        to.process(whole);
        // Both screens share one cursor, except when the program requested to restore it.
        if to.is_alternate() != was_alternate && !gives_cursor_back {
            let (row, column) = (cursor.0 + 1, cursor.1 + 1);
            to.process(format!("\x1b[{row};{column}H").as_bytes());
        }
    }

    /// A valid region moves the cursor home; an invalid one has no effect.
    fn set_region(&mut self, parameters: &[u8], whole: &[u8], to: &mut impl ScreenEmulator) {
        let mut numbers = parameters.split(|byte| *byte == b';').map(first_number);
        let top = numbers.next().unwrap_or(0).max(1);
        let (rows, _) = to.size();
        let bottom = numbers.next().filter(|bottom| *bottom > 0).unwrap_or(rows).min(rows);
        if top < bottom && !parameters.starts_with(b"?") {
            self.has_region[usize::from(to.is_alternate())] = (top, bottom) != (1, rows);
            to.process(whole);
            to.process(b"\x1b[H");
        }
    }

    /// Resets the terminal's modes, but not its content.
    fn soften(&mut self, to: &mut impl ScreenEmulator) {
        self.letters = CharacterSets::default();
        self.saved = self.letters;
        (self.inserts, self.wraps) = (false, true);
        self.has_region[usize::from(to.is_alternate())] = false;
        to.process(b"\x1b7\x1b[?6l\x1b[r\x1b8\x1b[m\x1b[?1l\x1b>\x1b[?25h");
    }

    fn set_tab(&mut self, to: &impl ScreenEmulator) {
        let column = to.column();
        let tabs = self.tabs.get_or_insert_with(|| usual_tabs(to.size().1));
        if let Err(at) = tabs.binary_search(&column) {
            tabs.insert(at, column);
        }
    }

    fn clear_tab(&mut self, to: &impl ScreenEmulator) {
        let column = to.column();
        let tabs = self.tabs.get_or_insert_with(|| usual_tabs(to.size().1));
        tabs.retain(|tab| *tab != column);
    }

    fn tab_after(&self, column: u16, columns: u16) -> u16 {
        let next = match &self.tabs {
            Some(tabs) => tabs.iter().copied().find(|tab| *tab > column).unwrap_or(columns),
            None => column.saturating_add(8) / 8 * 8,
        };
        next.min(columns - 1)
    }

    fn tab_before(&self, column: u16) -> u16 {
        match &self.tabs {
            Some(tabs) => tabs.iter().copied().rfind(|tab| *tab < column).unwrap_or(0),
            None => column.saturating_sub(1) / 8 * 8,
        }
    }
}

/// Whether further bytes could complete a letter.
fn is_begun(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn text_end(bytes: &[u8]) -> usize {
    memchr3(ESC, SHIFT_OUT, SHIFT_IN, bytes).unwrap_or(bytes.len())
}

/// The length of the text including the sequences in it that need no translation, which are most of them.
/// The emulator receives all of that in one call.
fn plain_end(bytes: &[u8]) -> usize {
    let mut end = text_end(bytes);
    while let Some(n_bytes) = known_sequence(&bytes[end..]) {
        end += n_bytes;
        end += text_end(&bytes[end..]);
    }
    end
}

/// The length of a sequence that `control` would pass unchanged; `None` if it would not, or if it is
/// incomplete.
fn known_sequence(bytes: &[u8]) -> Option<usize> {
    let [ESC, b'[', rest @ ..] = bytes else { return None };
    let is_last = |byte: &u8| !(0x20..0x40).contains(byte);
    let at = rest.iter().take(SEQUENCE_BYTES_MAX - 2).position(is_last)?;
    let passes = match (&rest[..at], rest[at]) {
        (_, b'm' | b'H' | b'K' | b'C' | b'D' | b'G' | b'X' | b'P' | b'@') => true,
        (parameters, b'J') => parameters != b"3",
        (parameters, b'h' | b'l') => parameters == b"?25",
        _ => false,
    };
    passes.then_some(at + 3)
}

fn usual_tabs(columns: u16) -> Vec<u16> {
    (8..columns).step_by(8).collect()
}

fn go_to_column(column: u16, to: &mut impl ScreenEmulator) {
    to.process(format!("\x1b[{}G", column + 1).as_bytes());
}

/// Behind the last column there is no cell: a cursor that leaves the row from there leaves it from the last
/// column.
fn go_vertically(sequence: &[u8], to: &mut impl ScreenEmulator) {
    let (_, columns) = to.size();
    if to.column() >= columns {
        go_to_column(columns - 1, to);
    }
    to.process(sequence);
}

/// Fills the screen with a test pattern.
fn fill(to: &mut impl ScreenEmulator) {
    let (rows, columns) = to.size();
    to.process(b"\x1b[r\x1b[?6l\x1b[m");
    for row in 1..=rows {
        to.process(format!("\x1b[{row}H").as_bytes());
        to.process(&vec![b'E'; columns.into()]);
    }
    to.process(b"\x1b[H");
}

fn first_number(parameters: &[u8]) -> u16 {
    let digits = parameters.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_u16, |n, digit| n.saturating_mul(10).saturating_add(u16::from(digit - b'0')))
}
