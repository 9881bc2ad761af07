//! Stays with an execution on a server: tells what it prints, asks what it asks, says how it ended.

mod desk;
mod form;
mod typed;

use crate::executions::{asks, ending};
use crate::progress::Progress;
use crate::{Exit, print};
use client::{Asks, Ended, Error, Event, Happened, HttpClient, Id, Standing};
use desk::{Desk, Said};
use futures_util::StreamExt as _;
use lifecycle::{ExecutionId, Json, LogLevel, QuestionId, Seq};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::pin::pin;
use tokio::signal::unix::{SignalKind, signal};

/// How to stay.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// Whether somebody can be asked here.
    pub(crate) asks_here: bool,
    /// Whether what the server says is printed as it is, one line of JSON.
    pub(crate) json: bool,
    /// Whether it is a single call: its value is for people, and a tool's refusal is a failure.
    pub(crate) is_call: bool,
    /// Whether an API's HTTP status and headers are part of what is printed.
    pub(crate) has_headers: bool,
    /// What leads a copied command to the same server.
    pub(crate) flags: String,
}

/// Stays until the execution is over, or asks something that cannot be asked here.
pub(crate) async fn attend(
    client: &HttpClient,
    execution: ExecutionId,
    manner: &Manner,
) -> Result<Exit, Error> {
    let mut visit = Visit {
        client,
        execution,
        manner,
        desk: Desk::default(),
        progress: Progress::new(),
        n_declined: 0,
    };
    let said = visit.stay().await;
    visit.progress.clear();
    said
}

struct Visit<'a> {
    client: &'a HttpClient,
    execution: ExecutionId,
    manner: &'a Manner,
    desk: Desk,
    progress: Progress,
    n_declined: u32,
}

impl Visit<'_> {
    async fn stay(&mut self) -> Result<Exit, Error> {
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
                    if let Some(exit) = self.hear(&event).await? {
                        return Ok(exit);
                    }
                }
                said = self.desk.next() => {
                    if let Some(exit) = self.answer(said).await? {
                        return Ok(exit);
                    }
                }
                Some(()) = interrupts.recv() => {
                    self.progress.clear();
                    print::note("cancelling; press Ctrl-C again to leave without it");
                    tokio::select! {
                        cancelled = self.client.cancel(self.execution.into()) => { cancelled?; }
                        Some(()) = interrupts.recv() => return Ok(Exit::Interrupted),
                    }
                }
                () = self.progress.due(), if !is_asking => self.progress.draw(),
            }
        }
    }

    /// What an event means here; how to leave, if it is the last.
    async fn hear(&mut self, event: &Event) -> Result<Option<Exit>, Error> {
        self.progress.hear(&event.happened);
        self.n_declined += u32::from(ending::is_no(&event.happened));
        match &event.happened {
            Happened::Log { level, line } => self.say(|| print::log(*level, line)),
            Happened::Emitted { item } => self.say(|| print::log(LogLevel::Log, item.text())),
            Happened::Question { id, .. } => return self.asked(*id).await,
            Happened::Answer { id, by, .. } => self.answered(*id, by),
            Happened::Finished { ended, .. } => return self.over(ended).await.map(Some),
            Happened::Parked => {
                self.say(|| {
                    print::error("it could not be brought back after a restart, and is parked")
                });
                return Ok(Some(Exit::Failed));
            }
            Happened::Started { .. }
            | Happened::Prepared
            | Happened::Call { .. }
            | Happened::Deferred { .. }
            | Happened::Admitted { .. }
            | Happened::Dispatched { .. }
            | Happened::Progress { .. }
            | Happened::Settled { .. }
            | Happened::TimerSet { .. }
            | Happened::TimerCleared { .. }
            | Happened::TimerFired { .. }
            | Happened::Paused
            | Happened::RecoveryFailed { .. }
            | Happened::LimitReached { .. }
            | Happened::Other { .. } => {}
        }
        Ok(None)
    }

    /// Prints what is not for `--json`, above whatever is at the bottom of the terminal.
    fn say(&mut self, say: impl FnOnce()) {
        if self.manner.json {
            return;
        }
        self.progress.clear();
        say();
        self.desk.ask_again();
    }

    /// A question: it is asked here, or told with the ways to answer it.
    async fn asked(&mut self, id: QuestionId) -> Result<Option<Exit>, Error> {
        if self.manner.asks_here {
            // What is asked now: an old question may be answered already, and there may be more.
            for asks in self.client.questions(self.execution.into()).await? {
                if asks.question == id && !self.desk.has(id) {
                    self.desk.add(asks);
                }
            }
            self.progress.clear();
            self.desk.ask();
            return Ok(None);
        }
        let reply = self.client.show(Id::Question(id)).await?;
        match &reply.standing {
            Standing::Asks(asks) if asks.question == id => {
                self.progress.clear();
                match self.manner.json {
                    true => print::value(&reply.json),
                    false => self.report_question(asks).await?,
                }
                Ok(Some(Exit::Paused))
            }
            // Somebody was quicker.
            Standing::Asks(_)
            | Standing::Completed { .. }
            | Standing::Failed { .. }
            | Standing::Running
            | Standing::Parked => Ok(None),
        }
    }

    async fn report_question(&self, asks: &Asks) -> Result<(), Error> {
        let origin = self.client.page_origin().await?;
        print::report(&asks::text(asks, Some(self.execution), &origin, &self.manner.flags));
        Ok(())
    }

    fn answered(&mut self, id: QuestionId, by: &str) {
        if self.desk.withdraw(id) {
            print::prompt("\n");
            print::note(&format!("answered by {} meanwhile", print::tamed(by)));
        }
        self.desk.ask();
    }

    async fn answer(&mut self, said: Said) -> Result<Option<Exit>, Error> {
        match said {
            Said::Later(asks) => {
                self.report_question(&asks).await?;
                return Ok(Some(Exit::Paused));
            }
            Said::Answer(id, answer, rider) => {
                match self.client.answer(id.into(), &answer, &rider).await {
                    Ok(()) => {}
                    // What was filled in does not fit: its words say why, and it is asked again.
                    Err(Error::Refused { status: 400 | 422, message, .. }) => {
                        print::note(&print::tamed(&message));
                        return self.asked(id).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.desk.ask();
        Ok(None)
    }

    fn print_result(&self, result: &Json) {
        match (self.manner.is_call, self.manner.has_headers) {
            (false, _) => print::value(result),
            (true, true) => print::result(result),
            (true, false) => print::result(without_headers(result).as_ref().unwrap_or(result)),
        }
    }

    async fn over(&mut self, ended: &Ended) -> Result<Exit, Error> {
        self.progress.clear();
        if self.manner.json {
            print::value(&self.client.show(self.execution.into()).await?.json);
        } else {
            match ended {
                Ended::Completed { result } => {
                    result.iter().for_each(|result| self.print_result(result));
                }
                Ended::Failed(failure) => print::failure(failure),
                Ended::Cancelled { by } => {
                    print::note(&format!("cancelled by {}", print::tamed(by)))
                }
                Ended::Unknown => print::note("nobody knows how it ended"),
            }
        }
        Ok(match ended {
            Ended::Completed { result: Some(result) }
                if self.manner.is_call && is_refusal(result) =>
            {
                Exit::Failed
            }
            Ended::Completed { .. }
            | Ended::Failed(_)
            | Ended::Cancelled { .. }
            | Ended::Unknown => ending::exit(ended, self.n_declined),
        })
    }
}

/// The result of an API's tool without its HTTP status and headers; none where it is no such result.
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
    let ApiResult { ok, data, .. } = serde_json::from_str(result.text()).ok()?;
    Json::parse(format!("{{\"ok\":{ok},\"data\":{data}}}")).ok()
}

/// Whether a tool said no in the way tools of APIs do: `{ ok: false, error: { code } }`.
fn is_refusal(result: &Json) -> bool {
    // Values are large, refusals are not.
    if result.text().len() > 1 << 20 {
        return false;
    }
    let value: serde_json::Value = serde_json::from_str(result.text()).unwrap_or_default();
    value["ok"] == false && value["error"]["code"].is_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_result_of_an_api_loses_its_status_and_headers() {
        let shown = |text: &str| {
            without_headers(&Json::parse(text.into()).unwrap()).map(|json| json.text().to_owned())
        };
        let result = r#"{"ok":true,"data":{"b":1,"a":[]},"http":{"status":200,"headers":{}}}"#;
        assert_eq!(shown(result).as_deref(), Some(r#"{"ok":true,"data":{"b":1,"a":[]}}"#));
        assert_eq!(shown(r#"{"ok":true,"data":1}"#), None);
        assert_eq!(shown(r#"{"ok":true,"data":1,"http":{},"more":2}"#), None);
        assert_eq!(shown("[1]"), None);
    }
}
