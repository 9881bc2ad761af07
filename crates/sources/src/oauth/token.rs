//! Speaks with token endpoints: codes, device codes, refreshes and our own credentials become tokens.

use super::discover::bounded;
use super::grant::Grant;
use crate::proof::Trust;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::http::{Outgoing, Reach};
use tools::{CancelSignal, Credential, scrub};
use url::{Url, form_urlencoded};

/// How far before its end a token counts as over: clocks differ, and requests take a while.
const EARLY_MS_MAX: i64 = 30_000;

/// Longest life of a token that is believed.
const LIFE_MS_MAX: i64 = 366 * 24 * 3_600 * 1_000;

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
        scrub::learn(&access_token);
        let refresh_token = text("refresh_token");
        // What says who the person is goes nowhere, and is known all the same.
        refresh_token.iter().chain(&text("id_token")).for_each(|token| scrub::learn(token));
        if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(Denied::Failed("it sent a token that is no bearer token".into()));
        }
        let life_ms = said["expires_in"].as_f64().map(|seconds| (seconds * 1_000.0) as i64);
        let expires_at = life_ms.map(|life| {
            let life = life.clamp(0, LIFE_MS_MAX);
            asked_at + life - EARLY_MS_MAX.min(life / 4)
        });
        Ok(Grant {
            access_token,
            refresh_token,
            expires_at,
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
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match (answer.status.is_success(), said["error"].as_str()) {
            (true, None) => Ok(said),
            (_, Some(error)) => Err(Denied::Refused(error.chars().take(64).collect())),
            (false, None) => Err(Denied::Failed(format!("it answered {}", answer.status))),
        }
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

/// Name and secret, each encoded as a form is (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_proves_itself_as_the_specification_says() {
        assert_eq!(basic("a b", "c:d"), format!("Basic {}", STANDARD.encode("a+b:c%3Ad")));
    }
}
