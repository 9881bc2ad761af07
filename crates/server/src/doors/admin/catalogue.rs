//! `/api/tools`, `/api/integrations`, `/api/connections` and related routes: what programs can call, and where it
//! comes from. Reading requires the right to run programs, changing requires an administrator.

use super::{json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::{self, JsonBody};
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lifecycle::{Timestamp, ToolPath};
use protocols::executor::{ObjectMembers, member, members};
use serde_json::{Value, json};
use sources::{SourceError, SourceRegistry};
use std::sync::Arc;
use tools::graphql::GraphqlKind;
use tools::mcp::McpKind;
use tools::openapi::{OpenApiKind, SENT_BYTES_MAX, SentSpec};
use tools::{
    CatalogueChange, FoundTool, IntegrationSlug, SourceCard, SourceConfig, SourceKind, TokenFlow,
    TokenSource,
};

/// Maximum number of tools in one answer; clients of larger catalogues search.
const TOOLS_MAX: usize = 20_000;

/// Maximum size of a body with such a description: JSON encodes quotation marks and line breaks as two characters.
const SPEC_BODY_BYTES_MAX: usize = 2 * SENT_BYTES_MAX + (1 << 20);

/// Maximum length of an address that is examined.
const URL_BYTES_MAX: usize = 2_048;

/// `GET /api/tools`.
pub(crate) async fn tools(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    looks(&caller)?;
    let blocked = query.text_member("includeBlocked") != Some("false");
    let policy = app.engine.policies().live();
    let is = |name: &str, value: &str| query.text_member(name).is_none_or(|wanted| wanted == value);
    let words = query.text_member("query").map(str::to_lowercase);
    let fits = |found: &FoundTool| {
        let (owner, connection) = place(found);
        is("integration", &found.card().name)
            && is("owner", owner)
            && is("connection", connection)
            && words.as_ref().is_none_or(|words| {
                found.path().to_lowercase().contains(words)
                    || found.spec().description.to_lowercase().contains(words)
            })
            && (blocked || policy.shows(&found.path(), found.traits()))
    };
    let snapshot = app.engine.catalogue().snapshot();
    let shown: Vec<_> =
        snapshot.tools().filter(fits).take(TOOLS_MAX).map(|found| tool(&found)).collect();
    Ok(json_response(StatusCode::OK, &shown.into()))
}

/// `GET /api/tools/schema?address=`.
pub(crate) async fn schema(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    looks(&caller)?;
    let address = query.text_member("address").unwrap_or_default();
    let path = ToolPath::parse(address).ok();
    let found = path.and_then(|path| app.engine.catalogue().find(&path));
    let policy = app.engine.policies().live();
    let found = found.filter(|found| policy.shows(&found.path(), found.traits()));
    let found = found.ok_or_else(|| {
        RequestError::not_found("ToolNotFoundError", format!("Tool not found: {address}"))
    })?;
    let told = found.describe();
    let spec = found.spec();
    Ok(json_response(
        StatusCode::OK,
        &json!({
            "address": format!("tools.{}", found.path()),
            "name": spec.name,
            "description": told.description,
            "inputSchema": spec.input.as_ref().map(|schema| schema.whole()),
            "outputSchema": spec.output.as_ref().map(|schema| schema.whole()),
            "schemaDefinitions": null,
            "inputTypeScript": told.input,
            "outputTypeScript": told.output,
            "typeScriptDefinitions": told.definitions,
            "revision": found.revision().to_string(),
        }),
    ))
}

/// `GET /api/integrations`.
pub(crate) async fn integrations(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    looks(&caller)?;
    let snapshot = app.engine.catalogue().snapshot();
    let shown = snapshot.cards().map(|(card, n_tools)| integration(&app, card, n_tools)).collect();
    Ok(json_response(StatusCode::OK, &Value::Array(shown)))
}

/// `GET /api/integrations/{slug}`.
pub(crate) async fn show_integration(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
) -> Result<Response, RequestError> {
    looks(&caller)?;
    let snapshot = app.engine.catalogue().snapshot();
    let found = snapshot.cards().find(|(card, _)| card.name == slug);
    let (card, n_tools) = found.ok_or_else(|| RequestError::from(SourceError::Unknown(slug)))?;
    Ok(json_response(StatusCode::OK, &integration(&app, card, n_tools)))
}

/// `DELETE /api/integrations/{slug}`. Succeeds if it is already gone.
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    match sources(&app)?.remove(&parse_slug(&slug)?).await {
        Ok(()) | Err(SourceError::Unknown(_)) => {
            Ok(json_response(StatusCode::OK, &json!({ "removed": true })))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /api/integrations/{slug}/refresh`.
pub(crate) async fn refresh(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let change = sources(&app)?.refresh(&parse_slug(&slug)?).await?;
    Ok(json_response(StatusCode::OK, &changed(&slug, &change)))
}

/// `POST /api/integrations/detect {url}`.
pub(crate) async fn detect(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let url: String = member(&members, "url", "a string")?.unwrap_or_default();
    if url.len() > URL_BYTES_MAX {
        return Err(RequestError::bad_request(format!(
            "The member \"url\" has {URL_BYTES_MAX} bytes at most."
        )));
    }
    let found = match sources(&app)?.detect(&url).await {
        Ok(found) => json!([{
            "kind": found.kind, "confidence": "high", "endpoint": found.url, "name": found.title,
            "slug": snake_slug(&found.title).or(found.slug.map(|slug| slug.to_string())),
        }]),
        // For people: what was tried, and with which result.
        Err(why) if member::<bool>(&members, "explain", "true or false")? == Some(true) => {
            return Err(RequestError::bad_request(format!(
                "Nothing was recognised at {url}: {why}."
            )));
        }
        Err(why) => {
            tracing::debug!(url, why, "nothing was detected");
            json!([])
        }
    };
    Ok(json_response(StatusCode::OK, &found))
}

/// The error tag for a text that is not an OpenAPI description.
const PARSE_ERROR: &str = "OpenApiParseError";

/// `POST /api/openapi/preview {spec}`: a text, an address, or what `POST /api/openapi/specs` takes.
pub(crate) async fn preview(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    request: Request,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let body = body::read_json(request, SPEC_BODY_BYTES_MAX).await?;
    let members = members(&body)?;
    let SentSpec { url, text } = SentSpec::from_http(&members)?;
    let sources = sources(&app)?;
    let shown = match (text, url) {
        (Some(text), _) => sources.preview(text, None).await,
        (None, Some(url)) => sources.preview_at(&url).await,
        (None, None) => Err("the member \"spec\" is missing; it is the description".to_owned()),
    };
    let shown = shown.map_err(|why| RequestError::tagged(PARSE_ERROR, why))?;
    Ok(json_response(StatusCode::OK, &shown))
}

/// `POST /api/openapi/specs {spec: {kind, url | value}, slug, name?, description?, baseUrl?}`.
pub(crate) async fn add_spec(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    request: Request,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let body = body::read_json(request, SPEC_BODY_BYTES_MAX).await?;
    let members = members(&body)?;
    let source = OpenApiKind.config_from_http(&members)?;
    let slug: String = member(&members, "slug", "a string")?.unwrap_or_default();
    add(&app, &members, source).await.map_err(|problem| match problem.tag() {
        "SourceUnreadableError" => {
            RequestError::tagged(PARSE_ERROR, problem.message()).about_source(slug)
        }
        _ => problem,
    })
}

/// `POST /api/graphql/integrations {slug, endpoint, name?, description?}`.
pub(crate) async fn add_graphql(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    add(&app, &members, GraphqlKind.config_from_http(&members)?).await
}

/// `POST /api/mcp/servers {slug, endpoint | command, args?, env?, name?, description?}`.
pub(crate) async fn add_server(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    add(&app, &members, McpKind.config_from_http(&members)?).await
}

/// `POST /api/sources {slug, connect?, …}`: adds a source in the format of a configuration file.
pub(crate) async fn add_source(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let source: Option<SourceConfig> = member(&members, "source", "a source as in airlock.toml")?;
    add(&app, &members, source.unwrap_or_default()).await
}

async fn add(
    app: &AppState,
    members: &ObjectMembers<'_>,
    source: SourceConfig,
) -> Result<Response, RequestError> {
    let slug: Option<String> = member(members, "slug", "a string")?;
    let connects: Option<bool> = member(members, "connect", "true or false")?;
    let slug = parse_slug(&slug.unwrap_or_default())?;
    let change = sources(app)?.add(&slug, source, connects.unwrap_or(false)).await?;
    Ok(json_response(StatusCode::OK, &changed(slug.as_str(), &change)))
}

pub(super) fn tool(found: &FoundTool) -> Value {
    let (spec, card, is_static) = (found.spec(), found.card(), found.connection().is_none());
    let (owner, connection) = place(found);
    json!({
        "address": address(found),
        "owner": owner,
        "integration": card.name,
        "connection": connection,
        "name": spec.name,
        "pluginId": card.kind,
        "description": spec.description,
        "mayElicit": card.may_elicit,
        "requiresApproval": spec.asks,
        "addedAt": time(found.traits().since),
        "grewAt": time(found.traits().grew),
        "approvalDescription": spec.about,
        "static": is_static,
    })
}

/// Owner and connection of a built-in tool, which has neither: Executor's clients require strings here.
const BUILT_IN_PLACE: (&str, &str) = ("user", "coreTools");

fn place(found: &FoundTool) -> (&str, &str) {
    found
        .connection()
        .map_or(BUILT_IN_PLACE, |connection| (connection.owner.as_str(), connection.name.as_str()))
}

/// A tool's address. Addresses of built-in tools do not begin with `tools.`: Executor's clients navigate by them.
fn address(found: &FoundTool) -> String {
    match found.connection() {
        Some(_) => format!("tools.{}", found.path()),
        None => found.path(),
    }
}

/// The slug that Executor proposes for a title: `Harness Items` becomes `harness_items`.
fn snake_slug(title: &str) -> Option<String> {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_");
    IntegrationSlug::parse(&slug).ok().map(|slug| slug.to_string())
}

/// When something happened; null if it never did.
fn time(at: Timestamp) -> Option<Timestamp> {
    (Timestamp(0) < at && at < Timestamp(i64::MAX)).then_some(at)
}

fn integration(app: &AppState, card: &SourceCard, n_tools: usize) -> Value {
    let imported = app.engine.catalogue().snapshot().integration(&card.name);
    let methods = imported.map(|integration| integration.auth_methods()).unwrap_or_default();
    let methods: Vec<_> = methods
        .iter()
        .map(|method| {
            let tokens = method.tokens.as_ref().map(tokens);
            json!({ "template": method.template, "kind": method.kind.as_str(), "label": method.label, "oauth": tokens })
        })
        .collect();
    json!({
        "slug": card.name,
        "name": card.title,
        "description": card.about(),
        "kind": card.kind,
        "canRemove": card.can_remove,
        "canRefresh": card.can_refresh,
        "authMethods": methods,
        "displayUrl": card.url,
        "toolCount": n_tools,
        "trouble": card.trouble,
    })
}

/// The source of tokens, from a description.
fn tokens(said: &TokenSource) -> Value {
    let flow = |flow: &TokenFlow| {
        json!({
            "flow": flow.kind.as_str(),
            "authorizationUrl": flow.authorization.as_ref().map(ToString::to_string),
            "tokenUrl": flow.token.as_str(),
            "refreshUrl": flow.refresh.as_ref().map(ToString::to_string),
            "deviceAuthorizationUrl": flow.device.as_ref().map(ToString::to_string),
        })
    };
    let flows: Vec<_> = said.flows.iter().map(flow).collect();
    let metadata = said.metadata.as_ref().map(ToString::to_string);
    json!({ "metadataUrl": metadata, "flows": flows, "scopes": said.scopes })
}

fn changed(slug: &str, change: &CatalogueChange) -> Value {
    json!({
        "slug": slug,
        "toolCount": change.added.len(),
        "addedTools": change.added,
        "removedTools": change.removed,
        "changedTools": change.changed,
        "grownTools": change.grown,
        "leftOut": change.left_out,
    })
}

pub(super) fn sources(app: &AppState) -> Result<&SourceRegistry, RequestError> {
    let none = || RequestError::conflict("This server has no sources that could be changed.");
    app.sources.as_ref().ok_or_else(none)
}

pub(super) fn parse_slug(text: &str) -> Result<IntegrationSlug, RequestError> {
    IntegrationSlug::parse(text)
        .map_err(|bad| RequestError::bad_request(format!("The slug is wrong: {bad}.")))
}

/// The owner that a member names: the shared owner if the member is missing.
pub(super) fn owner(members: &ObjectMembers<'_>, name: &str) -> Result<String, RequestError> {
    Ok(member(members, name, "a string")?.unwrap_or_else(|| "org".to_owned()))
}

pub(super) fn looks(caller: &Caller) -> Result<(), RequestError> {
    caller.may_run().map_err(|denied| RequestError::denied(denied, ""))
}

impl From<SourceError> for RequestError {
    fn from(error: SourceError) -> Self {
        let message = format!("Not done: {error}.");
        match error {
            SourceError::Unknown(slug) => {
                Self::not_found("IntegrationNotFoundError", message).about_source(slug)
            }
            SourceError::Exists(slug) => {
                Self::tagged_conflict("IntegrationAlreadyExistsError", message).about_source(slug)
            }
            SourceError::Configured(_) => Self::conflict(message),
            SourceError::NoConnection(_) => Self::not_found("ConnectionNotFoundError", message),
            SourceError::Vault(error) => error.into(),
            SourceError::Wrong(_) => Self::bad_request(message),
            SourceError::Unreadable { source_name, .. } => {
                Self::tagged("SourceUnreadableError", message).about_source(source_name)
            }
            SourceError::Store(error) => engine::Fault::from(error).into(),
        }
    }
}
