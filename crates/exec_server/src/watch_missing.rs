//! `fs/watchMissing`: notifies a client once when a missing file appears, or when an existing file changes. A
//! connection has one watch; a new one replaces it.

use super::outbox::{ClientOutbox, RequestReply};
use protocols::exec_server::{
    BadPath, FsMissingChanged, FsWatchMissingParams, FsWatchMissingResponse, path_of,
};
use protocols::json_rpc::{self, ErrorObject, INVALID_PARAMS};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Maximum number of paths of one watch. Each is polled.
const PATHS_MAX: usize = 256;

/// Poll interval. It is not urgent: the watch only saves clients from polling.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The watch of a connection.
#[derive(Debug, Default)]
pub(super) struct PathWatch {
    last_id: u64,
    current: Option<DropGuard>,
}

impl PathWatch {
    pub(super) fn begin_watch(
        &mut self,
        tasks: &TaskTracker,
        asked: FsWatchMissingParams,
        reply: RequestReply,
    ) {
        if asked.missing.len() > PATHS_MAX {
            let text = format!("fs/watchMissing takes at most {PATHS_MAX} paths");
            reply.fail(&ErrorObject::new(INVALID_PARAMS, text));
            return;
        }
        let watched = match WatchedPath::parse(&asked) {
            Ok(watched) => watched,
            Err(bad) => return reply.fail(&ErrorObject::new(INVALID_PARAMS, bad.to_string())),
        };
        if asked.watch_id <= self.last_id || watched.missing.is_empty() {
            return reply.send(&FsWatchMissingResponse { watching: false });
        }
        let replaced = CancellationToken::new();
        self.last_id = asked.watch_id;
        self.current = Some(replaced.clone().drop_guard());
        let outbox = reply.outbox().clone();
        tasks.spawn(async move {
            tokio::select! {
                () = replaced.cancelled() => {}
                () = outbox.closed() => {}
                () = watched.watch(asked.watch_id, reply, &outbox) => {}
            }
        });
    }
}

/// The watched paths and their known state.
#[derive(Debug, Clone)]
struct WatchedPath {
    missing: Vec<PathBuf>,
    present: Option<PathBuf>,
}

/// The metadata that identifies a version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileFingerprint {
    n_bytes: u64,
    modified: Option<SystemTime>,
}

impl WatchedPath {
    fn parse(asked: &FsWatchMissingParams) -> Result<Self, BadPath> {
        let missing: Result<_, _> = asked.missing.iter().map(|path| path_of(path)).collect();
        let present = asked.present.as_deref().map(path_of).transpose()?;
        Ok(Self { missing: missing?, present })
    }

    async fn watch(self, watch_id: u64, reply: RequestReply, outbox: &ClientOutbox) {
        let before = self.poll_change().await;
        let is_as_told = before.is_some();
        reply.send(&FsWatchMissingResponse { watching: is_as_told });
        if !is_as_told {
            return;
        }
        while self.poll_change().await == before {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let room = outbox.room(0).await;
        let text = json_rpc::notification("fs/missingChanged", &FsMissingChanged { watch_id });
        outbox.notify(text, room);
    }

    /// Returns the current state of the files; none if it differs from what the client knows.
    async fn poll_change(&self) -> Option<Option<FileFingerprint>> {
        let watched = self.clone();
        // File system access may block.
        tokio::task::spawn_blocking(move || watched.look_now()).await.ok()?
    }

    fn look_now(&self) -> Option<Option<FileFingerprint>> {
        if self.missing.iter().any(|path| path.symlink_metadata().is_ok()) {
            return None;
        }
        let Some(present) = &self.present else { return Some(None) };
        let found = present.metadata().ok()?;
        Some(Some(FileFingerprint { n_bytes: found.len(), modified: found.modified().ok() }))
    }
}
