//! Programs that stand behind another one of the same caller, at a kept runner that is at work.
//!
//! Where all processors have something to do, a further runner would only take turns with the others. A runner that
//! finds its next program waiting goes on without falling asleep, with all that it needs still in the processor's
//! caches. Whoever stands behind has not begun: if the runner is not free for it soon, it starts elsewhere.

use crate::birth::Runner;
use protocols::ndjson::Lines;
use std::collections::VecDeque;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// Programs behind the one at work.
const HEIRS_MAX: usize = 8;

/// The longest order that may stand behind another: the link takes all of it at once, or nothing.
const ORDER_BYTES_MAX: usize = 4 << 10;

/// The runner, and what it has said already: whoever is done leaves both to the next.
#[derive(Debug)]
pub(crate) struct Estate {
    pub(crate) runner: Runner,
    pub(crate) lines: Lines,
}

/// All queues of a sandbox.
#[derive(Debug)]
pub(crate) struct Queues {
    /// A queue that does not move for so long is dissolved.
    pub(crate) patience: Duration,
    open: Mutex<Vec<Arc<Queue>>>,
    is_look_wanted: AtomicBool,
    look_wanted: Notify,
}

/// Those behind one runner.
#[derive(Debug)]
struct Queue {
    link: Arc<UnixStream>,
    caller: String,
    memory_bytes: u64,
    /// Whose tasks may stand here: another runtime would have to be woken for each.
    runtime: Id,
    standing: Mutex<Standing>,
}

#[derive(Debug, Default)]
struct Standing {
    heirs: VecDeque<oneshot::Sender<Estate>>,
    is_closed: bool,
    /// Somebody left whose order the runner has: nobody can use it after that.
    is_spoiled: bool,
    /// Whether it has moved since somebody last looked.
    has_moved: bool,
}

/// The place before a queue: the holder of the runner has it. When it is dropped, those behind start elsewhere.
#[derive(Debug)]
pub(crate) struct Head {
    queue: Arc<Queue>,
    queues: Arc<Queues>,
}

/// A place that can be taken behind others.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Arc<Queue>,
    queues: Arc<Queues>,
}

impl Queues {
    pub(crate) fn new(patience: Duration) -> Self {
        let (open, is_look_wanted, look_wanted) = Default::default();
        Self { patience, open, is_look_wanted, look_wanted }
    }

    /// Lets others stand behind whoever holds this runner.
    pub(crate) fn open(self: &Arc<Self>, runner: &Runner, caller: &str) -> Head {
        let queue = Arc::new(Queue {
            link: runner.link.stream(),
            caller: caller.to_owned(),
            memory_bytes: runner.memory_bytes,
            runtime: Handle::current().id(),
            standing: Mutex::default(),
        });
        locked(&self.open).push(Arc::clone(&queue));
        Head { queue, queues: Arc::clone(self) }
    }

    /// A place behind a program of the same caller, if there is one near.
    pub(crate) fn place(self: &Arc<Self>, caller: &str, memory_bytes: u64) -> Option<Place> {
        let here = Handle::current().id();
        let open = locked(&self.open);
        let queue = open.iter().find(|queue| {
            queue.runtime == here
                && queue.memory_bytes == memory_bytes
                && queue.caller == caller
                && locked(&queue.standing).has_room()
        })?;
        Some(Place { queue: Arc::clone(queue), queues: Arc::clone(self) })
    }

    /// Dissolves queues that do not move, until everything shuts down. One timer for all: most queues move within
    /// a millisecond.
    pub(crate) async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        let looks = async {
            loop {
                self.look_wanted.notified().await;
                tokio::time::sleep(self.patience).await;
                self.is_look_wanted.store(false, Ordering::Release);
                if self.look() {
                    self.want_look();
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = looks => {}
        }
    }

    fn want_look(&self) {
        if !self.is_look_wanted.swap(true, Ordering::AcqRel) {
            self.look_wanted.notify_one();
        }
    }

    /// Whether anybody stands anywhere.
    fn look(&self) -> bool {
        let open = locked(&self.open);
        open.iter().fold(false, |is_any, queue| {
            let mut standing = locked(&queue.standing);
            if !standing.heirs.is_empty() && !std::mem::take(&mut standing.has_moved) {
                standing.dissolve();
            }
            is_any || !standing.heirs.is_empty()
        })
    }
}

impl Place {
    /// Takes it: the runner gets the order, and whoever waits for what comes back gets the runner. `None` if it cannot be
    /// had any more.
    pub(crate) fn take(self, order: &[u8]) -> Option<oneshot::Receiver<Estate>> {
        let mut standing = locked(&self.queue.standing);
        if standing.is_closed || order.len() > ORDER_BYTES_MAX {
            return None;
        }
        let written = (&*self.queue.link).write(order).ok()?;
        if written < order.len() {
            standing.dissolve();
            standing.is_spoiled = true;
            return None;
        }
        if standing.heirs.is_empty() {
            standing.has_moved = true;
        }
        let (heir, estate) = oneshot::channel();
        standing.heirs.push_back(heir);
        drop(standing);
        self.queues.want_look();
        Some(estate)
    }
}

impl Head {
    /// Sends away everybody behind.
    pub(crate) fn dissolve(&self) {
        locked(&self.queue.standing).dissolve();
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        self.dissolve();
        locked(&self.queues.open).retain(|queue| !Arc::ptr_eq(queue, &self.queue));
    }
}

impl Standing {
    fn has_room(&self) -> bool {
        !self.is_closed && self.heirs.len() < HEIRS_MAX
    }

    fn dissolve(&mut self) {
        self.is_closed = true;
        self.is_spoiled |= !self.heirs.is_empty();
        self.heirs.clear();
    }
}

/// Leaves a runner to the next. Gives it back if nobody stands behind, and then nobody can any more.
pub(crate) fn pass(estate: Estate) -> Option<Estate> {
    let Some(head) = &estate.runner.head else {
        return Some(estate).filter(|estate| estate.lines.is_empty());
    };
    let queue = Arc::clone(&head.queue);
    let mut standing = locked(&queue.standing);
    standing.has_moved = true;
    let unwanted = match standing.heirs.pop_front() {
        Some(next) => next.send(estate).err().inspect(|_| standing.is_spoiled = true),
        None => Some(estate),
    };
    standing.is_closed |= unwanted.is_some();
    let is_spoiled = standing.is_spoiled;
    drop(standing);
    // What is not given back here ends with its runner, and those behind start elsewhere.
    let mut estate = unwanted.filter(|estate| !is_spoiled && estate.lines.is_empty())?;
    estate.runner.head = None;
    Some(estate)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
