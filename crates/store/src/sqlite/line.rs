//! A queue between the async world and a thread: putting something in never waits, taking it out does.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// What waits for a thread, first come, first served.
pub(super) struct Line<T> {
    waiting: Mutex<Waiting<T>>,
    arrived: Condvar,
    max: Max,
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Max {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// Why nothing more can join the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Full,
    Closed,
}

struct Waiting<T> {
    items: VecDeque<(usize, T)>,
    bytes: usize,
    n_idle: usize,
    open: bool,
}

impl<T> Line<T> {
    pub(super) const fn new(max: Max) -> Self {
        let items = VecDeque::new();
        Self {
            waiting: Mutex::new(Waiting { items, bytes: 0, n_idle: 0, open: true }),
            arrived: Condvar::new(),
            max,
        }
    }

    /// Joins the line, or hands the item back at once.
    pub(super) fn join(&self, bytes: usize, item: T) -> Result<(), (T, Refused)> {
        let mut waiting = self.lock();
        if !waiting.open {
            return Err((item, Refused::Closed));
        }
        let too_many = waiting.items.len() >= self.max.items;
        // Something huge may pass when it is alone, or it could never pass.
        let too_much = waiting.bytes.saturating_add(bytes) > self.max.bytes;
        if too_many || (too_much && !waiting.items.is_empty()) {
            return Err((item, Refused::Full));
        }
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        waiting.items.push_back((bytes, item));
        let somebody_sleeps = waiting.n_idle > 0;
        drop(waiting);
        if somebody_sleeps {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Waits until there is something and takes what is there, within `max`; false when the line is
    /// closed and empty.
    pub(super) fn take(&self, max: Max, into: &mut Vec<T>) -> bool {
        let there = self.wait();
        self.take_now(max, into);
        there
    }

    /// Waits until there is something; false when the line is closed and empty.
    pub(super) fn wait(&self) -> bool {
        let mut waiting = self.lock();
        while waiting.items.is_empty() {
            if !waiting.open {
                return false;
            }
            waiting.n_idle += 1;
            waiting = self.arrived.wait(waiting).expect("nothing panics while it holds this lock");
            waiting.n_idle -= 1;
        }
        true
    }

    /// Whether nothing waits and something may still come.
    pub(super) fn is_clear(&self) -> bool {
        let waiting = self.lock();
        waiting.open && waiting.items.is_empty()
    }

    /// Takes what is there, within `max`.
    pub(super) fn take_now(&self, max: Max, into: &mut Vec<T>) {
        let mut waiting = self.lock();
        let mut taken = 0_usize;
        while into.len() < max.items
            && taken < max.bytes
            && let Some((bytes, item)) = waiting.items.pop_front()
        {
            taken = taken.saturating_add(bytes);
            waiting.bytes -= bytes;
            into.push(item);
        }
    }

    /// Nobody joins from now on; what waits is still taken.
    pub(super) fn close(&self) {
        self.lock().open = false;
        self.arrived.notify_all();
    }

    /// Throws away what waits: its thread is gone.
    pub(super) fn abandon(&self) {
        self.close();
        let left = std::mem::take(&mut self.lock().items);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().expect("nothing panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Max = Max { items: 3, bytes: 10 };

    fn taken(line: &Line<u8>, max: Max) -> Vec<u8> {
        let mut into = vec![];
        line.take(max, &mut into);
        into
    }

    #[test]
    fn what_joined_first_is_taken_first() {
        let line = Line::new(MAX);
        for item in 1..=3 {
            line.join(1, item).unwrap();
        }
        assert_eq!(taken(&line, Max { items: 2, bytes: 10 }), [1, 2]);
        assert_eq!(taken(&line, MAX), [3]);
    }

    #[test]
    fn a_full_line_hands_the_item_back() {
        let line = Line::new(MAX);
        for item in 1..=3 {
            line.join(1, item).unwrap();
        }
        assert_eq!(line.join(1, 4), Err((4, Refused::Full)));
        taken(&line, MAX);
        line.join(99, 5).unwrap();
        assert_eq!(line.join(1, 6), Err((6, Refused::Full)));
    }

    #[test]
    fn a_closed_line_is_emptied_and_then_over() {
        let line = Line::new(MAX);
        line.join(1, 1).unwrap();
        line.close();
        assert_eq!(line.join(1, 2), Err((2, Refused::Closed)));
        assert_eq!(taken(&line, MAX), [1]);
        assert!(!line.take(MAX, &mut vec![]));
    }
}
