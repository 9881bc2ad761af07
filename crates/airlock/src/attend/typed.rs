//! Lines that a person types, one at a time, each in answer to what stands above it.

use nix::sys::termios::{FlushArg, tcflush};
use std::io::{self, BufRead as _, Read as _};
use tokio::task::{self, JoinHandle};

/// Longest line that is read as an answer.
const LINE_BYTES_MAX: u64 = 16_000;

/// A read of the terminal that may be under way. It cannot be called off, so the next question uses it.
#[derive(Debug, Default)]
pub(super) struct TerminalRead(Option<JoinHandle<Option<String>>>);

impl TerminalRead {
    /// Forgets what was typed before: it cannot be the answer to a question that nobody had seen.
    pub(super) fn start_anew(&mut self) {
        // Not a terminal, then: nothing can be waiting there.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        if self.0.as_ref().is_some_and(JoinHandle::is_finished) {
            self.0 = None;
        }
    }

    /// The next line; none at the end of input. Nothing is lost when this is dropped.
    pub(super) async fn line(&mut self) -> Option<String> {
        let reading = self.0.get_or_insert_with(|| task::spawn_blocking(read));
        let line = reading.await.ok().flatten();
        self.0 = None;
        line
    }
}

fn read() -> Option<String> {
    let mut line = String::new();
    let n_bytes = io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line).ok()?;
    (n_bytes > 0).then_some(line)
}
