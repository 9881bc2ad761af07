//! `fs/*`: files of the machine that the server runs on. Paths are `file:` URIs or absolute.

use super::ByteChunk;
use serde::{Deserialize, Serialize};

const fn yes() -> bool {
    true
}

/// `fs/readFile`, `fs/getMetadata`, `fs/canonicalize`, `fs/readDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsPathParams {
    /// Which file.
    pub path: String,
    /// Whether a symbolic link on the way is followed.
    #[serde(default)]
    pub follow_symlinks: Option<bool>,
}

/// `fs/writeFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteFileParams {
    /// Which file.
    pub path: String,
    /// What it shall hold, as base64.
    pub data_base64: String,
}

/// `fs/createDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateDirectoryParams {
    /// Which folder.
    pub path: String,
    /// Whether those above it are made, too.
    #[serde(default)]
    pub recursive: Option<bool>,
}

/// `fs/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsRemoveParams {
    /// What.
    pub path: String,
    /// Whether a folder goes with all it holds.
    #[serde(default)]
    pub recursive: Option<bool>,
    /// Whether it is fine if it does not exist.
    #[serde(default)]
    pub force: Option<bool>,
}

/// `fs/copy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    /// From where.
    pub source_path: String,
    /// To where.
    pub destination_path: String,
    /// Whether a folder goes with all it holds.
    #[serde(default)]
    pub recursive: bool,
}

/// `fs/walk`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkParams {
    /// From where.
    pub path: String,
    /// How far.
    pub options: FsWalkOptions,
}

/// How far to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWalkOptions {
    /// Levels below the first folder.
    pub max_depth: usize,
    /// Folders to look into.
    pub max_directories: usize,
    /// Entries to tell.
    pub max_entries: usize,
    /// Whether folders behind links are looked into.
    pub follow_directory_symlinks: bool,
    /// Whether folders whose name begins with a dot are passed by.
    #[serde(default)]
    pub prune_hidden_directories: bool,
}

/// `fs/open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenParams {
    /// What the client calls it.
    pub handle_id: String,
    /// Which file.
    pub path: String,
    /// What for.
    #[serde(default)]
    pub mode: FsOpenMode,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FsOpenMode {
    /// To be read.
    #[default]
    Read,
    /// To be written from nothing; it is made where there is none.
    Replace,
}

/// `fs/writeBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteBlockParams {
    /// To which open file.
    pub handle_id: String,
    /// Where.
    pub offset: u64,
    /// What.
    pub chunk: ByteChunk,
}

/// `fs/watchMissing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchMissingParams {
    /// Larger than that of any watch before; this one takes its place.
    pub watch_id: u64,
    /// What does not exist yet.
    pub missing: Vec<String>,
    /// What does, and may change or go.
    #[serde(default)]
    pub present: Option<String>,
}

/// What `fs/watchMissing` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWatchMissingResponse {
    /// False where it is too late: something is otherwise already.
    pub watching: bool,
}

/// `fs/missingChanged`: told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsMissingChanged {
    /// Of which watch.
    pub watch_id: u64,
}

/// `fs/readBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsReadBlockParams {
    /// Of which open file.
    pub handle_id: String,
    /// From where.
    pub offset: u64,
    /// How much.
    pub len: usize,
}

/// `fs/close`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCloseParams {
    /// Which open file.
    pub handle_id: String,
}

/// What `fs/readFile` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileResponse {
    /// What the file holds.
    pub data_base64: ByteChunk,
}

/// What `fs/getMetadata` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataResponse {
    /// Behind a link, too.
    pub is_directory: bool,
    /// Behind a link, too.
    pub is_file: bool,
    /// Whether the path itself is a link.
    pub is_symlink: bool,
    /// In bytes.
    pub size: u64,
    /// Zero where it is not known.
    pub created_at_ms: i64,
    /// Zero where it is not known.
    pub modified_at_ms: i64,
}

/// What `fs/canonicalize` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsCanonicalizeResponse {
    /// The same file without links.
    pub path: String,
}

/// What `fs/readDirectory` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsReadDirectoryResponse {
    /// In no order.
    pub entries: Vec<FsDirectoryEntry>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsDirectoryEntry {
    /// Its name.
    pub file_name: String,
    /// Behind a link, too.
    pub is_directory: bool,
    /// Behind a link, too.
    pub is_file: bool,
}

/// What `fs/walk` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkResponse {
    /// Level by level.
    pub entries: Vec<FsWalkEntry>,
    /// What could not be looked at.
    pub errors: Vec<FsWalkError>,
    /// Whether there is more.
    pub truncated: bool,
}

/// Something met on a walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkEntry {
    /// Where.
    pub path: String,
    /// `file`, `directory` or `symlink`.
    pub kind: String,
}

/// Something that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkError {
    /// Where.
    pub path: String,
    /// Why not.
    pub message: String,
}

/// What `fs/open` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenResponse {
    /// What the client calls it.
    pub handle_id: String,
}

/// What `fs/readBlock` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsReadBlockResponse {
    /// What is there.
    pub chunk: ByteChunk,
    /// Whether there is no more.
    pub eof: bool,
}

/// The default of a member that is on unless said otherwise.
pub fn on(given: Option<bool>) -> bool {
    given.unwrap_or_else(yes)
}
