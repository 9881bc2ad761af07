//! Connections within this process, for tests: real lines and real frames over a stream in memory.

use crate::frames::{FrameReader, FrameWriter, frames};
use crate::lines::{LineReader, LineWriter, lines};
use crate::web_socket::limits;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

/// One end of a connection of lines.
pub type MemoryLines = (LineReader<ReadHalf<DuplexStream>>, LineWriter<WriteHalf<DuplexStream>>);

/// One end of a connection of frames.
pub type MemoryFrames =
    (FrameReader<WebSocketStream<DuplexStream>>, FrameWriter<WebSocketStream<DuplexStream>>);

/// Both ends of a connection of lines. A writer waits when `buffer_bytes` are unread.
pub fn line_pair(buffer_bytes: usize, bytes_max: usize) -> (MemoryLines, MemoryLines) {
    let (one, other) = tokio::io::duplex(buffer_bytes);
    let end = |stream| {
        let (reader, writer) = tokio::io::split(stream);
        lines(reader, writer, bytes_max)
    };
    (end(one), end(other))
}

/// Both ends of a connection of frames, the server's first. A writer waits when `buffer_bytes` are unread.
pub async fn frame_pair(buffer_bytes: usize, bytes_max: usize) -> (MemoryFrames, MemoryFrames) {
    let (server, client) = tokio::io::duplex(buffer_bytes);
    let end = async |stream, role| {
        let socket = WebSocketStream::from_raw_socket(stream, role, Some(limits(bytes_max)));
        frames(socket.await, bytes_max)
    };
    (end(server, Role::Server).await, end(client, Role::Client).await)
}
