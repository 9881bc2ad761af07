//! Parses `text/event-stream` from chunks of any size. Only the data fields are used: the server's events contain their
//! numbers.

use std::collections::VecDeque;

/// Longest message: the largest value of a program, escaped, with some reserve.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Parses bytes into messages.
#[derive(Debug)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    /// The data lines of the incomplete message, each with a line end.
    data: Vec<u8>,
    /// The last line ended with a carriage return: a line feed that follows directly belongs to it.
    was_return: bool,
    is_begun: bool,
    complete: VecDeque<Vec<u8>>,
    bytes_max: usize,
}

/// A message that exceeds the length limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseMessageTooLong;

impl SseParser {
    pub(crate) const fn new() -> Self {
        Self {
            line: vec![],
            data: vec![],
            was_return: false,
            is_begun: false,
            complete: VecDeque::new(),
            bytes_max: MESSAGE_BYTES_MAX,
        }
    }

    /// Returns the next complete message.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        self.complete.pop_front()
    }

    /// Parses a chunk of bytes.
    pub(crate) fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<(), SseMessageTooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.was_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.append_bytes(bytes);
            };
            self.append_bytes(&bytes[..end])?;
            self.was_return = bytes[end] == b'\r';
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), SseMessageTooLong> {
        if self.line.len() + self.data.len() + bytes.len() > self.bytes_max {
            return Err(SseMessageTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) {
        let mut line = self.line.as_slice();
        if !std::mem::replace(&mut self.is_begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.end_message();
        } else if let Some(data) = data_of(line) {
            self.data.extend_from_slice(data);
            self.data.push(b'\n');
        }
        self.line.clear();
    }

    /// A message without data is a keep-alive.
    fn end_message(&mut self) {
        if self.data.pop().is_some() {
            self.complete.push_back(std::mem::take(&mut self.data));
        }
    }
}

/// The content of a data line; `None` for comments and other fields.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', data @ ..] | [b':', data @ ..] => Some(data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(pieces: &[&[u8]]) -> Vec<String> {
        let mut messages = SseParser::new();
        let mut heard = vec![];
        for piece in pieces {
            messages.push_bytes(piece).unwrap();
            heard.extend(std::iter::from_fn(|| messages.next()));
        }
        heard.into_iter().map(|message| String::from_utf8(message).unwrap()).collect()
    }

    #[test]
    fn a_message_is_its_data_lines() {
        assert_eq!(heard(&[b"id: 1\ndata: {\"a\":1}\n\n"]), ["{\"a\":1}"]);
        assert_eq!(heard(&[b"event: x\ndata:a\ndata\ndata:  b\n\n"]), ["a\n\n b"]);
        assert_eq!(heard(&[b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"]), ["a", "b"]);
    }

    #[test]
    fn signs_of_life_and_unknown_fields_are_no_messages() {
        assert_eq!(heard(&[b":\n\n: hello\n\nid: 7\n\nretry: 5\n\ndatabase: x\n\n\n\n"]), [""; 0]);
    }

    #[test]
    fn a_message_that_was_not_ended_is_not_heard() {
        assert_eq!(heard(&[b"data: a\n\ndata: b\n"]), ["a"]);
    }

    #[test]
    fn it_does_not_matter_where_the_pieces_are_cut() {
        let whole = "id: 1\r\ndata: \u{e9}\u{1f600}\r\n\r\n:\r\rdata: b\rdata: c\r\r\ndata: d\n\n";
        let expected = ["\u{e9}\u{1f600}", "b\nc", "d"];
        let bytes = whole.as_bytes();
        assert_eq!(heard(&[bytes]), expected);
        for cut in 0..=bytes.len() {
            assert_eq!(heard(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(heard(&single), expected);
    }

    #[test]
    fn an_endless_message_is_refused() {
        let mut messages = SseParser { bytes_max: 10, ..SseParser::new() };
        assert_eq!(messages.push_bytes(b"data: abcd"), Ok(()));
        assert_eq!(messages.push_bytes(b"e"), Err(SseMessageTooLong));
        let mut messages = SseParser { bytes_max: 10, ..SseParser::new() };
        assert_eq!(messages.push_bytes(b"data:ab\ndata:cd\ndata:ef\n"), Err(SseMessageTooLong));
    }
}
