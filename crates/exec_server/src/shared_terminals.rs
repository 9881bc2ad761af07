//! Named terminals: they outlive the client that started them, and several clients may view one. A slow viewer delays
//! no other: it receives the whole screen again.

use processes::{Process, PtySize};
use protocols::exec_server::{SharedTerminal, TerminalSize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of named terminals.
const SHARED_MAX: usize = 256;

/// Maximum length of a name.
const NAME_BYTES_MAX: usize = 128;

/// The owner and the name.
type TerminalKey = (String, String);

/// All named terminals of a server.
#[derive(Debug, Default)]
pub(super) struct SharedTerminals(Mutex<BTreeMap<TerminalKey, Arc<NamedTerminal>>>);

/// A named terminal.
#[derive(Debug)]
pub(super) struct NamedTerminal {
    pub(super) process: Process,
    /// The window sizes of viewers that may type, by viewer.
    sizes: Mutex<BTreeMap<u64, PtySize>>,
    n_viewers: AtomicU64,
    next_viewer: AtomicU64,
}

impl SharedTerminals {
    /// Checks whether a terminal of this name can be created; returns the reason otherwise.
    pub(super) fn check_name(&self, owner: &str, name: &str) -> Result<(), String> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!("a terminal's name has 1 to {NAME_BYTES_MAX} bytes"));
        }
        let mut all = self.lock();
        all.retain(|_, shared| !shared.process.output().is_closed());
        if all.contains_key(&(owner.to_owned(), name.to_owned())) {
            return Err(format!("there is a terminal {name} already"));
        }
        match all.len() < SHARED_MAX {
            true => Ok(()),
            false => Err(format!("there are {SHARED_MAX} terminals with a name at most")),
        }
    }

    /// Registers a process under a name.
    pub(super) fn add(&self, owner: &str, name: &str, process: Process) -> Arc<NamedTerminal> {
        // Its output may be discarded when the buffer is full: the screen remains.
        process.output().release(u64::MAX);
        let shared = Arc::new(NamedTerminal {
            process,
            sizes: Mutex::default(),
            n_viewers: AtomicU64::new(0),
            next_viewer: AtomicU64::new(0),
        });
        self.lock().insert((owner.to_owned(), name.to_owned()), Arc::clone(&shared));
        shared
    }

    pub(super) fn find(&self, owner: &str, name: &str) -> Option<Arc<NamedTerminal>> {
        self.lock().get(&(owner.to_owned(), name.to_owned())).cloned()
    }

    /// Lists the terminals of one owner.
    pub(super) fn list_terminals(&self, owner: &str) -> Vec<SharedTerminal> {
        let all = self.lock();
        let own = all.iter().filter(|((whose, _), _)| whose == owner);
        own.map(|((_, name), shared)| {
            let exit_code = shared.process.output().exit_code();
            SharedTerminal {
                name: name.clone(),
                pid: shared.process.pid(),
                viewers: shared.n_viewers.load(Ordering::Relaxed),
                exited: exit_code.is_some(),
                exit_code,
            }
        })
        .collect()
    }

    /// Removes a terminal that has ended, unless another one has taken its name.
    pub(super) fn remove_terminal(&self, shared: &Arc<NamedTerminal>) {
        self.lock().retain(|_, other| !Arc::ptr_eq(other, shared));
    }

    /// Removes all terminals; those without other handles end.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TerminalKey, Arc<NamedTerminal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A viewer of a terminal. It counts while its client is connected, until it is dropped.
#[derive(Debug)]
pub(super) struct TerminalViewer {
    pub(super) shared: Arc<NamedTerminal>,
    pub(super) is_read_only: bool,
    number: u64,
    /// The viewer's window size, if it is considered.
    size: Option<PtySize>,
    is_there: bool,
}

impl TerminalViewer {
    pub(super) fn new(shared: Arc<NamedTerminal>, is_read_only: bool) -> Self {
        let number = shared.next_viewer.fetch_add(1, Ordering::Relaxed);
        shared.n_viewers.fetch_add(1, Ordering::Relaxed);
        Self { shared, is_read_only, number, size: None, is_there: true }
    }

    /// Sets the viewer's window size. The terminal has the largest size that fits into all windows that may type.
    pub(super) fn resize(&mut self, size: PtySize) {
        self.size = Some(size);
        self.fit();
    }

    /// Records that the viewer's client disconnected or reconnected: the window of a disconnected client is ignored.
    pub(super) fn is_there(&mut self, is_there: bool) {
        match (self.is_there, is_there) {
            (false, true) => self.shared.n_viewers.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.shared.n_viewers.fetch_sub(1, Ordering::Relaxed),
            (true, true) | (false, false) => return,
        };
        self.is_there = is_there;
        self.fit();
    }

    fn fit(&self) {
        let mut sizes = self.shared.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        match self.size.filter(|_| self.is_there) {
            Some(size) => sizes.insert(self.number, size),
            None => sizes.remove(&self.number),
        };
        let rows = sizes.values().map(|size| size.rows).min();
        let columns = sizes.values().map(|size| size.columns).min();
        if let (Some(rows), Some(columns)) = (rows, columns) {
            let _ = self.shared.process.resize(PtySize { rows, columns });
        }
    }
}

impl Drop for TerminalViewer {
    fn drop(&mut self) {
        self.is_there(false);
    }
}

pub(super) const fn size_of(size: TerminalSize) -> PtySize {
    PtySize { rows: size.rows, columns: size.cols }
}
