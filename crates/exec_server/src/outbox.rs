//! The outgoing queue of one connection, in order. Answers always fit because requests are counted. Notifications
//! wait for capacity, so a client that does not read slows its processes and fills no memory.

use processes::{OutputSeq, ProcessOutput};
use protocols::json_rpc::{self, ErrorObject, INVALID_REQUEST, RpcId};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transport::MessageWriter;

/// Maximum number of requests that are in progress or whose answers are not sent yet; the next request is read when
/// one of them completes.
pub(super) const REQUESTS_MAX: usize = 2_048;

/// Maximum number of these requests that wait for an external event: process output, a program that reads, another
/// server. Further ones are refused, so that requests that need no event, such as `process/terminate`, can always be
/// served.
const WAITING_MAX: usize = 1_024;

/// Maximum bytes of notifications that wait for a slow client; its processes wait with them.
const NOTIFIED_BYTES_MAX: usize = 1 << 20;

/// The minimum cost of a notification, which bounds their number.
const NOTIFICATION_BYTES_MIN: usize = 1_024;

/// After about this many bytes, the client is asked to acknowledge what it has read.
const UNHEARD_BYTES: usize = 384 << 10;

/// A client that has never acknowledged a ping and does not do so within this time is assumed to send none. One that
/// has acknowledged before is waited for.
const SIGN_TIME_MAX: Duration = Duration::from_secs(10);

/// Ping interval of an idle connection.
const PING_EVERY: Duration = Duration::from_secs(30);

/// One message, and the permits that it holds until it is sent.
struct OutboxLine {
    text: String,
    _room: OwnedSemaphorePermit,
    told: Option<AcknowledgedOutput>,
}

/// Output that can be released when the client has received it.
struct AcknowledgedOutput {
    output: Arc<ProcessOutput>,
    seq: OutputSeq,
}

impl AcknowledgedOutput {
    fn release(self) {
        self.output.release(self.seq);
    }
}

/// The sending side towards a client. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ClientOutbox {
    lines: mpsc::Sender<OutboxLine>,
    requests: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    notified: Arc<Semaphore>,
}

impl ClientOutbox {
    pub(super) fn new() -> (Self, UnsentLines) {
        let n_notifications = NOTIFIED_BYTES_MAX / NOTIFICATION_BYTES_MIN;
        let (lines, unsent) = mpsc::channel(REQUESTS_MAX + n_notifications + 1);
        let outbox = Self {
            lines,
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            notified: Arc::new(Semaphore::new(NOTIFIED_BYTES_MAX)),
        };
        (outbox, UnsentLines(unsent))
    }

    /// Waits for capacity for the answer to one request.
    pub(super) async fn answer_room(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.requests).acquire_owned().await.expect("nobody closes it")
    }

    /// Waits for capacity for a notification of about this size. Waiters are served in order.
    pub(super) async fn room(&self, n_bytes: usize) -> OwnedSemaphorePermit {
        let notified = Arc::clone(&self.notified);
        notified.acquire_many_owned(permits(n_bytes)).await.expect("nobody closes it")
    }

    /// Like `room`, but returns none instead of waiting.
    pub(super) fn try_room(&self, n_bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.notified).try_acquire_many_owned(permits(n_bytes)).ok()
    }

    /// Whether the client is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.lines.is_closed()
    }

    /// Waits until the client is gone.
    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }

    pub(super) fn notify(&self, text: String, room: OwnedSemaphorePermit) {
        self.push(OutboxLine { text, _room: room, told: None });
    }

    /// Sends an output notification; the output is released when the client has received it.
    pub(super) fn send_text(
        &self,
        text: String,
        room: OwnedSemaphorePermit,
        output: &Arc<ProcessOutput>,
        seq: OutputSeq,
    ) {
        let told = Some(AcknowledgedOutput { output: Arc::clone(output), seq });
        self.push(OutboxLine { text, _room: room, told });
    }

    fn push(&self, line: OutboxLine) {
        // Every permit guarantees a free slot; if the client is gone, the line is dropped.
        let _ = self.lines.try_send(line);
    }
}

fn permits(n_bytes: usize) -> u32 {
    let n = n_bytes.clamp(NOTIFICATION_BYTES_MIN, NOTIFIED_BYTES_MAX);
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The reply handle of one request.
#[derive(Debug)]
pub(super) struct RequestReply {
    id: RpcId,
    outbox: ClientOutbox,
    room: OwnedSemaphorePermit,
    /// Held while the request waits for an external event.
    waiting: Option<OwnedSemaphorePermit>,
}

impl RequestReply {
    pub(super) const fn new(id: RpcId, outbox: ClientOutbox, room: OwnedSemaphorePermit) -> Self {
        Self { id, outbox, room, waiting: None }
    }

    /// Marks a request that may wait indefinitely for an external event. None if too many wait; the request is then
    /// already answered.
    pub(super) fn waiting(mut self) -> Option<Self> {
        if let Ok(waiting) = Arc::clone(&self.outbox.waiting).try_acquire_owned() {
            self.waiting = Some(waiting);
            return Some(self);
        }
        let text = format!(
            "{WAITING_MAX} requests of this connection wait already, and no more can; wait for an answer"
        );
        self.fail(&ErrorObject::new(INVALID_REQUEST, text));
        None
    }

    pub(super) fn send<T: Serialize>(self, result: &T) {
        let text = json_rpc::response_line(&self.id, Ok(result));
        self.outbox.notify(text, self.room);
    }

    /// Sends output, which is released when the client has received it.
    pub(super) fn send_output<T: Serialize>(
        self,
        result: &T,
        output: &Arc<ProcessOutput>,
        seq: OutputSeq,
    ) {
        let text = json_rpc::response_line(&self.id, Ok(result));
        self.outbox.send_text(text, self.room, output, seq);
    }

    pub(super) fn fail(self, error: &ErrorObject) {
        let text = json_rpc::response_line::<()>(&self.id, Err(error));
        self.outbox.notify(text, self.room);
    }

    pub(super) fn give<T: Serialize>(self, result: Result<T, ErrorObject>) {
        match result {
            Ok(result) => self.send(&result),
            Err(error) => self.fail(&error),
        }
    }

    pub(super) const fn outbox(&self) -> &ClientOutbox {
        &self.outbox
    }
}

/// Output that was sent to a client and is not yet acknowledged.
#[derive(Debug, Default)]
pub(super) struct UnacknowledgedOutput(Mutex<OutboxWaiter>);

#[derive(Default)]
struct OutboxWaiter {
    /// By the number of the ping sent after it, with the time of that ping.
    pinged: VecDeque<(u64, Instant, Vec<AcknowledgedOutput>)>,
    is_deaf: bool,
    has_heard: bool,
}

impl std::fmt::Debug for OutboxWaiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("pings", &self.pinged.len()).finish_non_exhaustive()
    }
}

impl UnacknowledgedOutput {
    /// The client has received everything sent before this ping.
    pub(super) fn heard(&self, number: u64) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.has_heard = true;
        while waiting.pinged.front().is_some_and(|(ping, ..)| *ping <= number) {
            let (.., told) = waiting.pinged.pop_front().expect("it was just seen");
            told.into_iter().for_each(AcknowledgedOutput::release);
        }
    }

    fn pinged(&self, number: u64, told: Vec<AcknowledgedOutput>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_deaf {
            told.into_iter().for_each(AcknowledgedOutput::release);
        } else {
            waiting.pinged.push_back((number, Instant::now(), told));
        }
    }

    /// When a client that has never acknowledged is assumed to send no acknowledgements.
    fn deadline(&self) -> Option<Instant> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.has_heard {
            return None;
        }
        let (_, since, _) = waiting.pinged.iter().find(|(.., told)| !told.is_empty())?;
        Some(*since + SIGN_TIME_MAX)
    }

    fn give_up(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.is_deaf = true;
        for (.., told) in waiting.pinged.drain(..) {
            told.into_iter().for_each(AcknowledgedOutput::release);
        }
    }
}

/// The lines that are not sent yet.
pub(super) struct UnsentLines(mpsc::Receiver<OutboxLine>);

impl UnsentLines {
    /// Sends until all senders are dropped, the client is gone, or `stopping` resolves. Returns the writer, to be
    /// closed.
    pub(super) async fn run<W: MessageWriter>(
        mut self,
        mut writer: W,
        unheard: Arc<UnacknowledgedOutput>,
        is_resumable: Arc<std::sync::atomic::AtomicBool>,
        stopping: CancellationToken,
    ) -> W {
        let mut pings = PingTimer { number: 0, unheard_bytes: 0, told: vec![], unheard };
        loop {
            let mut lines = vec![];
            let deadline = pings.unheard.deadline();
            tokio::select! {
                n = self.0.recv_many(&mut lines, 64) => if n == 0 { break },
                () = stopping.cancelled() => break,
                () = until(deadline) => pings.unheard.give_up(),
                () = tokio::time::sleep(PING_EVERY) => pings.ping(&mut writer),
            }
            let must_show = writer.has_control_frames()
                && is_resumable.load(std::sync::atomic::Ordering::Acquire);
            if send(&mut writer, lines, &mut pings, must_show, &stopping).await.is_err() {
                break;
            }
        }
        self.0.close();
        writer
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn send(
    writer: &mut impl MessageWriter,
    lines: Vec<OutboxLine>,
    pings: &mut PingTimer,
    must_show: bool,
    stopping: &CancellationToken,
) -> std::io::Result<()> {
    let (mut rooms, mut told) = (vec![], vec![]);
    for line in lines {
        pings.unheard_bytes += line.text.len();
        writer.enqueue(line.text);
        rooms.push(line._room);
        told.extend(line.told);
    }
    flush(writer, stopping).await?;
    drop(rooms);
    if !must_show {
        told.into_iter().for_each(AcknowledgedOutput::release);
        return Ok(());
    }
    pings.told.append(&mut told);
    if pings.unheard_bytes < UNHEARD_BYTES {
        return Ok(());
    }
    pings.ping(writer);
    flush(writer, stopping).await
}

async fn flush(
    writer: &mut impl MessageWriter,
    stopping: &CancellationToken,
) -> std::io::Result<()> {
    tokio::select! {
        sent = writer.flush() => sent,
        () = stopping.cancelled() => Err(std::io::ErrorKind::Interrupted.into()),
    }
}

struct PingTimer {
    number: u64,
    unheard_bytes: usize,
    told: Vec<AcknowledgedOutput>,
    unheard: Arc<UnacknowledgedOutput>,
}

impl PingTimer {
    /// Queues a ping, if the transport has pings: the answer shows what the client has read.
    fn ping(&mut self, writer: &mut impl MessageWriter) {
        if writer.has_control_frames() {
            self.number += 1;
            self.unheard_bytes = 0;
            self.unheard.pinged(self.number, std::mem::take(&mut self.told));
            writer.enqueue_ping(self.number);
        }
    }
}
