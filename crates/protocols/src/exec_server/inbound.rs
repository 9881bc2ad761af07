//! Parses a method and its params to a request.

use super::{
    AttachParams, EnvironmentConfigParams, ExecParams, FsCloseParams, FsCopyParams,
    FsCreateDirectoryParams, FsOpenParams, FsPathParams, FsReadBlockParams, FsRemoveParams,
    FsWalkParams, FsWatchMissingParams, FsWriteBlockParams, FsWriteFileParams, HttpRequestParams,
    InitializeParams, ProcessParams, ReadParams, RequestedSandbox, ResizeParams, ScreenParams,
    SignalParams, TerminateParams, WaitForParams, WaitParams, WriteParams, read_sandbox,
};
use crate::json_rpc::{ErrorObject, INVALID_PARAMS, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Limit of values in one message. More would take far more memory than the message itself.
const VALUES_MAX: usize = 262_144;

/// Whether a message exceeds the limit of values.
pub fn has_too_many_values(text: &str) -> bool {
    // A value and its separator take two bytes at least.
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

/// A client's request.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the method of its name")]
pub enum ExecServerRequest {
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
    /// A file request, and the sandbox to perform it in.
    File(FileRequest, Option<RequestedSandbox>),
    HttpRequest(HttpRequestParams),
}

/// A request about files.
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

/// The family of a method, as refusals name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodFamily {
    /// The handshake.
    Handshake,
    /// The methods `process/*`.
    Exec,
    /// The methods `environment/*`.
    Environment,
    /// The methods `environmentConfig/*`.
    Config,
    /// The methods `fs/*`.
    Files,
    /// The methods `http/*`.
    Http,
}

impl MethodFamily {
    /// Its name in refusals.
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

const METHODS: [(&str, MethodFamily); 32] = [
    ("initialize", MethodFamily::Handshake),
    ("process/start", MethodFamily::Exec),
    ("process/read", MethodFamily::Exec),
    ("process/write", MethodFamily::Exec),
    ("process/terminate", MethodFamily::Exec),
    ("process/signal", MethodFamily::Exec),
    ("process/resize", MethodFamily::Exec),
    ("process/closeStdin", MethodFamily::Exec),
    ("process/wait", MethodFamily::Exec),
    ("process/waitFor", MethodFamily::Exec),
    ("process/screen", MethodFamily::Exec),
    ("process/attach", MethodFamily::Exec),
    ("process/terminals", MethodFamily::Exec),
    ("process/list", MethodFamily::Exec),
    ("environment/info", MethodFamily::Environment),
    ("environment/status", MethodFamily::Environment),
    ("environmentConfig/read", MethodFamily::Config),
    ("fs/readFile", MethodFamily::Files),
    ("fs/writeFile", MethodFamily::Files),
    ("fs/createDirectory", MethodFamily::Files),
    ("fs/getMetadata", MethodFamily::Files),
    ("fs/canonicalize", MethodFamily::Files),
    ("fs/readDirectory", MethodFamily::Files),
    ("fs/walk", MethodFamily::Files),
    ("fs/remove", MethodFamily::Files),
    ("fs/copy", MethodFamily::Files),
    ("fs/open", MethodFamily::Files),
    ("fs/readBlock", MethodFamily::Files),
    ("fs/writeBlock", MethodFamily::Files),
    ("fs/watchMissing", MethodFamily::Files),
    ("fs/close", MethodFamily::Files),
    ("http/request", MethodFamily::Http),
];

/// The family of a method; `None` if the method does not exist.
pub fn family(method: &str) -> Option<MethodFamily> {
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, family)| *family)
}

/// Parses a request; `None` if the method does not exist.
pub fn read(
    method: &str,
    given: Option<&RawValue>,
) -> Option<Result<ExecServerRequest, ErrorObject>> {
    family(method)?;
    Some(match method {
        "initialize" => params(given).map(ExecServerRequest::Initialize),
        "process/start" => params(given).map(ExecServerRequest::ProcessStart),
        "process/read" => params(given).map(ExecServerRequest::ProcessRead),
        "process/write" => params(given).map(ExecServerRequest::ProcessWrite),
        "process/terminate" => params(given).map(ExecServerRequest::ProcessTerminate),
        "process/signal" => params(given).map(ExecServerRequest::ProcessSignal),
        "process/resize" => params(given).map(ExecServerRequest::ProcessResize),
        "process/closeStdin" => params(given).map(ExecServerRequest::ProcessCloseStdin),
        "process/wait" => params(given).map(ExecServerRequest::ProcessWait),
        "process/waitFor" => params(given).map(ExecServerRequest::ProcessWaitFor),
        "process/screen" => params(given).map(ExecServerRequest::ProcessScreen),
        "process/attach" => params(given).map(ExecServerRequest::ProcessAttach),
        "process/terminals" => Ok(ExecServerRequest::ProcessTerminals),
        "process/list" => Ok(ExecServerRequest::ProcessList),
        "environment/info" => Ok(ExecServerRequest::EnvironmentInfo),
        "environment/status" => Ok(ExecServerRequest::EnvironmentStatus),
        "environmentConfig/read" => params(given).map(ExecServerRequest::EnvironmentConfig),
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
        "fs/watchMissing" => params(given).map(ExecServerRequest::WatchMissing),
        "fs/close" => file(given, FileRequest::Close),
        "http/request" => params(given).map(ExecServerRequest::HttpRequest),
        _ => return None,
    })
}

fn file<T: serde::de::DeserializeOwned>(
    given: Option<&RawValue>,
    ask: fn(T) -> FileRequest,
) -> Result<ExecServerRequest, ErrorObject> {
    let request = ask(params(given)?);
    // Params in a list have no names, and thus no sandbox.
    let sandboxed = given.and_then(|given| serde_json::from_str::<SandboxMember>(given.get()).ok());
    read_sandbox(sandboxed.and_then(|given| given.sandbox).as_ref())
        .map(|sandbox| ExecServerRequest::File(request, sandbox))
        .map_err(|why| ErrorObject::new(INVALID_PARAMS, why))
}

/// A member that every file request may carry.
#[derive(Deserialize)]
struct SandboxMember {
    #[serde(default)]
    sandbox: Option<serde_json::Value>,
}
