//! The way to a runner: lines go out, lines come in, and it can be ended.

mod in_process;
mod ndjson;
mod socket;
mod stdio;
mod web_socket;

use futures_util::future::BoxFuture;
use std::{fmt, io};

pub use in_process::InProcess;
pub use ndjson::Ndjson;
pub use socket::{Tcp, Unix};
pub use stdio::RunnerCommand;
pub use web_socket::WebSocket;

/// One channel to one runner.
pub trait Transport: fmt::Debug + Send {
    /// Both directions, to be used at the same time.
    fn halves(&mut self) -> (&mut dyn Outgoing, &mut dyn Incoming);

    /// Why the runner went away, once [`Incoming::receive`] has said [`Ended::Closed`], if it can be known.
    fn last_words(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }

    /// Ends the runner at once, whatever it does.
    fn terminate(&mut self) -> BoxFuture<'_, ()>;

    /// Lets go of a runner that has nothing to do.
    fn dispose(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// What goes to the runner.
pub trait Outgoing: Send {
    /// Sends one message, given with its line break. A future dropped half-way spoils the channel.
    fn send<'a>(&'a mut self, line: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;
}

/// What comes from the runner.
pub trait Incoming: Send {
    /// The next message without its line break. A future dropped half-way loses nothing.
    fn receive(&mut self) -> BoxFuture<'_, Result<&[u8], Ended>>;
}

/// Why nothing more comes.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The runner closed the channel.
    #[error("Transport closed unexpectedly")]
    Closed,
    /// The channel broke.
    #[error("{0}")]
    Broken(#[from] io::Error),
}

/// Opens channels: one runner for each.
pub trait Connect: Send + Sync + 'static {
    /// A channel to a runner that has nothing to do.
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn Transport>>>;
}

impl<C, F> Connect for C
where
    C: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<Box<dyn Transport>>> + Send + 'static,
{
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn Transport>>> {
        Box::pin(self())
    }
}
