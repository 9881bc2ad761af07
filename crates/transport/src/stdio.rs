//! Standard input and output, without an extra thread if they are pipes or sockets, as between programs.

use crate::listen::{ByteSink, ByteSource};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::statfs::{FsType, fstatfs};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// The kind of a stream, which decides how to wait for it.
enum StreamKind {
    Pipe(OwnedFd),
    Socket(StdUnixStream),
    /// A terminal or a file: other processes share it and would not expect it to become non-blocking. A named pipe
    /// belongs here too: it can be reopened after its last reader has left, which the runtime treats as a permanent
    /// hang-up, and a write that has to wait would never complete.
    Other(File),
}

/// Requested capacity of a pipe to a client, so that both sides seldom wait for each other in the middle of a
/// message.
const OUTPUT_PIPE_BYTES: i32 = 512 << 10;

/// Opens the source of messages.
pub fn input() -> io::Result<ByteSource> {
    Ok(match kind(io::stdin().as_fd().try_clone_to_owned()?)? {
        StreamKind::Pipe(pipe) => Box::new(pipe::Receiver::from_owned_fd(pipe)?),
        StreamKind::Socket(socket) => Box::new(UnixStream::from_std(socket)?),
        StreamKind::Other(file) => Box::new(tokio::fs::File::from_std(file)),
    })
}

/// Opens the sink of answers.
pub fn output() -> io::Result<ByteSink> {
    Ok(match kind(io::stdout().as_fd().try_clone_to_owned()?)? {
        StreamKind::Pipe(pipe) => {
            // If the request is refused, the pipe retains its capacity.
            let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(OUTPUT_PIPE_BYTES));
            Box::new(pipe::Sender::from_owned_fd(pipe)?)
        }
        StreamKind::Socket(socket) => Box::new(UnixStream::from_std(socket)?),
        StreamKind::Other(file) => Box::new(tokio::fs::File::from_std(file)),
    })
}

/// Whether a pipe has no name in a file system.
fn is_anonymous(pipe: &File) -> bool {
    /// `PIPEFS_MAGIC`.
    const PIPES: FsType = FsType(0x5049_5045);
    fstatfs(pipe).is_ok_and(|system| system.filesystem_type() == PIPES)
}

fn kind(stream: OwnedFd) -> io::Result<StreamKind> {
    let file = File::from(stream);
    let file_type = file.metadata()?.file_type();
    if file_type.is_fifo() && is_anonymous(&file) {
        return Ok(StreamKind::Pipe(file.into()));
    }
    if !file_type.is_socket() {
        return Ok(StreamKind::Other(file));
    }
    let socket = StdUnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true)?;
    Ok(StreamKind::Socket(socket))
}
