//! The last good description of each source, one file per source: after a restart its tools are in the catalogue
//! before anything runs, whether or not the source can be reached. Files hold no secret and no address.

use crate::tool_first_seen;
use lifecycle::ToolRevision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use tools::{IntegrationSlug, SourceConfig, SourceKinds, StoredDescription};

/// Largest description that is stored; a larger one is read from its source at each start.
const DESCRIPTION_BYTES_MAX: usize = 48 << 20;

/// Maximum size of all stored descriptions on the disk.
const DESCRIPTIONS_BYTES_MAX: u64 = 1 << 30;

/// Longest first line of a file.
const HEADER_BYTES_MAX: usize = 1_000;

/// The format of the files. A file of another format counts as missing.
const FORMAT: u32 = 1;

/// The first line of a file; the text follows.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DescriptionHeader {
    format: u32,
    /// The revision of the source's configuration: a description of another configuration does not apply.
    source: ToolRevision,
    kind: String,
    text: ToolRevision,
    n_bytes: usize,
}

/// The description files, in one folder of the data directory. Without a folder nothing is stored.
#[derive(Debug, Clone)]
pub(crate) struct DescriptionStore {
    folder: Option<PathBuf>,
    kinds: SourceKinds,
}

impl DescriptionStore {
    pub(crate) const fn new(folder: Option<PathBuf>, kinds: SourceKinds) -> Self {
        Self { folder, kinds }
    }

    /// The description for the current configuration of a source. A damaged file counts as missing.
    pub(crate) async fn load(
        &self,
        slug: &IntegrationSlug,
        source: &SourceConfig,
    ) -> Option<StoredDescription> {
        let (path, source) = (self.path(slug)?, tool_first_seen::revision(source));
        let kinds = self.kinds.clone();
        let read = tokio::task::spawn_blocking(move || read(&path, source, &kinds)).await.ok()?;
        read.unwrap_or_else(|error| {
            tracing::warn!(source = %slug, %error, "a stored description cannot be read");
            None
        })
    }

    /// Stores a description in place of the previous one. If that fails, only the next start is slower.
    pub(crate) async fn save(
        &self,
        slug: &IntegrationSlug,
        source: &SourceConfig,
        description: StoredDescription,
    ) {
        let (Some(path), Some(folder)) = (self.path(slug), self.folder.clone()) else { return };
        let source = tool_first_seen::revision(source);
        let written = tokio::task::spawn_blocking(move || {
            let header = header(source, &description);
            if read_header(&path).ok().flatten().is_some_and(|(known, _)| known == header) {
                return Ok(());
            }
            write(&folder, &path, &header, &description.text)
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!(source = %slug, %error, "a description could not be stored");
        }
    }

    /// Deletes the description of a removed source.
    pub(crate) fn remove(&self, slug: &IntegrationSlug) {
        let Some(path) = self.path(slug) else { return };
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(source = %slug, %error, "a stored description could not be deleted");
            }
        }
    }

    /// Deletes every file that belongs to none of these sources, and incomplete files of a crash.
    pub(crate) fn retain<'a>(&self, slugs: impl Iterator<Item = &'a IntegrationSlug>) {
        let Some(folder) = &self.folder else { return };
        let wanted: BTreeSet<OsString> = slugs.map(|slug| file_name(slug).into()).collect();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !wanted.contains(&entry.file_name())
                && let Err(error) = fs::remove_file(entry.path())
            {
                let file = entry.path();
                tracing::warn!(?file, %error, "a stored description could not be deleted");
            }
        }
    }

    fn path(&self, slug: &IntegrationSlug) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(file_name(slug)))
    }
}

fn file_name(slug: &IntegrationSlug) -> String {
    format!("{slug}.description")
}

fn header(source: ToolRevision, description: &StoredDescription) -> DescriptionHeader {
    DescriptionHeader {
        format: FORMAT,
        source,
        kind: description.kind.to_owned(),
        text: ToolRevision::from_text(&description.text),
        n_bytes: description.text.len(),
    }
}

fn write(
    folder: &PathBuf,
    path: &PathBuf,
    header: &DescriptionHeader,
    text: &str,
) -> io::Result<()> {
    if text.len() > DESCRIPTION_BYTES_MAX {
        // The previous description belongs to another configuration by now.
        let _ = fs::remove_file(path);
        return Err(io::Error::other(format!("it has more than {DESCRIPTION_BYTES_MAX} bytes")));
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let others = fs::read_dir(folder)?.flatten().filter(|entry| entry.path() != *path);
    let n_bytes: u64 =
        others.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum();
    if n_bytes.saturating_add(text.len() as u64) > DESCRIPTIONS_BYTES_MAX {
        let _ = fs::remove_file(path);
        let why = format!("all of them would have more than {DESCRIPTIONS_BYTES_MAX} bytes");
        return Err(io::Error::other(why));
    }
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let line = serde_json::to_string(header).map_err(io::Error::other)?;
    file.write_all(line.as_bytes())?;
    file.write_all(b"\n")?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&new, path)
}

/// The text, if the file is complete and belongs to the current configuration of the source.
fn read(
    path: &PathBuf,
    source: ToolRevision,
    kinds: &SourceKinds,
) -> io::Result<Option<StoredDescription>> {
    let Some((header, mut file)) = read_header(path)? else { return Ok(None) };
    let Some(kind) = kinds.by_name(&header.kind) else { return Ok(None) };
    if header.format != FORMAT || header.source != source || header.n_bytes > DESCRIPTION_BYTES_MAX
    {
        return Ok(None);
    }
    let mut text = String::with_capacity(header.n_bytes);
    file.by_ref().take(DESCRIPTION_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    if ToolRevision::from_text(&text) != header.text {
        return Err(io::Error::other("it is damaged"));
    }
    Ok(Some(StoredDescription { kind: kind.name(), text: text.into() }))
}

fn read_header(path: &PathBuf) -> io::Result<Option<(DescriptionHeader, io::BufReader<fs::File>)>> {
    use io::BufRead as _;
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut file = io::BufReader::new(file);
    let mut line = String::new();
    file.by_ref().take(HEADER_BYTES_MAX as u64).read_line(&mut line)?;
    let header = serde_json::from_str(line.trim_end()).map_err(io::Error::other)?;
    Ok(Some((header, file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn source(url: &str) -> SourceConfig {
        SourceConfig { url: Some(url.into()), ..SourceConfig::default() }
    }

    #[tokio::test]
    async fn a_description_comes_back_for_the_same_configuration_and_for_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            DescriptionStore::new(Some(dir.path().join("descriptions")), SourceKinds::default());
        let (slug, other) =
            (IntegrationSlug::parse("pets").unwrap(), IntegrationSlug::parse("cats").unwrap());
        let description = StoredDescription { kind: "openapi", text: "{\"a\":\n1}".into() };
        let configured = source("http://a.example/?key=hidden");
        store.save(&slug, &configured, description.clone()).await;
        assert_eq!(store.load(&slug, &configured).await, Some(description.clone()));
        let titled = SourceConfig { title: Some("Pets".into()), ..configured.clone() };
        assert_eq!(store.load(&slug, &titled).await, Some(description));
        assert_eq!(store.load(&slug, &source("http://b.example")).await, None);
        assert_eq!(store.load(&other, &configured).await, None);

        let file = store.path(&slug).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("hidden"), "{text}");

        fs::write(&file, text.replace("\n1", "\n2")).unwrap();
        assert_eq!(store.load(&slug, &configured).await, None, "it is damaged");
    }

    #[tokio::test]
    async fn what_belongs_to_no_source_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let store = DescriptionStore::new(Some(dir.path().to_owned()), SourceKinds::default());
        let [pets, cats] = ["pets", "cats"].map(|name| IntegrationSlug::parse(name).unwrap());
        let description = StoredDescription { kind: "mcp", text: "[]".into() };
        for slug in [&pets, &cats] {
            store.save(slug, &source("http://a.example"), description.clone()).await;
        }
        fs::write(dir.path().join("cats.new"), "half").unwrap();
        store.retain([&pets].into_iter());
        let left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["pets.description"]);
        store.remove(&pets);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
