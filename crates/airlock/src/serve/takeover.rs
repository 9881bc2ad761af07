//! Opens the data directory. An operator's server replaces one that a client started: the old server is asked to stop,
//! and its unfinished executions continue from the journal.

use super::Args;
use crate::{autostart, print, stop};
use server::DoorSelection;
use std::path::Path;
use std::time::{Duration, Instant};
use store::sqlite::{OpenError, SqliteStore, directory_owner};

/// Longest wait for a server that was asked to stop: it needs five seconds at most, on a busy machine more.
const STOP_TIME_MAX: Duration = Duration::from_secs(30);

/// Pause between two checks of the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Opens the directory, and stops a server that a client started there.
pub(super) fn open(args: &Args, data_dir: &Path) -> anyhow::Result<SqliteStore> {
    let is_replaceable = || {
        !args.started_by_client
            && directory_owner(data_dir).is_some_and(|owner| owner.is_client_started)
    };
    let store = match SqliteStore::open(data_dir) {
        Err(OpenError::Owned { .. }) if is_replaceable() => replace(data_dir)?,
        opened => opened.map_err(|error| owner_error(data_dir, args.doors, error))?,
    };
    if args.started_by_client {
        store.mark_client_started()?;
    }
    Ok(store)
}

/// Holds the start lock in the meantime: a client of the old server must not start another.
fn replace(data_dir: &Path) -> anyhow::Result<SqliteStore> {
    let shown = data_dir.display();
    let deadline = Instant::now() + STOP_TIME_MAX;
    let wait = || match Instant::now() > deadline {
        true => Err(anyhow::anyhow!("the server that a client started on {shown} does not stop")),
        false => {
            std::thread::sleep(POLL_INTERVAL);
            Ok(())
        }
    };
    let lock = autostart::start_lock(data_dir)?;
    while lock.try_lock().is_err() {
        wait()?;
    }
    print::print_note(&format!("a client started a server on {shown}; it is replaced by this one"));
    let mut asked = None;
    loop {
        match directory_owner(data_dir) {
            Some(owner) if owner.is_client_started && asked != Some(owner.pid) => {
                stop::terminate(owner.pid, data_dir)?;
                asked = Some(owner.pid);
            }
            Some(_) => wait()?,
            None => match SqliteStore::open(data_dir) {
                Ok(store) => return Ok(store),
                Err(OpenError::Owned { .. }) => wait()?,
                Err(error) => return Err(owner_error(data_dir, DoorSelection::All, error)),
            },
        }
    }
}

fn owner_error(data_dir: &Path, doors: DoorSelection, error: OpenError) -> anyhow::Error {
    let shown = data_dir.display();
    if let OpenError::Owned { note } = &error
        && note.starts_with("http")
    {
        let socket = note.replacen("http", "ws", 1);
        return match doors {
            DoorSelection::All => {
                anyhow::anyhow!("a server already owns {shown}: it listens at {note}")
            }
            DoorSelection::Repl => {
                anyhow::anyhow!("a server already owns {shown}: its REPL is at {socket}/repl")
            }
        };
    }
    anyhow::Error::new(error).context(format!("could not open {shown}"))
}
