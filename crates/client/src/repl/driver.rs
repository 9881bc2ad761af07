//! The task of a client: sends frames and routes answers to the requests that wait for them.

use super::ReplError;
use crate::ServerToken;
use protocols::hotrepl::wire::{AssemblyReload, FromClient, FromServer, Handshake};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use transport::{
    CLOSE_TIME_MAX, ClientReader, ClientWriter, IncomingMessage, MessageReader, MessageWriter,
};

/// Requests that wait for the socket; a sender waits when the queue is full.
const REQUESTS_MAX: usize = 64;

/// Frames of one watch that wait to be read. A watch that is read more slowly loses its oldest.
pub(super) const FRAMES_MAX: usize = 1_024;

/// The longest wait for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Largest frame that is read.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Receives the answers to one request. A watch has many.
pub(super) type ReplAnswerSender = mpsc::Sender<FromServer>;

/// A request in the queue of the driver.
pub(super) struct PendingReplRequest {
    pub(super) frame: FromClient,
    /// The id of the request and the receiver of its answers; `None` where no answer is expected.
    pub(super) waits: Option<(String, ReplAnswerSender)>,
}

/// The state that clones of a client share.
pub(super) struct ReplDriver {
    pub(super) asked: mpsc::Sender<PendingReplRequest>,
    pub(super) over: watch::Receiver<Option<ReplConnectionEnd>>,
    pub(super) reloads: broadcast::Sender<AssemblyReload>,
    pub(super) handshake: Handshake,
    _tasks: JoinSet<()>,
}

/// Why the connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplConnectionEnd {
    Evicted,
    Closed,
}

impl From<ReplConnectionEnd> for ReplError {
    fn from(over: ReplConnectionEnd) -> Self {
        match over {
            ReplConnectionEnd::Evicted => Self::Evicted,
            ReplConnectionEnd::Closed => Self::Closed,
        }
    }
}

impl ReplDriver {
    pub(super) async fn connect(url: &str, token: Option<&ServerToken>) -> Result<Self, ReplError> {
        let shown = url.split('?').next().unwrap_or(url).to_owned();
        let failed = |reason: String| ReplError::Connect { url: shown.clone(), reason };
        let opening = crate::web_socket::open(url, token, FRAME_BYTES_MAX);
        let opened = tokio::time::timeout(CONNECT_TIME_MAX, opening).await;
        let (reader, writer) = opened
            .map_err(|_| failed("it takes too long".into()))?
            .map_err(|reason| failed(reason.to_string()))?;
        Self::start_driver(reader, writer).await
    }

    async fn start_driver(
        mut reader: ClientReader,
        writer: ClientWriter,
    ) -> Result<Self, ReplError> {
        let first = tokio::time::timeout(CONNECT_TIME_MAX, reader.receive()).await;
        let Ok(Ok(IncomingMessage::Whole(text))) = first else {
            return Err(ReplError::NoHandshake);
        };
        let handshake = match serde_json::from_slice(text) {
            Ok(FromServer::Handshake(handshake)) if handshake.protocol_version == 2 => handshake,
            Ok(_) | Err(_) => return Err(ReplError::NoHandshake),
        };
        let (asked, requests) = mpsc::channel(REQUESTS_MAX);
        let (tell, over) = watch::channel(None);
        let reloads = broadcast::Sender::new(FRAMES_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(drive((reader, writer), requests, tell, reloads.clone()));
        Ok(Self { asked, over, reloads, handshake, _tasks: tasks })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others have an addressee, or none")]
async fn drive(
    (mut reader, mut writer): (ClientReader, ClientWriter),
    mut requests: mpsc::Receiver<PendingReplRequest>,
    over: watch::Sender<Option<ReplConnectionEnd>>,
    reloads: broadcast::Sender<AssemblyReload>,
) {
    let mut waiting: HashMap<String, ReplAnswerSender> = HashMap::new();
    let end = loop {
        let is_sending = writer.unsent().bytes > 0;
        tokio::select! {
            asked = requests.recv(), if !is_sending => {
                let Some(PendingReplRequest { frame, waits }) = asked else { break ReplConnectionEnd::Closed };
                waiting.retain(|_, answers| !answers.is_closed());
                waiting.extend(waits);
                let text = serde_json::to_string(&frame).expect("requests have no failing members");
                writer.enqueue(text);
            }
            sent = writer.flush(), if is_sending => if sent.is_err() { break ReplConnectionEnd::Closed },
            received = reader.receive() => match received {
                Ok(IncomingMessage::Whole(text)) => {
                    // Frames of an unknown kind are ignored.
                    let Ok(frame) = serde_json::from_slice::<FromServer>(text) else { continue };
                    match frame {
                        FromServer::SessionEvicted(_) => break ReplConnectionEnd::Evicted,
                        FromServer::AssemblyReload(reload) => drop(reloads.send(reload)),
                        frame => deliver(&mut waiting, frame),
                    }
                }
                Ok(IncomingMessage::Oversized { .. } | IncomingMessage::Pong(_)) => {}
                Err(_) => break ReplConnectionEnd::Closed,
            },
        }
    };
    let _ = over.send(Some(end));
    transport::close(&mut reader, &mut writer, None, CLOSE_TIME_MAX).await;
}

fn deliver(waiting: &mut HashMap<String, ReplAnswerSender>, frame: FromServer) {
    let Some((id, is_last)) = addressee(&frame) else { return };
    let Some(answers) = waiting.get(&id) else { return };
    // A watch that is not read loses frames; an answer always has capacity.
    let _ = answers.try_send(frame);
    if is_last {
        waiting.remove(&id);
    }
}

/// The request that a frame belongs to, and whether it is the last one.
fn addressee(frame: &FromServer) -> Option<(String, bool)> {
    let (id, is_last) = match frame {
        FromServer::Handshake(_)
        | FromServer::SessionEvicted(_)
        | FromServer::AssemblyReload(_) => return None,
        FromServer::Error(it) => (it.id.as_ref()?, true),
        FromServer::EvalResult(it) => (&it.id, true),
        FromServer::EvalError(it) => (&it.id, true),
        FromServer::CompleteResult(it) => (&it.id, true),
        FromServer::ResetResult(it) => (&it.id, true),
        FromServer::SubscribeResult(it) => (&it.id, it.is_final),
        FromServer::SubscribeError(it) => (&it.id, it.is_final),
        FromServer::CommandsListResult(it) => (&it.id, true),
        FromServer::CommandDescribeResult(it) => (&it.id, true),
        FromServer::CommandResult(it) => (&it.id, true),
        FromServer::JobAccepted(it) => (&it.id, true),
        FromServer::JobStatusResult(it) => (&it.id, true),
        FromServer::JobResult(it) => (&it.id, true),
        FromServer::JobCancelResult(it) => (&it.id, true),
        FromServer::JournalQueryResult(it) => (&it.id, true),
    };
    Some((id.clone(), is_last))
}
