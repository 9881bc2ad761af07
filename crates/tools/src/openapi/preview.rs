//! Previews the import of a description, for people who decide whether to add it. Stores nothing.

use super::{Options, import, outline};
use crate::{Integration as _, IntegrationSlug};
use serde_json::Value;
use url::Url;

/// Maximum number of tools in a preview; `toolCount` counts all.
const PREVIEW_TOOLS_MAX: usize = 200;

/// Previews the import of a description. Runs on a blocking thread, because large descriptions are slow.
pub async fn preview(text: String, source: Option<Url>) -> Result<Value, String> {
    let previewing = tokio::task::spawn_blocking(move || preview_now(&text, source));
    previewing.await.map_err(|_| "the description broke the importer".to_owned())?
}

fn preview_now(text: &str, source: Option<Url>) -> Result<Value, String> {
    let options = Options { source, ..Options::default() };
    let api = import(text, options).map_err(|error| error.to_string())?;
    let mut shown = outline(text).map_err(|error| error.to_string())?;
    let (tools, left_out) = (api.tools(), api.left_out());
    shown["slug"] =
        IntegrationSlug::resembling(&api.about().title).map(|slug| slug.to_string()).into();
    shown["toolCount"] = tools.len().into();
    shown["tools"] = tools.iter().take(PREVIEW_TOOLS_MAX).map(|tool| tool.name.clone()).collect();
    shown["leftOut"] =
        left_out.iter().map(|out| format!("{}: {}", out.operation, out.why)).collect();
    Ok(shown)
}
