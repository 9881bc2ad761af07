//! A session: the processes of one client, for as long as it may come back.

use super::outbox::Outbox;
use super::steward::Ask;
use processes::{End, Process};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long a client that was cut off may take to come back.
pub(super) const DETACHED_TIME_MAX: Duration = Duration::from_secs(30);

/// Processes of one session that run or are remembered.
pub(super) const PROCESSES_MAX: usize = 4_096;

/// All sessions of a server.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

/// Why a session cannot be taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotResumed {
    Unknown,
    Attached,
}

impl Sessions {
    pub(super) fn begin(&self) -> Arc<Session> {
        let id = uuid::Uuid::new_v4().to_string();
        let session = Arc::new(Session {
            id: id.clone(),
            entries: Mutex::default(),
            left_behind: Mutex::default(),
            client: watch::Sender::new(Client { outbox: None, n_attached: 0 }),
        });
        self.lock().insert(id, Arc::clone(&session));
        session
    }

    pub(super) fn resume(&self, id: &str) -> Result<Arc<Session>, NotResumed> {
        let session = self.lock().get(id).cloned().ok_or(NotResumed::Unknown)?;
        if session.is_attached() {
            return Err(NotResumed::Attached);
        }
        Ok(session)
    }

    /// Forgets a session and ends its processes.
    pub(super) fn end(&self, session: &Session) {
        self.lock().remove(&session.id);
        session.end();
    }

    pub(super) fn clear(&self) {
        for (_, session) in self.lock().drain() {
            session.end();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who hears of the processes.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// None while it is cut off.
    pub(super) outbox: Option<Outbox>,
    /// How often one came.
    pub(super) n_attached: u64,
}

/// A process as its session knows it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) asks: mpsc::Sender<Ask>,
    pub(super) tty: bool,
    /// None while it is starting.
    pub(super) process: watch::Receiver<Option<Process>>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// What processes that are forgotten have left running.
    left_behind: Mutex<Vec<Process>>,
    client: watch::Sender<Client>,
}

impl Session {
    pub(super) fn is_attached(&self) -> bool {
        self.client.borrow().outbox.as_ref().is_some_and(|outbox| !outbox.is_closed())
    }

    pub(super) fn attach(&self, outbox: &Outbox) {
        self.client.send_modify(|client| {
            client.outbox = Some(outbox.clone());
            client.n_attached += 1;
        });
    }

    /// How often a client came, so that whoever waits for it to stay away knows whether it did.
    pub(super) fn detach(&self) -> u64 {
        self.client.send_modify(|client| client.outbox = None);
        self.client.borrow().n_attached
    }

    pub(super) fn n_attached(&self) -> u64 {
        self.client.borrow().n_attached
    }

    pub(super) fn client(&self) -> watch::Receiver<Client> {
        self.client.subscribe()
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entry(&self, process_id: &str) -> Option<Entry> {
        self.entries().get(process_id).cloned()
    }

    /// Forgets a process; what it left running stays with the session.
    pub(super) fn forget(&self, process_id: &str, process: Option<Process>) {
        self.entries().remove(process_id);
        let mut left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|process| !process.is_gone());
        left.extend(process.filter(|process| !process.is_gone()));
    }

    /// All processes, also those that are forgotten.
    pub(super) fn processes(&self) -> Vec<Process> {
        let left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let entries = self.entries();
        entries.values().filter_map(|entry| entry.process.borrow().clone()).chain(left).collect()
    }

    /// Ends all processes.
    fn end(&self) {
        for process in self.processes() {
            process.end(End::Kill);
        }
        // Dropping the last handles ends those that are just starting.
        self.entries().clear();
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
