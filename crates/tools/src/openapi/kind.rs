//! OpenAPI as a kind of source.

use super::{Options, import};
use crate::http::{ApiClient, ApiRequest};
use crate::source_config::with_query;
use crate::source_kind::slug_of_host;
use crate::{
    CancelSignal, DetectedSource, IntegrationSlug, OpenedSource, SourceArguments, SourceConfig,
    SourceContext, SourceKind, SourceOpenError, StoredDescription, ToolCredential, scrub,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::Method;
use protocols::executor::{BadBody, ObjectMembers, member, members};
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;
use url::Url;

/// Longest description that is fetched or read.
const DESCRIPTION_BYTES_MAX: usize = 40 << 20;

/// Longest description that is sent as text; larger ones are read from an address.
pub const SENT_BYTES_MAX: usize = 32 << 20;

/// APIs that an OpenAPI description describes.
#[derive(Debug)]
pub struct OpenApiKind;

impl SourceKind for OpenApiKind {
    fn name(&self) -> &'static str {
        "openapi"
    }

    fn claims(&self, config: &SourceConfig) -> bool {
        config.file.is_some() || config.text.is_some()
    }

    fn is_self_contained(&self, config: &SourceConfig) -> bool {
        config.text.is_some()
    }

    fn detect<'a>(
        &'a self,
        address: &'a Url,
        http: &'a ApiClient,
    ) -> Option<BoxFuture<'a, Result<DetectedSource, String>>> {
        let detection = async {
            let options = Options { source: Some(address.clone()), ..Options::default() };
            let text = fetch(address, &ToolCredential::none(), http).await;
            let text = text.map_err(|why| format!("OpenAPI ({why})"))?;
            let api = import(&text, options)
                .map_err(|_| "OpenAPI (it is no OpenAPI description)".to_owned())?;
            let title = api.about().title.clone();
            let slug = IntegrationSlug::resembling(&title).or_else(|| slug_of_host(address));
            Ok(DetectedSource { kind: self.name(), url: address.to_string(), title, slug })
        };
        Some(detection.boxed())
    }

    fn open<'a>(
        &'a self,
        config: &'a SourceConfig,
        credential: &'a ToolCredential,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, SourceOpenError>> {
        async move {
            let text = match (&config.text, &config.file, &config.url) {
                (Some(text), _, _) => {
                    return Ok(opened(config, text.as_str().into(), context.http).await?);
                }
                (None, Some(file), _) => read(file).await?,
                (None, None, Some(url)) => fetch(&parse(url)?, credential, context.http).await?,
                (None, None, None) => return Err("an API has url, file or text".into()),
            };
            // The text is stored, so it must not contain a known secret: an API may repeat the one it was read with.
            let text: Arc<str> = scrub::scrub_text(&text).into();
            let opened = opened(config, Arc::clone(&text), context.http).await?;
            let described = Some(StoredDescription { kind: self.name(), text });
            Ok(OpenedSource { described, ..opened })
        }
        .boxed()
    }

    fn open_stored<'a>(
        &'a self,
        config: &'a SourceConfig,
        text: Arc<str>,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, String>> {
        opened(config, text, context.http).boxed()
    }

    /// `{spec: {url | value} or a text, baseUrl?, name?, description?}`.
    fn config_from_http(&self, members: &ObjectMembers<'_>) -> Result<SourceConfig, BadBody> {
        let SentSpec { url, text } = SentSpec::from_http(members)?;
        let base_url = member(members, "baseUrl", "a string")?;
        Ok(SourceConfig { url, text, base_url, ..SourceConfig::of_kind(self.name(), members)? })
    }

    fn config_from_arguments(&self, arguments: &SourceArguments) -> Result<SourceConfig, String> {
        Ok(SourceConfig {
            kind: Some(self.name().to_owned()),
            url: arguments.url.clone(),
            base_url: arguments.base_url.clone(),
            ..SourceConfig::default()
        })
    }

    fn config_from_executor(&self, source: &Value) -> Result<SourceConfig, String> {
        let base = SourceConfig::from_executor(self.name(), source);
        let spec = source["spec"].as_str().ok_or("it has no address")?;
        if spec.starts_with("http") {
            return Ok(SourceConfig { url: Some(with_query(spec, source)?), ..base });
        }
        Ok(match spec.trim_start().starts_with('{') || spec.contains('\n') {
            true => SourceConfig { text: Some(spec.to_owned()), ..base },
            false => SourceConfig { file: Some(spec.into()), ..base },
        })
    }
}

/// A description that a request references or contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SentSpec {
    /// Its address.
    pub url: Option<String>,
    /// Its text.
    pub text: Option<String>,
}

impl SentSpec {
    /// The member `spec`: an object with `url` or `value`, or a string, which is an address if it begins as one.
    pub fn from_http(request: &ObjectMembers<'_>) -> Result<Self, BadBody> {
        let Some(raw) = request.get("spec") else { return Ok(Self::default()) };
        if raw.get().starts_with('"') {
            let text: String = member(request, "spec", "a string")?.unwrap_or_default();
            let is_address = text.starts_with("http://") || text.starts_with("https://");
            return match is_address {
                true => Ok(Self { url: Some(text), text: None }),
                false => Ok(Self { url: None, text: Some(bounded(text)?) }),
            };
        }
        let spec: &RawValue = member(request, "spec", "an object")?
            .ok_or_else(|| BadBody::new("spec is null".into()))?;
        let inner = members(spec.get().as_bytes())?;
        let read = |name: &str| member::<String>(&inner, name, "a string");
        let mut text = None;
        for name in ["value", "text", "blob"] {
            text = text.or(read(name)?);
        }
        Ok(Self { url: read("url")?, text: text.map(bounded).transpose()? })
    }
}

/// Checks the size of a description that was sent as text.
fn bounded(text: String) -> Result<String, BadBody> {
    match text.len() > SENT_BYTES_MAX {
        true => Err(BadBody::new(format!(
            "A description sent as text has {SENT_BYTES_MAX} bytes at most; give its url."
        ))),
        false => Ok(text),
    }
}

/// Previews the import of the description at an address. Stores nothing.
pub async fn preview_at(url: &str, http: &ApiClient) -> Result<Value, String> {
    let parsed = parse(&url.to_owned())?;
    let text = fetch(&parsed, &ToolCredential::none(), http).await?;
    super::preview(text, Some(parsed)).await
}

async fn opened(
    config: &SourceConfig,
    text: Arc<str>,
    http: &ApiClient,
) -> Result<OpenedSource, String> {
    let source = config.url.as_ref().map(parse).transpose()?;
    let base = config.base_url.as_ref().map(parse).transpose()?;
    let options = Options { source, base, client: http.clone() };
    // Importing a large description is slow: it must not block other tasks.
    let imported = tokio::task::spawn_blocking(move || import(&text, options)).await;
    let api = imported.map_err(|_| "its description broke the importer".to_owned())?;
    let api = api.map_err(|error| error.to_string())?;
    let about = api.about().clone();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let (title, description) = (some(about.title), some(about.description));
    Ok(OpenedSource { title, description, ..OpenedSource::new(Arc::new(api)) })
}

fn parse(url: &String) -> Result<Url, String> {
    Url::parse(url).map_err(|_| format!("{url} is no address"))
}

async fn read(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("its file cannot be read: {}", error.kind());
    let n_bytes = tokio::fs::metadata(file).await.map_err(unreadable)?.len();
    if n_bytes > DESCRIPTION_BYTES_MAX as u64 {
        return Err(format!("its file has {n_bytes} bytes, {DESCRIPTION_BYTES_MAX} at most"));
    }
    tokio::fs::read_to_string(file).await.map_err(unreadable)
}

async fn fetch(url: &Url, credential: &ToolCredential, http: &ApiClient) -> Result<String, String> {
    let limits =
        crate::http::HttpLimits { response_bytes_max: DESCRIPTION_BYTES_MAX, ..http.limits() };
    let request = ApiRequest::new(Method::GET, url.clone());
    let answer = http.limited(limits).send(request, credential, &CancelSignal::never()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("{} answered {}", url.host_str().unwrap_or("it"), answer.status));
    }
    String::from_utf8(answer.body).map_err(|_| "its description is not UTF-8".to_owned())
}
