//! Lines that a person types, each in answer to the prompt above it.

use nix::sys::termios::{FlushArg, tcflush};
use std::io::{self, BufRead as _, Read as _};
use tokio::task::{self, JoinHandle};

/// Longest line that is read as an answer.
const LINE_BYTES_MAX: u64 = 16_000;

/// A read of the terminal that may be in progress. It cannot be cancelled, so the next question uses it.
#[derive(Debug, Default)]
pub(super) struct TerminalRead(Option<JoinHandle<Option<String>>>);

impl TerminalRead {
    /// Discards earlier input: it cannot be the answer to a question that was not displayed yet.
    pub(super) fn start_anew(&mut self) {
        // It is not a terminal, so no input is buffered there.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        if self.0.as_ref().is_some_and(JoinHandle::is_finished) {
            self.0 = None;
        }
    }

    /// Returns the next line; `None` at the end of input. Cancel-safe.
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
