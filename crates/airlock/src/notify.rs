//! Tells people that something asks, by a program or a signed webhook, so that they hear of it where they
//! are. It reads what is open and is never in the way of an execution; what it cannot deliver, it logs.

mod deliver;
mod news;

use deliver::NoticeSender;
use engine::Engine;
use lifecycle::QuestionId;
use news::QuestionNotice;
use sources::ConfigFiles;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::ApiClient;

/// Notices under way at the same time; what is asked beyond them is told when some are done.
const UNDER_WAY_MAX: usize = 16;

/// A storm of questions is looked at so far apart.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Looks for questions until it is stopped.
#[derive(Debug)]
pub(crate) struct QuestionNotifier {
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// What a notifier needs to know.
pub(crate) struct Config {
    /// Whose questions.
    pub(crate) engine: Engine,
    /// Where it stands who is told; read again whenever there is something to tell.
    pub(crate) files: ConfigFiles,
    /// Where the server listens.
    pub(crate) url: String,
    /// What reaches webhooks.
    pub(crate) http: ApiClient,
}

impl QuestionNotifier {
    /// Begins to look.
    pub(crate) fn start(config: Config) -> Self {
        let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        let courier = NoticeSender::new(&config.http);
        let watcher = QuestionWatcher {
            config,
            tasks: tasks.clone(),
            stopping: stopping.clone(),
            told: BTreeSet::new(),
            room: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
            courier,
        };
        tasks.spawn(watcher.run());
        Self { tasks, stopping }
    }

    /// Stops looking, and gives up what is not delivered.
    pub(crate) async fn shutdown(self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

struct QuestionWatcher {
    config: Config,
    tasks: TaskTracker,
    stopping: CancellationToken,
    /// Open questions that somebody was told of, or will be.
    told: BTreeSet<QuestionId>,
    room: Arc<Semaphore>,
    courier: NoticeSender,
}

impl QuestionWatcher {
    async fn run(mut self) {
        let mut changes = self.config.engine.question_changes();
        // What was open when we started is told too: better twice than never.
        changes.mark_changed();
        let stopping = self.stopping.clone();
        let looking = async {
            while changes.changed().await.is_ok() {
                // Before the look: what changes meanwhile is seen by the next one.
                changes.borrow_and_update();
                if !self.poll_questions().await {
                    changes.mark_changed();
                }
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        };
        tokio::select! {
            () = looking => {}
            () = stopping.cancelled() => {}
        }
    }

    /// Tells what is new; whether that was all.
    async fn poll_questions(&mut self) -> bool {
        let notify = match sources::notify(&self.config.files) {
            Ok(Some(notify)) => notify,
            Ok(None) => return true,
            Err(why) => {
                tracing::warn!(why, "nobody is notified: the configuration cannot be read");
                return true;
            }
        };
        let open = match news::open(&self.config.engine, &self.config.url).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(%error, "open questions could not be listed for notifications");
                return true;
            }
        };
        let ids: BTreeSet<_> = open.iter().map(|news| news.question).collect();
        self.told.retain(|id| ids.contains(id));
        for news in open {
            if self.told.contains(&news.question) {
                continue;
            }
            let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return false };
            self.told.insert(news.question);
            self.send_notice(news, notify.clone(), room);
        }
        true
    }

    fn send_notice(
        &self,
        news: QuestionNotice,
        notify: sources::config::NotifyConfig,
        room: tokio::sync::OwnedSemaphorePermit,
    ) {
        let (courier, stopping) = (self.courier.clone(), self.stopping.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = courier.deliver(&news, &notify) => {}
                () = stopping.cancelled() => {}
            }
            drop(room);
        });
    }
}
