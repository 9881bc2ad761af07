//! Requests about files in a sandbox: each is done by a process of its own, this same binary in the same cage that a
//! command would have. So the system itself decides what may be touched, whatever links and renames do meanwhile.

use super::files;
use processes::{Access, Cage, End, Event, Input, Network, Processes, Rule, Spec, Stream, Streams};
use protocols::exec_server::{FileRequest, MESSAGE_BYTES_MAX};
use protocols::json_rpc::{ErrorObject, INTERNAL, INVALID_PARAMS};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

/// The hidden verb that makes this binary do one request.
const VERB: &str = "__files";

/// Longest that one may take: a file system may hang, and a pipe that is written to waits for its reader.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The longest request: what a client may say, and how it is told here.
const ASKED_BYTES_MAX: u64 = MESSAGE_BYTES_MAX as u64 + (1 << 20);

/// The longest answer: the largest file in base64, and what stands around it.
const ANSWER_BYTES_MAX: usize = files::FILE_BYTES_MAX as usize / 3 * 4 + (1 << 20);

/// Does one request about files, if this process was started to do that. Call it first in `main`.
pub fn enter_if_asked() -> Option<ExitCode> {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(VERB)) {
        return None;
    }
    Some(if attend().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn attend() -> io::Result<()> {
    let mut asked = String::new();
    io::stdin().take(ASKED_BYTES_MAX).read_to_string(&mut asked)?;
    let request: FileRequest = serde_json::from_str(&asked)?;
    let done = files::attend(request, &mut files::Handles::default());
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &done)?;
    stdout.flush()
}

/// Does a request within a cage.
pub(super) async fn perform(
    processes: &Processes,
    cage: Cage,
    request: &FileRequest,
) -> files::Done {
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

async fn done(processes: &Processes, cage: Cage, asked: Vec<u8>) -> files::Done {
    let spec = spec(processes, cage);
    let process = processes.spawn(&spec).await.map_err(|error| {
        let text = format!("files cannot be worked on in this sandbox: {error}");
        ErrorObject::new(INVALID_PARAMS, text)
    })?;
    let room = process.input_room(asked.len()).await;
    // One that has ended already says why by its silence.
    let _ = process.write(asked.into(), room);
    let _ = process.close_input();
    let (mut follower, mut said) = (process.output().follow(), vec![]);
    while said.len() <= ANSWER_BYTES_MAX {
        match follower.next().await {
            Event::Output(chunk) if chunk.stream == Stream::Stdout => {
                said.extend_from_slice(&chunk.bytes);
            }
            Event::Output(_) => {}
            Event::Exited { .. } => process.end(End::Kill),
            Event::Closed { .. } => break,
        }
    }
    let broken = |_| ErrorObject::new(INTERNAL, "the request broke in its sandbox");
    serde_json::from_slice::<Result<Value, ErrorObject>>(&said).map_err(broken)?
}

fn spec(processes: &Processes, mut cage: Cage) -> Spec {
    cage.network = Network::None;
    // It must be able to become itself; nothing secret stands in a program.
    if let Ok(path) = processes.program() {
        cage.rules.push(Rule { path, access: Access::Read });
    }
    Spec {
        argv: vec!["/proc/self/exe".into(), VERB.into()],
        arg0: Some("airlock-files".into()),
        cwd: "/".into(),
        env: vec![],
        streams: Streams::Pipes(Input::Pipe),
        cage: Some(cage),
    }
}
