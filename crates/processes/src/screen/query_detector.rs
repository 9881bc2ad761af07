//! Queries that programs send to their terminal and wait for: its type, its status, the position of the
//! cursor, its size and its colours.

use memchr::memchr;
use std::fmt::Write as _;

/// Limit of queued answers for a program that does not read them but repeats its queries.
const ANSWERS_BYTES_MAX: usize = 4 << 10;

/// The colours of a terminal without a viewer: light on dark, as in most terminals.
const FOREGROUND: &str = "rgb:d0d0/d0d0/d0d0";
const BACKGROUND: &str = "rgb:0000/0000/0000";

/// Detects that a program may have sent a query, even if it arrives in pieces. The emulator determines
/// which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum QueryDetector {
    #[default]
    Text,
    Escape,
    /// Within a control sequence, after `ESC [`.
    Control,
    /// Within a string, after `ESC ]`, and whether it contains a question mark.
    String {
        asks: bool,
    },
}

impl QueryDetector {
    /// Processes the next piece; returns whether a query ends in it.
    pub(crate) fn detect_query(&mut self, bytes: &[u8]) -> bool {
        let (mut asked, mut rest) = (false, bytes);
        loop {
            if *self == Self::Text {
                let Some(at) = memchr(ESC, rest) else { return asked };
                rest = &rest[at..];
            }
            let Some((byte, behind)) = rest.split_first() else { return asked };
            rest = behind;
            asked |= self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) -> bool {
        let (next, asked) = match (*self, byte) {
            (Self::String { asks }, ESC | BELL) => {
                (if byte == ESC { Self::Escape } else { Self::Text }, asks)
            }
            (_, ESC) => (Self::Escape, false),
            (Self::Escape, b'[') => (Self::Control, false),
            (Self::Escape, b']') => (Self::String { asks: false }, false),
            (Self::Control, 0x20..0x40) => (Self::Control, false),
            (Self::Control, _) => (Self::Text, matches!(byte, b'n' | b'c' | b't')),
            (Self::String { .. }, 0x18 | 0x1a) => (Self::Text, false),
            (Self::String { asks }, _) => (Self::String { asks: asks || byte == b'?' }, false),
            (Self::Text | Self::Escape, _) => (Self::Text, false),
        };
        *self = next;
        asked
    }
}

const ESC: u8 = 0x1b;
const BELL: u8 = 0x07;

/// Queries and their answers.
#[derive(Debug, Default)]
pub(super) struct QueryAnswers(String);

impl QueryAnswers {
    /// Takes the answers so far.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).into_bytes()
    }

    /// A sequence that the emulator ignores: `mark` precedes its numbers.
    pub(super) fn control(
        &mut self,
        screen: &vt100::Screen,
        mark: Option<u8>,
        numbers: &[&[u16]],
        last: char,
    ) {
        let number = numbers.first().and_then(|sub| sub.first()).copied().unwrap_or(0);
        let (rows, columns) = screen.size();
        let (row, column) = screen.cursor_position();
        // A cursor behind the last column is reported in it: the next letter wraps.
        let (row, column) = (row + 1, (column + 1).min(columns.get()));
        match (mark, last, number) {
            // A terminal of conformance level 2, with colours, and no particular type.
            (None, 'c', 0) => self.add(format_args!("\x1b[?62;22c")),
            (Some(b'>'), 'c', 0) => self.add(format_args!("\x1b[>1;0;0c")),
            (None, 'n', 5) => self.add(format_args!("\x1b[0n")),
            (None, 'n', 6) => self.add(format_args!("\x1b[{row};{column}R")),
            (Some(b'?'), 'n', 6) => self.add(format_args!("\x1b[?{row};{column}R")),
            (None, 't', 18) => self.add(format_args!("\x1b[8;{rows};{columns}t")),
            _ => {}
        }
    }

    /// A string that the emulator ignores.
    pub(super) fn string(&mut self, parts: &[&[u8]]) {
        match parts {
            [b"10", b"?"] => self.add(format_args!("\x1b]10;{FOREGROUND}\x1b\\")),
            [b"11", b"?"] => self.add(format_args!("\x1b]11;{BACKGROUND}\x1b\\")),
            _ => {}
        }
    }

    fn add(&mut self, answer: std::fmt::Arguments<'_>) {
        let n_before = self.0.len();
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(answer);
        if self.0.len() > ANSWERS_BYTES_MAX {
            self.0.truncate(n_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_noticed_however_it_comes_and_nothing_else_is() {
        for (said, asks) in [
            ("\x1b[6n", true),
            ("text\x1b[31m\x1b[>0c", true),
            ("\x1b]11;?\x07", true),
            ("\x1b]10;?\x1b\\", true),
            ("\x1b[18t", true),
            ("6n \x1b[31mc\x1b[2J", false),
            ("\x1b]0;what?", false),
            ("\x1b]11;rgb:0/0/0\x07", false),
            ("\x1b[6", false),
        ] {
            assert_eq!(
                (said, QueryDetector::default().detect_query(said.as_bytes())),
                (said, asks)
            );
            let mut listening = QueryDetector::default();
            let bytes = said.as_bytes().chunks(1);
            let asked = bytes.filter(|byte| listening.detect_query(byte)).count() > 0;
            assert_eq!((said, asked), (said, asks));
        }
    }
}
