//! Redacts a stream: a secret may begin in one chunk and end in the next.

use super::{SearchForm, find_secrets};

/// Redacts a stream. Holds back what may be the beginning of a secret until that is decided.
#[derive(Debug, Default)]
pub struct StreamScrubber {
    held: Vec<u8>,
}

impl StreamScrubber {
    /// Takes the next chunk and returns what can be passed on, without known secrets.
    pub fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let look = find_secrets();
        let rest = self.held.split_off(n_certain(&look, &self.held));
        let certain = std::mem::replace(&mut self.held, rest);
        look.blotted(&certain).into_owned()
    }

    /// Ends the stream and returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        find_secrets().blotted(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// How many bytes belong to no secret that continues after their end.
fn n_certain(look: &SearchForm, bytes: &[u8]) -> usize {
    let n_certain = look.open_from(bytes);
    // Another secret may begin within a complete one: it must not be split.
    let torn = look.find(bytes).into_iter().find(|found| found.contains(&n_certain));
    torn.map_or(n_certain, |found| found.start)
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
            let mut stream = StreamScrubber::default();
            let mut passed: Vec<u8> =
                said.chunks(n_bytes).flat_map(|piece| stream.pass(piece)).collect();
            passed.extend(stream.finish());
            let passed = String::from_utf8(passed).unwrap();
            let expected = "stream-can [redacted] [redacted]twice-a-day- stream-canary-01234567";
            assert_eq!(passed, expected, "{n_bytes}");
        }
    }

    #[test]
    fn one_that_is_escaped_is_blotted_out_however_it_is_cut() {
        learn("stream/canary/escaped");
        let said = br"a \/stream%2Fcanary\u002fescaped & &#47;stream&#x2f;canary&sol;escaped% b%";
        for n_bytes in 1..said.len() {
            let mut stream = StreamScrubber::default();
            let mut passed: Vec<u8> =
                said.chunks(n_bytes).flat_map(|piece| stream.pass(piece)).collect();
            passed.extend(stream.finish());
            let expected = r"a \/[redacted] & &#47;[redacted]% b%";
            assert_eq!(String::from_utf8(passed).unwrap(), expected, "{n_bytes}");
        }
    }

    #[test]
    fn a_very_long_one_is_held_until_its_end() {
        let secret: String = (0..3_000).map(|n| char::from(b'a' + (n * n % 19) as u8)).collect();
        learn(&secret);
        let (mut stream, said) = (StreamScrubber::default(), format!("<{secret}>"));
        let mut passed: Vec<u8> =
            said.as_bytes().chunks(400).flat_map(|piece| stream.pass(piece)).collect();
        passed.extend(stream.finish());
        assert_eq!(String::from_utf8(passed).unwrap(), "<[redacted]>");
    }

    #[test]
    fn what_cannot_be_the_beginning_of_a_secret_passes_at_once() {
        learn("stream-canary-0123456789");
        let mut stream = StreamScrubber::default();
        assert_eq!(stream.pass(b"compiling ... stream-"), b"compiling ... ");
        assert_eq!(stream.pass(b"lined\n"), b"stream-lined\n");
    }
}
