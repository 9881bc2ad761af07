//! Sources of tools, for administrators.

use crate::{AirlockClient, Error};
use hyper::Method;
use lifecycle::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A source as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceLine {
    /// Its name in paths.
    pub slug: String,
    /// `openapi`, `mcp`, `command` or `built-in`.
    pub kind: String,
    /// Its display name.
    pub name: String,
    /// The number of its tools.
    pub tool_count: usize,
    /// Why it cannot be read now.
    pub trouble: Option<String>,
}

/// The changes that a refresh of a source found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceChange {
    /// Tools that are new.
    pub added_tools: Vec<String>,
    /// Tools that were removed.
    pub removed_tools: Vec<String>,
    /// Tools that changed.
    pub changed_tools: Vec<String>,
    /// Those of them that earlier approvals no longer cover.
    #[serde(default)]
    pub grown_tools: Vec<String>,
    /// Tools that were left out, each with the reason.
    pub left_out: Vec<String>,
}

impl AirlockClient {
    /// Lists all sources.
    pub async fn sources(&self) -> Result<Vec<SourceLine>, Error> {
        self.asked(Method::GET, "/api/integrations", None).await
    }

    /// Detects what kind of source is at an address, and proposes a name; `None` where no kind is recognised.
    pub async fn detect_source(
        &self,
        url: &str,
    ) -> Result<Option<(String, Option<String>)>, Error> {
        let body = json_body(&json!({ "url": url, "explain": true }))?;
        let found: Value =
            self.asked(Method::POST, "/api/integrations/detect", Some(&body)).await?;
        let text = |name: &str| found[0][name].as_str().map(str::to_owned);
        Ok(text("kind").map(|kind| (kind, text("slug"))))
    }

    /// Adds a source, described as in a configuration file, and binds it as `org.main`.
    pub async fn add_source(
        &self,
        slug: &str,
        source: &impl Serialize,
    ) -> Result<SourceChange, Error> {
        let body = json_body(&json!({ "slug": slug, "source": source, "connect": true }))?;
        self.asked(Method::POST, "/api/sources", Some(&body)).await
    }

    /// The kinds of credential that a source's own description names, the usual one first.
    pub async fn auth_templates(&self, slug: &str) -> Result<Vec<String>, Error> {
        let path = format!("/api/integrations/{}", escaped(slug));
        let source: Value = self.asked(Method::GET, &path, None).await?;
        let methods = source["authMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
        let templates = methods.iter().filter_map(|method| method["template"].as_str());
        Ok(templates.map(str::to_owned).collect())
    }

    /// Reads the source's description again.
    pub async fn refresh_source(&self, slug: &str) -> Result<SourceChange, Error> {
        let path = format!("/api/integrations/{}/refresh", escaped(slug));
        self.asked(Method::POST, &path, None).await
    }

    /// Removes a source and its connections. The route also reports a source that does not exist as removed.
    pub async fn remove_source(&self, slug: &str) -> Result<(), Error> {
        if !self.sources().await?.iter().any(|source| source.slug == slug) {
            let message =
                format!("there is no source {slug}; airlock source list names those there are");
            return Err(Error::Refused { status: 404, tag: String::new(), message });
        }
        let path = format!("/api/integrations/{}", escaped(slug));
        self.send_request(Method::DELETE, &path, None).await.map(drop)
    }
}

fn json_body(value: &Value) -> Result<Json, Error> {
    Json::from_value(value).map_err(|error| Error::Unusable(error.to_string()))
}

fn escaped(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
