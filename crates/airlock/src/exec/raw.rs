//! The local terminal while it shows another one: keys are read as they are pressed, and nothing is echoed.

use client::exec_server::TerminalSize;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal as _, Read as _};
use tokio::sync::mpsc;

/// The size of one read, and the number of reads that are buffered.
const KEYS_BYTES_MAX: usize = 16 << 10;
const KEYS_MAX: usize = 64;

/// Whether stdin and stdout are a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The size of this terminal.
pub(super) fn size() -> TerminalSize {
    let found = terminal_size::terminal_size();
    let (cols, rows) = found.map_or((80, 24), |(width, height)| (width.0, height.0));
    TerminalSize { rows: rows.max(1), cols: cols.max(1) }
}

/// The terminal in raw mode. Dropping it restores the previous mode.
pub(super) struct RawMode(Termios);

impl RawMode {
    pub(super) fn enter_raw_mode() -> nix::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.0);
    }
}

/// The typed input, read by a separate thread: a non-blocking terminal would affect every process that shares it.
pub(super) struct RawTerminalInput(mpsc::Receiver<Vec<u8>>);

impl RawTerminalInput {
    pub(super) fn start() -> Self {
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        std::thread::spawn(move || {
            let mut room = vec![0; KEYS_BYTES_MAX];
            loop {
                match io::stdin().lock().read(&mut room) {
                    Ok(0) => return,
                    Ok(n) => {
                        if sender.blocking_send(room[..n].to_vec()).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Self(keys)
    }

    /// Returns the next input; `None` at the end of input.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.0.recv().await
    }
}
