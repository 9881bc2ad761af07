//! Files that commands wrote: each is retained for a limited time and is opened by its own capability.

use super::ReplStore;
use crate::redact;
use engine::Clock;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use protocols::hotrepl::wire::{ArtifactRef, Artifacts};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{BlobStore, RecordStore, StoreError, StoredRecord};
use uuid::Uuid;

/// Maximum number of files that a server retains: writing a file reads the records of all others.
pub(super) const FILES_MAX: usize = 1_000;

/// How long a file is retained.
const FILE_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The kind of the file records, whose key is the capability.
const FILES: &str = "repl_artifact";

/// The store of files.
pub(crate) struct ArtifactFiles {
    pub(super) records: Arc<dyn RecordStore>,
    pub(super) blobs: Arc<dyn BlobStore>,
    pub(super) clock: Clock,
    /// The folder where they are stored, if clients may know it.
    pub(super) paths: Option<PathBuf>,
    /// Maximum number of files; the oldest are removed.
    pub(super) n_max: usize,
}

/// A file that a command wrote.
pub(crate) struct NewFile {
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

/// A file of a task that may still run. It is stored when this is first awaited; resolves to none if storing failed.
#[derive(Clone)]
pub(crate) struct TaskFile {
    pub(crate) name: String,
    pub(crate) n_bytes: usize,
    artifacts: Shared<BoxFuture<'static, Option<Artifacts>>>,
}

impl TaskFile {
    pub(crate) fn new(store: Arc<ReplStore>, file: NewFile, host: String) -> Self {
        let (name, n_bytes) = (file.name.clone(), file.bytes.len());
        let artifacts = async move {
            let kept = store.files.store_artifact(vec![file], &host).await;
            kept.inspect_err(|error| tracing::error!(%error, "could not store a task's file")).ok()
        };
        Self { name, n_bytes, artifacts: artifacts.boxed().shared() }
    }

    /// Stores the file unless it is already stored.
    pub(crate) async fn store_file(self) -> Option<Artifacts> {
        self.artifacts.await
    }

    /// Stores all files; the second value is whether every one was stored.
    pub(crate) async fn keep_all(files: Vec<Self>) -> (Artifacts, bool) {
        let (mut all, mut is_complete) = (Artifacts::new(), true);
        for file in files {
            match file.store_file().await {
                Some(artifacts) => all.extend(artifacts),
                None => is_complete = false,
            }
        }
        (all, is_complete)
    }
}

impl NewFile {
    /// Redacts known secrets.
    fn discreet(self) -> Self {
        let Self { name, content_type, bytes } = self;
        let (name, content_type) =
            (redact::redacted_text(&name), redact::redacted_text(&content_type));
        Self { name, content_type, bytes: redact::bytes(bytes) }
    }
}

/// A file as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptFile {
    pub(crate) sha256: String,
    pub(crate) name: String,
    pub(crate) content_type: String,
    created: i64,
}

impl ArtifactFiles {
    /// Stores files, each under its own capability; `host` is the host by which the client addresses this server.
    pub(crate) async fn store_artifact(
        &self,
        files: Vec<NewFile>,
        host: &str,
    ) -> Result<Artifacts, StoreError> {
        let mut artifacts = Artifacts::new();
        for file in files {
            // Redacted before it is hashed: readers receive no more than this.
            let NewFile { name, content_type, bytes } = file.discreet();
            let byte_size = bytes.len() as u64;
            let sha256 = self.blobs.put_blob(bytes).await?;
            let capability = Uuid::new_v4().simple().to_string();
            let safe = safe_name(&name);
            let kept = KeptFile {
                sha256: sha256.clone(),
                name: safe.clone(),
                content_type: content_type.clone(),
                created: self.clock.now().0,
            };
            let text =
                serde_json::to_string(&kept).map_err(|e| StoreError::Other(e.to_string()))?;
            self.records.put(FILES, &capability, text, 0).await?;
            let path = self.paths.as_ref().map(|it| it.join(&sha256));
            let artifact = ArtifactRef {
                uri: format!("http://{host}/repl/artifacts/{capability}/{safe}"),
                path: path.map(|path| path.display().to_string()),
                sha256,
                byte_size,
                content_type,
                finalized: true,
            };
            artifacts.insert(name, artifact);
        }
        if !artifacts.is_empty() {
            self.prune().await?;
        }
        Ok(artifacts)
    }

    /// Returns the file that a capability opens, while it is retained.
    pub(crate) async fn open(&self, capability: &str) -> Option<(KeptFile, Vec<u8>)> {
        let record = self.records.get(FILES, capability).await.ok()??;
        let kept: KeptFile = serde_json::from_str(&record.value).ok()?;
        if kept.created < self.oldest() {
            return None;
        }
        let bytes = self.blobs.fetch(&kept.sha256).await.ok()??;
        Some((kept, bytes))
    }

    /// Files created before this time have expired.
    fn oldest(&self) -> i64 {
        self.clock.now().0 - i64::try_from(FILE_AGE_MAX.as_millis()).unwrap_or(i64::MAX)
    }

    async fn prune(&self) -> Result<(), StoreError> {
        let read = |record: StoredRecord| {
            let kept: KeptFile = serde_json::from_str(&record.value).ok()?;
            Some((record, kept))
        };
        let mut all: Vec<(StoredRecord, KeptFile)> =
            self.records.all(FILES).await?.into_iter().filter_map(read).collect();
        all.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.created));
        let oldest = self.oldest();
        let n_kept = all.iter().take(self.n_max).take_while(|(_, it)| it.created >= oldest).count();
        let gone = all.split_off(n_kept);
        // Two files of the same content share one blob.
        let needed: HashSet<&str> = all.iter().map(|(_, kept)| kept.sha256.as_str()).collect();
        for (record, kept) in &gone {
            self.records.remove(FILES, &record.key, record.version).await?;
            if !needed.contains(kept.sha256.as_str()) {
                self.blobs.discard(&kept.sha256).await?;
            }
        }
        Ok(())
    }
}

/// A name without path components.
fn safe_name(name: &str) -> String {
    const CHARS_MAX: usize = 128;
    let fine = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let safe: String = name.chars().map(fine).skip_while(|c| *c == '.').take(CHARS_MAX).collect();
    if safe.is_empty() { "artifact".to_owned() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ManualClock;
    use lifecycle::Timestamp;
    use store::sqlite::SqliteStore;

    #[test]
    fn no_name_leads_out_of_its_place() {
        for (name, safe) in [
            ("report.json", "report.json"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..", "artifact"),
            ("", "artifact"),
            ("a/b\\c\0d", "a_b_c_d"),
            ("é", "_"),
        ] {
            assert_eq!(safe_name(name), safe);
        }
        assert_eq!(safe_name(&"x".repeat(1_000)).len(), 128);
    }

    #[tokio::test]
    async fn a_capability_opens_one_file_until_it_is_too_old_and_its_content_goes_with_the_last() {
        let (store, wound) =
            (SqliteStore::temporary().unwrap(), ManualClock::starting_at(Timestamp(0)));
        let store = Arc::new(store);
        let files = ArtifactFiles {
            records: store.clone(),
            blobs: store.clone(),
            clock: Clock::Manual(wound.clone()),
            paths: None,
            n_max: 3,
        };
        let keep = async |name: &str, text: &str| {
            let (name, content_type) = (name.to_owned(), "text/plain".to_owned());
            let new = vec![NewFile { name: name.clone(), content_type, bytes: text.into() }];
            let kept = files.store_artifact(new, "h").await.unwrap().remove(&name).unwrap();
            let uri = kept.uri.strip_prefix("http://h/repl/artifacts/").unwrap();
            (uri.split('/').next().unwrap().to_owned(), kept.sha256)
        };
        let opened = async |capability: &str| files.open(capability).await.map(|(_, bytes)| bytes);
        let (first, alone) = keep("a", "only the first says so").await;
        let (second, shared) = keep("b", "both say so").await;
        assert_ne!(first, second);
        assert_eq!(opened(&first).await.unwrap(), b"only the first says so");
        assert_eq!(opened(&first[..31]).await, None);
        wound.advance(FILE_AGE_MAX + Duration::from_millis(1));
        // Expired, although no cleanup has run since.
        assert_eq!(opened(&first).await, None);
        let (third, _) = keep("c", "both say so").await;
        assert_eq!(opened(&third).await.unwrap(), b"both say so");
        assert!(store.fetch(&alone).await.unwrap().is_none());
        assert!(store.fetch(&shared).await.unwrap().is_some());
        assert_eq!(store.all(FILES).await.unwrap().len(), 1);
        for text in ["4", "5", "6"] {
            wound.advance(Duration::from_millis(1));
            keep("more", text).await;
        }
        assert_eq!(opened(&third).await, None, "three are kept, the newest");
        assert!(store.fetch(&shared).await.unwrap().is_none());
    }
}
