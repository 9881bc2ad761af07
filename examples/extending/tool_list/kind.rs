//! How a list of tools is recognised and opened.

use super::integration::ToolList;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tools::{
    OpenedSource, SourceConfig, SourceContext, SourceKind, SourceOpenError, StoredDescription,
    ToolCredential,
};

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Lists of tools, each with the answer that it always gives.
#[derive(Debug)]
pub struct ToolListKind;

impl SourceKind for ToolListKind {
    fn name(&self) -> &'static str {
        "tool_list"
    }

    /// A configuration with such a file needs no `kind`.
    fn claims(&self, config: &SourceConfig) -> bool {
        let name = config.file.as_ref().and_then(|file| file.to_str());
        name.is_some_and(|name| name.ends_with(".tools.json"))
    }

    fn open<'a>(
        &'a self,
        config: &'a SourceConfig,
        _credential: &'a ToolCredential,
        _context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, SourceOpenError>> {
        async move {
            let file = config.file.as_deref().ok_or("a list of tools has file")?;
            let unreadable = |error: std::io::Error| format!("its file cannot be read: {error}");
            if tokio::fs::metadata(file).await.map_err(unreadable)?.len() > FILE_BYTES_MAX {
                return Err(format!("its file has more than {FILE_BYTES_MAX} bytes").into());
            }
            let text: Arc<str> = tokio::fs::read_to_string(file).await.map_err(unreadable)?.into();
            let list = ToolList::parse(&text)?;
            let described = Some(StoredDescription { kind: self.name(), text });
            Ok(OpenedSource { described, ..OpenedSource::new(Arc::new(list)) })
        }
        .boxed()
    }

    /// After a restart the tools are in the catalogue before the file is read again.
    fn open_stored<'a>(
        &'a self,
        _config: &'a SourceConfig,
        text: Arc<str>,
        _context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, String>> {
        async move { Ok(OpenedSource::new(Arc::new(ToolList::parse(&text)?))) }.boxed()
    }
}
