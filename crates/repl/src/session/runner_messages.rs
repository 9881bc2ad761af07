//! Handles the messages of a session's runner, and fails everything that waits for it when it is lost.

use super::configured::InstalledCommands;
use super::{ReplSession, SessionTask, TURN_MAX, TaskKind};
use crate::completion::CompletionCandidates;
use crate::messages::StopReason;
use protocols::execbox::session::{EvalOrder, GuestTime, ToSession};
use protocols::hotrepl::wire::{AssemblyReload, FromServer};
use sandbox::{RunnerLoss, RunnerMessage, SessionMessage, TaskResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl ReplSession {
    /// Ensures that there is a runner with the operator's scripts in it.
    pub(super) fn ensure_runner(&mut self) {
        if self.evaluator.is_alive() {
            return;
        }
        let scripts = Arc::clone(&self.setting.store.settings.scripts);
        for script in scripts.iter() {
            let task = self.open_task("script", TaskKind::Script, Some(TURN_MAX));
            let now = self.now();
            let code = script.as_str().into();
            let eval = EvalOrder { task, code, now };
            self.evaluator.send_message(&ToSession::Eval(eval));
        }
        self.evaluator.warm();
    }

    pub(super) fn open_task(&mut self, id: &str, what: TaskKind, timeout: Option<Duration>) -> u64 {
        self.n_tasks += 1;
        let started = Instant::now();
        let task = SessionTask {
            what,
            id: id.to_owned(),
            client: self.client_number(),
            started,
            timeout,
            deadline: timeout.map(|timeout| started + timeout),
            stdout: String::new(),
            files: vec![],
            stop: None,
        };
        self.tasks.insert(self.n_tasks, task);
        self.n_tasks
    }

    pub(super) fn now(&self) -> GuestTime {
        GuestTime { at: self.setting.store.clock.now(), frame: self.frame(Instant::now()) }
    }

    pub(super) fn stop(&mut self, task: u64, why: StopReason) {
        if let Some(open) = self.tasks.get_mut(&task) {
            open.stop.get_or_insert(why);
            self.evaluator.stop(task);
        }
    }

    pub(super) fn handle_runner_message(&mut self, message: RunnerMessage) {
        match message {
            RunnerMessage::Session(message) => self.handle_session_message(message),
            // The time spent waiting for a runner is charged to no task.
            RunnerMessage::Leased => {
                let now = Instant::now();
                for task in self.tasks.values_mut() {
                    task.started = now;
                    task.deadline = task.timeout.map(|timeout| now + timeout);
                }
            }
            RunnerMessage::TimersChanged => {}
            RunnerMessage::Lost(loss) => self.lose(&loss),
            RunnerMessage::Started(_)
            | RunnerMessage::ToolCalled { .. }
            | RunnerMessage::HostToolCalled(_)
            | RunnerMessage::Logged { .. }
            | RunnerMessage::Emitted { .. }
            | RunnerMessage::TimerSet { .. }
            | RunnerMessage::TimerCleared { .. }
            | RunnerMessage::TooManyTimers
            | RunnerMessage::Idle(_)
            | RunnerMessage::Counted(_)
            | RunnerMessage::Synced
            | RunnerMessage::Diverged(_)
            | RunnerMessage::Done(_) => {
                self.lose(&RunnerLoss::Malformed("a message of another link"));
            }
        }
    }

    fn handle_session_message(&mut self, message: SessionMessage) {
        match message {
            SessionMessage::TaskEnded {
                task,
                is_fouled: true,
                result: result @ TaskResult::Failed(_),
            } if result.is_out_of_memory() => self.exhausted(task, result),
            SessionMessage::TaskEnded { task, is_fouled: true, .. } => {
                self.tasks
                    .get_mut(&task)
                    .map(|task| task.stop.get_or_insert(StopReason::Cancelled));
                self.lose(&RunnerLoss::Unresponsive);
            }
            SessionMessage::TaskEnded { task, result, is_fouled: false } => {
                self.ended(task, result);
            }
            SessionMessage::Completed { task, names } => {
                if let Some((id, client, since)) = self.completions.remove(&task) {
                    self.say_completions(
                        client,
                        id,
                        CompletionCandidates::from_names(names),
                        since,
                    );
                }
            }
            SessionMessage::ToolCalled { task, call, tool, args } => {
                self.guest_calls(task, call, &tool, args);
            }
            SessionMessage::Printed { task, line } => self.print(task, &line),
            SessionMessage::CommandRegistered(descriptor) => self.register(&descriptor),
            SessionMessage::CommandUnregistered(name) => self.unregister(&name),
            SessionMessage::Progressed { task, value } => self.progressed(task, &value),
            SessionMessage::FileWritten { task, name, content_type, base64 } => {
                self.wrote(task, name, content_type, &base64);
            }
            SessionMessage::Rested => {}
        }
    }

    fn ended(&mut self, task: u64, outcome: TaskResult) {
        let Some(open) = self.tasks.remove(&task) else { return };
        // Work that was not awaited continues, unless everything was to be stopped.
        if open.stop.is_some() {
            self.abandon_calls_of(task);
        }
        match &open.what {
            TaskKind::Eval { .. } => self.eval_ended(task, open, outcome, false),
            TaskKind::Tick => self.tick_ended(open, outcome),
            TaskKind::Command { .. } => self.guest_command_ended(open, outcome),
            TaskKind::Job { .. } => self.guest_job_finished(open, outcome),
            TaskKind::Script => self.script_ended(&outcome),
            TaskKind::Install => self.install_ended(open.id, outcome),
        }
    }

    fn script_ended(&mut self, outcome: &TaskResult) {
        if let TaskResult::Failed(failed) = outcome {
            tracing::warn!(message = failed.message, "a script of the REPL failed");
        }
        if !self.tasks.values().any(|task| matches!(task.what, TaskKind::Script)) {
            for (client, request) in std::mem::take(&mut self.deferred) {
                if client == self.client_number() {
                    self.serve(request);
                }
            }
        }
        self.pump();
    }

    /// A task used up the memory, and what it left behind still fills it: nothing more could be evaluated.
    fn exhausted(&mut self, task: u64, outcome: TaskResult) {
        let open = self.tasks.remove(&task);
        self.lose(&RunnerLoss::MemoryFull);
        let Some(open) = open else { return };
        match &open.what {
            TaskKind::Eval { .. } => self.eval_ended(task, open, outcome, true),
            TaskKind::Tick => self.tick_lost(&open),
            TaskKind::Command { .. } => self.guest_command_ended(open, outcome),
            TaskKind::Job { .. } => self.guest_job_finished(open, outcome),
            TaskKind::Script | TaskKind::Install => {}
        }
    }

    /// The runner is gone, with everything that was defined in it.
    pub(super) fn lose(&mut self, loss: &RunnerLoss) {
        tracing::debug!(?loss, "a session lost its evaluator");
        self.forget_world(None);
        let message = loss.session_message();
        let reload = AssemblyReload { assembly: Some("evaluator".into()), message: message.into() };
        self.send_to_client(&FromServer::AssemblyReload(reload));
        self.pump();
    }

    /// Ends everything that existed in the evaluator.
    pub(super) fn forget_world(&mut self, why: Option<StopReason>) {
        self.evaluator.drop_runner();
        self.commands.clear();
        self.installed = InstalledCommands::default();
        self.running_eval = None;
        self.abandon_guest_calls();
        for mut open in std::mem::take(&mut self.tasks).into_values() {
            open.stop = open.stop.or(why);
            match &open.what {
                TaskKind::Eval { .. } => self.eval_lost(open),
                TaskKind::Tick => self.tick_lost(&open),
                TaskKind::Command { .. } => self.guest_command_lost(open),
                TaskKind::Job { .. } => self.guest_job_lost(open),
                TaskKind::Script | TaskKind::Install => {}
            }
        }
        for (id, client, since) in std::mem::take(&mut self.completions).into_values() {
            self.say_completions(client, id, CompletionCandidates::default(), since);
        }
        for (client, request) in std::mem::take(&mut self.deferred) {
            if client == self.client_number() {
                self.serve(request);
            }
        }
    }
}
