//! The column that the engine gives a token: that of the last word, or of what followed the last blank.

/// The byte whose column the token at `at` is given.
pub(super) fn mark_at(source: &str, at: u32) -> u32 {
    let bytes = source.as_bytes();
    let at = (at as usize).min(bytes.len());
    if bytes.get(at).is_some_and(|byte| begins_word(*byte)) {
        return at as u32;
    }
    let mut end = at;
    while let Some(byte) = end.checked_sub(1).map(|last| bytes[last]) {
        if byte.is_ascii_whitespace() || bytes[..end].ends_with(b"*/") {
            return end as u32;
        }
        // What a text holds is no word: its place is not known, and none is claimed.
        if matches!(byte, b'"' | b'\'' | b'`' | b'/') {
            return u32::MAX;
        }
        if !is_word(byte) {
            end -= 1;
            continue;
        }
        let start = bytes[..end].iter().rposition(|byte| !is_word(*byte)).map_or(0, |before| before + 1);
        if begins_word(bytes[start]) {
            return start as u32;
        }
        end = start;
    }
    0
}

const fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'\\') || byte >= 0x80
}

const fn is_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit()
}
