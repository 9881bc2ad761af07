//! The lines that cross the link.

use anyhow::{Context, Result, bail};
use lifecycle::{
    ExecutionLimits, InputIndex, RandomSeed, Timestamp, UnawaitedCalls, ValueConvention,
};
use protocols::execbox::wire::{Airlock, Execute, Idle, Options, RawJson, ToolCall, ToolResult};
use protocols::execbox::{FromRunner, ToRunner};
use sandbox::{Lease, LeaseMessage};

/// A fixed time with as many digits as a present one.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// The message to run `1 + 1`, as the engine sends it.
pub(super) fn one_plus_one() -> Result<Vec<u8>> {
    let limits = ExecutionLimits::default();
    let execute = ToRunner::Execute(Execute {
        id: "run".into(),
        code: "1 + 1".into(),
        options: Options {
            timeout_ms: limits.active_ms_max,
            memory_limit_bytes: limits.memory_bytes_max,
            max_log_lines: u64::from(limits.outputs_max),
            max_log_chars: limits.bytes_max,
        },
        providers: RawJson::parse("[]").context("an empty list is JSON")?,
        airlock: Some(Airlock {
            seed: RandomSeed([7; 32]),
            start_ms: NOW,
            convention: ValueConvention::LastExpression,
            prepared: false,
            prelude: runner::PRELUDE_VERSION,
            cpu_ms: limits.cpu_ms_max,
            unawaited: UnawaitedCalls::Wait,
            replay_inputs: InputIndex(0),
            replay_cpu_ms: 0,
            loop_rounds_max: None,
        }),
    });
    let mut line = vec![];
    execute.encode(&mut line);
    Ok(line)
}

/// The message of a guest that calls `demo.add` and waits, and the answer to it.
pub(super) fn call_and_result() -> Result<(Vec<u8>, Vec<u8>)> {
    let input = RawJson::parse(r#"{"a":1,"b":2}"#).context("an object is JSON")?;
    let (mut call, mut result) = (vec![], vec![]);
    FromRunner::ToolCall(ToolCall {
        call_id: "100".into(),
        provider_name: ToolCall::TOOLS.into(),
        safe_tool_name: "demo.add".into(),
        input,
        line: Some(1),
    })
    .encode(&mut call);
    FromRunner::Idle(Idle { inputs: InputIndex(100) }).encode(&mut call);
    let outcome = Ok(Some(RawJson::parse("3").context("a number is JSON")?));
    ToRunner::ToolResult(ToolResult { call_id: "100".into(), outcome, at: Some(NOW) })
        .encode(&mut result);
    Ok((call, result))
}

/// Sends a program to a runner and reads until it is done. Returns the number of bytes read.
pub(super) async fn run(lease: &mut Lease, execute: &[u8]) -> Result<usize> {
    lease.push(execute).ok().context("the runner is gone")?;
    let mut said_bytes = 0;
    loop {
        let line = match lease.receive().await {
            LeaseMessage::Line(line) => line,
            LeaseMessage::Gone(exit) => bail!("the runner ended early: {exit:?}"),
        };
        said_bytes += line.len() + 1;
        if let FromRunner::Done(done) = FromRunner::decode(line)? {
            let value = done.outcome.ok().flatten().context("the program failed")?;
            anyhow::ensure!(value.as_text() == "2", "one and one are two");
            return Ok(said_bytes);
        }
    }
}
