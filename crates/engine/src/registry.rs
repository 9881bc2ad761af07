//! Which executions have an actor right now. An index, never the truth: that is the journal.

use crate::actor::ActorRequest;
use lifecycle::ExecutionId;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::mpsc;

/// A caller that has this many requests waiting at one execution waits until some are answered.
const REQUESTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct ActorRegistry {
    actors: Mutex<HashMap<ExecutionId, ActorRequests>>,
}

/// What an actor listens to. In boxes: most executions are never asked anything, and room for dozens of requests
/// would be the largest thing that a small one needs.
pub(crate) type ActorMailbox = mpsc::Receiver<Box<ActorRequest>>;

/// The other end.
pub(crate) type ActorRequests = mpsc::Sender<Box<ActorRequest>>;

/// Where to send requests, and the mailbox if the actor has yet to be born.
pub(crate) enum ActorSlot {
    Staffed(ActorRequests),
    Vacant(ActorRequests, ActorMailbox),
}

impl ActorRegistry {
    /// The desk of `execution`; whoever gets it vacant must put an actor there.
    pub(crate) fn desk(&self, execution: ExecutionId) -> ActorSlot {
        let mut actors = self.lock();
        if let Some(sender) = actors.get(&execution) {
            return ActorSlot::Staffed(sender.clone());
        }
        let (sender, mailbox) = mpsc::channel(REQUESTS_MAX);
        actors.insert(execution, sender.clone());
        ActorSlot::Vacant(sender, mailbox)
    }

    /// An actor leaves. Requests still in its mailbox are dropped with it; their senders ask again.
    pub(crate) fn leave(&self, execution: ExecutionId) {
        self.lock().remove(&execution);
    }

    /// How many executions have an actor.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, ActorRequests>> {
        self.actors.lock().expect("no code panics while it holds the index")
    }
}
