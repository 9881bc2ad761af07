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
    FsReadFile(FsPathParams),
    FsWriteFile(FsWriteFileParams),
    FsCreateDirectory(FsCreateDirectoryParams),
    FsGetMetadata(FsPathParams),
    FsCanonicalize(FsPathParams),
    FsReadDirectory(FsPathParams),
    FsWalk(FsWalkParams),
    FsRemove(FsRemoveParams),
    FsCopy(FsCopyParams),
    FsOpen(FsOpenParams),
    FsReadBlock(FsReadBlockParams),
    FsClose(FsCloseParams),
    HttpRequest(HttpRequestParams),
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
        "fs/readFile" => params(given).map(Request::FsReadFile),
        "fs/writeFile" => params(given).map(Request::FsWriteFile),
        "fs/createDirectory" => params(given).map(Request::FsCreateDirectory),
        "fs/getMetadata" => params(given).map(Request::FsGetMetadata),
        "fs/canonicalize" => params(given).map(Request::FsCanonicalize),
        "fs/readDirectory" => params(given).map(Request::FsReadDirectory),
        "fs/walk" => params(given).map(Request::FsWalk),
        "fs/remove" => params(given).map(Request::FsRemove),
        "fs/copy" => params(given).map(Request::FsCopy),
        "fs/open" => params(given).map(Request::FsOpen),
        "fs/readBlock" => params(given).map(Request::FsReadBlock),
        "fs/close" => params(given).map(Request::FsClose),
        "http/request" => params(given).map(Request::HttpRequest),
        _ => return None,
    })
}
