//! Connections over HTTP: created, changed, checked, removed, and handed off to a person who enters their secret.
//! Secrets are only written, never returned.

use super::{catalogue, json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::QueryMembers;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use credentials::{CredentialOffer, OAuthConfig, SecretText};
use protocols::executor::{BadBody, ObjectMembers, member, members};
use serde::Deserialize;
use serde_json::json;
use sources::{ConnectionView, SourceError, SourceRegistry};
use std::collections::BTreeMap;
use std::sync::Arc;
use tools::{ConnectionName, IntegrationSlug};

/// Owner, integration and name.
type ConnectionPath = Path<(String, String, String)>;

/// The providers of secret values.
const PROVIDERS: [&str; 4] = ["vault", "env", "file", "cmd"];

/// A value that is stored with another provider.
#[derive(Deserialize)]
struct ValueOrigin {
    provider: String,
    id: String,
}

/// `GET /api/connections?integration=&owner=`.
pub(crate) async fn list_connections(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    catalogue::looks(&caller)?;
    let views = catalogue::sources(&app)?.connections().await;
    let is = |name: &str, value: &str| query.text_member(name).is_none_or(|wanted| wanted == value);
    let fits =
        |view: &&ConnectionView| is("integration", &view.integration) && is("owner", &view.owner);
    Ok(json_response(StatusCode::OK, &views.iter().filter(fits).map(ConnectionView::row).collect()))
}

/// `POST /api/connections {owner, name, integration, template, value | values | from | oauth | handoff, replace?}`.
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let text = |name: &str| member::<String>(&members, name, "a string");
    let (integration, name) =
        (text("integration")?.unwrap_or_default(), text("name")?.unwrap_or_default());
    let (sources, slug) = (catalogue::sources(&app)?, catalogue::parse_slug(&integration)?);
    if !sources.has(&slug).await {
        return Err(SourceError::Unknown(integration).into());
    }
    let offer = offer(&members)?;
    let is_handed_off = offer.is_handed_off;
    if member::<bool>(&members, "replace", "true or false")? == Some(false) {
        let owner = text("owner")?;
        refuse_existing(sources, &slug, owner.as_deref().unwrap_or("org"), &name).await?;
    }
    let mut made = sources.offered(&slug, offer).map_err(wrong)?;
    made.owner = text("owner")?;
    made.description = text("description")?;
    made.health = text("health")?;
    if !is_handed_off {
        let view = sources.connect(&slug, &name, made).await?;
        return Ok(json_response(StatusCode::OK, &view.row()));
    }
    let handed_off =
        async |view: &ConnectionView| sources.hand_off(&slug, &view.owner, &view.name).await;
    let (view, url) = sources.connect_and(&slug, &name, made, handed_off).await?;
    let mut told = view.row();
    told["url"] = url.into();
    Ok(json_response(StatusCode::OK, &told))
}

/// Refuses if there is a connection of this name with a credential: `replace: false` prevents overwriting one.
async fn refuse_existing(
    sources: &SourceRegistry,
    slug: &IntegrationSlug,
    owner: &str,
    name: &str,
) -> Result<(), RequestError> {
    let name = ConnectionName::normalised(name).map(|name| name.to_string()).unwrap_or_default();
    match sources.connection_view(slug, owner, &name).await {
        None => Ok(()),
        // It holds no credential that could be lost: a newly added source has such a connection.
        Some(view) if view.template == "none" => Ok(()),
        Some(_) => Err(RequestError::tagged_conflict(
            "ConnectionExistsError",
            format!(
                "There is a connection {slug}.{owner}.{name} already; airlock connection add --replace writes over it."
            ),
        )),
    }
}

/// `GET /api/connections/{owner}/{integration}/{name}`.
pub(crate) async fn show_connection(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((owner, integration, name)): ConnectionPath,
) -> Result<Response, RequestError> {
    catalogue::looks(&caller)?;
    let slug = catalogue::parse_slug(&integration)?;
    let view = catalogue::sources(&app)?.connection_view(&slug, &owner, &name).await;
    let view = view.ok_or_else(|| unknown_connection(&owner, &integration, &name))?;
    Ok(json_response(StatusCode::OK, &view.row()))
}

/// `PATCH /api/connections/{owner}/{integration}/{name} {description?, template?, value?, values?, from?, oauth?}`.
pub(crate) async fn change(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((owner, integration, name)): ConnectionPath,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let (sources, slug) = (catalogue::sources(&app)?, catalogue::parse_slug(&integration)?);
    let before = sources.connection(&slug, &owner, &name).await;
    let before = before.ok_or_else(|| unknown_connection(&owner, &integration, &name))?;
    let words = ["template", "value", "values", "from", "oauth"];
    let proves_anew = words.iter().any(|name| members.contains_key(*name));
    let mut made = match proves_anew {
        true => sources.offered(&slug, offer(&members)?).map_err(wrong)?,
        false => before.clone(),
    };
    made.owner = before.owner;
    made.description = member(&members, "description", "a string")?.or(before.description);
    made.health = member(&members, "health", "a string")?.or(before.health);
    let view = sources.connect(&slug, &name, made).await?;
    Ok(json_response(StatusCode::OK, &view.row()))
}

/// `DELETE /api/connections/{owner}/{integration}/{name}`.
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((owner, integration, name)): ConnectionPath,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let slug = catalogue::parse_slug(&integration)?;
    let removed = catalogue::sources(&app)?.disconnect(&slug, &owner, &name).await?;
    Ok(json_response(StatusCode::OK, &json!({ "removed": removed })))
}

/// `POST /api/connections/{owner}/{integration}/{name}/refresh`: reloads its tools.
pub(crate) async fn refresh(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((owner, integration, name)): ConnectionPath,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    catalogue::sources(&app)?.refresh(&catalogue::parse_slug(&integration)?).await?;
    let prefix = format!("{integration}.{owner}.{name}.");
    let snapshot = app.engine.catalogue().snapshot();
    let tools = snapshot.tools().filter(|found| found.path().starts_with(&prefix));
    Ok(json_response(StatusCode::OK, &tools.map(|found| catalogue::tool(&found)).collect()))
}

/// `POST /api/connections/{owner}/{integration}/{name}/health`: checks whether its source accepts the credential.
pub(crate) async fn health(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((owner, integration, name)): ConnectionPath,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let slug = catalogue::parse_slug(&integration)?;
    let found = catalogue::sources(&app)?.health(&slug, &owner, &name).await?;
    let told = json!({ "healthy": found.is_healthy, "code": found.code, "message": found.message });
    Ok(json_response(StatusCode::OK, &told))
}

/// `POST /api/connections/{owner}/{integration}/{name}/handoff`: creates an address at which a person enters its
/// secret.
pub(crate) async fn hand_off(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((owner, integration, name)): ConnectionPath,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let slug = catalogue::parse_slug(&integration)?;
    let url = catalogue::sources(&app)?.hand_off(&slug, &owner, &name).await?;
    Ok(json_response(StatusCode::OK, &json!({ "url": url })))
}

/// `GET /api/handoffs/{state}`: what is to be entered. Needs no token: the address itself is the authorization.
pub(crate) async fn handed_off(
    State(app): State<Arc<AppState>>,
    Path(state): Path<String>,
) -> Result<Response, RequestError> {
    let found = catalogue::sources(&app)?.handoff_form(&state).await?;
    let found = found.ok_or_else(RequestError::no_callback)?;
    let told = json!({ "connection": found.connection, "api": found.api, "host": found.host,
                       "label": found.label, "fields": found.fields });
    Ok(json_response(StatusCode::OK, &told))
}

/// `POST /api/handoffs/{state} {values}`: accepts the entered values, once.
pub(crate) async fn enter_secret(
    State(app): State<Arc<AppState>>,
    Path(state): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    let members = members(&body)?;
    let values: Option<BTreeMap<String, String>> =
        member(&members, "values", "an object of strings")?;
    match catalogue::sources(&app)?.enter_secret(&state, values.unwrap_or_default()).await? {
        true => Ok(json_response(StatusCode::OK, &json!({ "entered": true }))),
        false => Err(RequestError::no_callback()),
    }
}

/// `GET /api/providers`.
pub(crate) async fn providers(caller: Caller) -> Result<Response, RequestError> {
    catalogue::looks(&caller)?;
    Ok(json_response(StatusCode::OK, &json!(PROVIDERS)))
}

/// `GET /api/providers/{key}/items`: the known items of a provider; only the vault can be listed.
pub(crate) async fn items(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path(provider): Path<String>,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    if !PROVIDERS.contains(&provider.as_str()) {
        let message =
            format!("There is no provider {provider}; there are {}.", PROVIDERS.join(", "));
        return Err(RequestError::not_found("CredentialProviderNotFoundError", message));
    }
    let views = match provider.as_str() {
        "vault" => catalogue::sources(&app)?.connections().await,
        _ => vec![],
    };
    let item = |view: &ConnectionView| {
        let id = format!("{}/{}/{}", view.integration, view.owner, view.name);
        json!({ "id": id, "name": view.name })
    };
    let kept = views.iter().filter(|view| view.template != "none");
    Ok(json_response(StatusCode::OK, &kept.map(item).collect()))
}

fn offer(members: &ObjectMembers<'_>) -> Result<CredentialOffer, RequestError> {
    let bad = |error: BadBody| wrong(error.to_string());
    let plain = |(name, value): (String, String)| (name, SecretText::Plain(value));
    let value: Option<String> = member(members, "value", "a string").map_err(bad)?;
    let values: Option<BTreeMap<String, String>> =
        member(members, "values", "an object of strings").map_err(bad)?;
    let values = values.filter(|values| !values.is_empty());
    let from: Option<ValueOrigin> = member(members, "from", "{provider, id}").map_err(bad)?;
    let handoff: Option<bool> = member(members, "handoff", "true or false").map_err(bad)?;
    let is_handed_off = handoff.unwrap_or(false);
    let template: Option<String> = member(members, "template", "a string").map_err(bad)?;
    let oauth: Option<OAuthConfig> =
        member(members, "oauth", "a table as in airlock.toml").map_err(bad)?;
    let is_oauth = oauth.is_some() || template.as_deref() == Some("oauth");
    // With the template `none`, an empty value counts as no value: clients of Executor send one.
    let value = value.filter(|value| !(value.is_empty() && template.as_deref() == Some("none")));
    let names_place = matches!(template.as_deref(), Some("header" | "query" | "cookie"));
    let is_twofold = values.is_some() && !names_place && (value.is_some() || from.is_some());
    if is_twofold {
        let why = "One of \"value\", \"values\" and \"from\" says what the secret is.";
        return Err(wrong(why.into()));
    }
    let ways = [value.is_some(), from.is_some(), is_handed_off, is_oauth];
    if ways.iter().filter(|is_given| **is_given).count() > 1 {
        let why = "One of \"value\", \"from\", \"oauth\" and \"handoff\" says where the secret comes from.";
        return Err(wrong(why.into()));
    }
    if value.as_deref() == Some("") || from.as_ref().is_some_and(|from| from.id.is_empty()) {
        return Err(wrong("The secret is empty: say what it is, or where it is.".into()));
    }
    let elsewhere = match from {
        None => None,
        Some(ValueOrigin { provider, id }) => {
            Some(SecretText::from_provider(&provider, &id).ok_or_else(|| {
                let message =
                    format!("There is no provider {provider}; there are env, file and cmd.");
                RequestError::tagged_conflict("CredentialProviderNotRegisteredError", message)
            })?)
        }
    };
    Ok(CredentialOffer {
        template,
        value: value.map(SecretText::Plain).or(elsewhere),
        values: values.unwrap_or_default().into_iter().map(plain).collect(),
        oauth,
        is_handed_off,
    })
}

fn wrong(why: String) -> RequestError {
    RequestError::tagged("InvalidConnectionInputError", why)
}

fn unknown_connection(owner: &str, integration: &str, name: &str) -> RequestError {
    let message = format!("There is no connection {integration}.{owner}.{name}.");
    RequestError::not_found("ConnectionNotFoundError", message).about_source(integration)
}
