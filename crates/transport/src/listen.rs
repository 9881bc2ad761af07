//! Listeners for connections of lines: a TCP port, or a socket in the file system that only this user can reach.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

/// The receiving half of a byte stream.
pub type ByteSource = Box<dyn AsyncRead + Unpin + Send>;

/// The sending half of a byte stream.
pub type ByteSink = Box<dyn AsyncWrite + Unpin + Send>;

/// How long to wait if the system has no file descriptor for a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A listener for connections of lines.
#[derive(Debug)]
pub enum LineListener {
    /// Listens on a TCP port.
    Tcp(TcpListener),
    /// Listens on a socket path.
    Unix(UnixListener),
}

impl LineListener {
    /// Listens on a path, for this user only. The socket is created in a folder that only this user can enter, then
    /// moved.
    pub fn bind_private(path: &Path) -> io::Result<Self> {
        if std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            // Left behind by a listener that was killed.
            std::fs::remove_file(path)?;
        }
        let mut folder = path.as_os_str().to_owned();
        folder.push(format!(".{}", std::process::id()));
        let folder = PathBuf::from(folder);
        DirBuilder::new().mode(0o700).create(&folder)?;
        let listener = bind_in(&folder, path);
        std::fs::remove_dir(&folder)?;
        listener.map(Self::Unix)
    }

    /// Accepts the next connection. Waits while the system has no file descriptor for it.
    pub async fn accept(&self) -> (ByteSource, ByteSink) {
        loop {
            match self.try_accept().await {
                Ok(halves) => return halves,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn try_accept(&self) -> io::Result<(ByteSource, ByteSink)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // An answer is one small write: Nagle's algorithm would only delay it.
                stream.set_nodelay(true)?;
                let (source, sink) = stream.into_split();
                (Box::new(source), Box::new(sink))
            }
            Self::Unix(listener) => {
                let (source, sink) = listener.accept().await?.0.into_split();
                (Box::new(source), Box::new(sink))
            }
        })
    }
}

fn bind_in(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    let private = folder.join("s");
    let listener = UnixListener::bind(&private)?;
    std::fs::set_permissions(&private, Permissions::from_mode(0o600))?;
    std::fs::rename(&private, path)?;
    Ok(listener)
}
