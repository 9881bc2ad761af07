//! Where tools come from, and what one is.

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

/// A place that tools come from.
pub trait Source: Send + Sync {
    /// What people call it; usually the first name in the path of its tools.
    fn name(&self) -> &str;

    /// What it offers. Asked once, when a catalogue is built.
    fn tools(&self) -> Vec<Tool>;

    /// The question about a call whose arguments fit the tool's schema, or the value that the program
    /// receives instead where they make no call. None leaves it to the tool's own words. Called before a person is asked; it must not block.
    fn compose_question(&self, _tool: &ToolPath, _args: &Json) -> Option<Result<String, Json>> {
        None
    }

    /// Whether its tools return `{ok, data}` or `{ok, error}`. Their program then also gets such a value for a tool that does
    /// not exist, that is blocked, or whose arguments do not fit.
    fn is_enveloped(&self) -> bool {
        false
    }

    /// Performs a call whose arguments fit the tool's schema. `None` is `undefined`.
    fn call(&self, request: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>>;
}

/// Something that programs can call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Where the program finds it.
    pub path: ToolPath,
    /// What it does, for whoever writes the program.
    pub description: String,
    /// JSON Schema of its arguments; none takes anything, unseen.
    pub input_schema: Option<Value>,
    /// JSON Schema of its results; none lets anything through, unseen.
    pub output_schema: Option<Value>,
    /// What matters about it when a server dies in mid-call.
    pub nature: ToolNature,
    /// Whether a person must agree where no policy speaks.
    pub asks: bool,
    /// What that person reads first; none names the tool.
    pub about: Option<String>,
    /// Whether an approval must name it: no pattern covers it.
    pub by_name_only: bool,
    /// Whether each call needs an answer of its own: no policy, no approval given beforehand and no remembered
    /// one replaces it.
    pub answer_only: bool,
    /// Whether it takes so long that those who can poll should.
    pub job: bool,
}

impl Tool {
    /// A tool without schemas that runs here, asks nobody, and may do harm when called twice.
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

/// One call on its way to its tool.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The execution that calls.
    pub execution: ExecutionId,
    /// Which of its calls this is.
    pub call: CallId,
    /// 1 for the first time; more when a server died in between.
    pub attempt: u32,
    /// Which tool.
    pub tool: ToolPath,
    /// With what.
    pub args: Json,
    /// For whom.
    pub caller: CallerName,
    /// When to give up.
    pub cancelled: CancelSignal,
    /// The person behind the call.
    pub person: PersonHandle,
    /// Those who watch it.
    pub progress: ProgressHandle,
}

impl ToolRequest {
    /// Wants something of the person in the middle of the call, and waits for it however long it takes.
    /// What was filled in fits the wish; a no is the failure that the program can catch.
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

/// The person behind a call, whom its tool can ask. The question is journalled before anybody hears
/// it. If the server dies while it is open, a read-only tool is called again and, when it asks for the
/// same, meets the same question or its answer; any other call is in doubt.
#[derive(Clone)]
pub struct PersonHandle(Option<Arc<AskFunction>>);

impl PersonHandle {
    /// Nobody is there.
    pub const fn absent() -> Self {
        Self(None)
    }

    /// Somebody hears what is asked.
    pub fn hearing(
        hear: impl Fn(ToolPrompt) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// The person's own word, for tools that pass it on. Whom nobody hears is waved away.
    pub async fn ask_question(&self, wish: ToolPrompt) -> Answer {
        match &self.0 {
            Some(hear) => hear(wish).await,
            None => Answer::Cancel,
        }
    }
}

impl PersonHandle {
    /// The same person, to whom no known secret is told.
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

/// Longest word about how far a call is: it is kept for as long as the call runs.
const MEASURE_BYTES_MAX: usize = 4 << 10;

type ReportFunction = dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync;
type MeasureFunction = dyn Fn(Json) + Send + Sync;

/// Those who watch a call: a tool can tell them how far it is. Words, or what it prints, are journalled, as far as it is
/// not too much; of numbers only the newest count, and they are not.
#[derive(Clone)]
pub struct ProgressHandle {
    tell: Option<Arc<ReportFunction>>,
    measure: Option<Arc<MeasureFunction>>,
}

impl ProgressHandle {
    /// Nobody watches.
    pub const fn unwatched() -> Self {
        Self { tell: None, measure: None }
    }

    /// Somebody hears what is told.
    pub fn told_to(
        tell: impl Fn(String) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { tell: Some(Arc::new(tell)), measure: None }
    }

    /// Somebody also hears numbers.
    #[must_use]
    pub fn measured_by(self, measure: impl Fn(Json) + Send + Sync + 'static) -> Self {
        Self { measure: Some(Arc::new(measure)), ..self }
    }

    /// Tells it; waits where more was told than anybody has taken note of.
    pub async fn report_text(&self, text: String) {
        if let Some(tell) = &self.tell {
            tell(text).await;
        }
    }

    /// Says how far it is, of how much in all, and in a word. What is too long is not heard.
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

    /// The same, but no known secret is told.
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

/// Tells a tool that nobody waits for its result any more. A tool can hear it, not give it.
#[derive(Debug, Clone, Default)]
pub struct CancelSignal(CancellationToken);

impl CancelSignal {
    /// A signal that never comes.
    pub fn never() -> Self {
        Self::default()
    }

    /// Resolves when the execution is over; at once if it is over already.
    pub fn given(&self) -> WaitForCancellationFuture<'_> {
        self.0.cancelled()
    }

    /// Whether it has been given.
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
    /// A first call by nobody in particular.
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
