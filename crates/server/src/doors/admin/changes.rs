//! Changes to existing integrations and connections: names, addresses, credentials.

use super::{catalogue, json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::PathId;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use protocols::executor::{ObjectMembers, member, members};
use serde_json::{Value, json};
use std::sync::Arc;
use tools::SourceConfig;

/// `PATCH /api/integrations/{slug} {name?, description?}`.
pub(crate) async fn integration(
    state: State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let sources = catalogue::sources(&state)?;
    let name = catalogue::parse_slug(&slug)?;
    let (mut spec, _) = sources.spec(&name).await?;
    named_integration(&members, &mut spec)?;
    sources.change(&name, spec).await?;
    catalogue::show_integration(state, caller, PathId(slug)).await
}

/// `GET /api/openapi/integrations/{slug}/config`.
pub(crate) async fn config(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let (spec, _) = catalogue::sources(&app)?.spec(&catalogue::parse_slug(&slug)?).await?;
    Ok(json_response(StatusCode::OK, &change_json(&slug, &spec)))
}

/// `POST /api/openapi/integrations/{slug}/config {mode?, config: {url?, baseUrl?, name?, description?}}`: members
/// that are not named are retained with `merge`, the default, and removed with `replace`.
pub(crate) async fn configure(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let outer = members(&body)?;
    let inner: Option<&serde_json::value::RawValue> = member(&outer, "config", "an object")?;
    let fields = match inner {
        Some(inner) => members(inner.get().as_bytes())?,
        None => outer.clone(),
    };
    let sources = catalogue::sources(&app)?;
    let name = catalogue::parse_slug(&slug)?;
    let (before, _) = sources.spec(&name).await?;
    let mode: Option<String> = member(&outer, "mode", "\"merge\" or \"replace\"")?;
    let mut spec = match mode.as_deref() {
        None | Some("merge") => before,
        Some("replace") => {
            SourceConfig { base_url: None, title: None, description: None, ..before }
        }
        Some(_) => {
            let message = "The member \"mode\" must be \"merge\" or \"replace\".";
            return Err(RequestError::bad_request(message.to_owned()));
        }
    };
    named_integration(&fields, &mut spec)?;
    if let Some(url) = member(&fields, "baseUrl", "a string")? {
        spec.base_url = Some(url);
    }
    if let Some(url) = member(&fields, "url", "a string")? {
        (spec.url, spec.file, spec.text) = (Some(url), None, None);
    }
    let change = sources.change(&name, spec.clone()).await?;
    let mut told = change_json(&slug, &spec);
    told["addedTools"] = json!(change.added);
    told["removedTools"] = json!(change.removed);
    told["changedTools"] = json!(change.changed);
    Ok(json_response(StatusCode::OK, &told))
}

fn named_integration(
    members: &ObjectMembers<'_>,
    spec: &mut SourceConfig,
) -> Result<(), RequestError> {
    if let Some(name) = member(members, "name", "a string")? {
        spec.title = Some(name);
    }
    if let Some(text) = member(members, "description", "a string")? {
        spec.description = Some(text);
    }
    Ok(())
}

/// The address of the description and of the API. A file's path and a program's variables are not shown.
fn change_json(slug: &str, spec: &SourceConfig) -> Value {
    json!({
        "slug": slug,
        "kind": spec.kind,
        "name": spec.title,
        "description": spec.description,
        "url": spec.url,
        "baseUrl": spec.base_url,
        "isInline": spec.text.is_some(),
    })
}
