//! A channel into an actor that is made when its first sender is needed: most programs end before that.

use tokio::sync::mpsc;

/// What waits for its execution's next turn; whoever has more to say waits themselves.
const WAITING_MAX: usize = 16;

/// A channel, once there is one.
pub(super) struct LazyChannel<T>(Option<(mpsc::Sender<T>, mpsc::Receiver<T>)>);

impl<T> Default for LazyChannel<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> LazyChannel<T> {
    /// For somebody who may have something to say.
    pub(super) fn sender(&mut self) -> mpsc::Sender<T> {
        self.0.get_or_insert_with(|| mpsc::channel(WAITING_MAX)).0.clone()
    }

    /// What was said next. Never resolves before there is anybody who could say something.
    pub(super) async fn next(&mut self) -> T {
        if let Some((_, said)) = &mut self.0
            && let Some(next) = said.recv().await
        {
            return next;
        }
        std::future::pending().await
    }

    /// The same, if it is here.
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
