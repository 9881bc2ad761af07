//! Follows an execution on a server: prints its output, asks its questions, and reports its outcome.

mod desk;
mod form;
mod typed;

use crate::executions::{outcome, question_text};
use crate::progress::ProgressLine;
use crate::{VerbExit, print};
use client::{
    AirlockClient, Error, EventKind, EventOutcome, ExecutionEvent, ExecutionRef, ExecutionStanding,
    OpenQuestion,
};
use desk::{PersonReply, QuestionDesk};
use futures_util::StreamExt as _;
use lifecycle::{ExecutionId, Json, LogLevel, QuestionId, Seq};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::pin::pin;
use tokio::signal::unix::{SignalKind, signal};

/// How to follow an execution.
#[derive(Debug, Clone)]
pub(crate) struct AttendOptions {
    /// Whether questions can be asked on this terminal.
    pub(crate) asks_here: bool,
    /// Whether the server's replies are printed unchanged, one line of JSON each.
    pub(crate) json: bool,
    /// Whether it is a single call: its value is formatted for people, and a tool's refusal is a failure.
    pub(crate) is_call: bool,
    /// Whether an API's HTTP status and headers are printed.
    pub(crate) has_headers: bool,
    /// The flags that direct a copied command to the same server.
    pub(crate) flags: String,
}

/// Follows the execution until it ends, or asks something that cannot be asked here.
pub(crate) async fn follow_and_prompt(
    client: &AirlockClient,
    execution: ExecutionId,
    manner: &AttendOptions,
) -> Result<VerbExit, Error> {
    let mut visit = AttendSession {
        client,
        execution,
        manner,
        desk: QuestionDesk::default(),
        progress: ProgressLine::new(),
        n_declined: 0,
    };
    let said = visit.stay().await;
    visit.progress.clear();
    said
}

struct AttendSession<'a> {
    client: &'a AirlockClient,
    execution: ExecutionId,
    manner: &'a AttendOptions,
    desk: QuestionDesk,
    progress: ProgressLine,
    n_declined: u32,
}

impl AttendSession<'_> {
    async fn stay(&mut self) -> Result<VerbExit, Error> {
        let mut events = pin!(self.client.follow(self.execution.into(), Seq(0)));
        let trouble = |error: std::io::Error| Error::Unusable(error.to_string());
        let mut interrupts = signal(SignalKind::interrupt()).map_err(trouble)?;
        self.progress.draw();
        loop {
            let is_asking = self.desk.is_asking();
            tokio::select! {
                event = events.next() => {
                    let event = event.unwrap_or_else(|| {
                        Err(Error::Protocol("a journal without its end".into()))
                    })?;
                    if let Some(exit) = self.handle_event(&event).await? {
                        return Ok(exit);
                    }
                }
                said = self.desk.next() => {
                    if let Some(exit) = self.send_answer(said).await? {
                        return Ok(exit);
                    }
                }
                Some(()) = interrupts.recv() => {
                    self.progress.clear();
                    print::print_note("cancelling; press Ctrl-C again to leave without it");
                    tokio::select! {
                        cancelled = self.client.cancel(self.execution.into()) => { cancelled?; }
                        Some(()) = interrupts.recv() => return Ok(VerbExit::Interrupted),
                    }
                }
                () = self.progress.due(), if !is_asking => self.progress.draw(),
            }
        }
    }

    /// Handles an event; returns the exit if it is the last one.
    async fn handle_event(&mut self, event: &ExecutionEvent) -> Result<Option<VerbExit>, Error> {
        self.progress.handle_event(&event.happened);
        self.n_declined += u32::from(outcome::is_no(&event.happened));
        match &event.happened {
            EventKind::Log { level, line } => self.print_above_prompt(|| print::log(*level, line)),
            EventKind::Emitted { item } => {
                self.print_above_prompt(|| print::log(LogLevel::Log, item.as_text()))
            }
            EventKind::Question { id, .. } => return self.asked(*id).await,
            EventKind::Answer { id, by, .. } => self.answered(*id, by),
            EventKind::Finished { ended, .. } => return self.finish_with(ended).await.map(Some),
            EventKind::Parked => {
                self.print_above_prompt(|| {
                    print::error("it could not be recovered after a restart, and is parked")
                });
                return Ok(Some(VerbExit::Failed));
            }
            EventKind::Started { .. }
            | EventKind::Prepared
            | EventKind::Call { .. }
            | EventKind::Deferred { .. }
            | EventKind::Admitted { .. }
            | EventKind::Dispatched { .. }
            | EventKind::Progress { .. }
            | EventKind::Settled { .. }
            | EventKind::TimerSet { .. }
            | EventKind::TimerCleared { .. }
            | EventKind::TimerFired { .. }
            | EventKind::Paused
            | EventKind::RecoveryFailed { .. }
            | EventKind::LimitReached { .. }
            | EventKind::Other { .. } => {}
        }
        Ok(None)
    }

    /// Prints text that is not for `--json`, above the progress line.
    fn print_above_prompt(&mut self, say: impl FnOnce()) {
        if self.manner.json {
            return;
        }
        self.progress.clear();
        say();
        self.desk.ask_again();
    }

    /// Handles a question: asks it here, or prints it with the ways to answer it.
    async fn asked(&mut self, id: QuestionId) -> Result<Option<VerbExit>, Error> {
        if self.manner.asks_here {
            // The open questions now: an old one may be answered already, and there may be more.
            for asks in self.client.questions(self.execution.into()).await? {
                if asks.question == id && !self.desk.has(id) {
                    self.desk.add(asks);
                }
            }
            self.progress.clear();
            self.desk.ask_next();
            return Ok(None);
        }
        let reply = self.client.execution(ExecutionRef::Question(id)).await?;
        match &reply.standing {
            ExecutionStanding::Asks(asks) if asks.question == id => {
                self.progress.clear();
                match self.manner.json {
                    true => print::value(&reply.json),
                    false => self.report_question(asks).await?,
                }
                Ok(Some(VerbExit::Paused))
            }
            // Another client answered first.
            ExecutionStanding::Asks(_)
            | ExecutionStanding::Completed { .. }
            | ExecutionStanding::Failed { .. }
            | ExecutionStanding::Running
            | ExecutionStanding::Parked => Ok(None),
        }
    }

    async fn report_question(&self, asks: &OpenQuestion) -> Result<(), Error> {
        let origin = self.client.page_origin().await?;
        print::report(&question_text::question_text(
            asks,
            Some(self.execution),
            &origin,
            &self.manner.flags,
        ));
        Ok(())
    }

    fn answered(&mut self, id: QuestionId, by: &str) {
        if self.desk.withdraw(id) {
            print::prompt("\n");
            print::print_note(&format!("answered by {} meanwhile", print::tamed(by)));
        }
        self.desk.ask_next();
    }

    async fn send_answer(&mut self, said: PersonReply) -> Result<Option<VerbExit>, Error> {
        match said {
            PersonReply::Later(asks) => {
                self.report_question(&asks).await?;
                return Ok(Some(VerbExit::Paused));
            }
            PersonReply::Answer(id, answer, rider) => {
                match self.client.answer_question(id.into(), &answer, &rider).await {
                    Ok(()) => {}
                    // The content does not fit the schema: the server's message says why, and the question is asked again.
                    Err(Error::Refused { status: 400 | 422, message, .. }) => {
                        print::print_note(&print::tamed(&message));
                        return self.asked(id).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.desk.ask_next();
        Ok(None)
    }

    fn print_result(&self, result: &Json) {
        match (self.manner.is_call, self.manner.has_headers) {
            (false, _) => print::value(result),
            (true, true) => print::result(result),
            (true, false) => print::result(without_headers(result).as_ref().unwrap_or(result)),
        }
    }

    async fn finish_with(&mut self, ended: &EventOutcome) -> Result<VerbExit, Error> {
        self.progress.clear();
        if self.manner.json {
            print::value(&self.client.execution(self.execution.into()).await?.json);
        } else {
            match ended {
                EventOutcome::Completed { result } => {
                    result.iter().for_each(|result| self.print_result(result));
                }
                EventOutcome::Failed(failure) => print::failure(failure),
                EventOutcome::Cancelled { by } => {
                    print::print_note(&format!("cancelled by {}", print::tamed(by)))
                }
                EventOutcome::Unknown => print::print_note("nobody knows how it ended"),
            }
        }
        Ok(match ended {
            EventOutcome::Completed { result: Some(result) }
                if self.manner.is_call && is_refusal(result) =>
            {
                VerbExit::Failed
            }
            EventOutcome::Completed { .. }
            | EventOutcome::Failed(_)
            | EventOutcome::Cancelled { .. }
            | EventOutcome::Unknown => outcome::exit(ended, self.n_declined),
        })
    }
}

/// The result of an API's tool without its HTTP status and headers; `None` for any other result.
fn without_headers(result: &Json) -> Option<Json> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ApiResult<'a> {
        ok: bool,
        #[serde(borrow)]
        data: &'a RawValue,
        #[serde(rename = "http")]
        _http: IgnoredAny,
    }
    let ApiResult { ok, data, .. } = serde_json::from_str(result.as_text()).ok()?;
    Json::parse(format!("{{\"ok\":{ok},\"data\":{data}}}")).ok()
}

/// Whether a tool refused in the format of API tools: `{ ok: false, error: { code } }`.
fn is_refusal(result: &Json) -> bool {
    // Values can be large, refusals are small.
    if result.as_text().len() > 1 << 20 {
        return false;
    }
    let value: serde_json::Value = serde_json::from_str(result.as_text()).unwrap_or_default();
    value["ok"] == false && value["error"]["code"].is_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_result_of_an_api_loses_its_status_and_headers() {
        let shown = |text: &str| {
            without_headers(&Json::parse(text.into()).unwrap())
                .map(|json| json.as_text().to_owned())
        };
        let result = r#"{"ok":true,"data":{"b":1,"a":[]},"http":{"status":200,"headers":{}}}"#;
        assert_eq!(shown(result).as_deref(), Some(r#"{"ok":true,"data":{"b":1,"a":[]}}"#));
        assert_eq!(shown(r#"{"ok":true,"data":1}"#), None);
        assert_eq!(shown(r#"{"ok":true,"data":1,"http":{},"more":2}"#), None);
        assert_eq!(shown("[1]"), None);
    }
}
