//! Follows an execution across dropped connections: each event once, in order.

use crate::error::root_cause;
use crate::sse::{SseMessageTooLong, SseParser};
use crate::{AirlockClient, Error, ExecutionEvent, ExecutionRef};
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use lifecycle::{Json, Seq};
use std::time::Duration;

/// How often, and after what delay, to reconnect while no new event arrives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicy {
    pub(crate) n_attempts_max: u32,
    /// Delay before the second attempt; the first is made immediately. Doubles from one attempt to the next.
    pub(crate) delay: Duration,
    pub(crate) delay_max: Duration,
    /// The longest silence before the connection counts as lost: the server sends a keep-alive more often than this.
    pub(crate) silence_max: Duration,
}

impl RetryPolicy {
    /// About half a minute: enough for a server to be stopped, replaced and started.
    pub(crate) const USUAL: Self = Self {
        n_attempts_max: 12,
        delay: Duration::from_millis(100),
        delay_max: Duration::from_secs(5),
        silence_max: Duration::from_secs(60),
    };

    fn delay_before(&self, attempt_idx: u32) -> Duration {
        let Some(n_doublings) = attempt_idx.checked_sub(1) else { return Duration::ZERO };
        self.delay.saturating_mul(2_u32.saturating_pow(n_doublings)).min(self.delay_max)
    }
}

/// A follower of one execution's events.
#[derive(Debug)]
pub(crate) struct EventFollower {
    client: AirlockClient,
    id: ExecutionRef,
    last: Seq,
    state: FollowState,
    /// Attempts since the last new event.
    n_attempts: u32,
}

#[derive(Debug)]
enum FollowState {
    /// No request was sent yet: an error now would occur again.
    New,
    /// The connection was lost.
    Cut(Error),
    Hearing(Box<OpenStream>),
    Over,
}

#[derive(Debug)]
struct OpenStream {
    body: Incoming,
    messages: SseParser,
}

impl EventFollower {
    pub(crate) const fn new(client: AirlockClient, id: ExecutionRef, after: Seq) -> Self {
        Self { client, id, last: after, state: FollowState::New, n_attempts: 0 }
    }

    /// Returns the next event; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<ExecutionEvent>, Error> {
        loop {
            match &mut self.state {
                FollowState::Over => return Ok(None),
                FollowState::New => self.connect().await?,
                FollowState::Cut(why) => {
                    let why = why.clone();
                    self.come_again(why).await?;
                }
                FollowState::Hearing(hearing) => {
                    let silence_max = self.client.patience.silence_max;
                    match hearing.next(&self.client, silence_max).await {
                        Ok(event) if event.seq <= self.last => {} // received on an earlier connection
                        Ok(event) => return Ok(Some(self.heard(event))),
                        Err(why) if why.is_passing() => self.state = FollowState::Cut(why),
                        Err(why) => return Err(why),
                    }
                }
            }
        }
    }

    fn heard(&mut self, event: ExecutionEvent) -> ExecutionEvent {
        self.last = event.seq;
        self.n_attempts = 0;
        if event.is_last() {
            self.state = FollowState::Over;
        }
        event
    }

    async fn come_again(&mut self, why: Error) -> Result<(), Error> {
        let patience = self.client.patience;
        if self.n_attempts >= patience.n_attempts_max {
            return Err(why);
        }
        tokio::time::sleep(patience.delay_before(self.n_attempts)).await;
        self.n_attempts += 1;
        match self.connect().await {
            Err(why) if why.is_passing() => {
                self.state = FollowState::Cut(why);
                Ok(())
            }
            connected => connected,
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        self.state = match self.client.stream(self.id, self.last).await? {
            Some(body) => {
                FollowState::Hearing(Box::new(OpenStream { body, messages: SseParser::new() }))
            }
            None => FollowState::Over,
        };
        Ok(())
    }
}

impl OpenStream {
    async fn next(
        &mut self,
        client: &AirlockClient,
        silence_max: Duration,
    ) -> Result<ExecutionEvent, Error> {
        loop {
            if let Some(message) = self.messages.next() {
                return event(message);
            }
            let bytes = tokio::time::timeout(silence_max, self.bytes(client))
                .await
                .unwrap_or_else(|_| Err(client.broke_off("the server fell silent")))?;
            self.messages.push_bytes(&bytes).map_err(|SseMessageTooLong| {
                Error::Protocol("an event that is longer than any can be".into())
            })?;
        }
    }

    async fn bytes(&mut self, client: &AirlockClient) -> Result<Bytes, Error> {
        match self.body.frame().await {
            Some(Ok(frame)) => Ok(frame.into_data().unwrap_or_default()),
            Some(Err(error)) => Err(client.broke_off(root_cause(&error))),
            None => Err(client.broke_off("the events ended before the execution did")),
        }
    }
}

fn event(message: Vec<u8>) -> Result<ExecutionEvent, Error> {
    let strange = || Error::Protocol("an event that is not JSON".into());
    let text = String::from_utf8(message).map_err(|_| strange())?;
    ExecutionEvent::read(Json::parse(text).map_err(|_| strange())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_again_at_once_and_then_less_and_less_often() {
        let patience = RetryPolicy { delay_max: Duration::from_millis(500), ..RetryPolicy::USUAL };
        let delays = [0, 1, 2, 3, 4, 99].map(|n| patience.delay_before(n).as_millis());
        assert_eq!(delays, [0, 100, 200, 400, 500, 500]);
    }
}
