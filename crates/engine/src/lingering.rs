//! Work that is done by whoever waits for it, and goes on without them when they leave.
//!
//! A task of its own would do as well, but most programs are over before a second thread has woken up to run it.

use futures_util::future::BoxFuture;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// Work under way. Dropping it before it is done gives it a task.
pub struct Lingering<T: Send + 'static> {
    /// None once it is done, or has broken down.
    work: Option<BoxFuture<'static, T>>,
    tracker: TaskTracker,
}

impl<T: Send + 'static> Lingering<T> {
    /// Begins when it is first polled. `tracker` counts the task, if it comes to that.
    pub fn new(work: BoxFuture<'static, T>, tracker: &TaskTracker) -> Self {
        Self { work: Some(work), tracker: tracker.clone() }
    }

    /// Waits for something else, and works meanwhile.
    pub async fn meanwhile<R>(&mut self, waiting: impl Future<Output = R>) -> R {
        let mut waiting = pin!(waiting);
        poll_fn(|cx| {
            let _ = self.work_on(cx);
            waiting.as_mut().poll(cx)
        })
        .await
    }

    fn work_on(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out, so that work that panics is not taken up again.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let done = work.as_mut().poll(cx);
        if done.is_pending() {
            self.work = Some(work);
        }
        done
    }
}

impl<T: Send + 'static> Future for Lingering<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.work_on(cx)
    }
}

impl<T: Send + 'static> Drop for Lingering<T> {
    fn drop(&mut self) {
        // Without a runtime nothing goes on at all.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(self.tracker.spawn_on(work, &runtime));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Lingering<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lingering").field("is_done", &self.work.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn whoever_waits_does_the_work() {
        let tracker = TaskTracker::new();
        assert_eq!(Lingering::new(async { 7 }.boxed(), &tracker).await, 7);
        let (done, told) = oneshot::channel();
        let mut work = Lingering::new(async { done.send(8).unwrap() }.boxed(), &tracker);
        assert_eq!(work.meanwhile(told).await, Ok(8));
        assert!(tracker.is_empty(), "no task was needed");
    }

    #[tokio::test]
    async fn work_goes_on_when_whoever_waits_leaves() {
        let tracker = TaskTracker::new();
        let (go, gone) = oneshot::channel::<()>();
        let (done, told) = oneshot::channel();
        let work = async {
            gone.await.unwrap();
            done.send(9).unwrap();
        };
        let mut work = Lingering::new(work.boxed(), &tracker);
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        go.send(()).unwrap();
        assert_eq!(told.await, Ok(9));
    }

    #[tokio::test]
    async fn work_that_panics_is_not_taken_up_again() {
        let tracker = TaskTracker::new();
        let work = async { panic!("on purpose") };
        let broken = Lingering::<()>::new(work.boxed(), &tracker);
        assert!(std::panic::AssertUnwindSafe(broken).catch_unwind().await.is_err());
        assert!(tracker.is_empty());
    }
}
