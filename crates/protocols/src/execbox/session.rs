//! The language of a link whose first order was `session`: one world in which many texts are evaluated. Ours alone.
//!
//! A *task* is what somebody waits for: one eval, one tick of a watch, one run of a command. Its number is the engine's.

use super::text::{RawJson, WireText};
use lifecycle::{RandomSeed, Timestamp};
use serde::{Deserialize, Serialize};

/// The first order: from now on the link speaks this language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// Memory of the guest.
    pub memory_bytes: u64,
    /// Where everything random in the guest comes from.
    pub seed: RandomSeed,
    /// The guest's time until it is told another.
    pub start_ms: Timestamp,
    /// Elements of a value's outermost list that are told.
    pub elements_max: u32,
    /// Characters of a value's JSON that are told; what is longer is cut.
    pub value_chars_max: u32,
    /// Bytes that one task may print; the rest is dropped.
    pub printed_bytes_max: u32,
}

/// What a session's runner is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToSession<'a> {
    /// Evaluate a text.
    #[serde(borrow)]
    Eval(EvalOrder<'a>),
    /// Run a command that the guest registered.
    #[serde(borrow)]
    Invoke(InvokeCommand<'a>),
    /// Say which names fit.
    #[serde(borrow)]
    Complete(CompleteOrder<'a>),
    /// A call is settled.
    #[serde(borrow)]
    Settle(SettleCall<'a>),
    /// A timer is due.
    Fire(FireTimer),
    /// Stop a task; 0 is whatever runs now.
    Interrupt(InterruptTask),
}

/// Evaluate a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalOrder<'a> {
    /// Names it.
    pub task: u64,
    /// JavaScript or TypeScript.
    #[serde(borrow)]
    pub code: WireText<'a>,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// What the guest's clocks show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestTime {
    /// The time.
    pub at: Timestamp,
    /// The frame of the virtual clock.
    pub frame: u64,
}

/// Run a command that the guest registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvokeCommand<'a> {
    /// Names it.
    pub task: u64,
    /// Which command.
    #[serde(borrow)]
    pub name: WireText<'a>,
    /// Its arguments, which fit its schema.
    #[serde(borrow)]
    pub args: RawJson<'a>,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// Say which names fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteOrder<'a> {
    /// Names it.
    pub task: u64,
    /// The text up to the cursor.
    #[serde(borrow)]
    pub code: WireText<'a>,
}

/// A call is settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettleCall<'a> {
    /// Which.
    pub call: u32,
    /// How.
    #[serde(borrow)]
    pub outcome: CallSettlement<'a>,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSettlement<'a> {
    /// With a value, or with `undefined`.
    #[serde(borrow)]
    Returned(Option<RawJson<'a>>),
    /// With a failure that the guest can catch.
    #[serde(borrow)]
    Failed(SettledFailure<'a>),
}

/// Why a call has no value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettledFailure<'a> {
    /// Which kind, in the words of `lifecycle::FailureCode`.
    #[serde(borrow)]
    pub code: WireText<'a>,
    /// A sentence.
    #[serde(borrow)]
    pub message: WireText<'a>,
    /// Machine-readable details.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub details: Option<RawJson<'a>>,
}

/// A timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireTimer {
    /// Which.
    pub timer: u32,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// Stop a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptTask {
    /// Which; 0 is whatever runs now.
    pub task: u64,
}

/// What a session's runner says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromSession<'a> {
    /// A task is over.
    #[serde(borrow)]
    Ended(TaskEnd<'a>),
    /// The names that fit.
    #[serde(borrow)]
    Completed(CompletionNames<'a>),
    /// The guest calls a tool.
    #[serde(borrow)]
    Called(GuestCall<'a>),
    /// The guest printed.
    #[serde(borrow)]
    Printed(GuestPrint<'a>),
    /// The guest set a timer.
    TimerSet(GuestTimer),
    /// The guest cleared a timer.
    TimerCleared(u32),
    /// The guest registered a command: its descriptor.
    #[serde(borrow)]
    Registered(RawJson<'a>),
    /// The guest took a command back.
    #[serde(borrow)]
    Unregistered(WireText<'a>),
    /// A command tells how far it is.
    #[serde(borrow)]
    Progressed(CommandProgress<'a>),
    /// A command wrote a file.
    #[serde(borrow)]
    Wrote(WrittenFile<'a>),
    /// Everything so far is processed and the guest waits.
    Rested {
        /// How many lines were processed.
        lines: u64,
    },
}

/// A task is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd<'a> {
    /// Which.
    pub task: u64,
    /// How.
    #[serde(borrow)]
    pub outcome: TaskOutcome<'a>,
    /// It was stopped, and what it left behind does not stop: the world is of no more use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fouled: bool,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome<'a> {
    /// An eval's value.
    #[serde(borrow)]
    Value(EvalValue<'a>),
    /// `undefined`.
    Nothing,
    /// A command's output, as JSON text.
    #[serde(borrow)]
    Output(WireText<'a>),
    /// Neither.
    #[serde(borrow)]
    Failed(TaskFailed<'a>),
}

/// An eval's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalValue<'a> {
    /// What it is.
    #[serde(borrow)]
    pub type_name: WireText<'a>,
    /// Its JSON, perhaps cut.
    #[serde(borrow)]
    pub json: WireText<'a>,
    /// How many bytes its JSON has, as far as anybody counted.
    pub bytes: u64,
}

/// Why a task has neither value nor output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed<'a> {
    /// In short.
    pub why: TaskFailureKind,
    /// A sentence.
    #[serde(borrow)]
    pub message: WireText<'a>,
    /// The guest's own lines.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<WireText<'a>>,
    /// The kind that a command's error claims.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<WireText<'a>>,
    /// The code that a command's error claims.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub code: Option<WireText<'a>>,
    /// The details that a command's error claims, as JSON text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub details: Option<WireText<'a>>,
}

/// Why a task failed, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFailureKind {
    /// The text is no program.
    Syntax,
    /// It threw.
    Threw,
    /// It was stopped.
    Interrupted,
    /// Memory ran out.
    Memory,
    /// It waits for what nobody can give.
    Stuck,
    /// There is no such command.
    Unknown,
}

/// The names that fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionNames<'a> {
    /// Which.
    pub task: u64,
    /// Whole names, sorted.
    #[serde(borrow)]
    pub names: Vec<WireText<'a>>,
}

/// The guest calls a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestCall<'a> {
    /// For which task; 0 for none that is open.
    pub task: u64,
    /// Names the call.
    pub call: u32,
    /// Its path.
    #[serde(borrow)]
    pub tool: WireText<'a>,
    /// The only argument.
    #[serde(borrow)]
    pub args: RawJson<'a>,
}

/// The guest printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPrint<'a> {
    /// For which task.
    pub task: u64,
    /// One line without its line break.
    #[serde(borrow)]
    pub line: WireText<'a>,
}

/// The guest set a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestTimer {
    /// Its ordinal.
    pub timer: u32,
    /// For which task.
    pub task: u64,
    /// Due so long after now.
    pub delay_ms: u64,
}

/// A command tells how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandProgress<'a> {
    /// Which.
    pub task: u64,
    /// Whatever it says.
    #[serde(borrow)]
    pub value: RawJson<'a>,
}

/// A command wrote a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile<'a> {
    /// Which.
    pub task: u64,
    /// The file's name, unchecked.
    #[serde(borrow)]
    pub name: WireText<'a>,
    /// What is in it, unchecked.
    #[serde(borrow)]
    pub content_type: WireText<'a>,
    /// Its bytes in base64.
    #[serde(borrow)]
    pub base64: WireText<'a>,
}

/// Appends a message of this language and its line break.
pub fn encode(message: &impl Serialize, to: &mut Vec<u8>) {
    let start = to.len();
    serde_json::to_writer(&mut *to, message).expect("messages have no failing members");
    // A payload may have line breaks between its values. They would end the line, and what follows one could be read as a
    // message of its own.
    for byte in &mut to[start..] {
        *byte = if *byte == b'\n' { b' ' } else { *byte };
    }
    to.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_with_line_breaks_stays_within_its_line() {
        let args = RawJson::parse("[\n{\"interrupt\":{\"task\":0}}\n]").unwrap();
        let now = GuestTime { at: Timestamp(1), frame: 2 };
        let settle = SettleCall { call: 1, outcome: CallSettlement::Returned(Some(args)), now };
        let mut line = vec![];
        encode(&ToSession::Settle(settle), &mut line);
        let expected = "{\"settle\":{\"call\":1,\"outcome\":{\"returned\":[ {\"interrupt\":{\"task\":0}} ]},\
                        \"now\":{\"at\":1,\"frame\":2}}}\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }
}
