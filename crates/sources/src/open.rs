//! From what is written about a source to its tools.

use crate::config::Source;
use crate::descriptions::DescriptionText;
use hyper::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tools::command::CommandSource;
use tools::graphql;
use tools::http::{HttpClient, HttpLimits, Outgoing};
use tools::mcp::{McpEndpoint, McpLimits, McpServer};
use tools::openapi::{self, Options};
use tools::{CancelSignal, Credential, Integration, Minding, Slug, scrub};
use url::Url;

/// Longest description that is fetched or read.
const TEXT_BYTES_MAX: usize = 40 << 20;

/// Tools that a preview names; `toolCount` counts all.
const PREVIEW_TOOLS_MAX: usize = 200;

/// A source that could be read.
pub(crate) struct Opened {
    pub(crate) integration: Arc<dyn Integration>,
    /// The server behind it, where its list may change.
    pub(crate) server: Option<McpServer>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// What the next start needs to know about it, where that came over the network or from a file.
    pub(crate) described: Option<DescriptionText>,
}

/// What an address seems to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// `openapi`, `graphql` or `mcp`.
    pub kind: &'static str,
    /// Where it is.
    pub url: String,
    /// What people call it.
    pub title: String,
    /// A name for it.
    pub slug: Option<Slug>,
}

/// Reads a source.
pub(crate) async fn open(
    spec: &Source,
    credential: &Credential,
    minding: Minding,
    http: &HttpClient,
) -> Result<Opened, String> {
    match kind(spec, http).await?.as_str() {
        "mcp" => mcp(spec, credential, minding, http).await,
        "command" => command(spec, minding),
        "openapi" => openapi(spec, credential, http).await,
        "graphql" => graphql(spec, credential, http).await,
        other => Err(format!(
            "\"{other}\" is no kind of source; there are openapi, graphql, mcp and command"
        )),
    }
}

/// Reads a source without the network: from what is configured about it alone, or from its stored description.
/// None where neither is enough.
pub(crate) async fn open_offline(
    spec: &Source,
    stored: Option<DescriptionText>,
    minding: Minding,
    http: &HttpClient,
) -> Option<Result<Opened, String>> {
    if needs_no_reading(spec) {
        return Some(open(spec, &Credential::none(), minding, http).await);
    }
    let DescriptionText { kind, text } = stored?;
    Some(match kind {
        "openapi" => import_openapi(spec, text, http).await,
        "graphql" => import_graphql(spec, text, http).await,
        _ => mcp_server(spec, minding, http).and_then(|server| {
            let integration = server.import_listed(&text)?;
            Ok(opened_mcp(server, integration, None))
        }),
    })
}

/// Whether all that there is to know about a source is in its configuration.
pub(crate) fn needs_no_reading(spec: &Source) -> bool {
    match spec.kind.as_deref() {
        Some("command") => true,
        None if !spec.tools.is_empty() => true,
        Some("openapi") => spec.text.is_some(),
        None => spec.text.is_some() && spec.command.is_empty(),
        Some(_) => false,
    }
}

/// What an address is: asks it.
pub async fn detect(url: &str, http: &HttpClient) -> Result<Detected, String> {
    let parsed = Url::parse(url).map_err(|_| "that is no address".to_owned())?;
    let described = fetch(&parsed, &Credential::none(), http).await;
    if let Ok(text) = &described
        && let Ok(api) =
            openapi::import(text, Options { source: Some(parsed.clone()), ..Options::default() })
    {
        let title = api.about().title.clone();
        let slug = Slug::resembling(&title).or_else(|| by_host(&parsed));
        return Ok(Detected { kind: "openapi", url: url.to_owned(), title, slug });
    }
    let options = graphql::Options { endpoint: parsed.clone(), client: http.clone() };
    let never = CancelSignal::never();
    if let Ok(text) = graphql::introspect(&options, &Credential::none(), &never).await
        && graphql::import(&text, options).is_ok()
    {
        let title = parsed.host_str().unwrap_or("GraphQL").to_owned();
        let slug = by_host(&parsed);
        return Ok(Detected { kind: "graphql", url: url.to_owned(), title, slug });
    }
    let limits = McpLimits { start: Duration::from_secs(10), ..McpLimits::default() };
    let endpoint = McpEndpoint::Http { url: url.to_owned(), client: http.clone() };
    let server = McpServer::new(endpoint, Minding::Nobody, limits);
    let imported = server.import(&Credential::none()).await;
    server.close().await;
    match imported {
        Ok(_) => {
            let title = parsed.host_str().unwrap_or("MCP").to_owned();
            Ok(Detected { kind: "mcp", url: url.to_owned(), title, slug: by_host(&parsed) })
        }
        Err(why) => {
            let first = described.err().unwrap_or_else(|| "it is no OpenAPI description".into());
            Err(format!("neither OpenAPI ({first}), nor GraphQL, nor MCP ({why})"))
        }
    }
}

/// `api.example.com` is `example`.
pub(crate) fn by_host(url: &Url) -> Option<Slug> {
    let host = url.host_str()?;
    let names: Vec<_> = host.split('.').collect();
    let name = match names.as_slice() {
        [.., name, _] => name,
        [name] => name,
        [] => return None,
    };
    Slug::resembling(name).or_else(|| Slug::resembling(&format!("host {host}")))
}

async fn kind(spec: &Source, http: &HttpClient) -> Result<String, String> {
    if let Some(kind) = &spec.kind {
        return Ok(kind.clone());
    }
    if !spec.tools.is_empty() {
        return Ok("command".into());
    }
    if !spec.command.is_empty() {
        return Ok("mcp".into());
    }
    match (&spec.url, &spec.file, &spec.text) {
        (_, Some(_), _) | (_, _, Some(_)) => Ok("openapi".into()),
        (Some(url), None, None) => Ok(detect(url, http).await?.kind.to_owned()),
        (None, None, None) => Err("it says neither url, file, text, command nor tools".into()),
    }
}

async fn mcp(
    spec: &Source,
    credential: &Credential,
    minding: Minding,
    http: &HttpClient,
) -> Result<Opened, String> {
    let server = mcp_server(spec, minding, http)?;
    match server.import(credential).await {
        Ok((integration, listed)) => Ok(opened_mcp(server, integration, Some(listed))),
        Err(why) => {
            server.close().await;
            Err(why)
        }
    }
}

fn mcp_server(spec: &Source, minding: Minding, http: &HttpClient) -> Result<McpServer, String> {
    let endpoint = match (&spec.url, spec.command.is_empty()) {
        (Some(url), true) => {
            let parsed = Url::parse(url).map_err(|_| "url is no address".to_owned())?;
            if !matches!(parsed.scheme(), "http" | "https") {
                return Err("url begins with http:// or https://".into());
            }
            McpEndpoint::Http { url: url.clone(), client: http.clone() }
        }
        (None, false) => McpEndpoint::Stdio(spec.program()),
        (Some(_), false) | (None, true) => return Err("an MCP server has url or command".into()),
    };
    Ok(McpServer::new(endpoint, minding, McpLimits::default()))
}

/// An MCP server that listed its tools, now or earlier.
pub(crate) fn opened_mcp(
    server: McpServer,
    integration: Arc<dyn Integration>,
    listed: Option<String>,
) -> Opened {
    let described = listed.map(|text| DescriptionText { kind: "mcp", text: text.into() });
    Opened { integration, server: Some(server), title: None, description: None, described }
}

fn command(spec: &Source, minding: Minding) -> Result<Opened, String> {
    let mut tools = BTreeMap::new();
    for (name, command) in &spec.tools {
        let tool = command.tool().map_err(|why| format!("tool {name}: {why}"))?;
        tools.insert(name.clone(), tool);
    }
    let source = CommandSource::new(tools, spec.program(), minding);
    let integration = Arc::new(source);
    Ok(Opened { integration, server: None, title: None, description: None, described: None })
}

async fn openapi(
    spec: &Source,
    credential: &Credential,
    http: &HttpClient,
) -> Result<Opened, String> {
    let text = match (&spec.text, &spec.file, &spec.url) {
        (Some(text), _, _) => return import_openapi(spec, text.as_str().into(), http).await,
        (None, Some(file), _) => read(file).await?,
        (None, None, Some(url)) => {
            let url = Url::parse(url).map_err(|_| format!("{url} is no address"))?;
            fetch(&url, credential, http).await?
        }
        (None, None, None) => return Err("an API has url, file or text".into()),
    };
    // The text is stored, so no known secret may be in it: an API may repeat the one it was read with.
    let text: Arc<str> = scrub::text(&text).into();
    let opened = import_openapi(spec, Arc::clone(&text), http).await?;
    Ok(Opened { described: Some(DescriptionText { kind: "openapi", text }), ..opened })
}

async fn import_openapi(
    spec: &Source,
    text: Arc<str>,
    http: &HttpClient,
) -> Result<Opened, String> {
    let parse = |url: &String| Url::parse(url).map_err(|_| format!("{url} is no address"));
    let source = spec.url.as_ref().map(parse).transpose()?;
    let base = spec.base_url.as_ref().map(parse).transpose()?;
    let options = Options { source, base, client: http.clone() };
    // Large descriptions take a while: others go on meanwhile.
    let imported = tokio::task::spawn_blocking(move || openapi::import(&text, options)).await;
    let api = imported.map_err(|_| "its description broke the importer".to_owned())?;
    let api = api.map_err(|error| error.to_string())?;
    let about = api.about().clone();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(Opened {
        integration: Arc::new(api),
        server: None,
        title: some(about.title),
        description: some(about.description),
        described: None,
    })
}

async fn graphql(
    spec: &Source,
    credential: &Credential,
    http: &HttpClient,
) -> Result<Opened, String> {
    let options = graphql_options(spec, http)?;
    let asked = graphql::introspect(&options, credential, &CancelSignal::never()).await;
    let text: Arc<str> = scrub::text(&asked.map_err(|error| error.to_string())?).into();
    let opened = import_graphql(spec, Arc::clone(&text), http).await?;
    Ok(Opened { described: Some(DescriptionText { kind: "graphql", text }), ..opened })
}

async fn import_graphql(
    spec: &Source,
    text: Arc<str>,
    http: &HttpClient,
) -> Result<Opened, String> {
    let options = graphql_options(spec, http)?;
    let imported = tokio::task::spawn_blocking(move || graphql::import(&text, options)).await;
    let api = imported.map_err(|_| "its introspection broke the importer".to_owned())?;
    let integration = Arc::new(api.map_err(|error| error.to_string())?);
    Ok(Opened { integration, server: None, title: None, description: None, described: None })
}

fn graphql_options(spec: &Source, http: &HttpClient) -> Result<graphql::Options, String> {
    let url = spec.url.as_deref().ok_or("a GraphQL API has url")?;
    let endpoint = Url::parse(url).map_err(|_| "url is no address".to_owned())?;
    Ok(graphql::Options { endpoint, client: http.clone() })
}

async fn read(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("its file cannot be read: {}", error.kind());
    let n_bytes = tokio::fs::metadata(file).await.map_err(unreadable)?.len();
    if n_bytes > TEXT_BYTES_MAX as u64 {
        return Err(format!("its file has {n_bytes} bytes, {TEXT_BYTES_MAX} at most"));
    }
    tokio::fs::read_to_string(file).await.map_err(unreadable)
}

async fn fetch(url: &Url, credential: &Credential, http: &HttpClient) -> Result<String, String> {
    let limits = HttpLimits { response_bytes_max: TEXT_BYTES_MAX, ..http.limits() };
    let request = Outgoing::new(Method::GET, url.clone());
    let answer = http.limited(limits).send(request, credential, &CancelSignal::never()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("{} answered {}", url.host_str().unwrap_or("it"), answer.status));
    }
    String::from_utf8(answer.body).map_err(|_| "its description is not UTF-8".to_owned())
}

/// What a description at an address would become, without keeping it.
pub(crate) async fn preview_at(url: &str, http: &HttpClient) -> Result<Value, String> {
    let parsed = Url::parse(url).map_err(|_| format!("{url} is no address"))?;
    let text = fetch(&parsed, &Credential::none(), http).await?;
    preview(text, Some(parsed)).await
}

/// What a description would become, without keeping it. Large ones take a while: others go on meanwhile.
pub(crate) async fn preview(text: String, source: Option<Url>) -> Result<Value, String> {
    let previewing = tokio::task::spawn_blocking(move || previewed(&text, source));
    previewing.await.map_err(|_| "the description broke the importer".to_owned())?
}

fn previewed(text: &str, source: Option<Url>) -> Result<Value, String> {
    let options = Options { source, ..Options::default() };
    let api = openapi::import(text, options).map_err(|error| error.to_string())?;
    let mut shown = openapi::outline(text).map_err(|error| error.to_string())?;
    let (tools, left_out) = (api.tools(), api.left_out());
    shown["slug"] = Slug::resembling(&api.about().title).map(|slug| slug.to_string()).into();
    shown["toolCount"] = tools.len().into();
    shown["tools"] = tools.iter().take(PREVIEW_TOOLS_MAX).map(|tool| tool.name.clone()).collect();
    shown["leftOut"] =
        left_out.iter().map(|out| format!("{}: {}", out.operation, out.why)).collect();
    Ok(shown)
}
