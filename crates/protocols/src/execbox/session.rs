//! The protocol of a link whose first order was `session`: one world in which many texts are evaluated. An
//! extension of ours.
//!
//! A *task* is work whose end the engine waits for: one eval, one tick of a watch, one run of a command.
//! The engine assigns its number.

use super::text::{RawJson, WireText};
use lifecycle::{RandomSeed, Timestamp};
use serde::{Deserialize, Serialize};

/// The first order: from now on the link uses this protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// The guest's memory limit.
    pub memory_bytes: u64,
    /// The seed of everything random in the guest.
    pub seed: RandomSeed,
    /// The guest's time until the first message with another.
    pub start_ms: Timestamp,
    /// Limit of the elements of a value's outermost list that are included.
    pub elements_max: u32,
    /// Limit of the characters of a value's JSON; a longer one is truncated.
    pub value_chars_max: u32,
    /// Limit of the bytes that one task may print; the rest is dropped.
    pub printed_bytes_max: u32,
}

/// A message to a session's runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToSession<'a> {
    /// Evaluate a text.
    #[serde(borrow)]
    Eval(EvalOrder<'a>),
    /// Run a command that the guest registered.
    #[serde(borrow)]
    Invoke(InvokeCommand<'a>),
    /// Return the completions of a text.
    #[serde(borrow)]
    Complete(CompleteOrder<'a>),
    /// A call is settled.
    #[serde(borrow)]
    Settle(SettleCall<'a>),
    /// A timer is due.
    Fire(FireTimer),
    /// Stop a task; 0 stops the task that runs now.
    Interrupt(InterruptTask),
}

/// Evaluate a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalOrder<'a> {
    /// The task's number.
    pub task: u64,
    /// The text, JavaScript or TypeScript.
    #[serde(borrow)]
    pub code: WireText<'a>,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// The state of the guest's clocks.
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
    /// The task's number.
    pub task: u64,
    /// The command's name.
    #[serde(borrow)]
    pub name: WireText<'a>,
    /// Its arguments, which are valid by its schema.
    #[serde(borrow)]
    pub args: RawJson<'a>,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// Return the completions of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteOrder<'a> {
    /// The task's number.
    pub task: u64,
    /// The text up to the cursor.
    #[serde(borrow)]
    pub code: WireText<'a>,
}

/// A call is settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettleCall<'a> {
    /// The call's id.
    pub call: u32,
    /// The call's outcome.
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
    /// The kind of failure, a word of `lifecycle::FailureCode`.
    #[serde(borrow)]
    pub code: WireText<'a>,
    /// The message, one sentence.
    #[serde(borrow)]
    pub message: WireText<'a>,
    /// Machine-readable details.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub details: Option<RawJson<'a>>,
}

/// A timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireTimer {
    /// The timer's number.
    pub timer: u32,
    /// The guest's time from now on.
    pub now: GuestTime,
}

/// Stop a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptTask {
    /// The task's number; 0 stops the task that runs now.
    pub task: u64,
}

/// A message of a session's runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromSession<'a> {
    /// A task has ended.
    #[serde(borrow)]
    Ended(TaskEnd<'a>),
    /// The completions of a text.
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
    /// The guest removed a command.
    #[serde(borrow)]
    Unregistered(WireText<'a>),
    /// A command reports its progress.
    #[serde(borrow)]
    Progressed(CommandProgress<'a>),
    /// A command wrote a file.
    #[serde(borrow)]
    Wrote(WrittenFile<'a>),
    /// Everything that was sent so far has been processed, and the guest waits.
    Rested {
        /// How many lines were processed.
        lines: u64,
    },
}

/// A task has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd<'a> {
    /// The task's number.
    pub task: u64,
    /// The task's outcome.
    #[serde(borrow)]
    pub outcome: TaskOutcome<'a>,
    /// It was stopped, but its leftovers do not stop: the world is unusable.
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
    /// Neither value nor output.
    #[serde(borrow)]
    Failed(TaskFailed<'a>),
}

/// An eval's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalValue<'a> {
    /// The value's type.
    #[serde(borrow)]
    pub type_name: WireText<'a>,
    /// Its JSON, possibly truncated.
    #[serde(borrow)]
    pub json: WireText<'a>,
    /// The length of the whole JSON in bytes, as far as it was counted.
    pub bytes: u64,
}

/// Why a task has neither value nor output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed<'a> {
    /// The kind of failure.
    pub why: TaskFailureKind,
    /// The message, one sentence.
    #[serde(borrow)]
    pub message: WireText<'a>,
    /// The stack, with the guest's own lines only.
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

/// The kind of a task's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFailureKind {
    /// The text could not be parsed.
    Syntax,
    /// It threw.
    Threw,
    /// It was stopped.
    Interrupted,
    /// Memory ran out.
    Memory,
    /// It waits for a promise that can never settle.
    Stuck,
    /// There is no such command.
    Unknown,
}

/// The completions of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionNames<'a> {
    /// The task's number.
    pub task: u64,
    /// Whole names, sorted.
    #[serde(borrow)]
    pub names: Vec<WireText<'a>>,
}

/// The guest calls a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestCall<'a> {
    /// The number of the task; 0 if no open task made the call.
    pub task: u64,
    /// The call's id.
    pub call: u32,
    /// The tool's path.
    #[serde(borrow)]
    pub tool: WireText<'a>,
    /// The call's only argument.
    #[serde(borrow)]
    pub args: RawJson<'a>,
}

/// The guest printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPrint<'a> {
    /// The number of the task.
    pub task: u64,
    /// One line without its line break.
    #[serde(borrow)]
    pub line: WireText<'a>,
}

/// The guest set a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestTimer {
    /// The timer's number.
    pub timer: u32,
    /// The number of the task.
    pub task: u64,
    /// The delay from now.
    pub delay_ms: u64,
}

/// A command reports its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandProgress<'a> {
    /// The task's number.
    pub task: u64,
    /// The report, any JSON.
    #[serde(borrow)]
    pub value: RawJson<'a>,
}

/// A command wrote a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile<'a> {
    /// The task's number.
    pub task: u64,
    /// The file's name, unchecked.
    #[serde(borrow)]
    pub name: WireText<'a>,
    /// Its media type, unchecked.
    #[serde(borrow)]
    pub content_type: WireText<'a>,
    /// Its bytes in base64.
    #[serde(borrow)]
    pub base64: WireText<'a>,
}

/// Appends a message of this protocol and its line break.
pub fn encode(message: &impl Serialize, to: &mut Vec<u8>) {
    let start = to.len();
    serde_json::to_writer(&mut *to, message).expect("messages have no failing members");
    // A payload may have line breaks between its values. They would end the line, and the rest could be
    // read as another message.
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
