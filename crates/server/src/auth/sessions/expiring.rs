//! Records that expire: codes, sessions, elevations and tickets. Expired ones are removed when the next is written.
//!
//! They expire by the wall clock. If the clock was set back they would be valid too long, so records written before
//! that are invalid.

use crate::auth::tokens::{TokenError, digest};
use lifecycle::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{RecordStore, StoreError};

/// One kind of record, how long a record is valid, and the maximum number of records.
#[derive(Clone, Copy)]
pub(super) struct ExpiringKind {
    pub(super) name: &'static str,
    pub(super) age_ms_max: i64,
    /// How long after its end a record is retained, to distinguish "expired" or "used" from "unknown".
    pub(super) retained_ms: i64,
    /// Above this number, the records that expire first are removed.
    pub(super) n_max: usize,
}

/// A value with the time at which it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ExpiringValue<T> {
    pub(super) expires: i64,
    /// The clock's generation when it was written; see [`engine::clock_generation`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) generation: u64,
    #[serde(flatten)]
    pub(super) value: T,
}

#[derive(Deserialize)]
struct ExpiryOnly {
    expires: i64,
}

impl<T> ExpiringValue<T> {
    /// Whether it has not expired, by a clock that was not set back since it was written.
    pub(super) const fn is_valid(&self, now: ExpiryTime) -> bool {
        self.expires > now.at.0 && self.generation == now.generation
    }
}

/// The time by which records expire.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpiryTime {
    pub(super) at: Timestamp,
    pub(super) generation: u64,
}

impl ExpiryTime {
    pub(super) async fn read(
        records: &dyn RecordStore,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        Ok(Self { at: now, generation: engine::clock_generation(records).await? })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl ExpiringKind {
    /// Writes a record under a key that is new, and returns when it ends.
    pub(super) async fn add<T: Serialize>(
        self,
        records: &dyn RecordStore,
        key: &str,
        value: T,
        now: Timestamp,
    ) -> Result<Timestamp, TokenError> {
        self.purge(records, now).await?;
        let expires = now.0.saturating_add(self.age_ms_max);
        let ExpiryTime { generation, .. } = ExpiryTime::read(records, now).await?;
        let record = ExpiringValue { expires, generation, value };
        records.put(self.name, key, to_json(&record), 0).await?;
        Ok(Timestamp(expires))
    }

    /// Returns the record under a key and its version, even if it is no longer valid.
    pub(super) async fn get<T: DeserializeOwned>(
        self,
        records: &dyn RecordStore,
        key: &str,
    ) -> Result<Option<(ExpiringValue<T>, u64)>, StoreError> {
        let Some(record) = records.get(self.name, key).await? else { return Ok(None) };
        Ok(serde_json::from_str(&record.value).ok().map(|value| (value, record.version)))
    }

    /// Returns the record under a key while it is valid.
    pub(super) async fn valid<T: DeserializeOwned>(
        self,
        records: &dyn RecordStore,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<ExpiringValue<T>>, StoreError> {
        let Some((record, _)) = self.get::<T>(records, key).await? else { return Ok(None) };
        let now = ExpiryTime::read(records, now).await?;
        Ok(record.is_valid(now).then_some(record))
    }

    /// Removes expired records and, if too many are left, those that expire first.
    async fn purge(self, records: &dyn RecordStore, now: Timestamp) -> Result<(), StoreError> {
        let mut all: Vec<_> = records
            .all(self.name)
            .await?
            .into_iter()
            .map(|record| {
                let expires = serde_json::from_str(&record.value).map(|e: ExpiryOnly| e.expires);
                let ends = expires.unwrap_or(i64::MIN).saturating_add(self.retained_ms);
                (ends, record)
            })
            .collect();
        all.sort_by_key(|(ends, _)| *ends);
        let n_ended = all.iter().filter(|(ends, _)| *ends <= now.0).count();
        let n_removed = n_ended.max((all.len() + 1).saturating_sub(self.n_max));
        for (_, record) in all.into_iter().take(n_removed) {
            remove(records, self.name, &record.key, record.version).await?;
        }
        Ok(())
    }
}

/// Removes a record; false where another request changed or removed it first.
pub(super) async fn remove(
    records: &dyn RecordStore,
    kind: &'static str,
    key: &str,
    version: u64,
) -> Result<bool, StoreError> {
    match records.remove(kind, key, version).await {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers can be written as JSON")
}

/// The key of a record that belongs to a secret: the store contains no secret.
pub(super) fn secret_key(secret: &str) -> String {
    digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}
