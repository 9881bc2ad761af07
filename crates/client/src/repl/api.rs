//! The methods of a REPL client.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else an answer is, it was not asked for"
)]

use super::ReplError;
use super::driver::{FRAMES_MAX, PendingReplRequest, ReplDriver};
use crate::ServerToken;
use protocols::hotrepl::wire::{
    AssemblyReload, CommandDescriptor, CommandResult, CommandSummary, EvalResult, FromClient,
    FromServer, Handshake, JobResult, JobState, JobStatusResult, JournalEntry, JournalKind,
    SubscribeResult,
};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};

/// A connection to a session. Clones share it; dropping the last clone closes it.
#[derive(Clone)]
pub struct ReplClient {
    driver: Arc<ReplDriver>,
    n_requests: Arc<AtomicU64>,
}

impl fmt::Debug for ReplClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplClient")
            .field("host", &self.driver.handshake.host)
            .finish_non_exhaustive()
    }
}

/// The outcome of a call of a command.
#[derive(Debug)]
pub enum CommandOutcome {
    /// It has ended.
    Ended(CommandResult),
    /// It continues as a job with this id.
    Job(String),
}

/// The state of a job.
#[derive(Debug)]
pub enum JobSnapshot {
    /// It runs.
    Running(JobStatusResult),
    /// It has ended.
    Ended(JobResult),
}

/// A text that the server evaluates periodically. Dropping it ends the watch.
#[derive(Debug)]
pub struct ReplWatch {
    id: String,
    client: ReplClient,
    frames: mpsc::Receiver<FromServer>,
    is_over: bool,
}

impl ReplClient {
    /// Takes over a session: the one that `?session=NAME` in the URL names, or the default one.
    pub async fn connect(url: &str, token: Option<&str>) -> Result<Self, ReplError> {
        Self::connect_with(url, token.map(ServerToken::unasked).as_ref()).await
    }

    /// Like `connect`, for a token that the server gets once it has given the proof that the token requires.
    pub async fn connect_with(url: &str, token: Option<&ServerToken>) -> Result<Self, ReplError> {
        let driver = Arc::new(ReplDriver::connect(url, token).await?);
        Ok(Self { driver, n_requests: Arc::default() })
    }

    /// The server's handshake.
    pub fn handshake(&self) -> &Handshake {
        &self.driver.handshake
    }

    /// Subscribes to reloads of definitions or commands.
    pub fn reloads(&self) -> broadcast::Receiver<AssemblyReload> {
        self.driver.reloads.subscribe()
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn closed(&self) -> ReplError {
        let mut over = self.driver.over.clone();
        match over.wait_for(Option::is_some).await {
            Ok(over) => over.map_or(ReplError::Closed, Into::into),
            Err(_) => ReplError::Closed,
        }
    }

    /// Evaluates a text and returns its value.
    pub async fn eval(
        &self,
        code: &str,
        timeout: Option<Duration>,
    ) -> Result<EvalResult, ReplError> {
        self.eval_as(&self.fresh("eval"), code, timeout).await
    }

    /// Like `eval`, with an id of the caller's choice, so that it can be cancelled.
    pub async fn eval_as(
        &self,
        id: &str,
        code: &str,
        timeout: Option<Duration>,
    ) -> Result<EvalResult, ReplError> {
        let timeout_ms = timeout.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let frame = FromClient::Eval { id: id.to_owned(), code: code.to_owned(), timeout_ms };
        match self.send_frame(id, frame).await? {
            FromServer::EvalResult(result) => Ok(result),
            other => Err(unexpected(other)),
        }
    }

    /// Cancels an eval, a watch or a command. The server does not answer.
    pub async fn cancel(&self, target: &str) -> Result<(), ReplError> {
        let frame = FromClient::Cancel { id: self.fresh("cancel"), target_id: target.to_owned() };
        self.send(PendingReplRequest { frame, waits: None }).await
    }

    /// Returns an id that this client has not used.
    pub fn fresh(&self, kind: &str) -> String {
        format!("{kind}-{}", self.n_requests.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the completions at the cursor, which counts UTF-16 units.
    pub async fn complete(
        &self,
        code: &str,
        cursor: Option<u64>,
    ) -> Result<Vec<String>, ReplError> {
        let id = self.fresh("complete");
        let frame = FromClient::Complete { id: id.clone(), code: code.to_owned(), cursor };
        match self.send_frame(&id, frame).await? {
            FromServer::CompleteResult(result) => Ok(result.completions),
            other => Err(unexpected(other)),
        }
    }

    /// Replaces the evaluator with a new one.
    pub async fn reset(&self) -> Result<bool, ReplError> {
        let id = self.fresh("reset");
        match self.send_frame(&id, FromClient::Reset { id: id.clone() }).await? {
            FromServer::ResetResult(result) => Ok(result.success),
            other => Err(unexpected(other)),
        }
    }

    /// Evaluates a text every so many frames, `limit` times or until the watch is dropped.
    pub async fn watch(
        &self,
        code: &str,
        interval_frames: u64,
        limit: Option<u64>,
    ) -> Result<ReplWatch, ReplError> {
        let id = self.fresh("watch");
        let (answers, frames) = mpsc::channel(FRAMES_MAX);
        let frame = FromClient::Subscribe {
            id: id.clone(),
            code: code.to_owned(),
            interval_frames: Some(interval_frames),
            limit,
        };
        self.send(PendingReplRequest { frame, waits: Some((id.clone(), answers)) }).await?;
        Ok(ReplWatch { id, client: self.clone(), frames, is_over: false })
    }

    /// Returns all commands, sorted by name.
    pub async fn commands(&self) -> Result<Vec<CommandSummary>, ReplError> {
        let id = self.fresh("list");
        match self.send_frame(&id, FromClient::CommandsList { id: id.clone(), since: None }).await?
        {
            FromServer::CommandsListResult(result) => Ok(result.commands),
            other => Err(unexpected(other)),
        }
    }

    /// Returns one command with its schemas.
    pub async fn describe(&self, name: &str) -> Result<CommandDescriptor, ReplError> {
        let id = self.fresh("describe");
        let frame = FromClient::CommandDescribe { id: id.clone(), name: name.to_owned() };
        match self.send_frame(&id, frame).await? {
            FromServer::CommandDescribeResult(result) => Ok(result.descriptor),
            other => Err(unexpected(other)),
        }
    }

    /// Calls a command; one that is a job continues in the background.
    pub async fn call(
        &self,
        name: &str,
        args: Value,
        timeout: Option<Duration>,
    ) -> Result<CommandOutcome, ReplError> {
        let id = self.fresh("call");
        let timeout_ms = timeout.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let frame =
            FromClient::CommandCall { id: id.clone(), name: name.to_owned(), args, timeout_ms };
        match self.send_frame(&id, frame).await? {
            FromServer::CommandResult(result) => Ok(CommandOutcome::Ended(result)),
            FromServer::JobAccepted(accepted) => Ok(CommandOutcome::Job(accepted.job_id)),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the state of a job.
    pub async fn job(&self, job: &str) -> Result<JobSnapshot, ReplError> {
        let id = self.fresh("status");
        let frame = FromClient::JobStatus { id: id.clone(), job_id: job.to_owned() };
        match self.send_frame(&id, frame).await? {
            FromServer::JobStatusResult(result) => Ok(JobSnapshot::Running(result)),
            FromServer::JobResult(result) => Ok(JobSnapshot::Ended(result)),
            other => Err(unexpected(other)),
        }
    }

    /// Cancels a job; returns whether it was still running, and its state.
    pub async fn cancel_job(&self, job: &str) -> Result<(bool, JobState), ReplError> {
        let id = self.fresh("job-cancel");
        let frame = FromClient::JobCancel { id: id.clone(), job_id: job.to_owned() };
        match self.send_frame(&id, frame).await? {
            FromServer::JobCancelResult(result) => Ok((result.accepted, result.state)),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the recent journal entries, newest first.
    pub async fn journal(
        &self,
        kind: Option<JournalKind>,
        limit: u64,
    ) -> Result<Vec<JournalEntry>, ReplError> {
        let id = self.fresh("journal");
        let frame = FromClient::JournalQuery { id: id.clone(), kind, limit: Some(limit) };
        match self.send_frame(&id, frame).await? {
            FromServer::JournalQueryResult(result) => Ok(result.entries),
            other => Err(unexpected(other)),
        }
    }

    async fn send_frame(&self, id: &str, frame: FromClient) -> Result<FromServer, ReplError> {
        let (answers, mut answer) = mpsc::channel(1);
        self.send(PendingReplRequest { frame, waits: Some((id.to_owned(), answers)) }).await?;
        match answer.recv().await {
            Some(frame) => Ok(frame),
            None => Err(self.closed().await),
        }
    }

    async fn send(&self, asked: PendingReplRequest) -> Result<(), ReplError> {
        match self.driver.asked.send(asked).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.closed().await),
        }
    }
}

impl ReplWatch {
    /// Its id, for [`ReplClient::cancel`].
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next value; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<SubscribeResult, ReplError>> {
        if self.is_over {
            return None;
        }
        match self.frames.recv().await {
            Some(FromServer::SubscribeResult(result)) => {
                self.is_over = result.is_final;
                Some(Ok(result))
            }
            Some(FromServer::SubscribeError(error)) => {
                self.is_over = error.is_final;
                Some(Err(ReplError::Failed(Box::new(error.error))))
            }
            Some(other) => {
                self.is_over = true;
                Some(Err(unexpected(other)))
            }
            None => {
                self.is_over = true;
                Some(Err(self.client.closed().await))
            }
        }
    }
}

impl Drop for ReplWatch {
    fn drop(&mut self) {
        if !self.is_over {
            let (id, target_id) = (self.client.fresh("cancel"), self.id.clone());
            let asked =
                PendingReplRequest { frame: FromClient::Cancel { id, target_id }, waits: None };
            // Best effort: the request is dropped if the queue of the driver is full.
            let _ = self.client.driver.asked.try_send(asked);
        }
    }
}

fn unexpected(frame: FromServer) -> ReplError {
    match frame {
        FromServer::Error(it) => ReplError::Failed(Box::new(it.error)),
        FromServer::EvalError(it) => ReplError::Failed(Box::new(it.error)),
        _ => ReplError::Unexpected,
    }
}
