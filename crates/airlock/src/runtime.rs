//! The async runtimes of servers and stand-alone endpoints.

use tokio::runtime::{Builder, Runtime};

/// One thread for one client: a message never moves between threads.
pub(crate) fn one_thread() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A thread for every two processors, for any number of clients. The other processors run programs, which a server mostly
/// waits for: with a thread for each processor, threads wake one another for every step of a request, and one client on two
/// processors got 27 % fewer programs per second.
pub(crate) fn threads() -> anyhow::Result<Runtime> {
    let n_processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let n_threads = n_processors.div_ceil(2);
    Ok(Builder::new_multi_thread().worker_threads(n_threads).enable_all().build()?)
}

/// The size of a block whose release makes libc retain up to twice as much freed memory.
const KEPT_BYTES: usize = 2 << 20;

/// Makes libc retain freed memory for later allocations. Chunks of output are allocated and freed by the megabyte;
/// returning each to the system would cost more than the rest of their processing. libc adapts its thresholds to the
/// blocks it frees.
pub(crate) fn keep_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT_BYTES)));
}

/// Runs a server's future to the end.
pub(crate) fn finish(
    runtime: Runtime,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let ended = runtime.block_on(serving);
    // A thread that blocks on input, or on a stuck disk, must not delay the exit.
    runtime.shutdown_background();
    ended
}
