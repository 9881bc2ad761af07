//! What a stand-alone door runs on.

use tokio::runtime::{Builder, Runtime};

/// One client, one thread: a message is never handed from one to another.
pub(crate) fn one_thread() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// As many threads as there are cores, for as many clients as come.
pub(crate) fn threads() -> anyhow::Result<Runtime> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

/// Serves to the end.
pub(crate) fn finish(
    runtime: Runtime,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let ended = runtime.block_on(serving);
    // A thread that waits for input must not keep us.
    runtime.shutdown_background();
    ended
}
