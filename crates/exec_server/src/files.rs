//! `fs/*`, performed in sequence: a client that writes a file and then reads it finds what it wrote.

use super::caged_files;
use super::outbox::{REQUESTS_MAX, RequestReply};
use processes::{ProcessCage, ProcessSpawner};
use protocols::exec_server::{
    ByteChunk, FileRequest, FsCanonicalizeResponse, FsCopyParams, FsDirectoryEntry,
    FsGetMetadataResponse, FsOpenMode, FsOpenParams, FsOpenResponse, FsPathParams,
    FsReadBlockParams, FsReadBlockResponse, FsReadDirectoryResponse, FsReadFileResponse,
    FsRemoveParams, FsWalkEntry, FsWalkError, FsWalkParams, FsWalkResponse, FsWriteBlockParams,
    NOT_FOUND, on, path_of, uri_of,
};
use protocols::json_rpc::{ErrorObject, INTERNAL, INVALID_PARAMS, INVALID_REQUEST};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// Maximum size of a file that is read in one request.
pub(super) const FILE_BYTES_MAX: u64 = 512 << 20;
/// Maximum number of entries that a listing of one folder returns.
const ENTRIES_MAX: usize = 50_000;
/// Maximum depth of a walk; larger requested depths are reduced to it.
const DEPTH_MAX: usize = 64;
const DIRECTORIES_MAX: usize = 10_000;
/// Approximate maximum length of a walk's answer.
const WALK_BYTES_MAX: usize = 4 << 20;
/// Maximum number of open files of one connection.
const HANDLES_MAX: usize = 128;
const HANDLE_ID_BYTES_MAX: usize = 32;
/// Maximum size of one block read from an open file.
const BLOCK_BYTES_MAX: usize = 1 << 20;

pub(super) type FileResult = Result<Value, ErrorObject>;

/// The queue in which the file requests of one connection wait for each other.
pub(super) struct FileQueue(mpsc::Sender<FileJob>);

/// The request, its cage, and the handle for its reply.
type FileJob = (FileRequest, Option<ProcessCage>, RequestReply);

impl FileQueue {
    pub(super) fn open(tasks: &TaskTracker, processes: ProcessSpawner) -> Self {
        let (sender, mut orders) = mpsc::channel::<FileJob>(REQUESTS_MAX);
        tasks.spawn(async move {
            let mut handles = FileHandles::default();
            let mut worker = caged_files::FileWorker::new(processes.clone());
            while let Some((request, cage, reply)) = orders.recv().await {
                if let Some(cage) = cage {
                    reply.give(caged_files::perform_request(&processes, cage, &request).await);
                    continue;
                }
                // This process can see its own files, which clients must not see.
                if processes.protects_every_program() {
                    reply.give(worker.perform_in_worker(&request).await);
                    continue;
                }
                let working = tokio::task::spawn_blocking(move || {
                    let done = run_file_request(request, &mut handles);
                    (done, handles)
                });
                match working.await {
                    Ok((done, back)) => {
                        handles = back;
                        reply.give(done);
                    }
                    Err(_) => {
                        handles = FileHandles::default();
                        reply.fail(&ErrorObject::new(INTERNAL, "the request broke on our side"));
                    }
                }
            }
        });
        Self(sender)
    }

    pub(super) fn order(
        &self,
        request: FileRequest,
        cage: Option<ProcessCage>,
        reply: RequestReply,
    ) {
        // There are never more queued jobs than requests.
        let ordered = self.0.try_send((request, cage, reply));
        if let Err(mpsc::error::TrySendError::Full((.., reply))) = ordered {
            reply.fail(&ErrorObject::new(INTERNAL, "too many file requests are waiting"));
        }
    }
}

#[derive(Default)]
pub(super) struct FileHandles(HashMap<String, File>);

pub(super) fn run_file_request(request: FileRequest, handles: &mut FileHandles) -> FileResult {
    match request {
        FileRequest::ReadFile(params) => read_file(&params),
        FileRequest::WriteFile(params) => {
            let data = ByteChunk::parse(&params.data_base64).ok_or_else(|| {
                ErrorObject::new(INVALID_REQUEST, "fs/writeFile requires valid base64 dataBase64")
            })?;
            fs::write(path(&params.path)?, data.0).map_err(failed)?;
            Ok(json!({}))
        }
        FileRequest::CreateDirectory(params) => {
            let path = path(&params.path)?;
            match on(params.recursive) {
                true => fs::create_dir_all(path),
                false => fs::create_dir(path),
            }
            .map_err(failed)?;
            Ok(json!({}))
        }
        FileRequest::GetMetadata(params) => metadata(&params),
        FileRequest::Canonicalize(params) => {
            let path = fs::canonicalize(path(&params.path)?).map_err(failed)?;
            said(&FsCanonicalizeResponse { path: uri_of(&path) })
        }
        FileRequest::ReadDirectory(params) => read_directory(&path(&params.path)?),
        FileRequest::Walk(params) => walk(&params),
        FileRequest::Remove(params) => remove(&params),
        FileRequest::Copy(params) => copy(&params),
        FileRequest::Open(params) => handles.open(params),
        FileRequest::ReadBlock(params) => handles.read(&params),
        FileRequest::WriteBlock(params) => handles.write(&params),
        FileRequest::Close(params) => {
            handles.0.remove(&params.handle_id);
            Ok(json!({}))
        }
    }
}

fn said<T: serde::Serialize>(response: &T) -> FileResult {
    serde_json::to_value(response)
        .map_err(|_| ErrorObject::new(INTERNAL, "the answer cannot be encoded"))
}

fn path(text: &str) -> Result<PathBuf, ErrorObject> {
    path_of(text).map_err(|bad| ErrorObject::new(INVALID_PARAMS, bad.to_string()))
}

/// Errors that the client caused.
const NOT_ALLOWED: [io::ErrorKind; 3] = [
    io::ErrorKind::InvalidInput,
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::ReadOnlyFilesystem,
];

fn failed(error: io::Error) -> ErrorObject {
    let kind = error.kind();
    let code = if kind == io::ErrorKind::NotFound {
        NOT_FOUND
    } else if NOT_ALLOWED.contains(&kind) {
        INVALID_REQUEST
    } else {
        INTERNAL
    };
    ErrorObject::new(code, error.to_string())
}

fn invalid(text: impl Into<String>) -> ErrorObject {
    ErrorObject::new(INVALID_REQUEST, text)
}

/// Refuses a path that contains a symbolic link in any component.
fn without_links(path: &Path) -> Result<(), ErrorObject> {
    for part in path.ancestors() {
        if fs::symlink_metadata(part).is_ok_and(|found| found.is_symlink()) {
            return Err(invalid("path contains a symbolic link"));
        }
    }
    Ok(())
}

/// Opens a regular file; opening a pipe or a terminal could block.
fn open_file(path: &Path, mode: FsOpenMode) -> Result<File, ErrorObject> {
    let mut options = File::options();
    match mode {
        FsOpenMode::Read => options.read(true),
        FsOpenMode::Replace => options.write(true).create(true).truncate(true),
    };
    let file = options.custom_flags(O_NONBLOCK).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(invalid(format!("path `{}` is not a file", path.display())));
    }
    Ok(file)
}

/// With this flag, opening a pipe that has no writer returns immediately.
const O_NONBLOCK: i32 = 0o4000;

fn read_file(params: &FsPathParams) -> FileResult {
    let path = path(&params.path)?;
    if !on(params.follow_symlinks) {
        without_links(&path)?;
    }
    let file = open_file(&path, FsOpenMode::Read)?;
    if file.metadata().map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(invalid(format!("a request reads files of at most {FILE_BYTES_MAX} bytes")));
    }
    let mut bytes = vec![];
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    said(&FsReadFileResponse { data_base64: ByteChunk(bytes) })
}

fn metadata(params: &FsPathParams) -> FileResult {
    let path = path(&params.path)?;
    if !on(params.follow_symlinks) {
        without_links(&path)?;
    }
    let is_symlink = fs::symlink_metadata(&path).map_err(failed)?.is_symlink();
    let found = fs::metadata(&path).map_err(failed)?;
    said(&FsGetMetadataResponse {
        is_directory: found.is_dir(),
        is_file: found.is_file(),
        is_symlink,
        size: found.len(),
        created_at_ms: milliseconds(found.created()),
        modified_at_ms: milliseconds(found.modified()),
    })
}

fn milliseconds(time: io::Result<SystemTime>) -> i64 {
    let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

fn read_directory(path: &Path) -> FileResult {
    let mut entries = vec![];
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Dangling links are omitted.
        let Ok(found) = fs::metadata(entry.path()) else { continue };
        if entries.len() == ENTRIES_MAX {
            let text = format!("a folder of more than {ENTRIES_MAX} entries is not listed");
            return Err(ErrorObject::new(INTERNAL, text));
        }
        entries.push(FsDirectoryEntry {
            file_name: entry.file_name().to_string_lossy().into_owned(),
            is_directory: found.is_dir(),
            is_file: found.is_file(),
        });
    }
    said(&FsReadDirectoryResponse { entries })
}

/// Walks breadth-first; each folder is sorted by name.
fn walk(params: &FsWalkParams) -> FileResult {
    let options = params.options;
    let mut answer = FsWalkResponse { entries: vec![], errors: vec![], truncated: false };
    let mut folders = VecDeque::from([(path(&params.path)?, 0)]);
    let (mut n_folders, mut n_bytes) = (0, 0);
    while let Some((folder, depth)) = folders.pop_front() {
        if n_folders == options.max_directories.min(DIRECTORIES_MAX) {
            answer.truncated = true;
            break;
        }
        n_folders += 1;
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(failed(error)),
            Err(error) => {
                let path = uri_of(&folder);
                answer.errors.push(FsWalkError { path, message: error.to_string() });
                continue;
            }
        };
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).take(ENTRIES_MAX).collect();
        paths.sort();
        for path in paths {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            let Some(kind) = kind(&path, &found, options.follow_directory_symlinks) else {
                continue;
            };
            let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            if kind == "directory" && is_hidden && options.prune_hidden_directories {
                continue;
            }
            let uri = uri_of(&path);
            n_bytes += uri.len() + 32;
            let is_full = answer.entries.len() == options.max_entries.min(ENTRIES_MAX);
            if is_full || n_bytes > WALK_BYTES_MAX {
                answer.truncated = true;
                return said(&answer);
            }
            answer.entries.push(FsWalkEntry { path: uri, kind: kind.into() });
            if kind == "directory" && depth + 1 < options.max_depth.min(DEPTH_MAX) {
                folders.push_back((path, depth + 1));
            }
        }
    }
    said(&answer)
}

/// Links are skipped, except those to folders if the request follows links.
fn kind(path: &Path, found: &Metadata, follows: bool) -> Option<&'static str> {
    if found.is_dir() {
        Some("directory")
    } else if found.is_file() {
        Some("file")
    } else if follows && found.is_symlink() && path.is_dir() {
        Some("directory")
    } else {
        None
    }
}

fn remove(params: &FsRemoveParams) -> FileResult {
    let path = path(&params.path)?;
    let removed = fs::symlink_metadata(&path).and_then(|found| {
        match (found.is_dir(), on(params.recursive)) {
            (true, true) => fs::remove_dir_all(&path),
            (true, false) => fs::remove_dir(&path),
            (false, _) => fs::remove_file(&path),
        }
    });
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound && on(params.force) => {}
        removed => removed.map_err(failed)?,
    }
    Ok(json!({}))
}

fn copy(params: &FsCopyParams) -> FileResult {
    let (from, to) = (path(&params.source_path)?, path(&params.destination_path)?);
    let found = fs::symlink_metadata(&from).map_err(failed)?;
    if found.is_dir() {
        if !params.recursive {
            return Err(invalid("fs/copy requires recursive: true when sourcePath is a directory"));
        }
        let real = fs::canonicalize(&from).map_err(failed)?;
        let parent = to.ancestors().find_map(|part| fs::canonicalize(part).ok());
        if to.starts_with(&from) || parent.is_some_and(|parent| parent.starts_with(&real)) {
            let text = "fs/copy cannot copy a directory to itself or one of its descendants";
            return Err(invalid(text));
        }
        copy_folder(&from, &to, 0)?;
    } else if found.is_symlink() {
        let target = fs::read_link(&from).map_err(failed)?;
        std::os::unix::fs::symlink(target, &to).map_err(failed)?;
    } else {
        fs::copy(&from, &to).map_err(failed)?;
    }
    Ok(json!({}))
}

fn copy_folder(from: &Path, to: &Path, depth: usize) -> Result<(), ErrorObject> {
    if depth > DEPTH_MAX {
        return Err(invalid(format!("folders are copied at most {DEPTH_MAX} deep")));
    }
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let found = entry.file_type().map_err(failed)?;
        if found.is_dir() {
            copy_folder(&source, &target, depth + 1)?;
        } else if found.is_symlink() {
            let link = fs::read_link(&source).map_err(failed)?;
            std::os::unix::fs::symlink(link, &target).map_err(failed)?;
        } else if found.is_file() {
            fs::copy(&source, &target).map_err(failed)?;
        }
    }
    Ok(())
}

impl FileHandles {
    fn open(&mut self, params: FsOpenParams) -> FileResult {
        let id = params.handle_id;
        if id.len() > HANDLE_ID_BYTES_MAX {
            let text = format!("file handle ID must not exceed {HANDLE_ID_BYTES_MAX} bytes");
            return Err(invalid(text));
        }
        if self.0.contains_key(&id) {
            return Err(invalid(format!("file handle `{id}` already exists")));
        }
        if self.0.len() == HANDLES_MAX {
            return Err(invalid(format!("at most {HANDLES_MAX} files are open at a time")));
        }
        let file = open_file(&path(&params.path)?, params.mode)?;
        self.0.insert(id.clone(), file);
        said(&FsOpenResponse { handle_id: id })
    }

    fn file(&self, id: &str) -> Result<&File, ErrorObject> {
        let unknown = || ErrorObject::new(NOT_FOUND, format!("unknown file handle `{id}`"));
        self.0.get(id).ok_or_else(unknown)
    }

    fn write(&mut self, params: &FsWriteBlockParams) -> FileResult {
        let file = self.file(&params.handle_id)?;
        if params.chunk.0.len() > BLOCK_BYTES_MAX {
            let text = format!("file write block must have {BLOCK_BYTES_MAX} bytes at most");
            return Err(invalid(text));
        }
        match file.write_all_at(&params.chunk.0, params.offset) {
            Ok(()) => Ok(json!({})),
            Err(error) => {
                self.0.remove(&params.handle_id);
                Err(failed(error))
            }
        }
    }

    fn read(&mut self, params: &FsReadBlockParams) -> FileResult {
        let id = &params.handle_id;
        let file = self.file(id)?;
        if params.len == 0 || params.len > BLOCK_BYTES_MAX {
            let text = format!("file read block length must be between 1 and {BLOCK_BYTES_MAX}");
            return Err(invalid(text));
        }
        match block(file, params) {
            Ok(response) => said(&response),
            Err(error) => {
                self.0.remove(id);
                Err(failed(error))
            }
        }
    }
}

fn block(file: &File, params: &FsReadBlockParams) -> io::Result<FsReadBlockResponse> {
    let mut bytes = vec![0; params.len];
    let mut n = 0;
    while n < bytes.len() {
        match file.read_at(&mut bytes[n..], params.offset + n as u64)? {
            0 => break,
            more => n += more,
        }
    }
    bytes.truncate(n);
    let eof = n < params.len || params.offset + n as u64 >= file.metadata()?.len();
    Ok(FsReadBlockResponse { chunk: ByteChunk(bytes), eof })
}
