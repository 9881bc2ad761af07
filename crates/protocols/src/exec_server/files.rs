//! `fs/*`: files of the machine on which the server runs. Paths are `file:` URIs or absolute.

use super::ByteChunk;
use serde::{Deserialize, Serialize};

const fn yes() -> bool {
    true
}

/// Parameters of `fs/readFile`, `fs/getMetadata`, `fs/canonicalize` and `fs/readDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsPathParams {
    /// The path of the file.
    pub path: String,
    /// Whether symbolic links in the path are followed.
    #[serde(default)]
    pub follow_symlinks: Option<bool>,
}

/// Parameters of `fs/writeFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteFileParams {
    /// The path of the file.
    pub path: String,
    /// The new content, as base64.
    pub data_base64: String,
}

/// Parameters of `fs/createDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCreateDirectoryParams {
    /// The path of the folder.
    pub path: String,
    /// Whether missing parent folders are created, too.
    #[serde(default)]
    pub recursive: Option<bool>,
}

/// Parameters of `fs/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsRemoveParams {
    /// The path to remove.
    pub path: String,
    /// Whether a folder is removed with its content.
    #[serde(default)]
    pub recursive: Option<bool>,
    /// Whether a missing path is no error.
    #[serde(default)]
    pub force: Option<bool>,
}

/// Parameters of `fs/copy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    /// The path to copy from.
    pub source_path: String,
    /// The path to copy to.
    pub destination_path: String,
    /// Whether a folder is copied with its content.
    #[serde(default)]
    pub recursive: bool,
}

/// Parameters of `fs/walk`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkParams {
    /// The folder where the walk begins.
    pub path: String,
    /// The limits of the walk.
    pub options: FsWalkOptions,
}

/// The limits of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWalkOptions {
    /// Limit of levels below the first folder.
    pub max_depth: usize,
    /// Limit of folders to read.
    pub max_directories: usize,
    /// Limit of entries to return.
    pub max_entries: usize,
    /// Whether folders behind symbolic links are read.
    pub follow_directory_symlinks: bool,
    /// Whether folders whose name begins with a dot are skipped.
    #[serde(default)]
    pub prune_hidden_directories: bool,
}

/// Parameters of `fs/open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenParams {
    /// The client's id for the open file.
    pub handle_id: String,
    /// The path of the file.
    pub path: String,
    /// The access mode.
    #[serde(default)]
    pub mode: FsOpenMode,
}

/// The access mode of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FsOpenMode {
    /// For reading.
    #[default]
    Read,
    /// For writing a new file, or replacing an existing one.
    Replace,
}

/// Parameters of `fs/writeBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWriteBlockParams {
    /// The id of the open file.
    pub handle_id: String,
    /// The offset in the file.
    pub offset: u64,
    /// The bytes to write.
    pub chunk: ByteChunk,
}

/// Parameters of `fs/watchMissing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsWatchMissingParams {
    /// Larger than the id of any earlier watch, which this one replaces.
    pub watch_id: u64,
    /// Paths that do not exist yet.
    pub missing: Vec<String>,
    /// Paths that exist, and may change or disappear.
    #[serde(default)]
    pub present: Option<String>,
}

/// The result of `fs/watchMissing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWatchMissingResponse {
    /// False if a path has already changed.
    pub watching: bool,
}

/// Parameters of the notification `fs/missingChanged`, which is sent once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsMissingChanged {
    /// The id of the watch.
    pub watch_id: u64,
}

/// Parameters of `fs/readBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsReadBlockParams {
    /// The id of the open file.
    pub handle_id: String,
    /// The offset in the file.
    pub offset: u64,
    /// The number of bytes to read.
    pub len: usize,
}

/// Parameters of `fs/close`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsCloseParams {
    /// The id of the open file.
    pub handle_id: String,
}

/// The result of `fs/readFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsReadFileResponse {
    /// The content of the file.
    pub data_base64: ByteChunk,
}

/// The result of `fs/getMetadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataResponse {
    /// Whether it is a folder, or a link to one.
    pub is_directory: bool,
    /// Whether it is a file, or a link to one.
    pub is_file: bool,
    /// Whether the path itself is a link.
    pub is_symlink: bool,
    /// The size in bytes.
    pub size: u64,
    /// Zero if it is unknown.
    pub created_at_ms: i64,
    /// Zero if it is unknown.
    pub modified_at_ms: i64,
}

/// The result of `fs/canonicalize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsCanonicalizeResponse {
    /// The canonical path, without symbolic links.
    pub path: String,
}

/// The result of `fs/readDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsReadDirectoryResponse {
    /// The entries, in no particular order.
    pub entries: Vec<FsDirectoryEntry>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsDirectoryEntry {
    /// The entry's name.
    pub file_name: String,
    /// Whether it is a folder, or a link to one.
    pub is_directory: bool,
    /// Whether it is a file, or a link to one.
    pub is_file: bool,
}

/// The result of `fs/walk`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkResponse {
    /// The entries, level by level.
    pub entries: Vec<FsWalkEntry>,
    /// Paths that could not be read.
    pub errors: Vec<FsWalkError>,
    /// Whether a limit cut off further entries.
    pub truncated: bool,
}

/// An entry found on a walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkEntry {
    /// The path of the entry.
    pub path: String,
    /// `file`, `directory` or `symlink`.
    pub kind: String,
}

/// A path that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsWalkError {
    /// The path.
    pub path: String,
    /// The error message.
    pub message: String,
}

/// The result of `fs/open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsOpenResponse {
    /// The client's id for the open file.
    pub handle_id: String,
}

/// The result of `fs/readBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsReadBlockResponse {
    /// The bytes that were read.
    pub chunk: ByteChunk,
    /// Whether the end of the file was reached.
    pub eof: bool,
}

/// The value of a member whose default is true.
pub fn on(given: Option<bool>) -> bool {
    given.unwrap_or_else(yes)
}
