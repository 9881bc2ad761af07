//! A checksum per row. SQLite checks none of its pages; the seal detects a flipped bit when the row is read.

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A 64-bit checksum of a row's columns. Each step is a bijection of the state and of its input word,
/// so damage within one eight-byte word is always detected, and other damage almost always.
#[derive(Clone, Copy)]
pub(super) struct RowChecksum(u64);

impl RowChecksum {
    pub(super) const fn new() -> Self {
        Self(FACTOR)
    }

    #[must_use]
    pub(super) const fn int(self, word: i64) -> Self {
        Self((self.0 ^ word.cast_unsigned()).wrapping_mul(FACTOR).rotate_left(29))
    }

    /// The length is included, so that moving bytes between columns is detected.
    #[must_use]
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut seal = self.int(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            seal = seal.int(i64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        seal.int(i64::from_le_bytes(last))
    }

    /// The stored value.
    pub(super) const fn done(self) -> i64 {
        self.0.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_changes_the_seal() {
        let text = br#"{"logged":{"line":"hello"}}"#;
        let whole = RowChecksum::new().int(7).bytes(text).done();
        for bit in 0..text.len() * 8 {
            let mut flipped = *text;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(RowChecksum::new().int(7).bytes(&flipped).done(), whole, "bit {bit}");
        }
    }

    #[test]
    fn columns_cannot_trade_bytes() {
        let seal = |a: &[u8], b: &[u8]| RowChecksum::new().bytes(a).bytes(b).done();
        assert_ne!(seal(b"ab", b"c"), seal(b"a", b"bc"));
        assert_ne!(seal(b"a", b""), seal(b"a\0", b""));
    }
}
