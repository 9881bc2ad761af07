//! A small thread pool with a connection per thread: reading never blocks async tasks.

use super::work_queue::{QueueLimits, WorkQueue};
use crate::StoreError;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of queued tasks; further callers wait asynchronously.
const WAITING_MAX: usize = 1_024;

type PoolTask<C> = Box<dyn FnOnce(Result<&mut C, StoreError>) + Send>;

/// Threads that share one queue of tasks; each opens its `C` for its first task.
pub(super) struct ThreadPool<C> {
    line: Arc<WorkQueue<PoolTask<C>>>,
    room: Arc<Semaphore>,
}

impl<C: 'static> ThreadPool<C> {
    /// Starts `n` threads.
    pub(super) fn start(
        name: &str,
        n: usize,
        open: impl Fn() -> Result<C, StoreError> + Clone + Send + 'static,
    ) -> Result<(Self, Vec<JoinHandle<()>>), StoreError> {
        let line = Arc::new(WorkQueue::new(QueueLimits { items: WAITING_MAX, bytes: usize::MAX }));
        let threads = (0..n)
            .map(|_| {
                let (line, open) = (Arc::clone(&line), open.clone());
                std::thread::Builder::new().name(name.into()).spawn(move || work(&line, open))
            })
            .collect::<Result<_, _>>()?;
        let room = Arc::new(Semaphore::new(WAITING_MAX));
        Ok((Self { line, room }, threads))
    }

    /// Runs `task` on one of the threads.
    pub(super) fn run<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut C) -> Result<R, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<R, StoreError>> {
        let (line, room) = (Arc::clone(&self.line), Arc::clone(&self.room));
        Box::pin(async move {
            let place = room.acquire_owned().await.map_err(|_| StoreError::Closed)?;
            let (done, result) = oneshot::channel();
            let task: PoolTask<C> = Box::new(move |context| {
                drop(done.send(context.and_then(task)));
                drop(place);
            });
            line.join(0, task).map_err(|_| StoreError::Closed)?;
            result.await.map_err(|_| StoreError::Closed)?
        })
    }

    pub(super) fn close(&self) {
        self.room.close();
        self.line.close();
    }
}

fn work<C>(line: &WorkQueue<PoolTask<C>>, open: impl Fn() -> Result<C, StoreError>) {
    let mut context = None;
    let mut tasks = Vec::new();
    while line.take(QueueLimits { items: 1, bytes: usize::MAX }, &mut tasks) {
        if context.is_none() {
            context = Some(open());
        }
        for task in tasks.drain(..) {
            match &mut context {
                Some(Ok(open)) => task(Ok(open)),
                Some(Err(error)) => task(Err(error.clone())),
                None => task(Err(StoreError::Closed)),
            }
        }
        // Opening is retried after an error: its cause may be gone.
        context = context.filter(Result::is_ok);
    }
}
