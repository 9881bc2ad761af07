//! The output of a command: limited for its result, and in chunks for its observers. Secrets are redacted before
//! anything is cut, so that no part of one remains.

use lifecycle::PROGRESS_BYTES_MAX;
use processes::OutputStream;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;
use tools::scrub;

/// The beginning and the end of each stream that a result contains; the middle is omitted.
const HEAD_BYTES_MAX: usize = 128 << 10;
const TAIL_BYTES_MAX: usize = 128 << 10;

/// Interval of progress reports: short at first, longer for long commands. A journal is not a terminal.
const BETWEEN_WORDS_MIN: Duration = Duration::from_millis(250);
const BETWEEN_WORDS_MAX: Duration = Duration::from_secs(5);

/// Maximum size of one progress report.
const WORDS_BYTES_MAX: usize = 8 << 10;

/// The collected output.
#[derive(Debug)]
pub(super) struct CommandOutput {
    began: Instant,
    stdout: OutputTail,
    stderr: OutputTail,
    untold: Vec<u8>,
    told_bytes: usize,
    /// When the next progress report is due.
    due: Option<Instant>,
}

/// The output of one stream.
#[derive(Debug, Default)]
struct OutputTail {
    scrubbed: scrub::StreamScrubber,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out_bytes: u64,
}

impl CommandOutput {
    /// No output yet.
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            stdout: OutputTail::default(),
            stderr: OutputTail::default(),
            untold: vec![],
            told_bytes: 0,
            due: None,
        }
    }

    pub(super) fn append_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        let kept = self.stream_text(stream);
        let passed = kept.scrubbed.pass(bytes);
        self.store_bytes(stream, &passed);
    }

    /// Resolves when there is unreported output and its report is due.
    pub(super) async fn due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// The unreported output, cut between characters.
    pub(super) fn take(&mut self) -> Option<String> {
        self.due = None;
        let mut words = std::mem::take(&mut self.untold);
        if let Err(error) = std::str::from_utf8(&words)
            && error.error_len().is_none()
        {
            self.untold = words.split_off(error.valid_up_to());
        }
        self.told_bytes += words.len();
        (!words.is_empty()).then(|| String::from_utf8_lossy(&words).into_owned())
    }

    /// The remaining unreported output, after the last chunk.
    pub(super) fn finish(&mut self) -> Option<String> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let rest = self.stream_text(stream).scrubbed.finish();
            self.store_bytes(stream, &rest);
        }
        let words = std::mem::take(&mut self.untold);
        (!words.is_empty()).then(|| String::from_utf8_lossy(&words).into_owned())
    }

    /// Whether output was omitted.
    pub(super) const fn is_truncated(&self) -> bool {
        self.stdout.left_out_bytes + self.stderr.left_out_bytes > 0
    }

    /// The standard output and the standard error.
    pub(super) fn texts(self) -> [String; 2] {
        [self.stdout.tail_text(), self.stderr.tail_text()]
    }

    const fn stream_text(&mut self, stream: OutputStream) -> &mut OutputTail {
        match stream {
            OutputStream::Stdout | OutputStream::Terminal => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    fn store_bytes(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.stream_text(stream).push_bytes(bytes);
        // The journal would not store more either.
        let room = PROGRESS_BYTES_MAX.saturating_sub(self.told_bytes + self.untold.len());
        let words = &bytes[..bytes.len().min(room)];
        if words.is_empty() {
            return;
        }
        self.untold.extend_from_slice(words);
        let now = Instant::now();
        let between = (self.began.elapsed() / 16).clamp(BETWEEN_WORDS_MIN, BETWEEN_WORDS_MAX);
        self.due = match self.untold.len() >= WORDS_BYTES_MAX {
            true => Some(now),
            false => self.due.or(Some(now + between)),
        };
    }
}

impl OutputTail {
    fn push_bytes(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES_MAX - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a chunk larger than the retained end, only its own end is used.
        let skipped = rest.len().saturating_sub(TAIL_BYTES_MAX);
        self.tail.extend(&rest[skipped..]);
        let n_over = self.tail.len().saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..n_over);
        self.left_out_bytes += (skipped + n_over) as u64;
    }

    fn tail_text(self) -> String {
        let Self { mut head, tail, left_out_bytes, .. } = self;
        if left_out_bytes > 0 {
            head.extend_from_slice(format!("\n[{left_out_bytes} bytes left out]\n").as_bytes());
        }
        head.extend(tail);
        String::from_utf8_lossy(&head).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept_however_it_comes() {
        let said: Vec<u8> = (b'a'..=b'z').cycle().take(700_000).collect();
        for n_bytes in [1_000, 65_536, 300_000, 700_000] {
            let mut heard = CommandOutput::new();
            said.chunks(n_bytes).for_each(|piece| heard.append_output(OutputStream::Stderr, piece));
            heard.finish();
            assert!(heard.is_truncated());
            let left_out = said.len() - HEAD_BYTES_MAX - TAIL_BYTES_MAX;
            let expected = [
                &said[..HEAD_BYTES_MAX],
                format!("\n[{left_out} bytes left out]\n").as_bytes(),
                &said[said.len() - TAIL_BYTES_MAX..],
            ]
            .concat();
            assert!(heard.texts() == [String::new(), String::from_utf8(expected).unwrap()]);
        }
    }

    #[test]
    fn words_are_whole_letters_and_no_more_than_a_journal_keeps() {
        let mut heard = CommandOutput::new();
        heard.append_output(OutputStream::Stdout, "gr\u{fc}n".as_bytes().split_at(3).0);
        assert_eq!(heard.take().as_deref(), Some("gr"));
        heard.append_output(OutputStream::Stdout, "gr\u{fc}n".as_bytes().split_at(3).1);
        assert_eq!(heard.take().as_deref(), Some("\u{fc}n"));
        assert_eq!(heard.take(), None);
        let mut told_bytes = 5;
        for _ in 0..100 {
            heard.append_output(OutputStream::Stdout, &[b'x'; 1_000]);
            told_bytes += heard.take().map_or(0, |words| words.len());
        }
        assert_eq!(told_bytes, PROGRESS_BYTES_MAX);
    }
}
