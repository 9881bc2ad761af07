//! Channels that break in one direction while the other stays silent.

use client::execbox::{
    CancellationToken, Ended, ErrorCode, Execution, Failure, HostSession, Incoming, Outgoing,
    Transport,
};
use futures_util::future::{BoxFuture, FutureExt as _, pending};
use std::io;

#[derive(Debug)]
struct Broken {
    to: Sending,
    from: Receiving,
}

#[derive(Debug)]
enum Sending {
    Refuses,
    /// Refuses what is sent once this was cancelled.
    RefusesAfter(CancellationToken),
    Takes,
}

#[derive(Debug)]
enum Receiving {
    Breaks,
    IsSilent,
}

fn burst() -> io::Error {
    io::Error::other("the pipe burst")
}

impl Outgoing for Sending {
    fn send<'a>(&'a mut self, _: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        let refuses = match self {
            Self::Refuses => true,
            Self::RefusesAfter(cancel) => cancel.is_cancelled(),
            Self::Takes => false,
        };
        async move { if refuses { Err(burst()) } else { Ok(()) } }.boxed()
    }
}

impl Incoming for Receiving {
    fn receive(&mut self) -> BoxFuture<'_, Result<&[u8], Ended>> {
        match self {
            Self::Breaks => async { Err(Ended::Broken(burst())) }.boxed(),
            Self::IsSilent => pending().boxed(),
        }
    }
}

impl Transport for Broken {
    fn halves(&mut self) -> (&mut dyn Outgoing, &mut dyn Incoming) {
        (&mut self.to, &mut self.from)
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn dispose(self: Box<Self>) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }
}

async fn failure(to: Sending, from: Receiving, cancel: CancellationToken) -> Failure {
    let mut channel = Broken { to, from };
    let execution = Execution::new("code").cancel(cancel);
    HostSession::new(&mut channel).run(&execution).await.outcome.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_or_read_is_an_internal_error_with_the_channels_words() {
    let expected = Failure { code: ErrorCode::Internal, message: "the pipe burst".to_owned() };
    for (to, from) in [(Sending::Refuses, Receiving::IsSilent), (Sending::Takes, Receiving::Breaks)]
    {
        assert_eq!(failure(to, from, CancellationToken::new()).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_breaks_after_a_cancel_is_still_a_timeout() {
    let cancel = CancellationToken::new();
    let to = Sending::RefusesAfter(cancel.clone());
    let (failure, ()) = tokio::join!(failure(to, Receiving::IsSilent, cancel.clone()), async {
        cancel.cancel();
    });
    let message = "Execution timed out".to_owned();
    assert_eq!(failure, Failure { code: ErrorCode::Timeout, message });
}
