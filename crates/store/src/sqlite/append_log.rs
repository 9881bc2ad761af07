//! Append files: executions that ended in their first append, until they are inserted into the tables.
//!
//! An insertion touches a page of every table and index, and writes them all to the log. Appending to a file
//! is one write, which survives a crash of the process as well: most small programs are acknowledged then, and inserted
//! some milliseconds later, many in one transaction. Those that remain after a crash are inserted when the store is opened.
//!
//! There are two files: one accepts new executions while those in the other are being inserted.

use super::mark::{FoundTail, StoreMark, TailPosition};
use super::rendered::{RenderedEntries, array, length_prefixed_text};
use super::seal::RowChecksum;
use crate::StoreError;
use lifecycle::ExecutionId;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use uuid::Uuid;

/// Maximum size of each file. Further executions are inserted immediately.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Header of each execution: its length, the file's generation, and a seal.
const HEADER_BYTES: usize = 4 + 8 + 8;

pub(super) const NAMES: [&str; 2] = ["store.tail-0", "store.tail-1"];

/// An execution that ended in its first append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FinishedExecution {
    pub(super) execution: ExecutionId,
    pub(super) caller: String,
    /// All entries, from the first to the last.
    pub(super) entries: RenderedEntries,
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogFile(usize);

/// Both files.
pub(super) struct AppendLog(Mutex<AppendLogState>);

struct AppendLogState {
    halves: [AppendLogFile; 2],
    /// Records how far the files reach.
    mark: StoreMark,
    /// The file that accepts new executions.
    current: usize,
    /// An insertion failed: the files accept nothing until it succeeds.
    is_stuck: bool,
}

#[derive(Debug)]
struct AppendLogFile {
    file: File,
    /// The generation of the file, changed on each restart of it: data behind the end belongs to an earlier one.
    time: u64,
    end: u64,
    /// The number of its executions that are not inserted yet.
    n_unsorted: usize,
}

impl AppendLog {
    /// Opens both files, and returns their remaining executions; [`AppendLog::clear`] follows once those are inserted.
    pub(super) fn open(dir: &Path) -> Result<(Self, Vec<FinishedExecution>), StoreError> {
        let mut left = Vec::new();
        let mut open = |name: &str| -> Result<AppendLogFile, StoreError> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(dir.join(name))?;
            left.extend(read(&file)?);
            Ok(AppendLogFile { file, time: Uuid::new_v4().as_u64_pair().0, end: 0, n_unsorted: 0 })
        };
        let halves = [open(NAMES[0])?, open(NAMES[1])?];
        let state = AppendLogState { halves, mark: StoreMark::none(), current: 0, is_stuck: false };
        Ok((Self(Mutex::new(state)), left))
    }

    /// Clears both files. From now on the mark records how far they reach.
    pub(super) fn clear(&self, mark: StoreMark) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.mark = mark;
        (0..2).try_for_each(|half| state.begin_anew(half)).map_err(StoreError::from)
    }

    /// Writes an execution to a file. None if it must be inserted immediately.
    pub(super) fn append_execution(&self, whole: &FinishedExecution) -> Option<LogFile> {
        let mut state = self.lock();
        let current = state.current;
        if state.is_stuck {
            return None;
        }
        if !state.halves[current].append_execution(whole) {
            return None;
        }
        let AppendLogFile { time, end, .. } = state.halves[current];
        state.mark.tail_written(current, TailPosition { time, end });
        Some(LogFile(current))
    }

    /// Switches to the other file, if that is empty.
    pub(super) fn turn(&self) {
        let mut state = self.lock();
        let (current, other) = (state.current, 1 - state.current);
        if state.halves[current].end > 0 && state.halves[other].end == 0 {
            state.current = other;
            state.empty(current);
        }
    }

    /// Records that an execution of a file was inserted.
    pub(super) fn sorted(&self, LogFile(half): LogFile) {
        let mut state = self.lock();
        state.halves[half].n_unsorted -= 1;
        if half != state.current {
            state.empty(half);
        }
    }

    /// Whether executions wait for their insertion.
    pub(super) fn has_unsorted(&self) -> bool {
        self.lock().halves.iter().any(|half| half.n_unsorted > 0)
    }

    /// Sets whether an insertion failed.
    pub(super) fn set_stuck(&self, is_stuck: bool) {
        self.lock().is_stuck = is_stuck;
    }

    fn lock(&self) -> MutexGuard<'_, AppendLogState> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }
}

impl AppendLogState {
    /// Restarts a file, if all its executions are inserted.
    fn empty(&mut self, half: usize) {
        if self.halves[half].n_unsorted == 0
            && let Err(error) = self.begin_anew(half)
        {
            // It is not changed and accepts nothing; its content is in the tables, too.
            tracing::warn!(%error, "a file of executions could not be restarted");
        }
    }

    /// Restarts a file. The mark first: it must not require what is about to be overwritten.
    fn begin_anew(&mut self, half: usize) -> io::Result<()> {
        self.mark.tail_emptied(half)?;
        self.halves[half].begin_anew()
    }
}

impl AppendLogFile {
    fn append_execution(&mut self, whole: &FinishedExecution) -> bool {
        let frame = frame(self.time, whole);
        if self.end + frame.len() as u64 > FILE_BYTES_MAX {
            return false;
        }
        // An incomplete frame is invalid: the next one overwrites it.
        if self.file.write_all_at(&frame, self.end).is_err() {
            return false;
        }
        self.end += frame.len() as u64;
        self.n_unsorted += 1;
        true
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        self.file.write_all_at(&[0; HEADER_BYTES], 0)?;
        self.time = self.time.wrapping_add(1);
        self.end = 0;
        Ok(())
    }
}

fn frame(time: u64, whole: &FinishedExecution) -> Vec<u8> {
    let (caller, entries) = (whole.caller.as_bytes(), whole.entries.as_bytes());
    let mut frame = Vec::with_capacity(HEADER_BYTES + 16 + 4 + caller.len() + entries.len());
    frame.extend_from_slice(&[0; HEADER_BYTES]);
    frame.extend_from_slice(whole.execution.uuid().as_bytes());
    let caller_bytes = u32::try_from(caller.len()).unwrap_or(u32::MAX);
    frame.extend_from_slice(&caller_bytes.to_le_bytes());
    frame.extend_from_slice(caller);
    frame.extend_from_slice(entries);
    let length = u32::try_from(frame.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    let seal = seal(time, &frame[HEADER_BYTES..]);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..12].copy_from_slice(&time.to_le_bytes());
    frame[12..HEADER_BYTES].copy_from_slice(&seal.to_le_bytes());
    frame
}

fn seal(time: u64, payload: &[u8]) -> i64 {
    RowChecksum::new().int(time.cast_signed()).bytes(payload).done()
}

/// The executions at the beginning of a file, all of one generation.
fn read(file: &File) -> io::Result<Vec<FinishedExecution>> {
    Ok(sound(&bytes_of(file)?).1)
}

/// All valid executions in both files, also behind damaged ones: every byte may be the start of one.
pub(super) fn salvage(dir: &Path) -> io::Result<Vec<FinishedExecution>> {
    let mut found = vec![];
    for name in NAMES {
        let bytes = match File::open(dir.join(name)) {
            Ok(file) => bytes_of(&file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let (mut rest, mut time) = (&bytes[..], None);
        while !rest.is_empty() {
            let mut tried = rest;
            match next(&mut tried) {
                // Data behind the end belongs to an earlier generation, which was inserted.
                Some((of, whole)) if *time.get_or_insert(of) == of => {
                    found.push(whole);
                    rest = tried;
                }
                Some(_) => break,
                None => rest = &rest[1..],
            }
        }
    }
    Ok(found)
}

/// How far both files of a data directory reach.
pub(super) fn find(dir: &Path) -> io::Result<[FoundTail; 2]> {
    let mut found = [FoundTail::default(); 2];
    for (name, found) in NAMES.iter().zip(&mut found) {
        match File::open(dir.join(name)) {
            Ok(file) => *found = sound(&bytes_of(&file)?).0,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn bytes_of(file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(FILE_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The executions at the beginning of these bytes, all of one generation.
pub(super) fn decode(bytes: &[u8]) -> Vec<FinishedExecution> {
    sound(bytes).1
}

/// The valid frames of one generation at the beginning of a file: their end, and their content.
fn sound(bytes: &[u8]) -> (FoundTail, Vec<FinishedExecution>) {
    let (mut rest, mut end, mut time, mut found) = (bytes, 0, None, Vec::new());
    while let Some((of, whole)) = next(&mut rest)
        && *time.get_or_insert(of) == of
    {
        found.push(whole);
        end = (bytes.len() - rest.len()) as u64;
    }
    (FoundTail { time, end }, found)
}

fn next(rest: &mut &[u8]) -> Option<(u64, FinishedExecution)> {
    let length = u32::from_le_bytes(array(rest)?);
    let time = u64::from_le_bytes(array(rest)?);
    let sealed = i64::from_le_bytes(array(rest)?);
    let payload = rest.split_off(..usize::try_from(length).ok()?)?;
    if seal(time, payload) != sealed {
        return None;
    }
    Some((time, whole(payload)?))
}

/// Decodes an execution from the bytes behind its header.
pub(super) fn whole(mut rest: &[u8]) -> Option<FinishedExecution> {
    let execution = ExecutionId::from_uuid(Uuid::from_bytes(array(&mut rest)?));
    let caller = length_prefixed_text(&mut rest)?.to_owned();
    let entries = RenderedEntries::kept(rest.to_vec());
    entries.is_sound().then_some(FinishedExecution { execution, caller, entries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{Entry, Event, InputIndex, LogLevel, OutputMark, Seq, Timestamp};

    fn whole(n: u8) -> FinishedExecution {
        let execution = ExecutionId::from_uuid(Uuid::from_bytes([n; 16]));
        FinishedExecution { execution, caller: "ann".into(), entries: entries(&format!("{n:03}")) }
    }

    fn entries(line: &str) -> RenderedEntries {
        let mut rendered = RenderedEntries::default();
        let mark = OutputMark { input: InputIndex(0), ordinal: 1 };
        let event = Event::Logged { mark, level: LogLevel::Log, line: line.into() };
        for at in 0..3 {
            let entry = Entry { seq: Seq(1), at: Timestamp(at), event: event.clone() };
            rendered.push(&entry).unwrap();
        }
        rendered
    }

    fn left(dir: &Path) -> Vec<FinishedExecution> {
        AppendLog::open(dir).unwrap().1
    }

    #[test]
    fn what_is_kept_is_found_again_until_it_is_sorted_in() {
        let dir = tempfile::tempdir().unwrap();
        let (tail, nothing) = AppendLog::open(dir.path()).unwrap();
        assert_eq!(nothing, []);
        let first = tail.append_execution(&whole(1)).unwrap();
        let second = tail.append_execution(&whole(2)).unwrap();
        assert_eq!(left(dir.path()), [whole(1), whole(2)]);
        tail.turn();
        let third = tail.append_execution(&whole(3)).unwrap();
        assert_eq!(left(dir.path()), [whole(1), whole(2), whole(3)]);
        tail.sorted(first);
        assert_eq!(left(dir.path()).len(), 3, "the file is begun anew as a whole");
        tail.sorted(second);
        assert_eq!(left(dir.path()), [whole(3)]);
        tail.turn();
        tail.sorted(third);
        assert_eq!(left(dir.path()), []);
        assert!(!tail.has_unsorted());
    }

    #[test]
    fn what_lies_behind_the_end_is_of_an_earlier_time() {
        let dir = tempfile::tempdir().unwrap();
        let (tail, _) = AppendLog::open(dir.path()).unwrap();
        let which: Vec<_> = (1..=3).map(|n| tail.append_execution(&whole(n)).unwrap()).collect();
        tail.turn();
        which.into_iter().for_each(|which| tail.sorted(which));
        tail.turn();
        // As long as the previous one at that place: what follows it looks complete.
        tail.append_execution(&whole(4)).unwrap();
        tail.turn();
        tail.append_execution(&whole(5)).unwrap();
        let mut found = left(dir.path());
        found.sort_by_key(|whole| whole.execution.uuid());
        assert_eq!(found, [whole(4), whole(5)]);
    }

    #[test]
    fn a_flipped_bit_or_a_torn_end_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (tail, _) = AppendLog::open(dir.path()).unwrap();
        tail.append_execution(&whole(1)).unwrap();
        tail.append_execution(&whole(2)).unwrap();
        let path = dir.path().join(NAMES[0]);
        let bytes = std::fs::read(&path).unwrap();
        let length = bytes.len() / 2;
        for at in length..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            std::fs::write(&path, flipped).unwrap();
            assert_eq!(left(dir.path()), [whole(1)], "byte {at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(left(dir.path()), [whole(1)], "cut at {at}");
        }
    }

    #[test]
    fn a_full_file_and_one_that_is_stuck_take_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (tail, _) = AppendLog::open(dir.path()).unwrap();
        let large = FinishedExecution { entries: entries(&"x".repeat(200 << 10)), ..whole(1) };
        assert!(tail.append_execution(&large).is_some());
        assert!(tail.append_execution(&large).is_none());
        assert!(tail.append_execution(&whole(2)).is_some());
        tail.set_stuck(true);
        assert!(tail.append_execution(&whole(3)).is_none());
    }
}
