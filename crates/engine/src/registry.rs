//! Which executions have an actor at present. An index only: the journal is authoritative.

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

/// The receiver of an actor's requests. Boxed: most executions never receive a request, and space for dozens of requests
/// would be the largest part of a small one.
pub(crate) type ActorMailbox = mpsc::Receiver<Box<ActorRequest>>;

/// The sender of an actor's requests.
pub(crate) type ActorRequests = mpsc::Sender<Box<ActorRequest>>;

/// Where to send requests, and the mailbox if the actor must still be started.
pub(crate) enum ActorSlot {
    Staffed(ActorRequests),
    Vacant(ActorRequests, ActorMailbox),
}

impl ActorRegistry {
    /// The slot of `execution`; a caller that receives it empty must start an actor.
    pub(crate) fn desk(&self, execution: ExecutionId) -> ActorSlot {
        let mut actors = self.lock();
        if let Some(sender) = actors.get(&execution) {
            return ActorSlot::Staffed(sender.clone());
        }
        let (sender, mailbox) = mpsc::channel(REQUESTS_MAX);
        actors.insert(execution, sender.clone());
        ActorSlot::Vacant(sender, mailbox)
    }

    /// An actor leaves. Requests still in its mailbox are dropped with it; their senders retry.
    pub(crate) fn leave(&self, execution: ExecutionId) {
        self.lock().remove(&execution);
    }

    /// The number of executions with an actor.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, ActorRequests>> {
        self.actors.lock().expect("no code panics while it holds the index")
    }
}
