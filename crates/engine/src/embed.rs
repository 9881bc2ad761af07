//! For programs that embed the engine: runs code and answers its questions inline, or stops at each question and
//! resumes; and describes the tools for a model.

use crate::engine::Engine;
use crate::fault::Error;
use futures_util::StreamExt as _;
use lifecycle::{
    Answer, BuiltinCaller, CallId, CallerName, Entry, Event, ExecutionId, ExecutionOutcome,
    Failure, FailureCode, Json, LogLevel, Question, QuestionId, Rejection, Seq, ToolPath,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of connections in a description: models read them every time.
const CONNECTIONS_MAX: usize = 50;

/// An execution that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedOutcome {
    /// The id of the execution.
    pub execution: ExecutionId,
    /// How it ended.
    pub outcome: ExecutionOutcome,
    /// What it printed, in order.
    pub logs: Vec<(LogLevel, String)>,
    /// What it emitted besides its result, in order.
    pub emitted: Vec<Json>,
}

/// An open question at which an execution stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedPause {
    /// The id to resume.
    pub id: QuestionId,
    /// The execution that asks.
    pub execution: ExecutionId,
    /// The question.
    pub question: Question,
    /// The tool whose call is held.
    pub tool: ToolPath,
    /// The arguments of the call.
    pub args: Json,
}

/// The progress of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbeddedProgress {
    /// It has ended.
    Completed(EmbeddedOutcome),
    /// A question is open; [`Engine::resume`] continues.
    Paused(EmbeddedPause),
}

impl Engine {
    /// Runs a program to its end. `answers` answers all its questions.
    pub async fn execute(
        &self,
        code: &str,
        mut answers: impl AsyncFnMut(&EmbeddedPause) -> Answer,
    ) -> Result<EmbeddedOutcome, Error> {
        let mut progress = self.execute_with_pause(code).await?;
        loop {
            match progress {
                EmbeddedProgress::Completed(ended) => return Ok(ended),
                EmbeddedProgress::Paused(pause) => {
                    let answer = answers(&pause).await;
                    progress = self.resume(pause.id, answer).await?;
                }
            }
        }
    }

    /// Runs a program to its end or to its first question, which can be answered by any client at any time, also
    /// after a restart.
    pub async fn execute_with_pause(&self, code: &str) -> Result<EmbeddedProgress, Error> {
        let execution = self.run(code).await?;
        self.progress(execution, None).await
    }

    /// Answers a question and waits for the next question or the end. To answer again is harmless: the
    /// first answer wins, and later ones receive its outcome.
    pub async fn resume(&self, id: QuestionId, answer: Answer) -> Result<EmbeddedProgress, Error> {
        let execution = self.asked_by(id).await?;
        match self.answer_question(id, answer, CallerName::from(BuiltinCaller::Embedder)).await {
            Ok(_)
            | Err(Error::Rejected(Rejection::AlreadyAnswered(_) | Rejection::AlreadyFinished)) => {}
            Err(error) => return Err(error),
        }
        self.progress(execution, Some(id)).await
    }

    /// Describes for a model how to find, read and call tools, with the first connections.
    pub fn describe(&self) -> String {
        let policy = self.policies().live();
        let snapshot = self.catalogue().snapshot();
        let mut prefixes = BTreeSet::new();
        for found in snapshot.tools() {
            let path = found.path();
            let is_connected = found.connection().is_some();
            let prefix = match path.strip_suffix(&found.spec().name) {
                Some(prefix) if is_connected => prefix.trim_end_matches('.'),
                Some(_) | None => path.split('.').next().unwrap_or_default(),
            };
            if !prefixes.contains(prefix) && policy.shows(&path, found.traits()) {
                prefixes.insert(prefix.to_owned());
            }
        }
        described(&prefixes)
    }

    async fn progress(
        &self,
        execution: ExecutionId,
        after: Option<QuestionId>,
    ) -> Result<EmbeddedProgress, Error> {
        let mut listener = OutcomeListener::new(execution, after);
        let mut entries = self.follow(execution, Seq(0));
        while let Some(entry) = entries.next().await {
            if let Some(progress) = listener.handle_entry(entry?)? {
                return Ok(progress);
            }
        }
        Err(Rejection::UnknownExecution(execution).into())
    }
}

/// Follows a journal until there is a result to return.
struct OutcomeListener {
    execution: ExecutionId,
    /// The question that must be answered first.
    after: Option<QuestionId>,
    calls: BTreeMap<CallId, (ToolPath, Json)>,
    open: Vec<EmbeddedPause>,
    logs: Vec<(LogLevel, String)>,
    emitted: Vec<Json>,
}

impl OutcomeListener {
    fn new(execution: ExecutionId, after: Option<QuestionId>) -> Self {
        let (calls, open) = (BTreeMap::new(), vec![]);
        Self { execution, after, calls, open, logs: vec![], emitted: vec![] }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is of no concern to an embedder")]
    fn handle_entry(&mut self, entry: Entry) -> Result<Option<EmbeddedProgress>, Error> {
        match entry.event {
            Event::Logged { level, line, .. } => self.logs.push((level, line)),
            Event::Emitted { item, .. } => self.emitted.push(item),
            Event::CallMade { call, tool, args, .. } => {
                self.calls.insert(call, (tool, args));
            }
            Event::CallAsked(question) => self.record_question(question),
            Event::CallAnswered { question, .. } => {
                self.open.retain(|pause| pause.id != question);
                if self.after == Some(question) {
                    self.after = None;
                }
            }
            Event::Finished { outcome, .. } => {
                let (logs, emitted) =
                    (std::mem::take(&mut self.logs), std::mem::take(&mut self.emitted));
                let ended = EmbeddedOutcome { execution: self.execution, outcome, logs, emitted };
                return Ok(Some(EmbeddedProgress::Completed(ended)));
            }
            Event::Parked => {
                let advice = "it was given up after three attempts; cancel it and start it again";
                let failure = Failure::new(FailureCode::Internal, advice);
                return Err(Rejection::NotRestored(failure).into());
            }
            _ => {}
        }
        let paused = self.open.first().filter(|_| self.after.is_none());
        Ok(paused.cloned().map(EmbeddedProgress::Paused))
    }

    fn record_question(&mut self, question: Question) {
        // The journal never contains a question about a call that was not made.
        if let Some((tool, args)) = self.calls.get(&question.call).cloned() {
            let (id, execution) = (question.id, self.execution);
            self.open.push(EmbeddedPause { id, execution, question, tool, args });
        }
    }
}

fn described(prefixes: &BTreeSet<String>) -> String {
    let mut text = String::from(
        "Runs JavaScript or TypeScript in a sandbox. The program is the body of an async function: what it \
         returns is the result.\n\n\
         1. Find tools: `await tools.search({ query: \"create issue\" })` returns paths, best first.\n\
         2. Read one: `await tools.describe.tool({ path })` returns its arguments and result as TypeScript.\n\
         3. Call it: `await tools.<path>({ … })`. Tools of a connection return `{ ok: true, data }` or \
         `{ ok: false, error }`; look at `ok` before you use `data`.\n\n\
         Do all three, and whatever you compute from the results, in one program where you can; call in parallel with \
         `Promise.all`. `console.log` prints, `emit(value)` shows something to the user beside the result. There is no \
         `fetch` and no file system: everything goes through `tools`. A call may wait for a person to approve it; where \
         they decline, it throws.\n",
    );
    if !prefixes.is_empty() {
        text.push_str("\n## Available connections\n\n");
        for prefix in prefixes.iter().take(CONNECTIONS_MAX) {
            text.push_str(&format!("- `tools.{prefix}`\n"));
        }
        let n_more = prefixes.len().saturating_sub(CONNECTIONS_MAX);
        if n_more > 0 {
            text.push_str(&format!("- and {n_more} more: search for them\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_fifty_connections_and_how_many_more_there_are() {
        let prefixes: BTreeSet<_> = (0..53).map(|n| format!("api{n:02}.org.main")).collect();
        let text = described(&prefixes);
        assert_eq!(text.lines().filter(|line| line.starts_with("- `tools.")).count(), 50);
        assert!(text.ends_with("- `tools.api49.org.main`\n- and 3 more: search for them\n"));
        assert!(!described(&BTreeSet::new()).contains("## Available"));
    }
}
