//! Subscriptions of followers. The writer wakes them after each commit; nothing polls.

use lifecycle::{ExecutionId, Seq};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// The executions with followers, each with its newest seq; `None` once closed.
pub(super) struct SubscriptionTable(Mutex<Option<HashMap<ExecutionId, watch::Sender<Seq>>>>);

/// The subscription of one follower.
pub(super) struct Subscription {
    execution: ExecutionId,
    newest: Option<watch::Receiver<Seq>>,
    watchers: Arc<SubscriptionTable>,
}

impl SubscriptionTable {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }

    /// Subscribes from now on; `None` if the store is closed.
    pub(super) fn listen(self: &Arc<Self>, execution: ExecutionId) -> Option<Subscription> {
        let mut watched = self.lock();
        let newest = match watched.as_mut()?.entry(execution) {
            Entry::Occupied(known) => known.get().subscribe(),
            Entry::Vacant(new) => new.insert(watch::Sender::new(Seq(0))).subscribe(),
        };
        Some(Subscription { execution, newest: Some(newest), watchers: Arc::clone(self) })
    }

    /// Announces that everything up to `newest` can be read.
    pub(super) fn wake(&self, execution: ExecutionId, newest: Seq) {
        if let Some(watched) = self.lock().as_ref()
            && let Some(sender) = watched.get(&execution)
        {
            sender.send_replace(newest);
        }
    }

    /// Wakes all followers for the last time.
    pub(super) fn close(&self) {
        *self.lock() = None;
    }

    #[cfg(test)]
    pub(super) fn n_watched(&self) -> usize {
        self.lock().as_ref().map_or(0, HashMap::len)
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<ExecutionId, watch::Sender<Seq>>>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }
}

impl Subscription {
    /// Waits until something after `heard` can be read; false if the store is closed.
    pub(super) async fn wait_for_entries(&mut self, heard: Seq) -> bool {
        match &mut self.newest {
            Some(newest) => newest.wait_for(|newest| *newest > heard).await.is_ok(),
            None => false,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut watched = self.watchers.lock();
        // Under the lock, so that the last of two concurrent drops sees that it is the last.
        self.newest = None;
        if let Some(watched) = watched.as_mut()
            && watched.get(&self.execution).is_some_and(|sender| sender.receiver_count() == 0)
        {
            watched.remove(&self.execution);
        }
    }
}
