//! From a method and its params to a request that makes sense.

use super::{
    AttachParams, EnvironmentConfigParams, ExecParams, FsCloseParams, FsCopyParams,
    FsCreateDirectoryParams, FsOpenParams, FsPathParams, FsReadBlockParams, FsRemoveParams,
    FsWalkParams, FsWatchMissingParams, FsWriteBlockParams, FsWriteFileParams, HttpRequestParams,
    InitializeParams, ProcessParams, ReadParams, ResizeParams, Sandbox, ScreenParams, SignalParams,
    TerminateParams, WaitForParams, WaitParams, WriteParams, read_sandbox,
};
use crate::json_rpc::{ErrorObject, INVALID_PARAMS, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Values in one message. More would take far more memory than the message itself.
const VALUES_MAX: usize = 262_144;

/// Whether a message holds more values than anybody needs.
pub fn has_too_many_values(text: &str) -> bool {
    // A value and what parts it from the next take two bytes at least.
    if text.len() < 2 * VALUES_MAX {
        return false;
    }
    let (mut is_text, mut is_escaped, mut n_values) = (false, false, 1);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => n_values += 1,
            _ => {}
        }
    }
    n_values > VALUES_MAX
}

/// What a client can ask for.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the method of its name")]
pub enum Request {
    Initialize(InitializeParams),
    ProcessStart(ExecParams),
    ProcessRead(ReadParams),
    ProcessWrite(WriteParams),
    ProcessTerminate(TerminateParams),
    ProcessSignal(SignalParams),
    ProcessResize(ResizeParams),
    ProcessCloseStdin(ProcessParams),
    ProcessWait(WaitParams),
    ProcessWaitFor(WaitForParams),
    ProcessScreen(ScreenParams),
    ProcessAttach(AttachParams),
    ProcessTerminals,
    ProcessList,
    EnvironmentInfo,
    EnvironmentStatus,
    EnvironmentConfig(EnvironmentConfigParams),
    WatchMissing(FsWatchMissingParams),
    /// And what it is kept to.
    File(FileRequest, Option<Sandbox>),
    HttpRequest(HttpRequestParams),
}

/// What can be asked about files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the method of its name")]
pub enum FileRequest {
    ReadFile(FsPathParams),
    WriteFile(FsWriteFileParams),
    CreateDirectory(FsCreateDirectoryParams),
    GetMetadata(FsPathParams),
    Canonicalize(FsPathParams),
    ReadDirectory(FsPathParams),
    Walk(FsWalkParams),
    Remove(FsRemoveParams),
    Copy(FsCopyParams),
    Open(FsOpenParams),
    ReadBlock(FsReadBlockParams),
    WriteBlock(FsWriteBlockParams),
    Close(FsCloseParams),
}

/// Which kind of methods one is, as refusals name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The handshake itself.
    Handshake,
    /// `process/*`.
    Exec,
    /// `environment/*`.
    Environment,
    /// `environmentConfig/*`.
    Config,
    /// `fs/*`.
    Files,
    /// `http/*`.
    Http,
}

impl Family {
    /// As refusals name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Exec => "exec",
            Self::Environment => "environment info",
            Self::Config => "environment config",
            Self::Files => "filesystem",
            Self::Http => "http",
        }
    }
}

const METHODS: [(&str, Family); 32] = [
    ("initialize", Family::Handshake),
    ("process/start", Family::Exec),
    ("process/read", Family::Exec),
    ("process/write", Family::Exec),
    ("process/terminate", Family::Exec),
    ("process/signal", Family::Exec),
    ("process/resize", Family::Exec),
    ("process/closeStdin", Family::Exec),
    ("process/wait", Family::Exec),
    ("process/waitFor", Family::Exec),
    ("process/screen", Family::Exec),
    ("process/attach", Family::Exec),
    ("process/terminals", Family::Exec),
    ("process/list", Family::Exec),
    ("environment/info", Family::Environment),
    ("environment/status", Family::Environment),
    ("environmentConfig/read", Family::Config),
    ("fs/readFile", Family::Files),
    ("fs/writeFile", Family::Files),
    ("fs/createDirectory", Family::Files),
    ("fs/getMetadata", Family::Files),
    ("fs/canonicalize", Family::Files),
    ("fs/readDirectory", Family::Files),
    ("fs/walk", Family::Files),
    ("fs/remove", Family::Files),
    ("fs/copy", Family::Files),
    ("fs/open", Family::Files),
    ("fs/readBlock", Family::Files),
    ("fs/writeBlock", Family::Files),
    ("fs/watchMissing", Family::Files),
    ("fs/close", Family::Files),
    ("http/request", Family::Http),
];

/// Which kind of method this is; none where there is no such method.
pub fn family(method: &str) -> Option<Family> {
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, family)| *family)
}

/// Reads a request; `None` where there is no such method.
pub fn read(method: &str, given: Option<&RawValue>) -> Option<Result<Request, ErrorObject>> {
    family(method)?;
    Some(match method {
        "initialize" => params(given).map(Request::Initialize),
        "process/start" => params(given).map(Request::ProcessStart),
        "process/read" => params(given).map(Request::ProcessRead),
        "process/write" => params(given).map(Request::ProcessWrite),
        "process/terminate" => params(given).map(Request::ProcessTerminate),
        "process/signal" => params(given).map(Request::ProcessSignal),
        "process/resize" => params(given).map(Request::ProcessResize),
        "process/closeStdin" => params(given).map(Request::ProcessCloseStdin),
        "process/wait" => params(given).map(Request::ProcessWait),
        "process/waitFor" => params(given).map(Request::ProcessWaitFor),
        "process/screen" => params(given).map(Request::ProcessScreen),
        "process/attach" => params(given).map(Request::ProcessAttach),
        "process/terminals" => Ok(Request::ProcessTerminals),
        "process/list" => Ok(Request::ProcessList),
        "environment/info" => Ok(Request::EnvironmentInfo),
        "environment/status" => Ok(Request::EnvironmentStatus),
        "environmentConfig/read" => params(given).map(Request::EnvironmentConfig),
        "fs/readFile" => file(given, FileRequest::ReadFile),
        "fs/writeFile" => file(given, FileRequest::WriteFile),
        "fs/createDirectory" => file(given, FileRequest::CreateDirectory),
        "fs/getMetadata" => file(given, FileRequest::GetMetadata),
        "fs/canonicalize" => file(given, FileRequest::Canonicalize),
        "fs/readDirectory" => file(given, FileRequest::ReadDirectory),
        "fs/walk" => file(given, FileRequest::Walk),
        "fs/remove" => file(given, FileRequest::Remove),
        "fs/copy" => file(given, FileRequest::Copy),
        "fs/open" => file(given, FileRequest::Open),
        "fs/readBlock" => file(given, FileRequest::ReadBlock),
        "fs/writeBlock" => file(given, FileRequest::WriteBlock),
        "fs/watchMissing" => params(given).map(Request::WatchMissing),
        "fs/close" => file(given, FileRequest::Close),
        "http/request" => params(given).map(Request::HttpRequest),
        _ => return None,
    })
}

fn file<T: serde::de::DeserializeOwned>(
    given: Option<&RawValue>,
    ask: fn(T) -> FileRequest,
) -> Result<Request, ErrorObject> {
    let request = ask(params(given)?);
    // Params in a list have no names, so no sandbox.
    let sandboxed = given.and_then(|given| serde_json::from_str::<Sandboxed>(given.get()).ok());
    read_sandbox(sandboxed.and_then(|given| given.sandbox).as_ref())
        .map(|sandbox| Request::File(request, sandbox))
        .map_err(|why| ErrorObject::new(INVALID_PARAMS, why))
}

/// Every request about files may carry it.
#[derive(Deserialize)]
struct Sandboxed {
    #[serde(default)]
    sandbox: Option<serde_json::Value>,
}
