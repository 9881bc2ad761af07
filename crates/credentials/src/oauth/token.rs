//! Requests to token endpoints: codes, device codes, refresh tokens and the client's own credentials become tokens.

use super::discover::bounded;
use super::grant::OAuthGrant;
use crate::Credentials;
use crate::note_expiry::NoteExpiry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::http::{ApiRequest, RequestReach};
use tools::{CancelSignal, ToolCredential, scrub};
use url::{Url, form_urlencoded};

/// How long before its expiry a token counts as expired: clocks differ, and requests take a while.
const EARLY_MS_MAX: i64 = 30_000;

/// Longest lifetime of a token that is believed.
const LIFE_MS_MAX: i64 = 366 * 24 * 3_600 * 1_000;

/// The longest token that is accepted: a longer one could be neither sent nor redacted.
const TOKEN_BYTES_MAX: usize = scrub::SECRET_BYTES_MAX;

/// The client id and secret at an authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ClientIdentity {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) secret_in_body: bool,
}

/// Where the tokens of one connection come from, and which origin they are for. Stored with flows and grants.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct TokenEndpoint {
    pub(super) token_url: String,
    /// The address for renewals, if it is another.
    #[serde(default)]
    pub(super) refresh_url: Option<String>,
    pub(super) client: ClientIdentity,
    pub(super) resource: Option<String>,
    /// The only origin that tokens are sent to.
    pub(super) audience: String,
    /// Whether the endpoint may be in a private network.
    pub(super) is_near: bool,
}

/// Why a token endpoint issued no token.
#[derive(Debug)]
pub(super) enum TokenEndpointError {
    /// The server refused, with this error code of the specification.
    Refused(String),
    /// It could not be reached, or its answer could not be read.
    Failed(String),
}

impl TokenEndpoint {
    pub(super) fn reach(&self) -> RequestReach {
        if self.is_near { RequestReach::Anywhere } else { RequestReach::Public }
    }

    /// Requests tokens.
    pub(super) async fn tokens(
        &self,
        credentials: &Credentials,
        members: &[(&str, &str)],
    ) -> Result<OAuthGrant, TokenEndpointError> {
        let asked_at = credentials.host.now().0;
        let is_refresh = members.contains(&("grant_type", "refresh_token"));
        let place = self.refresh_url.as_ref().filter(|_| is_refresh).unwrap_or(&self.token_url);
        let response = self.post(credentials, place, members).await?;
        let text = |name: &str| response[name].as_str().map(str::to_owned);
        let access_token = text("access_token").filter(|token| !token.is_empty());
        let access_token =
            access_token.ok_or_else(|| TokenEndpointError::Failed("it sent no token".into()))?;
        let refresh_token = text("refresh_token");
        if access_token.len().max(refresh_token.as_ref().map_or(0, String::len)) > TOKEN_BYTES_MAX {
            return Err(TokenEndpointError::Failed(format!(
                "it sent more than {TOKEN_BYTES_MAX} bytes as a token"
            )));
        }
        scrub::learn(&access_token);
        // The id token is not used, but it is a secret.
        refresh_token.iter().chain(&text("id_token")).for_each(|token| scrub::learn(token));
        if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(TokenEndpointError::Failed(
                "it sent a token that is no bearer token".into(),
            ));
        }
        let expiry = lifetime_ms(&response).map(|life| {
            NoteExpiry::for_expiry(asked_at + life - EARLY_MS_MAX.min(life / 4), &*credentials.host)
        });
        Ok(OAuthGrant {
            access_token,
            refresh_token,
            expiry,
            is_retried: false,
            scopes: vec![],
            endpoint: self.clone(),
        })
    }

    /// Sends a form to an endpoint of the server, with the client's identity.
    pub(super) async fn post(
        &self,
        credentials: &Credentials,
        to: &str,
        members: &[(&str, &str)],
    ) -> Result<Value, TokenEndpointError> {
        let request = self.request(to, members)?;
        let sent = bounded(&credentials.http)
            .send(request, &ToolCredential::none(), &CancelSignal::never())
            .await;
        let answer = sent.map_err(|error| TokenEndpointError::Failed(error.to_string()))?;
        read_response(answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn request(
        &self,
        to: &str,
        members: &[(&str, &str)],
    ) -> Result<ApiRequest, TokenEndpointError> {
        let url =
            Url::parse(to).map_err(|_| TokenEndpointError::Failed("its address is none".into()))?;
        let mut request = ApiRequest { reach: self.reach(), ..ApiRequest::new(Method::POST, url) };
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(members);
        match &self.client.secret {
            Some(secret) if self.client.secret_in_body => {
                form.append_pair("client_id", &self.client.id);
                form.append_pair("client_secret", secret);
            }
            Some(secret) => {
                let mut basic =
                    HeaderValue::from_str(&basic(&self.client.id, secret)).map_err(|_| {
                        TokenEndpointError::Failed("our name there cannot be sent".into())
                    })?;
                basic.set_sensitive(true);
                request.headers.insert(AUTHORIZATION, basic);
            }
            None => drop(form.append_pair("client_id", &self.client.id)),
        }
        if let Some(resource) = &self.resource {
            form.append_pair("resource", resource);
        }
        request.body = form.finish().into();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers.insert(CONTENT_TYPE, kind);
        request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        Ok(request)
    }
}

/// Interprets an answer. A server error is not a refusal, regardless of its code.
fn read_response(status: StatusCode, response: Value) -> Result<Value, TokenEndpointError> {
    let word = response["error"].as_str().map(|word| word.chars().take(64).collect::<String>());
    match word {
        None if status.is_success() => Ok(response),
        None => Err(TokenEndpointError::Failed(format!("it answered {status}"))),
        Some(word) if is_temporary(status, &word) => {
            Err(TokenEndpointError::Failed(format!("it answered {status}, {word}")))
        }
        Some(word) => Err(TokenEndpointError::Refused(word)),
    }
}

fn is_temporary(status: StatusCode, word: &str) -> bool {
    // Codes of the device flow, which some servers send with this status.
    let is_for_devices = matches!(word, "authorization_pending" | "slow_down");
    status.is_server_error()
        || matches!(word, "server_error" | "temporarily_unavailable")
        || (status == StatusCode::TOO_MANY_REQUESTS && !is_for_devices)
}

/// The lifetime of a token; some servers write the number as a text.
fn lifetime_ms(response: &Value) -> Option<i64> {
    let life = &response["expires_in"];
    let seconds = life.as_f64().or_else(|| life.as_str()?.trim().parse().ok())?;
    Some(((seconds * 1_000.0) as i64).clamp(0, LIFE_MS_MAX))
}

/// Id and secret, each form-encoded (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_proves_itself_as_the_specification_says() {
        assert_eq!(basic("a b", "c:d"), format!("Basic {}", STANDARD.encode("a+b:c%3Ad")));
    }

    #[test]
    fn a_server_in_trouble_has_refused_nothing() {
        let is_refused = |status, word| {
            let answer =
                read_response(StatusCode::from_u16(status).unwrap(), json!({ "error": word }));
            matches!(answer, Err(TokenEndpointError::Refused(said)) if said == word)
        };
        assert!(is_refused(400, "invalid_grant") && is_refused(401, "invalid_client"));
        assert!(is_refused(200, "bad_verification_code"), "some servers say no with a 200");
        for status in [400, 403, 428, 429] {
            assert!(is_refused(status, "slow_down") && is_refused(status, "authorization_pending"));
        }
        assert!(!is_refused(503, "temporarily_unavailable") && !is_refused(500, "invalid_grant"));
        assert!(!is_refused(400, "temporarily_unavailable") && !is_refused(429, "rate_limited"));
    }

    #[test]
    fn a_life_is_a_number_or_the_text_of_one() {
        assert_eq!(lifetime_ms(&json!({ "expires_in": 3600 })), Some(3_600_000));
        assert_eq!(lifetime_ms(&json!({ "expires_in": "3599" })), Some(3_599_000));
        assert_eq!(lifetime_ms(&json!({ "expires_in": -5 })), Some(0));
        assert_eq!(lifetime_ms(&json!({ "expires_in": 1e300 })), Some(LIFE_MS_MAX));
        assert_eq!(lifetime_ms(&json!({ "expires_in": "soon" })), None);
        assert_eq!(lifetime_ms(&json!({})), None);
    }
}
