//! Splits a stream of bytes into lines of bounded length. Does not interpret their content.

/// Received bytes and the lines in them. Lines are borrowed from the buffer, never copied.
#[derive(Debug)]
pub struct LineBuffer {
    /// Filled up to `end`; the rest is space for the next read.
    buffer: Vec<u8>,
    /// Where the first line that was not taken yet begins.
    start: usize,
    /// There is no line break before this: a long line is searched once, not once per read.
    searched: usize,
    end: usize,
    line_bytes_max: usize,
    /// Bytes dropped so far of a line that is skipped.
    skipped: usize,
}

/// A line is longer than the maximum. The stream cannot be trusted after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {line_bytes_max} bytes")]
pub struct LineTooLong {
    /// The maximum that was exceeded.
    pub line_bytes_max: usize,
}

impl LineBuffer {
    /// An empty buffer for lines of at most `line_bytes_max` bytes, the line break not counted.
    pub const fn new(line_bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, end: 0, line_bytes_max, skipped: 0 }
    }

    /// Sets the maximum length of lines from now on.
    pub const fn set_line_bytes_max(&mut self, line_bytes_max: usize) {
        self.line_bytes_max = line_bytes_max;
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled(bytes.len());
    }

    /// Space for at least `at_least` more bytes, to read into; report with [`LineBuffer::filled`] how many
    /// were read.
    pub fn room(&mut self, at_least: usize) -> &mut [u8] {
        if self.buffer.len() - self.end < at_least {
            self.close_up();
            let needed = self.end + at_least;
            if self.buffer.is_empty() {
                // Zero pages from the system, which need not be written individually.
                self.buffer = vec![0; needed];
            } else if self.buffer.len() < needed {
                self.buffer.resize(needed.max(self.buffer.len() * 2), 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// Counts `n` bytes, written into [`LineBuffer::room`], as received.
    pub fn filled(&mut self, n: usize) {
        assert!(n <= self.buffer.len() - self.end, "no more can be filled than there was room");
        self.end += n;
    }

    /// The next whole line without its line break, if one has arrived.
    pub fn take(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        Ok(self.take_mut()?.map(|line| &*line))
    }

    /// As `take`, but mutable.
    pub fn take_mut(&mut self) -> Result<Option<&mut [u8]>, LineTooLong> {
        if !self.has_line()? {
            return Ok(None);
        }
        let line = self.start..self.searched;
        self.start = line.end + 1;
        self.searched = self.start;
        Ok(Some(&mut self.buffer[line]))
    }

    /// The received part of the next line, as far as it was searched for its end: all of it once
    /// [`LineBuffer::has_line`] is true.
    pub fn peek(&self) -> &[u8] {
        &self.buffer[self.start..self.searched]
    }

    /// Drops the received part of the next line, whatever its length. Returns its length once its end has
    /// arrived; until then, call it again when more bytes have arrived.
    pub fn skip_line(&mut self) -> Option<usize> {
        let arrived = &self.buffer[self.start..self.end];
        let Some(found) = memchr::memchr(b'\n', arrived) else {
            self.skipped += arrived.len();
            (self.start, self.searched, self.end) = (0, 0, 0);
            return None;
        };
        self.start += found + 1;
        self.searched = self.start;
        Some(std::mem::take(&mut self.skipped) + found)
    }

    /// Whether [`LineBuffer::take`] would return a line.
    pub fn has_line(&mut self) -> Result<bool, LineTooLong> {
        let unsearched = &self.buffer[self.searched..self.end];
        let found = memchr::memchr(b'\n', unsearched);
        self.searched += found.unwrap_or(unsearched.len());
        if self.searched - self.start > self.line_bytes_max {
            return Err(LineTooLong { line_bytes_max: self.line_bytes_max });
        }
        Ok(found.is_some())
    }

    /// Whether there are no bytes of an unfinished or untaken line.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Moves the remaining bytes to the front, so that the buffer does not grow without bound.
    fn close_up(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.searched -= self.start;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(lines: &mut LineBuffer) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| lines.take().unwrap().map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn a_line_comes_out_once_its_break_has_arrived() {
        let mut lines = LineBuffer::new(10);
        lines.push(b"on");
        assert_eq!(lines.take(), Ok(None));
        lines.push(b"e\ntwo\nth");
        assert_eq!(all(&mut lines), [b"one".to_vec(), b"two".to_vec()]);
        assert!(!lines.is_empty());
        lines.push(b"ree\n");
        assert_eq!(all(&mut lines), [b"three".to_vec()]);
        assert!(lines.is_empty());
    }

    #[test]
    fn a_line_of_exactly_the_maximum_passes_and_one_byte_more_does_not() {
        let too_long = Err(LineTooLong { line_bytes_max: 4 });
        let mut lines = LineBuffer::new(4);
        lines.push(b"1234\n12345");
        assert_eq!(lines.take(), Ok(Some(&b"1234"[..])));
        assert_eq!(lines.take(), too_long);
        lines.push(b"\n");
        assert_eq!(lines.take(), too_long);
    }

    #[test]
    fn a_line_that_is_too_long_can_be_skipped_and_counted() {
        let mut lines = LineBuffer::new(4);
        lines.push(b"12345");
        assert_eq!(lines.take(), Err(LineTooLong { line_bytes_max: 4 }));
        assert_eq!(lines.peek(), b"12345");
        assert_eq!(lines.skip_line(), None);
        lines.push(b"67");
        assert_eq!(lines.skip_line(), None);
        lines.push(b"8\nnext\n");
        assert_eq!(lines.skip_line(), Some(8));
        assert_eq!(all(&mut lines), [b"next".to_vec()]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            texts in prop::collection::vec("[a-z]{0,9}", 0..20),
            step in 1_usize..12,
        ) {
            let stream: Vec<u8> = texts.iter().flat_map(|text| format!("{text}\n").into_bytes()).collect();
            let mut lines = LineBuffer::new(9);
            let mut seen = Vec::new();
            for piece in stream.chunks(step) {
                lines.push(piece);
                seen.append(&mut all(&mut lines));
            }
            prop_assert_eq!(seen, texts.into_iter().map(String::into_bytes).collect::<Vec<_>>());
        }
    }
}
