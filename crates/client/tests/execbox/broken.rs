//! Channels that break in one direction while the other stays silent.

use client::execbox::{
    CancellationToken, CloseReason, ErrorCode, ExecboxFailure, ExecboxProgram, HostSession,
    IncomingMessage, MessageReader, MessageWriter, ReceiveError, RunnerTransport, UnsentAmount,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::io;
use std::task::{Context, Poll};

#[derive(Debug)]
struct Broken {
    to: Sending,
    from: Receiving,
}

#[derive(Debug)]
enum Sending {
    Refuses,
    /// Refuses messages once this token is cancelled.
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

impl MessageWriter for Sending {
    fn enqueue(&mut self, _text: String) {}

    fn enqueue_ping(&mut self, _number: u64) {}

    fn enqueue_close(&mut self, _reason: Option<CloseReason>) {}

    fn unsent(&self) -> UnsentAmount {
        UnsentAmount::default()
    }

    fn discard_unsent(&mut self) {}

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let refuses = match self {
            Self::Refuses => true,
            Self::RefusesAfter(cancel) => cancel.is_cancelled(),
            Self::Takes => false,
        };
        Poll::Ready(if refuses { Err(burst()) } else { Ok(()) })
    }

    fn has_control_frames(&self) -> bool {
        false
    }
}

impl MessageReader for Receiving {
    fn poll_arrival(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        match self {
            Self::Breaks => Poll::Ready(Err(ReceiveError::Broken(burst()))),
            Self::IsSilent => Poll::Pending,
        }
    }

    fn take(&mut self) -> IncomingMessage<'_> {
        unreachable!("nothing ever arrives")
    }
}

impl RunnerTransport for Broken {
    fn halves(&mut self) -> (&mut dyn MessageReader, &mut dyn MessageWriter) {
        (&mut self.from, &mut self.to)
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn dispose(self: Box<Self>) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }
}

async fn failure(to: Sending, from: Receiving, cancel: CancellationToken) -> ExecboxFailure {
    let mut channel = Broken { to, from };
    let execution = ExecboxProgram::new("code").cancel(cancel);
    HostSession::new(&mut channel).run(&execution).await.outcome.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_or_read_is_an_internal_error_with_the_channels_words() {
    let expected =
        ExecboxFailure { code: ErrorCode::Internal, message: "the pipe burst".to_owned() };
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
    assert_eq!(failure, ExecboxFailure { code: ErrorCode::Timeout, message });
}
