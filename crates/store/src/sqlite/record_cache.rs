//! A cache of records: a tool call reads its secret each time, and reading the disk takes longer than many
//! tools do.
//!
//! The process owns the directory, so only its own writer changes records. The writer invalidates the cache before it
//! acknowledges a change.

use crate::StoredRecord;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Total size of the cache. When it is exceeded, the cache is cleared.
const REMEMBERED_BYTES_MAX: usize = 1 << 20;

/// Larger records are not cached.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// Approximate size of a record without its texts.
const RECORD_BYTES: usize = 200;

/// Some of the records, as in the tables.
#[derive(Default)]
pub(super) struct RecordCache(Mutex<RecordCacheState>);

#[derive(Default)]
struct RecordCacheState {
    records: HashMap<&'static str, HashMap<String, StoredRecord>>,
    bytes: usize,
    /// The number of changes: a read that began before the last one may be stale.
    age: ReadAge,
    is_closed: bool,
}

/// The time of the beginning of a read, in changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReadAge(u64);

impl RecordCache {
    /// A cached record, or the beginning of its read.
    pub(super) fn get_record(&self, kind: &str, key: &str) -> Result<StoredRecord, ReadAge> {
        let state = self.lock();
        state.records.get(kind).and_then(|of_kind| of_kind.get(key)).cloned().ok_or(state.age)
    }

    /// Caches a record, unless something has changed since its read began.
    pub(super) fn insert_record(&self, began: ReadAge, kind: &'static str, record: &StoredRecord) {
        let bytes = bytes_of(record);
        let mut state = self.lock();
        if state.is_closed || state.age != began || bytes > RECORD_BYTES_MAX {
            return;
        }
        if state.bytes + bytes > REMEMBERED_BYTES_MAX {
            state.clear();
        }
        let of_kind = state.records.entry(kind).or_default();
        let before = of_kind.insert(record.key.clone(), record.clone());
        state.bytes += bytes;
        state.bytes -= before.as_ref().map_or(0, bytes_of);
    }

    /// Invalidates a record.
    pub(super) fn remove_record(&self, kind: &str, key: &str) {
        let mut state = self.lock();
        state.age = ReadAge(state.age.0.wrapping_add(1));
        let gone = state.records.get_mut(kind).and_then(|of_kind| of_kind.remove(key));
        state.bytes -= gone.as_ref().map_or(0, bytes_of);
    }

    /// Disables the cache.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.clear();
        state.is_closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, RecordCacheState> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }
}

impl RecordCacheState {
    fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }
}

const fn bytes_of(record: &StoredRecord) -> usize {
    RECORD_BYTES + 2 * record.key.len() + record.value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, bytes: usize) -> StoredRecord {
        StoredRecord { key: key.to_owned(), value: "x".repeat(bytes), version: 1 }
    }

    fn age(remembered: &RecordCache) -> ReadAge {
        remembered.get_record("kind", "no such key").unwrap_err()
    }

    #[test]
    fn what_was_read_is_remembered_until_it_changes() {
        let remembered = RecordCache::default();
        let one = record("one", 3);
        remembered.insert_record(age(&remembered), "kind", &one);
        assert_eq!(remembered.get_record("kind", "one"), Ok(one.clone()));
        assert!(remembered.get_record("other", "one").is_err());
        let began = age(&remembered);
        remembered.remove_record("kind", "one");
        assert!(remembered.get_record("kind", "one").is_err());
        remembered.insert_record(began, "kind", &one);
        assert!(remembered.get_record("kind", "one").is_err(), "it was read before it changed");
        assert_eq!(remembered.lock().bytes, 0);
    }

    #[test]
    fn never_too_much_is_remembered_and_nothing_once_closed() {
        let remembered = RecordCache::default();
        for n in 0..100 {
            let large = record(&n.to_string(), 60 << 10);
            remembered.insert_record(age(&remembered), "kind", &large);
            remembered.insert_record(age(&remembered), "kind", &large);
            assert!(remembered.get_record("kind", &large.key).is_ok());
            let state = remembered.lock();
            let bytes: usize = state.records["kind"].values().map(bytes_of).sum();
            assert_eq!(state.bytes, bytes);
            assert!(bytes <= REMEMBERED_BYTES_MAX);
        }
        remembered.insert_record(age(&remembered), "kind", &record("huge", RECORD_BYTES_MAX));
        assert!(remembered.get_record("kind", "huge").is_err());
        remembered.close();
        remembered.insert_record(age(&remembered), "kind", &record("one", 1));
        assert!(remembered.get_record("kind", "one").is_err());
    }
}
