//! What servers and stand-alone doors run on.

use tokio::runtime::{Builder, Runtime};

/// One client, one thread: a message is never handed from one to another.
pub(crate) fn one_thread() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A thread for every two processors, for as many clients as come. The other processors run programs, which a server mostly
/// waits for: with a thread for each processor, threads wake one another for every step of a request, and one client on two
/// processors got 27 % fewer programs per second.
pub(crate) fn threads() -> anyhow::Result<Runtime> {
    let n_processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let n_threads = n_processors.div_ceil(2);
    Ok(Builder::new_multi_thread().worker_threads(n_threads).enable_all().build()?)
}

/// What is kept of freed memory, twice, instead of being given back to the system.
const KEPT_BYTES: usize = 2 << 20;

/// Has memory that is freed kept for what comes next. Pieces of output come and go by the megabyte; asking the system for
/// each again costs more than all else that is done with it. libc learns how much to keep from what it sees freed.
pub(crate) fn keep_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT_BYTES)));
}

/// Serves to the end.
pub(crate) fn finish(
    runtime: Runtime,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let ended = runtime.block_on(serving);
    // A thread that waits for input, or for a stuck disk, must not keep us.
    runtime.shutdown_background();
    ended
}
