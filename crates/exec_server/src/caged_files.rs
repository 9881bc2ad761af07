//! Performs file requests in other processes, so that the kernel itself decides which files may be touched, even if
//! links and renames change meanwhile. The program is this same binary.
//!
//! With a sandbox, each request has its own process, in the same cage that a command would have. Without one, a
//! single process performs the requests of a connection in sequence: like a command, it cannot see the server's own
//! files.

use super::files;
use processes::helper_process::FILE_WORKER;
use processes::{
    EndMode, NetworkAccess, OutputChanges, OutputSeq, OutputStream, PathAccess, PathRule,
    PipeInput, Process, ProcessCage, ProcessEvent, ProcessSpawner, ProcessSpec, ProcessStreams,
};
use protocols::exec_server::{FileRequest, MESSAGE_BYTES_MAX};
use protocols::json_rpc::{ErrorObject, INTERNAL, INVALID_PARAMS};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

/// The argument for a process that performs more than one request.
const SERVE: &str = "serve";

/// Timeout of one request: a file system may hang, and a write to a pipe waits for its reader.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Maximum length of a request: a client's longest message plus its encoding here.
const ASKED_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 + (1 << 20);

/// Maximum length of an answer: the largest file in base64 plus its JSON envelope.
const ANSWER_BYTES_MAX: usize = files::FILE_BYTES_MAX as usize / 3 * 4 + (1 << 20);

/// Performs one file request if this process was started for that. Call it first in `main`.
pub fn enter_if_asked() -> Option<ExitCode> {
    if !FILE_WORKER.is_this_process() {
        return None;
    }
    let is_serving = std::env::args_os().nth(2).as_deref() == Some(OsStr::new(SERVE));
    let done = if is_serving { serve_requests() } else { attend() };
    Some(if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Performs requests, one per line, until the input ends. Opened files stay open between requests.
fn serve_requests() -> io::Result<()> {
    let mut handles = files::FileHandles::default();
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut asked = vec![];
    while stdin.read_until(b'\n', &mut asked)? > 0 {
        let request: FileRequest = serde_json::from_slice(&asked)?;
        asked.clear();
        serde_json::to_writer(&mut stdout, &files::run_file_request(request, &mut handles))?;
        stdout.write_all(b"\n")?;
        stdout.flush()?;
    }
    Ok(())
}

fn attend() -> io::Result<()> {
    let mut asked = String::new();
    io::stdin().take(ASKED_BYTES_MAX).read_to_string(&mut asked)?;
    let request: FileRequest = serde_json::from_str(&asked)?;
    let done = files::run_file_request(request, &mut files::FileHandles::default());
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &done)?;
    stdout.flush()
}

/// Performs a request in a cage.
pub(super) async fn perform_request(
    processes: &ProcessSpawner,
    cage: ProcessCage,
    request: &FileRequest,
) -> files::FileResult {
    if matches!(request, FileRequest::Open(_)) {
        let text = "files are not kept open in a sandbox; they are read and written whole";
        return Err(ErrorObject::new(INVALID_PARAMS, text));
    }
    let broke = |_| ErrorObject::new(INTERNAL, "the request broke on our side");
    let asked = serde_json::to_vec(request).map_err(broke)?;
    let doing = done(processes, cage, asked);
    tokio::time::timeout(TIME_MAX, doing)
        .await
        .unwrap_or_else(|_| Err(ErrorObject::new(INTERNAL, "the request took too long")))
}

async fn done(processes: &ProcessSpawner, cage: ProcessCage, asked: Vec<u8>) -> files::FileResult {
    let spec = spec(processes, cage);
    let process = processes.spawn(&spec).await.map_err(|error| {
        let text = format!("file requests cannot be performed in this sandbox: {error}");
        ErrorObject::new(INVALID_PARAMS, text)
    })?;
    let room = process.input_room(asked.len()).await;
    // A process that has already exited gives no output, which reports the failure.
    let _ = process.write(asked.into(), room);
    let _ = process.close_input();
    let (mut follower, mut said) = (process.output().follow(), vec![]);
    while said.len() <= ANSWER_BYTES_MAX {
        match follower.next().await {
            ProcessEvent::Output(chunk) if chunk.stream == OutputStream::Stdout => {
                said.extend_from_slice(&chunk.bytes);
            }
            ProcessEvent::Output(_) => {}
            ProcessEvent::Exited { .. } => process.end_with(EndMode::Kill),
            ProcessEvent::Closed { .. } => break,
        }
    }
    let broken = |_| ErrorObject::new(INTERNAL, "the request failed in its sandbox");
    serde_json::from_slice::<Result<Value, ErrorObject>>(&said).map_err(broken)?
}

fn spec(processes: &ProcessSpawner, mut cage: ProcessCage) -> ProcessSpec {
    cage.network = NetworkAccess::None;
    // The process must be able to execute its own binary; a binary contains no secrets.
    if let Ok(path) = processes.program() {
        cage.rules.push(PathRule { path, access: PathAccess::Read });
    }
    ProcessSpec { cage: Some(cage), ..own_program(&[FILE_WORKER.verb]) }
}

fn own_program(words: &[&str]) -> ProcessSpec {
    ProcessSpec {
        argv: ["/proc/self/exe"].iter().chain(words).map(Into::into).collect(),
        arg0: Some(FILE_WORKER.title.into()),
        cwd: "/".into(),
        env: vec![],
        streams: ProcessStreams::Pipes(PipeInput::Pipe),
        cage: None,
    }
}

/// The process that performs the requests of one connection without a sandbox. The first request starts it.
pub(super) struct FileWorker {
    processes: ProcessSpawner,
    running: Option<RunningWorker>,
}

struct RunningWorker {
    process: Process,
    changes: OutputChanges,
    after: OutputSeq,
    /// The part of the next answer that has arrived.
    heard: Vec<u8>,
}

impl FileWorker {
    pub(super) const fn new(processes: ProcessSpawner) -> Self {
        Self { processes, running: None }
    }

    /// Performs a request. If the process fails, the next request starts another one, which has no files open.
    pub(super) async fn perform_in_worker(&mut self, request: &FileRequest) -> files::FileResult {
        let broke = || ErrorObject::new(INTERNAL, "the request broke on our side");
        let mut asked = serde_json::to_vec(request).map_err(|_| broke())?;
        asked.push(b'\n');
        let mut worker = match self.running.take() {
            Some(worker) => worker,
            None => RunningWorker::start(&self.processes).await.map_err(|_| broke())?,
        };
        let answer = worker.send_request(asked).await.ok_or_else(broke)?;
        self.running = Some(worker);
        serde_json::from_slice::<Result<Value, ErrorObject>>(&answer).map_err(|_| broke())?
    }
}

impl RunningWorker {
    async fn start(processes: &ProcessSpawner) -> Result<Self, processes::SpawnError> {
        let process = processes.spawn(&own_program(&[FILE_WORKER.verb, SERVE])).await?;
        Ok(Self { changes: process.output().changes(), process, after: 0, heard: vec![] })
    }

    /// Returns the answer; none if the process has exited.
    async fn send_request(&mut self, asked: Vec<u8>) -> Option<Vec<u8>> {
        let room = self.process.input_room(asked.len()).await;
        self.process.write(asked.into(), room).ok()?;
        loop {
            while let Some(event) = self.process.output().next_after(self.after) {
                self.after = event.seq();
                self.process.output().release(self.after);
                match event {
                    ProcessEvent::Output(chunk) if chunk.stream == OutputStream::Stdout => {
                        self.heard.extend_from_slice(&chunk.bytes);
                        if chunk.bytes.last() == Some(&b'\n') {
                            return Some(std::mem::take(&mut self.heard));
                        }
                    }
                    ProcessEvent::Output(_) => {}
                    ProcessEvent::Exited { .. } | ProcessEvent::Closed { .. } => return None,
                }
            }
            self.changes.next().await;
        }
    }
}
