//! Speaks with token endpoints: codes, device codes, refreshes and our own credentials become tokens.

use super::discover::bounded;
use super::grant::Grant;
use crate::note_expiry::NoteExpiry;
use crate::proof::Trust;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::http::{Outgoing, Reach};
use tools::{CancelSignal, Credential, scrub};
use url::{Url, form_urlencoded};

/// How far before its end a token counts as over: clocks differ, and requests take a while.
const EARLY_MS_MAX: i64 = 30_000;

/// Longest life of a token that is believed.
const LIFE_MS_MAX: i64 = 366 * 24 * 3_600 * 1_000;

/// The longest token that is taken: what is longer could neither be sent nor blotted out.
const TOKEN_BYTES_MAX: usize = scrub::SECRET_BYTES_MAX;

/// Who we are at an authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) secret_in_body: bool,
}

/// Where tokens of one connection come from, and whom they are for. Kept with visits and grants.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Counter {
    pub(super) token_url: String,
    /// Where tokens are renewed, if that is elsewhere.
    #[serde(default)]
    pub(super) refresh_url: Option<String>,
    pub(super) client: Client,
    pub(super) resource: Option<String>,
    /// The only origin that tokens are sent to.
    pub(super) audience: String,
    /// Whether the endpoint may be in a network of ours.
    pub(super) is_near: bool,
}

/// Why there is no token.
#[derive(Debug)]
pub(super) enum Denied {
    /// The server says no, in one word of the specification.
    Refused(String),
    /// It could not be asked, or not be understood.
    Failed(String),
}

impl Counter {
    pub(super) fn reach(&self) -> Reach {
        if self.is_near { Reach::Anywhere } else { Reach::Public }
    }

    /// Asks for tokens.
    pub(super) async fn tokens(
        &self,
        trust: &Trust,
        members: &[(&str, &str)],
    ) -> Result<Grant, Denied> {
        let asked_at = trust.engine.clock().now().0;
        let is_refresh = members.contains(&("grant_type", "refresh_token"));
        let place = self.refresh_url.as_ref().filter(|_| is_refresh).unwrap_or(&self.token_url);
        let said = self.post(trust, place, members).await?;
        let text = |name: &str| said[name].as_str().map(str::to_owned);
        let access_token = text("access_token").filter(|token| !token.is_empty());
        let access_token = access_token.ok_or_else(|| Denied::Failed("it sent no token".into()))?;
        let refresh_token = text("refresh_token");
        if access_token.len().max(refresh_token.as_ref().map_or(0, String::len)) > TOKEN_BYTES_MAX {
            return Err(Denied::Failed(format!(
                "it sent more than {TOKEN_BYTES_MAX} bytes as a token"
            )));
        }
        scrub::learn(&access_token);
        // What says who the person is goes nowhere, and is known all the same.
        refresh_token.iter().chain(&text("id_token")).for_each(|token| scrub::learn(token));
        if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(Denied::Failed("it sent a token that is no bearer token".into()));
        }
        let expiry = life_ms(&said).map(|life| {
            NoteExpiry::at(asked_at + life - EARLY_MS_MAX.min(life / 4), &trust.engine)
        });
        Ok(Grant {
            access_token,
            refresh_token,
            expiry,
            is_retried: false,
            scopes: vec![],
            counter: self.clone(),
        })
    }

    /// A form to an endpoint of the server, with who we are.
    pub(super) async fn post(
        &self,
        trust: &Trust,
        to: &str,
        members: &[(&str, &str)],
    ) -> Result<Value, Denied> {
        let request = self.request(to, members)?;
        let sent =
            bounded(&trust.http).send(request, &Credential::none(), &CancelSignal::never()).await;
        let answer = sent.map_err(|error| Denied::Failed(error.to_string()))?;
        heard(answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn request(&self, to: &str, members: &[(&str, &str)]) -> Result<Outgoing, Denied> {
        let url = Url::parse(to).map_err(|_| Denied::Failed("its address is none".into()))?;
        let mut request = Outgoing { reach: self.reach(), ..Outgoing::new(Method::POST, url) };
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(members);
        match &self.client.secret {
            Some(secret) if self.client.secret_in_body => {
                form.append_pair("client_id", &self.client.id);
                form.append_pair("client_secret", secret);
            }
            Some(secret) => {
                let mut basic = HeaderValue::from_str(&basic(&self.client.id, secret))
                    .map_err(|_| Denied::Failed("our name there cannot be sent".into()))?;
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

/// What an endpoint's answer means. A server in trouble has refused nothing, whatever it calls its trouble.
fn heard(status: StatusCode, said: Value) -> Result<Value, Denied> {
    let word = said["error"].as_str().map(|word| word.chars().take(64).collect::<String>());
    match word {
        None if status.is_success() => Ok(said),
        None => Err(Denied::Failed(format!("it answered {status}"))),
        Some(word) if will_pass(status, &word) => {
            Err(Denied::Failed(format!("it answered {status}, {word}")))
        }
        Some(word) => Err(Denied::Refused(word)),
    }
}

fn will_pass(status: StatusCode, word: &str) -> bool {
    // What a device that asks too often is told, also with this status.
    let is_for_devices = matches!(word, "authorization_pending" | "slow_down");
    status.is_server_error()
        || matches!(word, "server_error" | "temporarily_unavailable")
        || (status == StatusCode::TOO_MANY_REQUESTS && !is_for_devices)
}

/// How long a token lives; some servers write the number as a text.
fn life_ms(said: &Value) -> Option<i64> {
    let life = &said["expires_in"];
    let seconds = life.as_f64().or_else(|| life.as_str()?.trim().parse().ok())?;
    Some(((seconds * 1_000.0) as i64).clamp(0, LIFE_MS_MAX))
}

/// Name and secret, each encoded as a form is (RFC 6749, 2.3.1).
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
            let answer = heard(StatusCode::from_u16(status).unwrap(), json!({ "error": word }));
            matches!(answer, Err(Denied::Refused(said)) if said == word)
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
        assert_eq!(life_ms(&json!({ "expires_in": 3600 })), Some(3_600_000));
        assert_eq!(life_ms(&json!({ "expires_in": "3599" })), Some(3_599_000));
        assert_eq!(life_ms(&json!({ "expires_in": -5 })), Some(0));
        assert_eq!(life_ms(&json!({ "expires_in": 1e300 })), Some(LIFE_MS_MAX));
        assert_eq!(life_ms(&json!({ "expires_in": "soon" })), None);
        assert_eq!(life_ms(&json!({})), None);
    }
}
