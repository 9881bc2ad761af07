//! The results of slices, a JSON line each in `target/soak/NAME/slices.jsonl`. Deleting the folder starts from the
//! beginning.

use super::machine;
use crate::cargo::root;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The records of one campaign.
pub(super) struct SliceRecords {
    folder: PathBuf,
}

impl SliceRecords {
    /// The records of the campaign of this name; its folder is created.
    pub(super) fn for_campaign(name: &str) -> Result<Self> {
        Self::below(&root().join("target/soak").join(name))
    }

    fn below(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// A file of the campaign.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Appends a slice, with the date and the machine.
    pub(super) fn append(&self, mut slice: Map<String, Value>) -> Result<()> {
        slice.insert("at".into(), machine::now().into());
        slice.insert("machine".into(), machine::describe().into());
        let path = self.file("slices.jsonl");
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        writeln!(file, "{}", Value::Object(slice)).context("record a slice")
    }

    /// Every slice recorded so far. A line that a killed run left half-written is skipped.
    pub(super) fn read(&self) -> Result<Vec<Value>> {
        let path = self.file("slices.jsonl");
        if !path.exists() {
            return Ok(vec![]);
        }
        let text = fs::read_to_string(&path).context("read the records")?;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// The sum of each number in the member `sums` of these slices.
pub(super) fn sum<'a>(slices: impl Iterator<Item = &'a Value>) -> Map<String, Value> {
    let mut total = Map::new();
    for (name, n) in slices.filter_map(|slice| slice["sums"].as_object()).flatten() {
        let before = total.get(name).and_then(Value::as_u64).unwrap_or(0);
        total.insert(name.clone(), json!(before + n.as_u64().unwrap_or(0)));
    }
    total
}

/// When and where these slices ran: the dates of the first and the last, and each machine.
pub(super) fn date_and_machines(slices: &[&Value]) -> String {
    let at = |slice: Option<&&Value>| {
        slice.and_then(|slice| slice["at"].as_str()).unwrap_or("never").to_owned()
    };
    let mut machines: Vec<_> =
        slices.iter().filter_map(|slice| slice["machine"].as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    format!("{} to {} UTC, {}", at(slices.first()), at(slices.last()), machines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_up_over_slices() {
        let slices = [
            json!({ "sums": { "stops": 2, "lost": 0 } }),
            json!({ "sums": { "stops": 3, "retries": 1 } }),
            json!({ "passed": false }),
        ];
        let expected = json!({ "lost": 0, "retries": 1, "stops": 5 });
        assert_eq!(Value::Object(sum(slices.iter())), expected);
    }

    #[test]
    fn a_half_written_line_is_skipped() {
        let folder = std::env::temp_dir().join(format!("soak-records-{}", std::process::id()));
        let records = SliceRecords::below(&folder).unwrap();
        records.append(Map::from_iter([("from".to_owned(), json!(0))])).unwrap();
        let path = records.file("slices.jsonl");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"from\":").unwrap();
        let read = records.read().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read.iter().map(|slice| &slice["from"]).collect::<Vec<_>>(), [&json!(0)]);
    }
}
