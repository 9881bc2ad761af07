//! Finds which part of much output is never visible: of many lines of plain text only the last ones are.
//!
//! A program that prints a megabyte leaves a screen and its scrollback; an emulator that processes all of
//! it takes longer than everything else on the way. Skipping is exact: between two line ends, with only
//! text between them, and enough lines after them to fill all retained rows, on a screen that scrolls as a
//! whole.

use bytes::Bytes;
use std::ops::Range;

const LINE_END: [u8; 2] = *b"\r\n";

/// The part of the consecutive `pieces` that is never visible if `rows_kept` rows are retained.
pub(super) fn unseen(pieces: &[Bytes], rows_kept: usize) -> Option<Range<usize>> {
    let text = text_start(pieces);
    let n_bytes: usize = pieces.iter().map(Bytes::len).sum();
    let backwards = (text..n_bytes).rev().zip(bytes_backwards(pieces));
    let end = line_ends(backwards, |after, byte| [byte, after]).nth(rows_kept)? + LINE_END.len();
    // What precedes the first complete line end may finish an earlier sequence.
    let forwards = (text..end).zip(bytes_from(pieces, text));
    let start = line_ends(forwards, |before, byte| [before, byte]).next()? + 1;
    Some(start..end).filter(|unseen| !unseen.is_empty())
}

/// The position after the last byte that is not text.
fn text_start(pieces: &[Bytes]) -> usize {
    let mut start: usize = pieces.iter().map(Bytes::len).sum();
    for piece in pieces.iter().rev() {
        start -= piece.len();
        // Block by block: the compiler vectorizes a search that need not return the position.
        for (n, block) in piece.chunks(BLOCK_BYTES).enumerate().rev() {
            if !block.iter().fold(true, |all, byte| all & is_text(*byte)) {
                let at = block.iter().rposition(|byte| !is_text(*byte)).unwrap_or(0);
                return start + n * BLOCK_BYTES + at + 1;
            }
        }
    }
    0
}

const BLOCK_BYTES: usize = 256;

fn bytes_backwards(pieces: &[Bytes]) -> impl Iterator<Item = u8> {
    pieces.iter().rev().flat_map(|piece| piece.iter().rev().copied())
}

fn bytes_from(pieces: &[Bytes], mut from: usize) -> impl Iterator<Item = u8> {
    pieces.iter().flat_map(move |piece| {
        let skipped = from.min(piece.len());
        from -= skipped;
        piece[skipped..].iter().copied()
    })
}

/// Where lines end with the cursor in the first column. `pair` puts two neighbours into the order of the text.
fn line_ends(
    bytes: impl Iterator<Item = (usize, u8)>,
    pair: impl Fn(u8, u8) -> [u8; 2],
) -> impl Iterator<Item = usize> {
    let mut last = None;
    bytes.filter_map(move |(at, byte)| {
        let is_end = last.replace(byte).is_some_and(|last| pair(last, byte) == LINE_END);
        is_end.then_some(at)
    })
}

/// Whether a byte is text and nothing else. 0xc2 begins the two-byte encoding of control characters.
const fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t' | 0x80..=0xff) && byte != 0xc2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unseen_of(pieces: &[&str], rows_kept: usize) -> Option<String> {
        let whole = pieces.concat();
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Bytes::copy_from_slice(piece.as_bytes())).collect();
        unseen(&pieces, rows_kept).map(|range| whole[range].to_owned())
    }

    #[test]
    fn lines_before_those_that_fill_a_screen_are_not_seen() {
        assert_eq!(unseen_of(&["a\r\nb\r\nc\r\n", "d\r\ne"], 2), Some("b\r\n".into()));
        assert_eq!(unseen_of(&["a\r", "\nb\r\nc", "\r\nd\r\ne\r\n"], 2), Some("b\r\nc\r\n".into()));
        assert_eq!(unseen_of(&["a\r\nb\r\nc"], 2), None);
        assert_eq!(unseen_of(&[], 2), None);
    }

    #[test]
    fn what_is_no_text_is_heard_and_all_before_it() {
        let lines = "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n";
        for control in ["\x1b[31mred", "\x07", "\u{9b}", "\x08", "\x0e"] {
            let seen = [lines, control, " rest\r\n", lines].concat();
            assert_eq!(unseen_of(&[&seen], 2), Some("1\r\n2\r\n3\r\n4\r\n".into()), "{control:?}");
        }
        // If lines end without a return to the first column, columns matter.
        assert_eq!(unseen_of(&["1\n2\n3\n4\n5\n6\n"], 2), None);
    }
}
