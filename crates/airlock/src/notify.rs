//! Notifies people of open questions, by a program or a signed webhook. It reads the open questions and never delays an
//! execution; it logs notices that it cannot deliver.

mod deliver;
mod question_notice;

use deliver::NoticeSender;
use engine::Engine;
use lifecycle::QuestionId;
use question_notice::QuestionNotice;
use sources::ConfigFiles;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::ApiClient;

/// Notices in flight; further questions are notified when some of them are done.
const UNDER_WAY_MAX: usize = 16;

/// Pause between two reads of the questions, which bounds the work of a burst.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A task that watches for questions until it is stopped.
#[derive(Debug)]
pub(crate) struct QuestionNotifier {
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// The configuration of a notifier.
pub(crate) struct Config {
    /// The engine whose questions are watched.
    pub(crate) engine: Engine,
    /// The configuration files that name the recipients; read again before each notice.
    pub(crate) files: ConfigFiles,
    /// The URL of the server.
    pub(crate) url: String,
    /// The client for webhooks.
    pub(crate) http: ApiClient,
}

impl QuestionNotifier {
    /// Starts the task.
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

    /// Stops the task, and drops the notices that are not delivered.
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
    /// Open questions that were notified, or will be.
    told: BTreeSet<QuestionId>,
    room: Arc<Semaphore>,
    courier: NoticeSender,
}

impl QuestionWatcher {
    async fn run(mut self) {
        let mut changes = self.config.engine.question_changes();
        // Questions that were open at the start are notified too: twice is better than never.
        changes.mark_changed();
        let stopping = self.stopping.clone();
        let looking = async {
            while changes.changed().await.is_ok() {
                // Before the read: the next read sees the changes that happen meanwhile.
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

    /// Sends notices for new questions; returns whether those were all.
    async fn poll_questions(&mut self) -> bool {
        let notify = match sources::notify(&self.config.files) {
            Ok(Some(notify)) => notify,
            Ok(None) => return true,
            Err(why) => {
                tracing::warn!(why, "no notifications are sent: the configuration cannot be read");
                return true;
            }
        };
        let open = match question_notice::open(&self.config.engine, &self.config.url).await {
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
