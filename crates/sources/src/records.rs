//! Records of the sources that were added while serving.

use credentials::records::{SOURCE, SOURCE_TEXT, all, put, remove};
use lifecycle::ToolRevision;
use serde_json::Value;
use std::collections::BTreeMap;
use store::{RecordStore, StoreError};
use tools::SourceConfig;

/// Longest text within the record of a source, and longest part in a separate record: JSON writes a character as six
/// bytes at most, and a record has one MiB.
const TEXT_PART_BYTES_MAX: usize = 160 << 10;

/// The member of a source's record that names the parts of its text.
const TEXT_PARTS: &str = "textParts";

pub(crate) async fn sources(
    records: &dyn RecordStore,
) -> Result<BTreeMap<String, SourceConfig>, StoreError> {
    let mut records_by_slug = all::<Value>(records, SOURCE).await?;
    for (slug, value) in &mut records_by_slug {
        if let Some(text) = joined_text(records, slug, value).await? {
            value["text"] = text.into();
        }
    }
    let read = |(slug, value): (String, Value)| match serde_json::from_value(value) {
        Ok(source) => Some((slug, source)),
        Err(_) => {
            tracing::warn!(kind = SOURCE, key = slug, "a record cannot be read");
            None
        }
    };
    Ok(records_by_slug.into_iter().filter_map(read).collect())
}

/// Writes the record of a source. A long text is written in parts, before the record that names them.
pub(crate) async fn put_source(
    records: &dyn RecordStore,
    slug: &str,
    source: &SourceConfig,
) -> Result<(), StoreError> {
    let before = part_keys(records, slug).await?;
    let mut value =
        serde_json::to_value(source).map_err(|error| StoreError::Other(error.to_string()))?;
    let long = source.text.as_deref().filter(|text| text.len() > TEXT_PART_BYTES_MAX);
    let mut keys = vec![];
    if let Some(text) = long {
        let revision = ToolRevision::from_text(text).to_string();
        for (n, part) in parts(text).enumerate() {
            let key = format!("{slug}/{revision}/{n:04}");
            put(records, SOURCE_TEXT, &key, &part).await?;
            keys.push(key);
        }
        if let Some(members) = value.as_object_mut() {
            members.remove("text");
            members.insert(TEXT_PARTS.into(), keys.clone().into());
        }
    }
    put(records, SOURCE, slug, &value).await?;
    for key in before.iter().filter(|key| !keys.contains(key)) {
        remove(records, SOURCE_TEXT, key).await?;
    }
    Ok(())
}

/// Removes a source, and the parts of its text.
pub(crate) async fn remove_source(records: &dyn RecordStore, slug: &str) -> Result<(), StoreError> {
    let parts = part_keys(records, slug).await?;
    remove(records, SOURCE, slug).await?;
    for key in parts {
        remove(records, SOURCE_TEXT, &key).await?;
    }
    Ok(())
}

async fn part_keys(records: &dyn RecordStore, slug: &str) -> Result<Vec<String>, StoreError> {
    let record = records.get(SOURCE, slug).await?;
    let value: Value =
        record.and_then(|it| serde_json::from_str(&it.value).ok()).unwrap_or_default();
    Ok(serde_json::from_value(value[TEXT_PARTS].clone()).unwrap_or_default())
}

/// The text of a source whose record names its parts, which it no longer does afterwards. A part that is missing leaves the
/// text incomplete, and the importer reports that.
async fn joined_text(
    records: &dyn RecordStore,
    slug: &str,
    value: &mut Value,
) -> Result<Option<String>, StoreError> {
    let Some(named) = value.as_object_mut().and_then(|members| members.remove(TEXT_PARTS)) else {
        return Ok(None);
    };
    let keys: Vec<String> = serde_json::from_value(named).unwrap_or_default();
    let mut text = String::new();
    for key in keys {
        match records.get(SOURCE_TEXT, &key).await? {
            Some(record) => {
                text.push_str(&serde_json::from_str::<String>(&record.value).unwrap_or_default());
            }
            None => tracing::warn!(source = slug, key, "a part of a description is missing"),
        }
    }
    Ok(Some(text))
}

/// A text in parts, each cut between two characters.
fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = text.floor_char_boundary(TEXT_PART_BYTES_MAX.min(text.len()));
        let (part, rest) = text.split_at(end);
        text = rest;
        (!part.is_empty()).then_some(part)
    })
}
