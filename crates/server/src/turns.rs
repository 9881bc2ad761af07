//! Answers that read a long journal share their thread: after a number of lines they yield to others. A thread serves
//! hundreds of connections, and each reader waits for all the others; so the shorter a turn, the sooner a short
//! request is answered.

use futures_util::{Stream, StreamExt as _};

/// Maximum number of items of one turn. Rendering them takes some tens of microseconds.
const TURN_ITEMS_MAX: usize = 16;

/// Approximate maximum size of one turn: the last item may exceed it.
const TURN_BYTES_MAX: usize = 8 << 10;

/// The number of items and bytes that an answer has produced in its current turn.
#[derive(Debug, Default)]
pub(crate) struct TurnMeter {
    n_items: usize,
    n_bytes: usize,
}

impl TurnMeter {
    /// Counts an item of this size, and yields to other tasks once the turn is over.
    pub(crate) async fn count(&mut self, bytes: usize) {
        if self.ends_with(bytes) {
            tokio::task::yield_now().await;
        }
    }

    const fn ends_with(&mut self, bytes: usize) -> bool {
        self.n_items += 1;
        self.n_bytes += bytes;
        let is_over = self.n_items >= TURN_ITEMS_MAX || self.n_bytes >= TURN_BYTES_MAX;
        if is_over {
            (self.n_items, self.n_bytes) = (0, 0);
        }
        is_over
    }
}

/// The same items, a turn at a time.
pub(crate) fn in_turns<S: Stream>(
    items: S,
    bytes_of: impl Fn(&S::Item) -> usize,
) -> impl Stream<Item = S::Item> {
    let mut meter = TurnMeter::default();
    items.then(move |item| {
        let is_over = meter.ends_with(bytes_of(&item));
        async move {
            if is_over {
                tokio::task::yield_now().await;
            }
            item
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    /// The maximum number of items that `n_readers` produce, of items of this size, between two turns of another task
    /// of the thread.
    async fn most_between_turns(n_readers: usize, bytes: usize) -> usize {
        let n_produced = Rc::new(Cell::new(0));
        let readers: Vec<_> = (0..n_readers)
            .map(|_| {
                let n_produced = Rc::clone(&n_produced);
                let items = futures_util::stream::iter(0..10_000);
                let items = in_turns(items, move |_| bytes);
                spawn_local(items.for_each(move |_| {
                    n_produced.set(n_produced.get() + 1);
                    std::future::ready(())
                }))
            })
            .collect();
        let mut most = 0;
        while n_produced.get() < n_readers * 10_000 {
            let before = n_produced.get();
            yield_now().await;
            most = most.max(n_produced.get() - before);
        }
        futures_util::future::join_all(readers).await;
        most
    }

    #[tokio::test]
    async fn readers_that_never_wait_leave_a_turn_to_others_after_a_few_items() {
        let measured = LocalSet::new();
        measured
            .run_until(async {
                assert_eq!(most_between_turns(1, 100).await, TURN_ITEMS_MAX);
                assert_eq!(most_between_turns(20, 100).await, 20 * TURN_ITEMS_MAX);
                assert_eq!(most_between_turns(1, TURN_BYTES_MAX / 4).await, 4);
            })
            .await;
    }
}
