//! The terminal output of typical programs.

use super::SIZE;

/// The output of one operation. A megabyte is an item, so times are per megabyte.
pub(super) const MEGABYTES: u64 = 1;

/// The size of one read of a terminal.
pub(super) const PIECE_BYTES: usize = 4 << 10;

/// One kind of content.
pub(super) struct Content {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// All kinds that are measured.
pub(super) fn all() -> [Content; 3] {
    [
        Content { name: "plain text", bytes: filled(plain) },
        Content { name: "coloured text", bytes: filled(coloured) },
        Content { name: "full-screen redraws", bytes: filled(redrawn) },
    ]
}

fn filled(mut next: impl FnMut(usize) -> String) -> Vec<u8> {
    let n_bytes = usize::try_from(MEGABYTES).unwrap_or(1) * 1_000_000;
    let mut bytes = vec![];
    for n in 0.. {
        bytes.extend(next(n).into_bytes());
        if bytes.len() >= n_bytes {
            break;
        }
    }
    bytes
}

/// A line of a log.
fn plain(n: usize) -> String {
    format!("{n:>6} the quick brown fox jumps over the lazy dog and sits down in the sun\r\n")
}

/// A line of a compiler, of `ls`, of a test runner: each word has its colour.
fn coloured(n: usize) -> String {
    let words = ["   Compiling", "crate", "warning:", "unused", "variable", "src/lib.rs"];
    let colour =
        |(at, word): (usize, &&str)| format!("\x1b[1;{}m{word}\x1b[0m ", 31 + (n + at) % 7);
    let words: String = words.iter().enumerate().map(colour).collect();
    format!("{words}\x1b[38;5;{}m{n}\x1b[m\r\n", n % 256)
}

/// A whole screen of `htop` or `vim`: every row addressed, drawn and cleared to its end.
fn redrawn(n: usize) -> String {
    let row = |row: u16| {
        let width = usize::from(row + 7) % 60;
        format!("\x1b[{row};1H\x1b[7m{n:>5}\x1b[27m \x1b[32m{}\x1b[39m\x1b[K", "|".repeat(width))
    };
    let rows: String = (1..=SIZE.rows).map(row).collect();
    format!("\x1b[?25l{rows}\x1b[{};{}H\x1b[?25h", 1 + n % 24, 1 + n % 80)
}
