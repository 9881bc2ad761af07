//! A connection to a runner: lines in both directions, and a way to end it.

mod in_process;
mod message_channel;
mod socket;
mod stdio;
mod web_socket;

use futures_util::future::BoxFuture;
use std::{fmt, io};
use transport::{MessageReader, MessageWriter};

pub use in_process::InProcess;
pub use message_channel::{MessageChannel, NdjsonChannel};
pub use socket::{TcpRunner, UnixRunner};
pub use stdio::RunnerCommand;
pub use web_socket::WebSocket;

/// One channel to one runner.
pub trait RunnerTransport: fmt::Debug + Send {
    /// Both directions, to be used concurrently.
    fn halves(&mut self) -> (&mut dyn MessageReader, &mut dyn MessageWriter);

    /// Why the runner ended, once nothing more can be received, if it can be known.
    fn last_words(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }

    /// Ends the runner immediately, in any state.
    fn terminate(&mut self) -> BoxFuture<'_, ()>;

    /// Releases an idle runner.
    fn dispose(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Opens channels: one runner for each.
pub trait ConnectRunner: Send + Sync + 'static {
    /// Opens a channel to an idle runner.
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>>;
}

impl<C, F> ConnectRunner for C
where
    C: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<Box<dyn RunnerTransport>>> + Send + 'static,
{
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>> {
        Box::pin(self())
    }
}
