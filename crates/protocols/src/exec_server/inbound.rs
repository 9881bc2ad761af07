//! From a method and its params to a request that makes sense.

use super::{
    ExecParams, FsCloseParams, FsCopyParams, FsCreateDirectoryParams, FsOpenParams, FsPathParams,
    FsReadBlockParams, FsRemoveParams, FsWalkParams, FsWriteFileParams, HttpRequestParams,
    InitializeParams, ProcessParams, ReadParams, ResizeParams, SignalParams, TerminateParams,
    WaitParams, WriteParams,
};
use crate::json_rpc::{ErrorObject, params};
use serde_json::value::RawValue;

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
    ProcessList,
    EnvironmentInfo,
    EnvironmentStatus,
    File(FileRequest),
    HttpRequest(HttpRequestParams),
}

/// What can be asked about files.
#[derive(Debug, Clone, PartialEq, Eq)]
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
            Self::Files => "filesystem",
            Self::Http => "http",
        }
    }
}

const METHODS: [(&str, Family); 25] = [
    ("initialize", Family::Handshake),
    ("process/start", Family::Exec),
    ("process/read", Family::Exec),
    ("process/write", Family::Exec),
    ("process/terminate", Family::Exec),
    ("process/signal", Family::Exec),
    ("process/resize", Family::Exec),
    ("process/closeStdin", Family::Exec),
    ("process/wait", Family::Exec),
    ("process/list", Family::Exec),
    ("environment/info", Family::Environment),
    ("environment/status", Family::Environment),
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
        "process/list" => Ok(Request::ProcessList),
        "environment/info" => Ok(Request::EnvironmentInfo),
        "environment/status" => Ok(Request::EnvironmentStatus),
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
        "fs/close" => file(given, FileRequest::Close),
        "http/request" => params(given).map(Request::HttpRequest),
        _ => return None,
    })
}

fn file<T: serde::de::DeserializeOwned>(
    given: Option<&RawValue>,
    ask: fn(T) -> FileRequest,
) -> Result<Request, ErrorObject> {
    params(given).map(|params| Request::File(ask(params)))
}
