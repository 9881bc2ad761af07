//! A session: the processes of one client, for as long as it may reconnect.

use super::outbox::ClientOutbox;
use super::process_task::ProcessRequest;
use processes::{EndMode, Process};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// Maximum number of processes of one session, running or remembered.
pub(super) const PROCESSES_MAX: usize = 4_096;

/// How many ended processes are forgotten in one batch if the session is full: searching for them is expensive.
const FORGOTTEN_AT_ONCE: usize = 256;

/// All sessions of a server.
#[derive(Debug, Default)]
pub(super) struct ExecSessions(Mutex<HashMap<String, Arc<ExecSession>>>);

/// Why a session cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotResumed {
    Unknown,
    Attached,
}

impl ExecSessions {
    pub(super) fn begin_session(&self) -> Arc<ExecSession> {
        let id = uuid::Uuid::new_v4().to_string();
        let session = Arc::new(ExecSession {
            id: id.clone(),
            entries: Mutex::default(),
            left_behind: Mutex::default(),
            n_started: AtomicU64::new(0),
            is_taken: AtomicBool::new(false),
            client: watch::Sender::new(SessionClient { outbox: None, n_attached: 0 }),
        });
        self.lock().insert(id, Arc::clone(&session));
        session
    }

    /// Resumes a session for a client that is about to attach. Of two concurrent attempts, one succeeds.
    pub(super) fn resume(&self, id: &str) -> Result<Arc<ExecSession>, NotResumed> {
        let session = self.lock().get(id).cloned().ok_or(NotResumed::Unknown)?;
        if session.is_attached() || session.is_taken.swap(true, Ordering::AcqRel) {
            return Err(NotResumed::Attached);
        }
        Ok(session)
    }

    /// Forgets a session and ends its processes.
    pub(super) fn end_session(&self, session: &ExecSession) {
        self.lock().remove(&session.id);
        session.end_processes();
    }

    pub(super) fn clear(&self) {
        for (_, session) in self.lock().drain() {
            session.end_processes();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ExecSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client that receives a session's notifications.
#[derive(Debug, Clone)]
pub(super) struct SessionClient {
    /// None while the client is disconnected.
    pub(super) outbox: Option<ClientOutbox>,
    /// How many times a client has attached.
    pub(super) n_attached: u64,
}

/// A process as recorded in its session.
#[derive(Debug, Clone)]
pub(super) struct SessionProcess {
    pub(super) asks: mpsc::Sender<ProcessRequest>,
    pub(super) tty: bool,
    /// Whether the process outlives this session.
    pub(super) is_shared: bool,
    /// Increases with every process.
    pub(super) number: u64,
    /// None while the process is starting.
    pub(super) process: watch::Receiver<Option<Process>>,
}

#[derive(Debug)]
pub(super) struct ExecSession {
    pub(super) id: String,
    entries: Mutex<BTreeMap<String, SessionProcess>>,
    /// Descendants that forgotten processes have left running.
    left_behind: Mutex<Vec<Process>>,
    n_started: AtomicU64,
    /// A client is about to attach.
    is_taken: AtomicBool,
    client: watch::Sender<SessionClient>,
}

impl ExecSession {
    pub(super) fn is_attached(&self) -> bool {
        self.client.borrow().outbox.as_ref().is_some_and(|outbox| !outbox.is_closed())
    }

    /// Attaches a client to the processes' notifications; returns the attachment number, which distinguishes it from
    /// other clients.
    pub(super) fn attach(&self, outbox: &ClientOutbox) -> u64 {
        self.client.send_modify(|client| {
            client.outbox = Some(outbox.clone());
            client.n_attached += 1;
        });
        self.is_taken.store(false, Ordering::Release);
        self.n_attached()
    }

    /// Detaches the client of this number; false if the next client has already attached.
    pub(super) fn detach(&self, n_attached: u64) -> bool {
        self.client.send_if_modified(|client| {
            let is_last = client.n_attached == n_attached;
            if is_last {
                client.outbox = None;
            }
            is_last
        })
    }

    pub(super) fn n_attached(&self) -> u64 {
        self.client.borrow().n_attached
    }

    pub(super) fn client(&self) -> watch::Receiver<SessionClient> {
        self.client.subscribe()
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, BTreeMap<String, SessionProcess>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entry(&self, process_id: &str) -> Option<SessionProcess> {
        self.entries().get(process_id).cloned()
    }

    /// Forgets a process; the descendants that it left running stay with the session.
    pub(super) fn remove_process(&self, process_id: &str, process: Option<Process>) {
        self.entries().remove(process_id);
        let mut left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|process| !process.is_gone());
        left.extend(process.filter(|process| !process.is_gone()));
    }

    /// Allocates the number of the next process.
    pub(super) fn number(&self) -> u64 {
        self.n_started.fetch_add(1, Ordering::Relaxed)
    }

    /// Forgets the processes that ended first, so that another can be started; false if too many run.
    pub(super) fn make_room(&self, entries: &mut BTreeMap<String, SessionProcess>) -> bool {
        if entries.len() < PROCESSES_MAX {
            return true;
        }
        let has_ended = |entry: &SessionProcess| {
            entry.process.borrow().as_ref().is_some_and(|process| process.output().is_closed())
        };
        let ended = entries.iter().filter(|(_, entry)| has_ended(entry));
        let mut ended: Vec<(u64, String)> =
            ended.map(|(id, entry)| (entry.number, id.clone())).collect();
        ended.sort_unstable();
        let mut left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, id) in ended.into_iter().take(FORGOTTEN_AT_ONCE) {
            let process = entries.remove(&id).and_then(|entry| entry.process.borrow().clone());
            left.extend(process.filter(|process| !process.is_gone()));
        }
        entries.len() < PROCESSES_MAX
    }

    /// Returns all processes, including forgotten ones.
    pub(super) fn processes(&self) -> Vec<Process> {
        let left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let entries = self.entries();
        let own = entries.values().filter(|entry| !entry.is_shared);
        own.filter_map(|entry| entry.process.borrow().clone()).chain(left).collect()
    }

    /// Ends all processes.
    fn end_processes(&self) {
        for process in self.processes() {
            process.end_with(EndMode::Kill);
        }
        // Dropping the last handles ends the processes that are still starting.
        self.entries().clear();
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
