//! The first part of a story: the program, the results of its tools, and the actions of people.
//!
//! ```text
//! policy   mail.*  require_approval         with `editable` behind it, whoever answers may change arguments
//! tool     mail.send -> {"ok":true}         returns; `tool?` only reads, `tool!` asks by itself
//! tool     mail.fail fails  no such mailbox
//! tool     mail.copy echoes {"type":"object"}  returns its arguments, which must fit this schema
//! tool?    who.are form {"type":"object"}   asks in the middle of its call and returns what is filled in
//! tool?    sign.in link https://a.example   asks to visit a page and returns what its callback brings
//! commands                                  programs may run real ones by process.run
//! limit    calls 3
//! program  return await tools.mail.send({ to: "ann" })
//! person   accepts | declines | waves away | says JSON | cancels the program | restarts the server
//! person   requests METHOD PATH JSON        over HTTP only; exec_1 is the first question, STATE its callback's
//! session  {"limits":{"idleMs":100}}        enclave only: what its request says besides
//! caller   mail.send -> {"ok":true}         enclave only: what the caller makes of a call; `fails CODE MESSAGE`, `cancels REASON`
//! caller   mail.send leaves                 hangs up; of a stream: `waits` answers after a heartbeat, `adds PATH` a tool
//! person   accepts with {"to":"bob"}        instead of the arguments that the program gave
//! person   accepts from now on | adds mail.* block | restarts the server with other tools
//! ```

use lifecycle::{
    ExecutionLimits, Failure, FailureCode, Json, Policy, PolicyAction, PolicyRule, Program,
    ToolHost, ToolNature, ToolPath, ToolPattern, ToolPrompt, ValueConvention,
};
use serde_json::Value;
use std::collections::BTreeMap;
use tools::function::FunctionSource;
use tools::{Tool, ToolRequest};

#[derive(Debug, Clone)]
pub(crate) enum Person {
    Accepts,
    AcceptsFromNowOn,
    AcceptsWith(String),
    Declines,
    WavesAway,
    Says(String),
    CancelsTheProgram,
    RestartsTheServer,
    /// The same paths with other descriptions.
    RestartsWithOtherTools,
    Adds(PolicyRule),
    Requests(String),
}

pub(crate) struct Plot {
    pub(crate) program: Program,
    pub(crate) policy: Policy,
    pub(crate) limits: ExecutionLimits,
    pub(crate) people: Vec<Person>,
    /// The members of enclave's request besides its code.
    pub(crate) session: Value,
    /// How enclave's caller answers calls, by the tool's name.
    pub(crate) callers: BTreeMap<String, Caller>,
    scripts: Vec<Script>,
    /// Whether programs may run commands.
    pub(crate) has_commands: bool,
}

/// How enclave's caller answers a call.
pub(crate) enum Caller {
    Returns(String),
    Fails {
        code: String,
        message: String,
    },
    Cancels(String),
    /// Answers after a heartbeat has arrived.
    WaitsForLife,
    /// Adds a tool to the catalogue, and answers after the news of it has arrived.
    Adds(String),
    /// Disconnects and does not return in time.
    Leaves,
}

#[derive(Clone)]
struct Script {
    path: ToolPath,
    read_only: bool,
    asks: bool,
    does: Does,
}

#[derive(Clone)]
enum Does {
    Returns(Option<Json>),
    Fails(String),
    /// Returns its arguments, which must match this schema.
    Echoes(Json),
    Asks(ToolPrompt),
}

impl Does {
    fn input_schema(&self) -> Option<Value> {
        match self {
            Self::Echoes(schema) => serde_json::from_str(schema.as_text()).ok(),
            Self::Returns(_) | Self::Fails(_) | Self::Asks(_) => None,
        }
    }

    async fn run(self, request: ToolRequest) -> Result<Option<Json>, Failure> {
        match self {
            Self::Returns(value) => Ok(value),
            Self::Echoes(_) => Ok(Some(request.args)),
            Self::Fails(message) => Err(Failure::new(FailureCode::Tool, message)),
            Self::Asks(wish) => request.ask_person(wish).await.map(Some),
        }
    }
}

impl Plot {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut rules, mut people, mut scripts) = (vec![], vec![], vec![]);
        let (mut source, mut limits) = (String::new(), ExecutionLimits::default());
        let (mut session, mut callers) = (serde_json::json!({}), BTreeMap::new());
        let mut has_commands = false;
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.trim_start();
            match word {
                "policy" => rules.push(rule(rest)),
                "tool" | "tool?" | "tool!" => scripts.push(script(word, rest)),
                "commands" => has_commands = true,
                "limit" => limit(&mut limits, rest),
                "program" => source.push_str(rest),
                "" => source.push_str(&format!("\n{}", line.trim())),
                "person" => people.push(person(rest)),
                "session" => session = serde_json::from_str(rest).unwrap(),
                "caller" => callers.extend([caller(rest)]),
                _ => panic!("what is {line:?}?"),
            }
        }
        let program = Program { source, convention: ValueConvention::ExplicitReturn };
        Self {
            program,
            policy: Policy::new(vec![rules]),
            limits,
            people,
            session,
            callers,
            scripts,
            has_commands,
        }
    }

    /// The scripted tools, in one of their editions.
    pub(crate) fn tools(&self, edition: u32) -> FunctionSource {
        self.scripts.iter().cloned().fold(FunctionSource::new("scripted"), |source, script| {
            let tool = Tool {
                nature: ToolNature { read_only: script.read_only, runs: ToolHost::Here },
                asks: script.asks,
                description: format!("Edition {edition}."),
                input_schema: script.does.input_schema(),
                ..Tool::new(script.path)
            };
            source.calling(tool, move |request| script.does.clone().run(request))
        })
    }
}

fn rule(text: &str) -> PolicyRule {
    let (pattern, action) = text.split_once(' ').unwrap();
    let (action, editable) = match action.trim().strip_suffix(" editable") {
        Some(action) => (action, true),
        None => (action, false),
    };
    let action = match action.trim() {
        "approve" => PolicyAction::Approve,
        "require_approval" => PolicyAction::RequireApproval,
        "block" => PolicyAction::Block,
        other => panic!("no such action: {other}"),
    };
    PolicyRule { editable, ..PolicyRule::lasting(ToolPattern::parse(pattern).unwrap(), action) }
}

fn script(word: &str, text: &str) -> Script {
    let (path, rest) = text.split_once(' ').unwrap();
    let json = |text: &str| Json::parse(text.trim().to_owned()).unwrap();
    let does = match rest.trim_start().split_once(' ').unwrap() {
        ("->", "undefined") => Does::Returns(None),
        ("->", value) => Does::Returns(Some(json(value))),
        ("fails", message) => Does::Fails(message.trim().to_owned()),
        ("echoes", schema) => Does::Echoes(json(schema)),
        ("form", schema) => {
            Does::Asks(ToolPrompt::Form { message: "Please fill in".into(), schema: json(schema) })
        }
        ("link", url) => {
            let url = url.trim().to_owned();
            Does::Asks(ToolPrompt::Link { message: "Please visit".into(), url, is_prior: false })
        }
        (other, _) => panic!("what does {other} mean?"),
    };
    let path = ToolPath::parse(path).unwrap();
    Script { path, read_only: word == "tool?", asks: word == "tool!", does }
}

fn caller(text: &str) -> (String, Caller) {
    let (name, rest) = text.split_once(' ').unwrap();
    let does = match rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), "")) {
        ("waits", _) => Caller::WaitsForLife,
        ("leaves", _) => Caller::Leaves,
        ("adds", path) => Caller::Adds(path.trim().to_owned()),
        ("->", value) => Caller::Returns(value.trim().to_owned()),
        ("fails", failure) => {
            let (code, message) = failure.trim().split_once(' ').unwrap();
            Caller::Fails { code: code.to_owned(), message: message.to_owned() }
        }
        ("cancels", reason) => Caller::Cancels(reason.trim().to_owned()),
        (other, _) => panic!("what does {other} mean?"),
    };
    (name.to_owned(), does)
}

fn limit(limits: &mut ExecutionLimits, text: &str) {
    let (name, number) = text.split_once(' ').unwrap();
    let number: u64 = number.trim().parse().unwrap();
    match name {
        "calls" => limits.calls_max = u32::try_from(number).unwrap(),
        "cpu" => limits.cpu_ms_max = number,
        "bytes" => limits.bytes_max = number,
        "outputs" => limits.outputs_max = u32::try_from(number).unwrap(),
        other => panic!("no such limit: {other}"),
    }
}

fn person(text: &str) -> Person {
    match text {
        "accepts" => Person::Accepts,
        "accepts from now on" => Person::AcceptsFromNowOn,
        "declines" => Person::Declines,
        "waves away" => Person::WavesAway,
        "cancels the program" => Person::CancelsTheProgram,
        "restarts the server" => Person::RestartsTheServer,
        "restarts the server with other tools" => Person::RestartsWithOtherTools,
        other if other.starts_with("accepts with ") => {
            Person::AcceptsWith(other["accepts with ".len()..].into())
        }
        other if other.starts_with("adds ") => Person::Adds(rule(&other["adds ".len()..])),
        other if other.starts_with("requests ") => {
            Person::Requests(other["requests ".len()..].into())
        }
        other => Person::Says(other.strip_prefix("says ").unwrap().to_owned()),
    }
}
