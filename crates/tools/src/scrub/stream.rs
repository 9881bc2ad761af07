//! The same for what comes in pieces: a secret may begin in one and end in the next.

use super::{Known, read};

/// What comes in pieces. Holds back what may be the beginning of a secret until it is known whether it is.
#[derive(Debug, Default)]
pub struct Stream {
    held: Vec<u8>,
}

impl Stream {
    /// The next piece goes in; what can be passed on comes out, without known secrets.
    pub fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        read(|known| {
            let rest = self.held.split_off(known.n_certain(&self.held));
            let certain = std::mem::replace(&mut self.held, rest);
            known.blotted(&certain).into_owned()
        })
    }

    /// Nothing more comes: the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.held);
        read(|known| known.blotted(&rest).into_owned())
    }
}

impl Known {
    /// How many bytes belong to no secret that goes on behind their end.
    fn n_certain(&self, bytes: &[u8]) -> usize {
        let Some(finder) = self.finder() else { return bytes.len() };
        let needles = self.needles();
        let first = bytes.len().saturating_sub(finder.max_pattern_len().saturating_sub(1));
        let may_begin_at = |at: &usize| {
            let end = &bytes[*at..];
            let next = needles.partition_point(|needle| needle.as_slice() <= end);
            needles.get(next).is_some_and(|needle| needle.starts_with(end))
        };
        let next_from = |at: usize| (at..bytes.len()).find(may_begin_at).unwrap_or(bytes.len());
        let mut n_certain = next_from(first);
        // A secret that is whole may end as it begins: it is not torn apart for the sake of the next one.
        for whole in finder.find_iter(bytes) {
            if whole.start() < n_certain && n_certain < whole.end() {
                n_certain = next_from(whole.end());
            }
        }
        n_certain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrub::learn;

    #[test]
    fn a_secret_in_pieces_is_blotted_out_however_it_is_cut() {
        learn("stream-canary-0123456789");
        learn("twice-a-day-twice-a-day-");
        let said = b"stream-can stream-canary-0123456789 twice-a-day-twice-a-day-twice-a-day- \
                     stream-canary-01234567"
            .as_slice();
        for n_bytes in 1..said.len() {
            let mut stream = Stream::default();
            let mut passed: Vec<u8> =
                said.chunks(n_bytes).flat_map(|piece| stream.pass(piece)).collect();
            passed.extend(stream.finish());
            let passed = String::from_utf8(passed).unwrap();
            let expected = "stream-can [redacted] [redacted]twice-a-day- stream-canary-01234567";
            assert_eq!(passed, expected, "{n_bytes}");
        }
    }

    #[test]
    fn what_cannot_be_the_beginning_of_a_secret_passes_at_once() {
        learn("stream-canary-0123456789");
        let mut stream = Stream::default();
        assert_eq!(stream.pass(b"compiling ... stream-"), b"compiling ... ");
        assert_eq!(stream.pass(b"lined\n"), b"stream-lined\n");
    }
}
