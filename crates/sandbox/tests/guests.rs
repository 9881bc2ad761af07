//! The product's runners in the jail: JavaScript in, results out.

use crate::suite::{end, lease};
use protocols::execbox::FromRunner;
use sandbox::{Config, Lease, LeaseDemand, LeaseMessage, RunnerExit, RunnerProgramPath, Sandbox};

const ZYGOTE: &str = env!("CARGO_BIN_EXE_zygote-for-tests");

async fn start(reuse: bool) -> Sandbox {
    let program = RunnerProgramPath::At(ZYGOTE.into());
    let config = Config { program, warm_runners: 2, reuse, ..Config::default() };
    Sandbox::start(config).await.unwrap()
}

fn order(code: &str) -> Vec<u8> {
    let options =
        r#"{"timeoutMs":600000,"memoryLimitBytes":67108864,"maxLogLines":9,"maxLogChars":999}"#;
    let seed = "0".repeat(64);
    let airlock = format!(
        r#"{{"seed":"{seed}","startMs":0,"convention":"explicit_return","prepared":false,"prelude":1,
        "cpuMs":600000,"unawaited":"wait","replayInputs":0,"replayCpuMs":0}}"#
    )
    .replace('\n', "");
    let code = format!("{code:?}");
    format!(
        r#"{{"type":"execute","id":"e","code":{code},"options":{options},"providers":[],"airlock":{airlock}}}"#
    )
    .into_bytes()
}

fn push(lease: &mut Lease, code: &str) {
    let mut line = order(code);
    line.push(b'\n');
    lease.push(&line).unwrap();
}

/// Runs a program and returns the outcome in `done`: the result as text, or the error code.
async fn run(lease: &mut Lease, code: &str) -> Result<String, String> {
    push(lease, code);
    loop {
        let line = match lease.receive().await {
            LeaseMessage::Line(line) => line,
            LeaseMessage::Gone(exit) => return Err(format!("{exit:?}")),
        };
        if let FromRunner::Done(done) = FromRunner::decode(line).unwrap() {
            return match done.outcome {
                Ok(result) => Ok(result.map_or("undefined", |json| json.as_text()).to_owned()),
                Err(failed) => Err(failed.code.to_string()),
            };
        }
    }
}

#[tokio::test]
async fn a_program_runs_in_the_jail_and_what_it_uses_needs_no_file() {
    let sandbox = start(false).await;
    for (code, result) in [
        ("return 1 + 1", "2"),
        ("return new Date(0).getTimezoneOffset()", "0"),
        (
            "return [typeof process, typeof require, typeof Deno].join()",
            "\"undefined,undefined,undefined\"",
        ),
        ("const x: number = 3; return x ** 2", "9"),
        (
            "return 'ß'.toUpperCase() + 'a\\u0301'.normalize('NFC').length + /\\p{L}/u.test('é')",
            "\"SS1true\"",
        ),
        ("return JSON.parse(JSON.stringify({ a: [1, { b: null }] })).a.length", "2"),
        (
            "return [3, 1, 2].toSorted().join('') + Math.sin(1).toFixed(3) + (2n ** 64n)",
            "\"1230.84118446744073709551616\"",
        ),
    ] {
        let mut runner = lease(&sandbox).await;
        assert_eq!(run(&mut runner, code).await, Ok(result.to_owned()), "{code}");
        runner.finish();
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn native_code_that_never_yields_is_killed() {
    let sandbox = start(false).await;
    let mut neighbour = lease(&sandbox).await;
    for code in [
        "[].sort.call({ length: 2 ** 53 - 1 })",
        "new Array(2 ** 32 - 1).join('')",
        "'a'.repeat(2e6).indexOf('a'.repeat(1e6) + 'b')",
    ] {
        let mut runner = lease(&sandbox).await;
        push(&mut runner, code);
        // The CPU time of its process shows when it has entered the loop.
        let before = runner.cpu_time().unwrap();
        while runner.cpu_time().unwrap() < before + std::time::Duration::from_millis(20) {
            tokio::task::yield_now().await;
        }
        runner.kill();
        assert_eq!(end(&mut runner).await, RunnerExit::Killed, "{code}");
    }
    assert_eq!(run(&mut neighbour, "return 'well'").await, Ok("\"well\"".to_owned()));
    drop(neighbour);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_hungry_program_meets_its_cap_and_says_so() {
    let sandbox = start(false).await;
    for code in [
        "const all = []; for (;;) all.push(new Array(1000).fill(0))",
        "let s = 'x'; for (;;) s += s",
        "return new ArrayBuffer(1e9).byteLength",
    ] {
        let mut runner = lease(&sandbox).await;
        assert_eq!(run(&mut runner, code).await, Err("memory_limit".to_owned()), "{code}");
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn ten_kilobytes_of_parentheses_end_one_runner_at_most() {
    let sandbox = start(false).await;
    let mut neighbour = lease(&sandbox).await;
    for text in ["(", "[", "a=>", "!"] {
        let mut runner = lease(&sandbox).await;
        assert!(run(&mut runner, &text.repeat(10_000)).await.is_err());
        assert_eq!(run(&mut neighbour, "return 1").await, Ok("1".to_owned()));
    }
    drop(neighbour);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn a_kept_runner_remembers_nothing() {
    let sandbox = start(true).await;
    let demand = LeaseDemand { caller: Some("ann".to_owned()), ..LeaseDemand::default() };
    let mut first = sandbox.lease(demand.clone()).await.unwrap();
    let pid = first.pid();
    assert_eq!(run(&mut first, "globalThis.secret = 7; return secret").await, Ok("7".to_owned()));
    first.finish();
    let mut again = sandbox.lease(demand).await.unwrap();
    assert_eq!(again.pid(), pid);
    assert_eq!(run(&mut again, "return typeof secret").await, Ok("\"undefined\"".to_owned()));
    drop(again);
    sandbox.shutdown().await;
}
