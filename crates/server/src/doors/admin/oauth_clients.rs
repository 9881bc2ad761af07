//! OAuth clients over HTTP: stored by name, registered, listed and removed. Their secrets are only written, never
//! returned.

use super::{catalogue, json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::PathId;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use credentials::{ClientOrigin, OAuthFlow, RegisteredClient, SecretText, ServerProbe};
use protocols::executor::{ObjectMembers, member, members};
use serde_json::{Value, json};
use sources::SourceError;
use std::sync::Arc;

/// `GET /api/oauth/clients`.
pub(crate) async fn list_oauth_clients(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let kept = catalogue::sources(&app)?.credentials().registered_clients().await?;
    Ok(json_response(StatusCode::OK, &kept.iter().map(client_json).collect()))
}

/// `POST /api/oauth/clients {owner?, slug, grant?, authorizationUrl, tokenUrl, clientId, clientSecret?, resource?}`.
pub(crate) async fn add(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let text = |name: &str| member::<String>(&members, name, "a string");
    let mut made = kept(&members)?;
    made.client_id = text("clientId")?.unwrap_or_default();
    made.client_secret =
        text("clientSecret")?.filter(|secret| !secret.is_empty()).map(SecretText::Plain);
    catalogue::sources(&app)?.credentials().save_client(&made).await?;
    Ok(json_response(StatusCode::OK, &json!({ "client": made.slug })))
}

/// `POST /api/oauth/clients/register-dynamic {owner?, slug, registrationEndpoint, authorizationUrl, tokenUrl,
/// resource?}`: registers this server dynamically.
pub(crate) async fn introduce(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let made = kept(&members)?;
    let slug = made.slug.clone();
    let place: Option<String> = member(&members, "registrationEndpoint", "a string")?;
    let credentials = catalogue::sources(&app)?.credentials();
    let registered = credentials.register_client(&place.unwrap_or_default(), made).await;
    registered.map_err(|error| said(error, "OAuthRegisterDynamicError"))?;
    Ok(json_response(StatusCode::OK, &json!({ "client": slug })))
}

/// `DELETE /api/oauth/clients/{slug} {owner?}`. Succeeds if it is already gone.
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(slug): PathId,
    body: axum::body::Bytes,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = if body.is_empty() { ObjectMembers::new() } else { members(&body)? };
    let owner = catalogue::owner(&members, "owner")?;
    catalogue::sources(&app)?.credentials().remove_client(&owner, &slug).await?;
    Ok(json_response(StatusCode::OK, &json!({ "removed": true })))
}

/// `POST /api/oauth/probe {url}`: returns the authorization servers of an address.
pub(crate) async fn probe(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let url: Option<String> = member(&members(&body)?, "url", "a string")?;
    let found = catalogue::sources(&app)?.credentials().probe(&url.unwrap_or_default()).await;
    let ServerProbe {
        issuer,
        authorization_url,
        token_url,
        registration_url,
        resource,
        scopes,
        takes_documents,
    } = found.map_err(|error| said(error, "OAuthProbeError"))?;
    let told = json!({
        "issuer": issuer,
        "authorizationUrl": authorization_url,
        "tokenUrl": token_url,
        "resource": resource,
        "scopesSupported": scopes,
        "registrationEndpoint": registration_url,
        "clientIdMetadataDocumentSupported": takes_documents,
    });
    Ok(json_response(StatusCode::OK, &told))
}

/// `GET /api/oauth/client-id-metadata.json`. Needs no token: authorization servers read this server's client metadata
/// here.
pub(crate) async fn document(State(app): State<Arc<AppState>>) -> Result<Response, RequestError> {
    let about = catalogue::sources(&app)?.credentials().client_document().await;
    let about =
        about.ok_or_else(|| RequestError::no_route("/api/oauth/client-id-metadata.json"))?;
    let mut response = json_response(StatusCode::OK, &about);
    let headers = [(CACHE_CONTROL, "public, max-age=300")];
    response.headers_mut().remove(CACHE_CONTROL);
    Ok((headers, response).into_response())
}

fn kept(members: &ObjectMembers<'_>) -> Result<RegisteredClient, RequestError> {
    let text = |name: &str| member::<String>(members, name, "a string");
    let flow = match text("grant")?.as_deref() {
        None | Some("authorization_code") => OAuthFlow::Code,
        Some("client_credentials") => OAuthFlow::ClientCredentials,
        Some(_) => {
            let message =
                "The member \"grant\" must be \"authorization_code\" or \"client_credentials\".";
            return Err(RequestError::bad_request(message.to_owned()));
        }
    };
    Ok(RegisteredClient {
        owner: catalogue::owner(members, "owner")?,
        slug: text("slug")?.unwrap_or_default(),
        flow,
        authorization_url: text("authorizationUrl")?.unwrap_or_default(),
        token_url: text("tokenUrl")?.unwrap_or_default(),
        client_id: String::new(),
        client_secret: None,
        resource: text("resource")?,
        origin: ClientOrigin::Manual,
    })
}

fn client_json(kept: &RegisteredClient) -> Value {
    let origin = match kept.origin {
        ClientOrigin::Manual => "manual",
        ClientOrigin::Introduced => "dynamic_client_registration",
    };
    json!({
        "owner": kept.owner,
        "slug": kept.slug,
        "grant": if kept.flow == OAuthFlow::ClientCredentials { "client_credentials" } else { "authorization_code" },
        "authorizationUrl": kept.authorization_url,
        "tokenUrl": kept.token_url,
        "resource": kept.resource,
        "clientId": kept.client_id,
        "origin": { "kind": origin },
    })
}

/// Converts a source error into a response with a tag that clients know.
pub(super) fn said(error: impl Into<SourceError>, tag: &'static str) -> RequestError {
    let error = error.into();
    let SourceError::Wrong(why) = error else { return error.into() };
    RequestError::tagged(tag, why)
}
