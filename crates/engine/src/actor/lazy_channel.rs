//! A channel into an actor that is created with its first sender: most programs end before that.

use tokio::sync::mpsc;

/// Maximum number of messages that wait for the next turn; further senders wait.
const WAITING_MAX: usize = 16;

/// A channel, once it is created.
pub(super) struct LazyChannel<T>(Option<(mpsc::Sender<T>, mpsc::Receiver<T>)>);

impl<T> Default for LazyChannel<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> LazyChannel<T> {
    /// Returns a sender; creates the channel if necessary.
    pub(super) fn sender(&mut self) -> mpsc::Sender<T> {
        self.0.get_or_insert_with(|| mpsc::channel(WAITING_MAX)).0.clone()
    }

    /// The next message. Never resolves before there is a sender.
    pub(super) async fn next(&mut self) -> T {
        if let Some((_, said)) = &mut self.0
            && let Some(next) = said.recv().await
        {
            return next;
        }
        std::future::pending().await
    }

    /// The next message, if it has arrived.
    pub(super) fn try_next(&mut self) -> Option<T> {
        self.0.as_mut()?.1.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn what_is_said_comes_out_in_order_once_somebody_can_say_something() {
        let mut channel = LazyChannel::default();
        assert!(channel.next().now_or_never().is_none() && channel.try_next().is_none());
        let (one, other) = (channel.sender(), channel.sender());
        one.send(1).await.unwrap();
        other.send(2).await.unwrap();
        drop((one, other));
        assert_eq!((channel.next().await, channel.try_next()), (1, Some(2)));
        assert!(channel.next().now_or_never().is_none(), "somebody may still come");
    }
}
