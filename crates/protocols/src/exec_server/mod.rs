//! exec-server: starts and controls processes over JSON-RPC, in the dialects of the seed's clients and of
//! today's codex.

mod chunk;
mod dialect;
mod environment;
mod files;
mod http;
mod inbound;
mod outbound;
mod sandbox;
mod terminals;
mod uri;
mod wire;

#[cfg(test)]
mod tests;

pub use chunk::ByteChunk;
pub use dialect::ExecServerDialect;
pub use environment::{EnvPolicy, EnvironmentBase, environment, is_secret};
pub use files::*;
pub use http::*;
pub use inbound::{
    ExecServerRequest, FileRequest, MethodFamily, family, has_too_many_values, read,
};
pub use outbound::{closed_line, exited_line, output_line, quoted, repaint_line};
pub use sandbox::{
    FileSystemPlace, NetworkReach, PlaceAccess, PlainSandbox, RequestedSandbox, SandboxConfines,
    read_sandbox,
};
pub use terminals::*;
pub use uri::{BadPath, path_of, uri_of};
pub use wire::*;

/// The largest message, which is a line or a frame of several parts.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The largest part of a message.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// The id of an error that belongs to no request.
pub const NOBODY: crate::json_rpc::RpcId = crate::json_rpc::RpcId::Number(-1);

/// Another connection cannot resume a session that is in use.
pub const SESSION_ATTACHED: i64 = -32_010;

/// The file does not exist.
pub const NOT_FOUND: i64 = -32_004;
