//! A thread for answers that read much of a journal: rendering its entries is CPU-bound, and the threads that serve
//! connections must remain free for short requests.

use crate::error::RequestError;
use crate::tasks::TaskSpawner;
use futures_util::{Stream, StreamExt as _, stream};
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Maximum number of items per chunk: waking the other thread costs as much as rendering a few.
const CHUNK_ITEMS_MAX: usize = 16;

/// Maximum number of chunks that a connection has not taken. A reader that takes none delays only itself.
const UNSENT_CHUNKS_MAX: usize = 2;

/// Started when the first answer needs it.
pub(crate) struct RenderThread {
    tasks: TaskSpawner,
    thread: OnceLock<Option<(Handle, DropGuard)>>,
}

impl RenderThread {
    pub(crate) const fn new(tasks: TaskSpawner) -> Self {
        Self { tasks, thread: OnceLock::new() }
    }

    /// Produces the items on the thread. Dropping the stream ends that.
    pub(crate) fn stream<T: Send + 'static>(
        &self,
        items: impl Stream<Item = T> + Send + 'static,
    ) -> impl Stream<Item = T> + Send + 'static {
        let (chunks, taken) = mpsc::channel(UNSENT_CHUNKS_MAX);
        let producing = async move {
            let mut ready = std::pin::pin!(items.ready_chunks(CHUNK_ITEMS_MAX));
            loop {
                let chunk = tokio::select! {
                    () = chunks.closed() => return,
                    chunk = ready.next() => chunk,
                };
                let Some(chunk) = chunk else { return };
                if chunks.send(chunk).await.is_err() {
                    return;
                }
            }
        };
        self.tasks.spawn_on(producing, &self.handle());
        let chunks = stream::unfold(taken, async |mut taken| Some((taken.recv().await?, taken)));
        chunks.flat_map(stream::iter)
    }

    /// Runs a future on the thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RequestError>> + Send + 'static,
    ) -> Result<T, RequestError> {
        let (mut done, result) = oneshot::channel();
        let working = async move {
            tokio::select! {
                // The client has left.
                () = done.closed() => {}
                worked = work => drop(done.send(worked)),
            }
        };
        self.tasks.spawn_on(working, &self.handle());
        result.await.map_err(|gone| RequestError::broken(&gone))?
    }

    fn handle(&self) -> Handle {
        let thread = self.thread.get_or_init(|| {
            start()
                .inspect_err(|error| tracing::warn!(%error, "could not start the render thread"))
                .ok()
        });
        thread.as_ref().map_or_else(Handle::current, |(handle, _)| handle.clone())
    }
}

/// The thread ends when the returned guard is dropped, along with everything that is left on it.
fn start() -> std::io::Result<(Handle, DropGuard)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (handle, stopping) = (runtime.handle().clone(), CancellationToken::new());
    let stopped = stopping.clone();
    std::thread::Builder::new().name("render".into()).spawn(move || {
        runtime.block_on(stopped.cancelled());
        runtime.shutdown_background();
    })?;
    Ok((handle, stopping.drop_guard()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn items_are_produced_by_another_thread_and_no_more_than_are_taken() {
        let render = RenderThread::new(TaskSpawner::new());
        let n_produced = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_produced);
        let items = stream::iter(0..10_000).map(move |n| {
            counted.fetch_add(1, Ordering::SeqCst);
            (n, std::thread::current().id())
        });
        let mut taken = Box::pin(render.stream(items));
        let here = std::thread::current().id();
        for expected in 0..100 {
            let (n, thread) = taken.next().await.unwrap();
            assert_eq!(n, expected);
            assert_ne!(thread, here);
        }
        // The items in queued chunks, in one that is being produced, and in one that is being taken.
        let ahead = CHUNK_ITEMS_MAX * (UNSENT_CHUNKS_MAX + 2);
        assert!(n_produced.load(Ordering::SeqCst) <= 100 + ahead);
        drop(taken);
        render.tasks.close();
        render.tasks.wait().await;
        assert!(n_produced.load(Ordering::SeqCst) <= 100 + ahead, "a reader that left ends it");
    }

    #[tokio::test]
    async fn work_is_done_by_another_thread() {
        let render = RenderThread::new(TaskSpawner::new());
        let thread = render.run(async { Ok(std::thread::current().id()) }).await;
        assert_ne!(thread.ok().unwrap(), std::thread::current().id());
    }
}
