//! The way to a server: texts go out, texts come in.

use super::ExecServerError;
use crate::ServerToken;
use futures_util::{SinkExt as _, StreamExt as _};
use protocols::exec_server::{FRAME_BYTES_MAX, MESSAGE_BYTES_MAX};
use protocols::ndjson::Lines;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Messages that wait in either direction; whoever fills it waits.
const TEXTS_MAX: usize = 64;

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// One connection. Dropping it closes it.
pub(super) struct Link {
    pub(super) outgoing: mpsc::Sender<String>,
    pub(super) incoming: mpsc::Receiver<String>,
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

/// One message per line.
pub(super) fn lines(
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
) -> Link {
    let (outgoing, texts) = mpsc::channel(TEXTS_MAX);
    let (heard, incoming) = mpsc::channel(TEXTS_MAX);
    let mut tasks = JoinSet::new();
    tasks.spawn(write_lines(writer, texts));
    tasks.spawn(read_lines(reader, heard));
    Link { outgoing, incoming, _tasks: tasks }
}

async fn write_lines(mut writer: impl AsyncWrite + Unpin, mut texts: mpsc::Receiver<String>) {
    while let Some(mut text) = texts.recv().await {
        text.push('\n');
        if writer.write_all(text.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

async fn read_lines(mut reader: impl AsyncRead + Unpin, heard: mpsc::Sender<String>) {
    let mut lines = Lines::new(MESSAGE_BYTES_MAX * 16);
    loop {
        match lines.take() {
            Ok(Some(line)) => {
                let Ok(text) = std::str::from_utf8(line) else { return };
                if !text.trim().is_empty() && heard.send(text.to_owned()).await.is_err() {
                    return;
                }
            }
            Ok(None) => match reader.read(lines.room(READ_BYTES)).await {
                Ok(0) | Err(_) => return,
                Ok(n) => lines.filled(n),
            },
            Err(_) => return,
        }
    }
}

/// One message per frame.
pub(super) async fn web_socket(
    url: &str,
    token: Option<&ServerToken>,
    timeout: Duration,
) -> Result<Link, ExecServerError> {
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

async fn connect(url: &str, token: Option<&ServerToken>) -> Result<Link, String> {
    let connecting = crate::web_socket::connect(url, token).await;
    let (stream, request) = connecting.map_err(|error| error.to_string())?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX * 16))
        .max_frame_size(Some(MESSAGE_BYTES_MAX * 16));
    let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config))
        .await
        .map_err(|error| error.to_string())?;
    let (mut sink, mut stream) = socket.split();
    let (outgoing, mut texts) = mpsc::channel::<String>(TEXTS_MAX);
    let (heard, incoming) = mpsc::channel(TEXTS_MAX);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Some(text) = texts.recv().await {
            debug_assert!(text.len() < FRAME_BYTES_MAX * 4, "requests are small");
            if sink.send(Message::Text(text.into())).await.is_err() {
                return;
            }
        }
        let _ = sink.close().await;
    });
    tasks.spawn(async move {
        while let Some(Ok(message)) = stream.next().await {
            let Message::Text(text) = message else { continue };
            if heard.send(text.as_str().to_owned()).await.is_err() {
                return;
            }
        }
    });
    Ok(Link { outgoing, incoming, _tasks: tasks })
}
