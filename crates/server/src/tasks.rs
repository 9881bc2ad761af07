//! The tasks of a server, counted so that they can be waited for.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Starts every task. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskSpawner(TaskTracker);

impl TaskSpawner {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Starts a task. It is boxed first: the runtime's machinery is then compiled once for all of them instead of
    /// twice for each, which would be an eighth of this crate.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let task: futures_util::future::BoxFuture<'static, T> = Box::pin(task);
        self.0.spawn(task)
    }

    /// Starts a task on another runtime.
    pub(crate) fn spawn_on(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        runtime: &Handle,
    ) {
        let task: futures_util::future::BoxFuture<'static, ()> = Box::pin(task);
        drop(self.0.spawn_on(task, runtime));
    }

    /// The tracker of these tasks, for a component that starts its own.
    pub(crate) fn tracker(&self) -> TaskTracker {
        self.0.clone()
    }

    /// Counts as a task until it is dropped.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.0.token()
    }

    /// Declares that no more tasks follow, as `wait` requires.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Waits until it is closed and all tasks have ended.
    pub(crate) async fn wait(&self) {
        self.0.wait().await;
    }
}
