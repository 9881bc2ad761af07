//! The column that the engine assigns to a token: that of the last word, or of what followed the last
//! blank.

/// The position of a token for which none can be determined: no error has it.
const UNKNOWN: u32 = u32::MAX;

/// How far the search for a position goes back: otherwise a text without blanks would be read again for each
/// token.
const SCAN_BYTES_MAX: usize = 512;

/// The byte whose column the engine assigns to the token at `at`.
pub(super) fn mark_at(source: &str, at: u32) -> u32 {
    let bytes = source.as_bytes();
    let at = (at as usize).min(bytes.len());
    if bytes.get(at).is_some_and(|byte| begins_word(*byte)) {
        return at as u32;
    }
    let (mut end, floor) = (at, at.saturating_sub(SCAN_BYTES_MAX));
    while let Some(byte) = end.checked_sub(1).map(|last| bytes[last]) {
        if end <= floor {
            return UNKNOWN;
        }
        if byte.is_ascii_whitespace() || bytes[..end].ends_with(b"*/") {
            return end as u32;
        }
        if matches!(byte, b'"' | b'\'') {
            match text_start(&bytes[floor..end - 1], byte) {
                Some(start) => end = floor + start,
                None => return UNKNOWN,
            }
            continue;
        }
        // The content of a template or a regular expression is no word.
        if matches!(byte, b'`' | b'/') {
            return UNKNOWN;
        }
        if !is_word(byte) {
            end -= 1;
            continue;
        }
        let start =
            bytes[..end].iter().rposition(|byte| !is_word(*byte)).map_or(0, |before| before + 1);
        if begins_word(bytes[start]) {
            return start as u32;
        }
        end = start;
    }
    0
}

/// The beginning of the string whose closing quote follows; `None` if it is not certain.
fn text_start(before: &[u8], quote: u8) -> Option<usize> {
    let start = before.iter().rposition(|byte| *byte == quote || *byte == b'\n')?;
    (before[start] == quote && !before[start..].contains(&b'\\')).then_some(start)
}

const fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'\\') || byte >= 0x80
}

/// Whether a byte is a part of a name or a number.
pub(in crate::naming) const fn is_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit()
}
