//! The time from the start of a verb to its first output, with a running server, beside a process that only connects to it.

use crate::directory::directory;
use crate::durable::binary;
use crate::durable::served::{Served, airlock};
use crate::floor_process::CONNECT;
use anyhow::{Context as _, Result, ensure};
use bench::{Contender, Plan, Report, Size, Target};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PLAN: Plan =
    Plan { warm_up_ops: 5, n_rounds: 21, round_ops: 10, round_time_max: Duration::MAX };

/// A delay that a person perceives as immediate.
const FIRST_OUTPUT_NS_MAX: f64 = 30e6;

/// The largest size of the single binary.
const BINARY_BYTES_MAX: f64 = 45e6;

/// Measures `--version`, `call` and the binary itself.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let directory = directory()?;
    let data_dir = directory.path();
    let served = Served::start_with_tools(data_dir)?;
    let connect = || {
        let mut command = this()?;
        command.args([CONNECT, served.address()]);
        first_output(command, b"connected")
    };
    let version = Contender::timed("first output of airlock --version", || {
        let mut command = airlock()?;
        command.arg("--version");
        first_output(command, b"airlock")
    });
    let floor = || Contender::timed("a process that opens a socket and says so", connect);
    let targets = || vec![Target::MedianNsMax(FIRST_OUTPUT_NS_MAX)];
    report.add(PLAN.compare(version, floor())?, targets());
    let call = Contender::timed("first output of airlock call demo.add", || {
        let mut command = airlock()?;
        command.args(["call", "demo.add", r#"{"a":1,"b":2}"#, "--data-dir"]).arg(data_dir);
        first_output(command, b"3")
    });
    report.add(PLAN.compare(call, floor())?, targets());
    served.stop()?;
    report.add_size(Size {
        name: "the binary that is all a user installs".to_owned(),
        bytes: std::fs::metadata(binary()?)?.len() as f64,
        bytes_max: Some(BINARY_BYTES_MAX),
    });
    Ok(report)
}

#[expect(clippy::disallowed_methods, reason = "a floor is a process that no room owns")]
fn this() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command)
}

/// The time from just before the start to the first bytes, which must be these.
fn first_output(mut command: Command, expected: &[u8]) -> Result<Duration> {
    let began = Instant::now();
    let mut child = command.spawn().context("start it")?;
    let mut stdout = child.stdout.take().context("its output is a pipe")?;
    let mut first = vec![0; expected.len()];
    let read = stdout.read_exact(&mut first);
    let took = began.elapsed();
    // The rest of the output is not measured, and must not block the process.
    drop(stdout.read_to_end(&mut vec![]));
    let status = child.wait()?;
    read.context("it said nothing")?;
    ensure!(first == expected && status.success(), "not what was expected ({status})");
    Ok(took)
}
