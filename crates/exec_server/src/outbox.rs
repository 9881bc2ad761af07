//! What goes out on one connection: one line, in order. Answers have room because requests are counted,
//! notifications wait for theirs, so a client that does not read slows its processes and fills no memory.

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

/// Requests that are being worked on, or whose answers are not sent yet; the next one is not read before one is through.
pub(super) const REQUESTS_MAX: usize = 2_048;

/// Requests of these that wait for somebody: for a process to say or read something, for another server. One more is
/// refused, so that there is always room for those that need nobody, such as `process/terminate`.
const WAITING_MAX: usize = 1_024;

/// Bytes of notifications that wait for a slow client; its processes wait with them.
const NOTIFIED_BYTES_MAX: usize = 1 << 20;

/// What the smallest notification counts as, so that there are not too many of them.
const NOTIFICATION_BYTES_MIN: usize = 1_024;

/// A client is asked for a sign that it has read after about this much.
const UNHEARD_BYTES: usize = 384 << 10;

/// A client that has never given a sign and gives none for this long gives none at all. One that has is waited for.
const SIGN_TIME_MAX: Duration = Duration::from_secs(10);

/// How often an idle connection is pinged.
const PING_EVERY: Duration = Duration::from_secs(30);

/// One message, and what it holds until it is sent.
struct OutboxLine {
    text: String,
    _room: OwnedSemaphorePermit,
    told: Option<AcknowledgedOutput>,
}

/// Output that need not be kept once the client has it.
struct AcknowledgedOutput {
    output: Arc<ProcessOutput>,
    seq: OutputSeq,
}

impl AcknowledgedOutput {
    fn release(self) {
        self.output.release(self.seq);
    }
}

/// The way to a client. Cheap to clone.
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

    /// Room for the answer to one request.
    pub(super) async fn answer_room(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.requests).acquire_owned().await.expect("nobody closes it")
    }

    /// Room for a notification of about this size. Those who wait are served in order.
    pub(super) async fn room(&self, n_bytes: usize) -> OwnedSemaphorePermit {
        let notified = Arc::clone(&self.notified);
        notified.acquire_many_owned(permits(n_bytes)).await.expect("nobody closes it")
    }

    /// The same, now or never.
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

    /// Tells of output; it is released when the client has it.
    pub(super) fn tell(
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
        // There is room for whatever holds a permit; a client that is gone hears nothing.
        let _ = self.lines.try_send(line);
    }
}

fn permits(n_bytes: usize) -> u32 {
    let n = n_bytes.clamp(NOTIFICATION_BYTES_MIN, NOTIFIED_BYTES_MAX);
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The answer that one request waits for.
#[derive(Debug)]
pub(super) struct RequestReply {
    id: RpcId,
    outbox: ClientOutbox,
    room: OwnedSemaphorePermit,
    /// Held while the request waits for somebody.
    waiting: Option<OwnedSemaphorePermit>,
}

impl RequestReply {
    pub(super) const fn new(id: RpcId, outbox: ClientOutbox, room: OwnedSemaphorePermit) -> Self {
        Self { id, outbox, room, waiting: None }
    }

    /// For a request that may wait for somebody, however long that takes. None where too many wait: it is answered.
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
        let text = json_rpc::answer(&self.id, Ok(result));
        self.outbox.notify(text, self.room);
    }

    /// Sends output, which is released when the client has it.
    pub(super) fn send_output<T: Serialize>(
        self,
        result: &T,
        output: &Arc<ProcessOutput>,
        seq: OutputSeq,
    ) {
        let text = json_rpc::answer(&self.id, Ok(result));
        self.outbox.tell(text, self.room, output, seq);
    }

    pub(super) fn fail(self, error: &ErrorObject) {
        let text = json_rpc::answer::<()>(&self.id, Err(error));
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

/// Which output a client has been sent and not yet shown to have.
#[derive(Debug, Default)]
pub(super) struct UnacknowledgedOutput(Mutex<OutboxWaiter>);

#[derive(Default)]
struct OutboxWaiter {
    /// By the number of the ping behind it, with the time of that ping.
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
    /// The client has everything before this ping.
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

    /// When a client that gives no sign is taken to give none.
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

/// What is not sent yet.
pub(super) struct UnsentLines(mpsc::Receiver<OutboxLine>);

impl UnsentLines {
    /// Sends until nobody is left to say anything, the client is gone, or `stopping`. Returns the writer, to be closed.
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
    /// Queues a ping, where the transport has any: its answer shows what the client has read.
    fn ping(&mut self, writer: &mut impl MessageWriter) {
        if writer.has_control_frames() {
            self.number += 1;
            self.unheard_bytes = 0;
            self.unheard.pinged(self.number, std::mem::take(&mut self.told));
            writer.enqueue_ping(self.number);
        }
    }
}
