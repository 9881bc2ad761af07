//! A connection to a server, as channels of texts in both directions.

use super::ExecServerError;
use crate::ServerToken;
use protocols::exec_server::MESSAGE_BYTES_MAX;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use transport::{IncomingMessage, MessageReader, MessageWriter};

/// Messages that are buffered in either direction; a sender waits when the buffer is full.
const TEXTS_MAX: usize = 64;

/// Longest message that is read from a server: other servers may have larger limits.
const ANSWER_BYTES_MAX: usize = 16 * MESSAGE_BYTES_MAX;

/// One connection. Dropping it closes it.
pub(super) struct ExecServerLink {
    pub(super) outgoing: mpsc::Sender<String>,
    pub(super) incoming: mpsc::Receiver<String>,
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for ExecServerLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

/// One message per line.
pub(super) fn lines(
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
) -> ExecServerLink {
    let (reader, writer) = transport::lines(reader, writer, ANSWER_BYTES_MAX);
    link(reader, writer)
}

fn link(
    reader: impl MessageReader + 'static,
    writer: impl MessageWriter + 'static,
) -> ExecServerLink {
    let (outgoing, texts) = mpsc::channel(TEXTS_MAX);
    let (heard, incoming) = mpsc::channel(TEXTS_MAX);
    let mut tasks = JoinSet::new();
    tasks.spawn(write(writer, texts));
    tasks.spawn(read(reader, heard));
    ExecServerLink { outgoing, incoming, _tasks: tasks }
}

async fn write(mut writer: impl MessageWriter, mut texts: mpsc::Receiver<String>) {
    while let Some(text) = texts.recv().await {
        if writer.send(text).await.is_err() {
            return;
        }
    }
    writer.enqueue_close(None);
    let _ = writer.flush().await;
}

async fn read(mut reader: impl MessageReader, heard: mpsc::Sender<String>) {
    while let Ok(message) = reader.receive().await {
        let IncomingMessage::Whole(bytes) = message else { continue };
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        if heard.send(text.to_owned()).await.is_err() {
            return;
        }
    }
}

/// One message per frame.
pub(super) async fn web_socket(
    url: &str,
    token: Option<&ServerToken>,
    timeout: Duration,
) -> Result<ExecServerLink, ExecServerError> {
    let late = |_| ExecServerError::WebSocketConnectTimeout { url: without_query(url), timeout };
    tokio::time::timeout(timeout, connect(url, token))
        .await
        .map_err(late)?
        .map_err(|reason| ExecServerError::WebSocketConnect { url: without_query(url), reason })
}

/// A query may hold a token.
fn without_query(url: &str) -> String {
    url.split('?').next().unwrap_or(url).to_owned()
}

async fn connect(url: &str, token: Option<&ServerToken>) -> Result<ExecServerLink, String> {
    let opened = crate::web_socket::open(url, token, ANSWER_BYTES_MAX).await;
    let (reader, writer) = opened.map_err(|error| error.to_string())?;
    Ok(link(reader, writer))
}
