//! execbox: a host sends programs and runs their tools itself; the programs run here, in the sandbox. `/execbox` of
//! the server, and separate listeners for hosts that spawn a program or expect a port.

mod host_messages;
mod listen;
mod output;
mod relay;
mod routes;
mod run;

pub use listen::{BadAddress, RunnerAddress, RunnerListenError, RunnerListener, listen};
pub(super) use routes::open_door;

use crate::error::RequestError;
use crate::tasks::TaskSpawner;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;
use engine::{HeldRunner, QuotaAccount};
use protocols::execbox::HOST_MESSAGE_BYTES_MAX;
use sandbox::{LeaseDemand, Sandbox};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use transport::{FrameBounds, LineReader, LineWriter, accept_upgrade};

/// Maximum number of channels. Each may hold a process.
const CHANNELS_MAX: usize = 256;

/// Limits on what is read from a host over a WebSocket. An oversized message within the read limit is answered.
const FRAME_BOUNDS: FrameBounds = FrameBounds {
    message_bytes_max: HOST_MESSAGE_BYTES_MAX,
    read_bytes_max: 2 * HOST_MESSAGE_BYTES_MAX,
    frame_bytes_max: 2 * HOST_MESSAGE_BYTES_MAX,
};

/// Serves one host over a stream of lines until it leaves or `stopping` is cancelled.
pub async fn serve_lines(
    sandbox: Sandbox,
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send,
    stopping: CancellationToken,
) {
    let sandbox = ChannelSandbox { sandbox, account: None };
    let reader = LineReader::new(reader, HOST_MESSAGE_BYTES_MAX).skipping_oversized();
    relay::serve(sandbox, reader, LineWriter::new(writer), stopping).await;
}

/// Where a channel's programs run, and the quota that they count against.
#[derive(Debug, Clone)]
pub(crate) struct ChannelSandbox {
    sandbox: Sandbox,
    /// None for hosts of a listener without callers.
    account: Option<QuotaAccount>,
}

impl ChannelSandbox {
    /// The resources that a program of the channel requests from the sandbox.
    fn demand(&self, memory_bytes: u64) -> LeaseDemand {
        match &self.account {
            Some(account) => account.demand(memory_bytes),
            None => LeaseDemand { memory_bytes, is_held: true, ..LeaseDemand::default() },
        }
    }
}

/// All channels of one server.
#[derive(Debug, Clone)]
pub(crate) struct ExecboxChannels {
    sandbox: Sandbox,
    places: Arc<Semaphore>,
    stopping: CancellationToken,
    tasks: TaskSpawner,
}

impl ExecboxChannels {
    pub(crate) fn new(sandbox: Sandbox, stopping: CancellationToken, tasks: TaskSpawner) -> Self {
        Self { sandbox, places: Arc::new(Semaphore::new(CHANNELS_MAX)), stopping, tasks }
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Upgrades a request to a channel. It holds one runner, which is counted before the channel is opened, and lasts
    /// until the host leaves or `ended` resolves.
    fn open(
        &self,
        upgrade: WebSocketUpgrade,
        counted: Option<(QuotaAccount, HeldRunner)>,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response, RequestError> {
        let place = self.place().ok_or_else(|| RequestError::no_channel(CHANNELS_MAX))?;
        let token = self.tasks.token();
        let (account, held) = counted.unzip();
        let sandbox = ChannelSandbox { sandbox: self.sandbox.clone(), account };
        let stopping = self.stopping.clone();
        Ok(accept_upgrade(upgrade, FRAME_BOUNDS, async move |reader, writer| {
            tokio::select! {
                () = relay::serve(sandbox, reader, writer, stopping) => {}
                () = ended => {}
            }
            drop((place, held, token));
        }))
    }
}
