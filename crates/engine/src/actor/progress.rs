//! What tools at work tell those who watch.

use super::Actor;
use futures_util::FutureExt;
use lifecycle::{CallId, Intent, Rejection};
use tokio::sync::mpsc;
use tools::Progress;

/// Words that wait for their execution's next turn; a tool that has more to tell waits itself.
const WORDS_WAITING_MAX: usize = 16;

/// Where the words of tools come in.
pub(super) struct Telling {
    sender: mpsc::Sender<(CallId, String)>,
    words: mpsc::Receiver<(CallId, String)>,
}

impl Default for Telling {
    fn default() -> Self {
        let (sender, words) = mpsc::channel(WORDS_WAITING_MAX);
        Self { sender, words }
    }
}

impl Telling {
    /// Those who watch `call`.
    pub(super) fn progress(&self, call: CallId) -> Progress {
        let sender = self.sender.clone();
        Progress::told_to(move |text| {
            let sender = sender.clone();
            // Where nobody is left to hear it, it is not said.
            async move { drop(sender.send((call, text)).await) }.boxed()
        })
    }

    /// The next word.
    pub(super) async fn next(&mut self) -> (CallId, String) {
        match self.words.recv().await {
            Some(told) => told,
            None => std::future::pending().await,
        }
    }
}

impl Actor {
    /// A tool said how far it is.
    pub(super) fn progress(&mut self, call: CallId, text: String) {
        match self.submit(Intent::Progress { call, text }) {
            // Words of a call that was ended for its tool.
            Ok(_) | Err(Rejection::NotOutstanding(_) | Rejection::AlreadyFinished) => {}
            Err(rejection) => tracing::warn!(%rejection, %call, "a tool's progress was refused"),
        }
    }

    /// Takes note of all that tools have said: what a call said comes before how it ended.
    pub(super) fn catch_up_on_progress(&mut self) {
        while let Ok((call, text)) = self.telling.words.try_recv() {
            self.progress(call, text);
        }
    }
}
