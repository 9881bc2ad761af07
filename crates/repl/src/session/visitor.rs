//! The client of a session: how it attaches and detaches, its requests and their answers.

use super::{AttachRequest, ERRANDS_MAX, ErrandResult, ReplSession, TaskKind};
use crate::client::{ClientMessage, ReplConnection};
use crate::{QUEUED_MAX, handshake};
use protocols::hotrepl::inbound::{ReplOperation, ReplRequest, decode};
use protocols::hotrepl::outbound::{envelope, trouble};
use protocols::hotrepl::wire::{ErrorKind, FromServer, SessionEvicted};
use protocols::hotrepl::{MESSAGE_BYTES_MAX, ValueProfile};
use tokio::time::Instant;

impl ReplSession {
    pub(super) fn attach(&mut self, attach: AttachRequest) {
        self.leave(Some("new_connection"));
        self.n_clients += 1;
        let mut client = ReplConnection::new(self.n_clients, attach);
        client.send_frame(&FromServer::Handshake(handshake()));
        self.client = Some(client);
        // Requested early, so that the first eval need not wait for a runner.
        self.ensure_runner();
    }

    /// Detaches the client: its queued requests are dropped, except those that have begun.
    pub(super) fn leave(&mut self, evicted: Option<&str>) {
        self.end_watches("The connection was replaced.");
        self.queue.clear();
        self.deferred.clear();
        self.unattended_since = Instant::now();
        let Some(mut client) = self.client.take() else { return };
        if let Some(reason) = evicted {
            let evicted = SessionEvicted { reason: reason.to_owned(), by: None };
            client.send_frame(&FromServer::SessionEvicted(evicted));
            self.setting.tasks.spawn(client.dismiss());
        }
    }

    pub(super) fn hear_client(&mut self, heard: ClientMessage) {
        match heard {
            ClientMessage::Frame(frame) => match decode(&frame) {
                Ok(request) => self.serve(request),
                Err(refused) => self.send_to_client(&trouble(refused.id, refused.error)),
            },
            ClientMessage::Noise => {
                let error =
                    envelope(ErrorKind::InvalidRequest, "malformedJson", "The frame is not text.");
                self.send_to_client(&trouble(None, error));
            }
            ClientMessage::TooLong => {
                let message = format!("A frame has at most {MESSAGE_BYTES_MAX} bytes.");
                let error = envelope(ErrorKind::InvalidRequest, "messageTooLarge", message);
                self.send_to_client(&trouble(None, error));
                if let Some(client) = self.client.take() {
                    self.setting.tasks.spawn(client.dismiss_unheard());
                }
                self.leave(None);
            }
            ClientMessage::Stalled(why) => {
                let error = envelope(ErrorKind::Busy, "readerTooSlow", why);
                if let Some(client) = self.client.take() {
                    let last = trouble(None, error);
                    self.setting.tasks.spawn(client.dismiss_stalled(last));
                }
                self.leave(None);
            }
            ClientMessage::Gone => self.leave(None),
        }
    }

    pub(super) fn serve(&mut self, ReplRequest { id, wish }: ReplRequest) {
        let waits = matches!(
            wish,
            ReplOperation::CommandsList
                | ReplOperation::CommandDescribe { .. }
                | ReplOperation::CommandCall { .. }
        );
        if waits && self.tasks.values().any(|task| matches!(task.what, TaskKind::Script)) {
            if self.deferred.len() >= QUEUED_MAX {
                return self.say_full(id);
            }
            let client = self.client_number();
            return self.deferred.push((client, ReplRequest { id, wish }));
        }
        match wish {
            ReplOperation::Eval { code, timeout_ms } => self.eval(id, code, timeout_ms),
            ReplOperation::Complete { code, cursor } => self.complete(id, &code, cursor),
            ReplOperation::Reset => self.reset(id),
            ReplOperation::Subscribe(subscribe) => self.subscribe(id, subscribe),
            ReplOperation::Cancel { target } => self.cancel(&target),
            ReplOperation::CommandsList => self.commands_list(id),
            ReplOperation::CommandDescribe { name } => self.command_describe(id, &name),
            ReplOperation::CommandCall { name, args, timeout_ms } => {
                self.command_call(id, name, args, timeout_ms);
            }
            ReplOperation::JobStatus { job } => self.job_status(id, job),
            ReplOperation::JobCancel { job } => self.job_cancel(id, job),
            ReplOperation::JournalQuery { kind, limit } => self.journal_query(id, kind, limit),
        }
    }

    pub(super) fn send_to_client(&mut self, frame: &FromServer) {
        if let Some(client) = &mut self.client {
            client.send_frame(frame);
        }
    }

    /// Sends a frame to the client that requested it, if it is still attached.
    pub(super) fn send_answer(&mut self, client: u64, frame: &FromServer) {
        if let Some(present) = self.client.as_mut().filter(|present| present.number == client) {
            present.send_frame(frame);
        }
    }

    pub(super) fn client_number(&self) -> u64 {
        self.client.as_ref().map_or(0, |client| client.number)
    }

    pub(super) fn profile(&self) -> ValueProfile {
        self.client.as_ref().map_or(ValueProfile::Text, |client| client.profile)
    }

    pub(super) fn host(&self) -> String {
        self.client.as_ref().map_or_else(|| "localhost".to_owned(), |client| client.host.clone())
    }

    /// Whether one more errand may be started; if not, notifies the client.
    pub(super) fn may_send_errand(&mut self, id: &str) -> bool {
        let may = self.errands.len() < ERRANDS_MAX;
        if !may {
            let message = format!(
                "At most {ERRANDS_MAX} lookups and files of one session are under way at a time."
            );
            let error = envelope(ErrorKind::Busy, "commandQueueFull", message);
            self.send_to_client(&trouble(Some(id.to_owned()), error));
        }
        may
    }

    pub(super) fn take(&mut self, brought: ErrandResult) {
        match brought {
            ErrandResult::Answer { client, frame } => self.send_answer(client, &frame),
            ErrandResult::Command(ended) => self.command_ended(*ended),
            ErrandResult::Job(ended) => self.guest_job_ended(*ended),
            ErrandResult::Nothing => {}
        }
    }
}
