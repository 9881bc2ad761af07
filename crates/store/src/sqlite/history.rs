//! The identity of a database: which history it holds, how often it was opened, and whether data was lost.
//!
//! Two records of the kind `store`. Together with the mark they show whether a database was replaced by another one, or by
//! an earlier state of itself.

use super::{query, row};
use crate::{DataLoss, LossCause, StoreError, StoredRecord};
use lifecycle::Timestamp;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use uuid::Uuid;

/// The kind of both records.
pub(super) const KIND: &str = "store";

const HISTORY: &str = "history";

/// The key of the record of a loss.
pub(super) const LOSS: &str = "loss";

/// The history that a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoreHistory {
    pub(super) id: Uuid,
    /// Incremented each time the store is opened and closed.
    pub(super) epoch: u64,
}

/// The history of a database; none before format 7.
pub(super) fn read(conn: &Connection) -> Result<Option<StoreHistory>, StoreError> {
    let Some(record) = query::record(conn, KIND, HISTORY)? else { return Ok(None) };
    let value: Value = serde_json::from_str(&record.value).unwrap_or_default();
    let id = value["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    let epoch = value["epoch"].as_u64();
    match (id, epoch) {
        (Some(id), Some(epoch)) => Ok(Some(StoreHistory { id, epoch })),
        _ => Err(super::trouble::damaged("a record of the store's history that makes no sense")),
    }
}

/// Writes the history and, if there is one, the loss, in one synced transaction.
pub(super) fn write(
    conn: &Connection,
    history: StoreHistory,
    loss: Option<&DataLoss>,
) -> Result<(), StoreError> {
    let transaction = conn.unchecked_transaction()?;
    put(conn, HISTORY, &json!({ "id": history.id.to_string(), "epoch": history.epoch }))?;
    if let Some(loss) = loss {
        put(conn, LOSS, &loss_value(loss, false))?;
    }
    Ok(transaction.commit()?)
}

/// Increments the epoch and returns it; `None` if the database has no history.
pub(super) fn raise_epoch(conn: &Connection) -> Result<Option<u64>, StoreError> {
    let Some(history) = read(conn)? else { return Ok(None) };
    let epoch = history.epoch + 1;
    write(conn, StoreHistory { epoch, ..history }, None)?;
    Ok(Some(epoch))
}

/// A loss as the value of its record.
pub(super) fn loss_value(loss: &DataLoss, is_settled: bool) -> Value {
    json!({
        "cause": loss.cause.name(),
        "found": loss.found.0,
        "known_until": loss.known_until.map(|until| until.0),
        "settled": is_settled,
    })
}

/// The loss in its record, unless it was settled.
pub(super) fn open_loss(record: &StoredRecord) -> Option<DataLoss> {
    let value: Value = serde_json::from_str(&record.value).ok()?;
    let cause = LossCause::from_name(value["cause"].as_str()?)?;
    let known_until = value["known_until"].as_i64().map(Timestamp);
    let found = Timestamp(value["found"].as_i64()?);
    (value["settled"] == false).then_some(DataLoss { cause, found, known_until })
}

/// When the newest remaining entry was made: everything acknowledged up to then is present.
pub(super) fn newest_entry(conn: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let newest = "SELECT max(newest) FROM (SELECT max(at) AS newest FROM entries
                  UNION ALL SELECT max(ended) FROM executions)";
    let at: Option<i64> = conn.query_row(newest, [], |row| row.get(0))?;
    Ok(at.map(Timestamp))
}

fn put(conn: &Connection, key: &str, value: &Value) -> Result<(), StoreError> {
    let version = query::record(conn, KIND, key)?.map_or(0, |known| known.version) + 1;
    let record = StoredRecord { key: key.to_owned(), value: value.to_string(), version };
    let seal = row::record_seal(KIND, &record);
    conn.prepare_cached("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![KIND, record.key, record.value, version.cast_signed(), seal])?;
    Ok(())
}
