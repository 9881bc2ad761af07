//! Waiting for tools that are quick: who looks for a moment instead of sleeping need not be woken, which takes as long as
//! many a tool does.

use sandbox::Sandbox;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// How long we look again and again for what a tool returns.
const LOOKING_MAX: Duration = Duration::from_micros(250);

/// Whether to look or to sleep.
#[derive(Default)]
pub(super) struct Looking {
    /// When the newest call was dispatched, while none has returned since.
    since: Option<Instant>,
    /// Whether the last wait was hardly longer than we would look: then the next one is expected to be short, too.
    is_quick: bool,
}

impl Looking {
    pub(super) fn dispatched(&mut self) {
        self.since = Some(Instant::now());
    }

    pub(super) fn returned(&mut self) {
        if let Some(since) = self.since.take() {
            self.is_quick = since.elapsed() < LOOKING_MAX * 3 / 2;
        }
    }

    /// Keeps whoever waits awake as long as that is worth it, and has nothing to say ever.
    pub(super) async fn look(&self, sandbox: &Sandbox) -> Infallible {
        if let (true, Some(since)) = (self.is_quick, self.since) {
            while since.elapsed() < LOOKING_MAX && sandbox.has_room_to_look() {
                sandbox::step_aside().await;
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_expected_to_be_as_the_last_one_was() {
        let mut looking = Looking::default();
        assert!(!looking.is_quick, "nobody knows yet");
        looking.dispatched();
        looking.since = looking.since.map(|since| since + LOOKING_MAX);
        looking.returned();
        assert!(looking.is_quick);
        looking.returned();
        assert!(looking.is_quick, "nothing was dispatched since");
        looking.dispatched();
        looking.since = Instant::now().checked_sub(LOOKING_MAX * 2);
        looking.returned();
        assert!(!looking.is_quick);
    }
}
