//! The traits of sources and tools.

use crate::scrub;
use futures_util::future::BoxFuture;
use lifecycle::{
    Answer, CallId, CallerName, ExecutionId, Failure, Json, ToolHost, ToolNature, ToolPath,
    ToolPrompt,
};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A source of tools.
pub trait Source: Send + Sync {
    /// Its display name; usually the first name in the path of its tools.
    fn name(&self) -> &str;

    /// Its tools. Called once, when a catalogue is built.
    fn tools(&self) -> Vec<Tool>;

    /// The question about a call whose arguments match the tool's schema, or the value that the program
    /// receives instead if they form no call. None uses the tool's own description. Called before a person is asked;
    /// must not block.
    fn compose_question(&self, _tool: &ToolPath, _args: &Json) -> Option<Result<String, Json>> {
        None
    }

    /// Whether its tools return `{ok, data}` or `{ok, error}`. Programs then also receive such a value for a tool that does
    /// not exist, that is blocked, or whose arguments do not match.
    fn is_enveloped(&self) -> bool {
        false
    }

    /// Performs a call whose arguments match the tool's schema. `None` is `undefined`.
    fn call(&self, request: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>>;
}

/// A tool that programs can call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its path in the tree of tools.
    pub path: ToolPath,
    /// What it does, for the author of the program.
    pub description: String,
    /// JSON Schema of its arguments; none accepts anything.
    pub input_schema: Option<Value>,
    /// JSON Schema of its results; none accepts anything.
    pub output_schema: Option<Value>,
    /// How recovery treats a call that was interrupted by a crash of the server.
    pub nature: ToolNature,
    /// Whether a person must approve calls if no policy applies.
    pub asks: bool,
    /// What that person reads first; none names the tool.
    pub about: Option<String>,
    /// Whether an approval must name it: no pattern matches it.
    pub by_name_only: bool,
    /// Whether each call needs an answer of its own: no policy, no earlier approval and no remembered
    /// answer replaces it.
    pub answer_only: bool,
    /// Whether it takes so long that callers should poll if they can.
    pub job: bool,
}

impl Tool {
    /// A tool without schemas that runs locally, needs no approval, and is not safe to repeat.
    pub const fn new(path: ToolPath) -> Self {
        Self {
            path,
            description: String::new(),
            input_schema: None,
            output_schema: None,
            nature: ToolNature { read_only: false, runs: ToolHost::Here },
            asks: false,
            about: None,
            by_name_only: false,
            answer_only: false,
            job: false,
        }
    }
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The calling execution.
    pub execution: ExecutionId,
    /// The number of the call within the execution.
    pub call: CallId,
    /// 1 for the first attempt; more if a server crashed in between.
    pub attempt: u32,
    /// The path of the tool.
    pub tool: ToolPath,
    /// The arguments.
    pub args: Json,
    /// The caller on whose behalf the call is made.
    pub caller: CallerName,
    /// Triggered when the call should stop.
    pub cancelled: CancelSignal,
    /// The person behind the call.
    pub person: PersonHandle,
    /// Receives the progress of the call.
    pub progress: ProgressHandle,
}

impl ToolRequest {
    /// Asks the person during the call and waits for the answer without a time limit. The returned content matches the
    /// prompt's schema; a refusal is a failure that the program can catch.
    pub async fn ask_person(&self, wish: ToolPrompt) -> Result<Json, Failure> {
        match self.person.ask_question(wish).await {
            Answer::Accept { content: Some(content) } => Ok(content),
            Answer::Accept { content: None } => {
                Ok(Json::parse("{}".to_owned()).expect("an empty object is JSON"))
            }
            Answer::Decline => Err(Failure::declined(&self.tool)),
            Answer::Cancel => Err(Failure::question_cancelled(&self.tool)),
        }
    }
}

type AskFunction = dyn Fn(ToolPrompt) -> BoxFuture<'static, Answer> + Send + Sync;

/// The person behind a call, whom its tool can ask. The question is journalled before it is shown.
/// If the server dies while it is open, a read-only tool is called again and, when it asks the same
/// question, meets the open question or its answer; any other call is in doubt.
#[derive(Clone)]
pub struct PersonHandle(Option<Arc<AskFunction>>);

impl PersonHandle {
    /// A call without a person.
    pub const fn absent() -> Self {
        Self(None)
    }

    /// Questions are passed to a function.
    pub fn hearing(
        hear: impl Fn(ToolPrompt) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// The person's answer, for tools that pass it on. Without a person, the question is cancelled.
    pub async fn ask_question(&self, wish: ToolPrompt) -> Answer {
        match &self.0 {
            Some(hear) => hear(wish).await,
            None => Answer::Cancel,
        }
    }
}

impl PersonHandle {
    /// The same person, with known secrets redacted from each question.
    pub(crate) fn spared(self) -> Self {
        match self.0 {
            Some(hear) => Self::hearing(move |wish| hear(scrub::wish(wish))),
            None => Self(None),
        }
    }
}

impl fmt::Debug for PersonHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Person" } else { "nobody" })
    }
}

/// Longest progress message: it is retained for as long as the call runs.
const MEASURE_BYTES_MAX: usize = 4 << 10;

type ReportFunction = dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync;
type MeasureFunction = dyn Fn(Json) + Send + Sync;

/// Reports the progress of a call. Messages and output are journalled up to a limit; of numbers only the newest is
/// shown, and they are not journalled.
#[derive(Clone)]
pub struct ProgressHandle {
    tell: Option<Arc<ReportFunction>>,
    measure: Option<Arc<MeasureFunction>>,
}

impl ProgressHandle {
    /// A call whose progress is not observed.
    pub const fn unwatched() -> Self {
        Self { tell: None, measure: None }
    }

    /// Messages are passed to a function.
    pub fn told_to(
        tell: impl Fn(String) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { tell: Some(Arc::new(tell)), measure: None }
    }

    /// Numbers are passed to another function.
    #[must_use]
    pub fn measured_by(self, measure: impl Fn(Json) + Send + Sync + 'static) -> Self {
        Self { measure: Some(Arc::new(measure)), ..self }
    }

    /// Reports a message; waits if the receiver is behind.
    pub async fn report_text(&self, text: String) {
        if let Some(tell) = &self.tell {
            tell(text).await;
        }
    }

    /// Reports the progress as a number, with the total and a short message. A message that is too long is dropped.
    pub fn measure(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(measure) = &self.measure else { return };
        let mut said = serde_json::Map::new();
        said.insert("progress".into(), progress.into());
        said.extend(total.map(|total| ("total".into(), total.into())));
        said.extend(message.map(|message| ("message".into(), message.into())));
        if let Ok(said) = Json::from_value(&said)
            && said.as_text().len() <= MEASURE_BYTES_MAX
        {
            measure(said);
        }
    }

    /// The same handle, with known secrets redacted.
    pub(crate) fn spared(self) -> Self {
        let Self { tell, measure } = self;
        let spared = match tell {
            Some(tell) => Self::told_to(move |text| tell(scrub::scrub_text(&text).into_owned())),
            None => Self::unwatched(),
        };
        match measure {
            Some(measure) => spared.measured_by(move |said| measure(scrub::json(said))),
            None => spared,
        }
    }
}

impl fmt::Debug for ProgressHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tell.is_some() { "Progress" } else { "unwatched" })
    }
}

/// Signals to a tool that its result is no longer needed. A tool can only observe it.
#[derive(Debug, Clone, Default)]
pub struct CancelSignal(CancellationToken);

impl CancelSignal {
    /// A signal that is never triggered.
    pub fn never() -> Self {
        Self::default()
    }

    /// Resolves when the execution has ended; immediately if it already has.
    pub fn given(&self) -> WaitForCancellationFuture<'_> {
        self.0.cancelled()
    }

    /// Whether it has been triggered.
    pub fn is_given(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl From<CancellationToken> for CancelSignal {
    fn from(token: CancellationToken) -> Self {
        Self(token)
    }
}

#[cfg(test)]
impl ToolRequest {
    /// A first call with a placeholder caller.
    pub(crate) fn sample(tool: &str, args: &str) -> Self {
        Self {
            execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
            call: CallId(1),
            attempt: 1,
            tool: ToolPath::parse(tool).unwrap(),
            args: Json::parse(args.to_owned()).unwrap(),
            caller: CallerName("test".into()),
            cancelled: CancelSignal::never(),
            person: PersonHandle::absent(),
            progress: ProgressHandle::unwatched(),
        }
    }
}
