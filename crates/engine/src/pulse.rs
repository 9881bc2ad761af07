//! One beat for everybody whose alarm is a while off.
//!
//! A timer of its own costs each of them an entry in the runtime's wheel, and a system call where it is the next to ring;
//! most programs are over before theirs would have rung. So nobody sets one before the first beat.

use crate::engine::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// From the first wish for a beat to the beat.
pub(crate) const BEAT: Duration = Duration::from_millis(10);

/// Beats while somebody waits for it.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    is_wanted: AtomicBool,
    wanted: Notify,
    beat: Notify,
}

impl Pulse {
    /// Waits for the next beat.
    pub(crate) async fn next(&self) {
        // Before the wish is uttered: whoever is here by then hears the beat, polled or not.
        let beat = self.beat.notified();
        if !self.is_wanted.swap(true, Ordering::AcqRel) {
            self.wanted.notify_one();
        }
        beat.await;
    }
}

/// Runs until the engine stops.
pub(crate) async fn beat(shared: Arc<Shared>) {
    let pulse = &shared.pulse;
    let beats = async {
        loop {
            pulse.wanted.notified().await;
            tokio::time::sleep(BEAT).await;
            pulse.is_wanted.store(false, Ordering::Release);
            pulse.beat.notify_waiters();
        }
    };
    tokio::select! {
        () = shared.closing.cancelled() => {}
        () = beats => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::pin::pin;

    #[tokio::test]
    async fn whoever_wished_before_a_beat_hears_it_and_nobody_else_does() {
        let pulse = Pulse::default();
        let (mut first, mut second) = (pin!(pulse.next()), pin!(pulse.next()));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(pulse.wanted.notified().now_or_never().is_some());
        assert!(pulse.wanted.notified().now_or_never().is_none(), "one wish is enough");
        pulse.is_wanted.store(false, Ordering::Release);
        pulse.beat.notify_waiters();
        assert!(first.now_or_never().is_some() && second.now_or_never().is_some());
        assert!(pulse.next().now_or_never().is_none());
        assert!(pulse.wanted.notified().now_or_never().is_some(), "the next beat is wished for");
    }
}
