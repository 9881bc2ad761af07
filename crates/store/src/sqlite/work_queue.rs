//! A queue between async tasks and a thread: adding never blocks, taking does.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long an item that is not urgent may wait for more of its kind: larger batches are cheaper per item.
const QUIET_TIME_MAX: Duration = Duration::from_millis(50);

/// A FIFO queue of work for a thread.
pub(super) struct WorkQueue<T> {
    waiting: Mutex<QueuedItems<T>>,
    arrived: Condvar,
    max: QueueLimits,
}

/// Maximum length and size of the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// Why the queue accepts no more items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueClosed {
    Full,
    Closed,
}

struct QueuedItems<T> {
    items: VecDeque<(QueueMode, T)>,
    bytes: usize,
    /// The number of urgent items.
    n_loud: usize,
    /// When the first of the other items arrived.
    quiet_since: Option<Instant>,
    n_idle: usize,
    open: bool,
}

/// The urgency of an item.
#[derive(Clone, Copy)]
enum QueueMode {
    /// Urgent: a caller waits. The number is its size in bytes.
    Loud(usize),
    /// Not urgent: no caller waits.
    Quiet,
}

impl<T> WorkQueue<T> {
    pub(super) const fn new(max: QueueLimits) -> Self {
        let waiting = QueuedItems {
            items: VecDeque::new(),
            bytes: 0,
            n_loud: 0,
            quiet_since: None,
            n_idle: 0,
            open: true,
        };
        Self { waiting: Mutex::new(waiting), arrived: Condvar::new(), max }
    }

    /// Adds an item, or returns it immediately.
    pub(super) fn join(&self, bytes: usize, item: T) -> Result<(), (T, QueueClosed)> {
        let mut waiting = self.lock();
        if !waiting.open {
            return Err((item, QueueClosed::Closed));
        }
        let too_many = waiting.items.len() >= self.max.items;
        // An item over the limit is accepted if it is alone; it could never be processed otherwise.
        let too_much = waiting.bytes.saturating_add(bytes) > self.max.bytes;
        if too_many || (too_much && !waiting.items.is_empty()) {
            return Err((item, QueueClosed::Full));
        }
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        waiting.n_loud += 1;
        waiting.items.push_back((QueueMode::Loud(bytes), item));
        self.wake(waiting);
        Ok(())
    }

    /// Adds an item that is not urgent, regardless of the limits: it is taken with the next urgent one, or a moment
    /// later. False if the queue is closed.
    pub(super) fn join_quietly(&self, item: T) -> bool {
        let mut waiting = self.lock();
        if !waiting.open {
            return false;
        }
        waiting.items.push_back((QueueMode::Quiet, item));
        if waiting.quiet_since.is_none() {
            waiting.quiet_since = Some(Instant::now());
            self.wake(waiting);
        }
        true
    }

    fn wake(&self, waiting: MutexGuard<'_, QueuedItems<T>>) {
        let somebody_sleeps = waiting.n_idle > 0;
        drop(waiting);
        if somebody_sleeps {
            self.arrived.notify_one();
        }
    }

    /// Waits for items and takes what is there, within `max`; false if the queue is closed and empty.
    pub(super) fn take(&self, max: QueueLimits, into: &mut Vec<T>) -> bool {
        let there = self.wait();
        self.take_now(max, into);
        there
    }

    /// Waits until an item is due; false if the queue is closed and empty.
    pub(super) fn wait(&self) -> bool {
        const WHY: &str = "nothing panics while it holds this lock";
        let mut waiting = self.lock();
        while waiting.n_loud == 0 {
            if !waiting.open {
                return !waiting.items.is_empty();
            }
            let quiet = waiting.quiet_since.map(|since| since.elapsed());
            let left = quiet.map(|quiet| QUIET_TIME_MAX.saturating_sub(quiet));
            if left == Some(Duration::ZERO) {
                return true;
            }
            waiting.n_idle += 1;
            waiting = match left {
                Some(left) => self.arrived.wait_timeout(waiting, left).expect(WHY).0,
                None => self.arrived.wait(waiting).expect(WHY),
            };
            waiting.n_idle -= 1;
        }
        true
    }

    /// Takes what is there, within `max`.
    pub(super) fn take_now(&self, max: QueueLimits, into: &mut Vec<T>) {
        let mut waiting = self.lock();
        let mut taken = 0_usize;
        while into.len() < max.items
            && taken < max.bytes
            && let Some((manner, item)) = waiting.items.pop_front()
        {
            if let QueueMode::Loud(bytes) = manner {
                taken = taken.saturating_add(bytes);
                waiting.bytes -= bytes;
                waiting.n_loud -= 1;
            }
            into.push(item);
        }
        if waiting.items.is_empty() {
            waiting.quiet_since = None;
        }
    }

    /// Accepts no more items; those that wait are still taken.
    pub(super) fn close(&self) {
        self.lock().open = false;
        self.arrived.notify_all();
    }

    /// Drops the items that wait: their thread is gone.
    pub(super) fn abandon(&self) {
        self.close();
        let mut waiting = self.lock();
        let left = std::mem::take(&mut waiting.items);
        waiting.n_loud = 0;
        drop(waiting);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, QueuedItems<T>> {
        self.waiting.lock().expect("nothing panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: QueueLimits = QueueLimits { items: 3, bytes: 10 };

    fn taken(line: &WorkQueue<u8>, max: QueueLimits) -> Vec<u8> {
        let mut into = vec![];
        line.take(max, &mut into);
        into
    }

    #[test]
    fn what_joined_first_is_taken_first() {
        let line = WorkQueue::new(MAX);
        for item in 1..=3 {
            line.join(1, item).unwrap();
        }
        assert_eq!(taken(&line, QueueLimits { items: 2, bytes: 10 }), [1, 2]);
        assert_eq!(taken(&line, MAX), [3]);
    }

    #[test]
    fn what_nobody_waits_for_is_taken_with_what_comes_next_or_a_moment_later() {
        let line = WorkQueue::new(MAX);
        assert!(line.join_quietly(1));
        assert_eq!(taken(&line, MAX), [1], "after a while");
        line.join_quietly(2);
        line.join_quietly(3);
        line.join(1, 4).unwrap();
        assert_eq!(taken(&line, MAX), [2, 3, 4]);
        line.join_quietly(5);
        line.close();
        assert!(!line.join_quietly(6));
        assert_eq!(taken(&line, MAX), [5], "what is here is still taken");
    }

    #[test]
    fn a_full_line_hands_the_item_back() {
        let line = WorkQueue::new(MAX);
        for item in 1..=3 {
            line.join(1, item).unwrap();
        }
        assert_eq!(line.join(1, 4), Err((4, QueueClosed::Full)));
        taken(&line, MAX);
        line.join(99, 5).unwrap();
        assert_eq!(line.join(1, 6), Err((6, QueueClosed::Full)));
    }

    #[test]
    fn a_closed_line_is_emptied_and_then_over() {
        let line = WorkQueue::new(MAX);
        line.join(1, 1).unwrap();
        line.close();
        assert_eq!(line.join(1, 2), Err((2, QueueClosed::Closed)));
        assert_eq!(taken(&line, MAX), [1]);
        assert!(!line.take(MAX, &mut vec![]));
    }
}
