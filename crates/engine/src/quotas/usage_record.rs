//! Processor time of the last hour, stored across restarts: no journal contains it.

use super::QuotaBook;
use crate::fault::Fault;
use lifecycle::CallerName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{RecordStore, StoreError};

const KIND: &str = "quota";

/// One server has one store.
const KEY: &str = "cpu_usage";

/// Maximum number of callers in the record; those with the highest usage are preferred. A record has at most 1 MiB.
const CALLERS_MAX: usize = 1_000;

/// The format of the record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CpuUsageRecord {
    /// Microseconds within the last hour, counted at the time of writing.
    used_us: BTreeMap<String, u64>,
    /// When it was written, on the server's clock.
    at: i64,
}

/// Charges what a former server recorded, as of the time of the record.
pub(crate) async fn load_cpu_usage(
    book: &QuotaBook,
    records: &dyn RecordStore,
    moved: impl Fn(lifecycle::Timestamp) -> lifecycle::Timestamp,
) -> Result<(), Fault> {
    let Some(record) = records.get(KIND, KEY).await? else { return Ok(()) };
    // The server wrote it; an unreadable record costs an hour's count and no more.
    let Ok(noted) = serde_json::from_str::<CpuUsageRecord>(&record.value) else { return Ok(()) };
    let at = moved(lifecycle::Timestamp(noted.at));
    let mut tables = book.lock();
    for (caller, us) in noted.used_us {
        tables.entry(&CallerName(caller), at).usage.cpu.charge(at, us);
    }
    Ok(())
}

/// Records the usage of the last hour. Nothing is written while nothing is used.
pub(crate) async fn save_cpu_usage(
    book: &QuotaBook,
    records: &dyn RecordStore,
) -> Result<(), StoreError> {
    let now = book.clock.now();
    let windows = book.cpu_windows().into_iter();
    let mut used: Vec<_> = windows
        .map(|(caller, window)| (window.used_us(now), caller))
        .filter(|(us, _)| *us > 0)
        .collect();
    used.sort_by(|one, other| other.cmp(one));
    used.truncate(CALLERS_MAX);
    let before = records.get(KIND, KEY).await?;
    if used.is_empty() && before.is_none() {
        return Ok(());
    }
    let used_us = used.into_iter().map(|(us, caller)| (caller.0, us)).collect();
    let record = CpuUsageRecord { used_us, at: now.0 };
    let value = serde_json::to_string(&record).expect("texts and numbers can be written as JSON");
    records.put(KIND, KEY, value, before.map_or(0, |record| record.version)).await?;
    Ok(())
}
