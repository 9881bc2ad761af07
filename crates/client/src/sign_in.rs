//! `/api/sign-in` and `/api/sessions`: signs a person's browser in, and lists the browsers that are signed in.

use crate::{AirlockClient, Error};
use hyper::Method;
use lifecycle::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A one-use code and the time at which it expires, in milliseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignInCode {
    /// The code.
    pub code: String,
    /// When it expires.
    pub expires: i64,
    /// The origin of the server's pages; a server of an earlier version does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A browser that is signed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BrowserSessionLine {
    /// Names the session; not a secret.
    pub id: String,
    /// The token that it acts for.
    pub name: String,
    /// When the browser signed in.
    pub created: i64,
    /// When the session ends.
    pub expires: i64,
    /// `browser` where all tabs share it, `tab` where it is one tab's.
    pub kind: String,
    /// The browser's user agent.
    pub agent: String,
}

#[derive(Deserialize)]
struct SessionList {
    sessions: Vec<BrowserSessionLine>,
}

#[derive(Deserialize)]
struct SessionAnswer {
    /// Servers of earlier versions do not send it.
    origin: Option<String>,
}

impl AirlockClient {
    /// The origin of links to the server's pages; the server's own address where it does not name one.
    pub async fn page_origin(&self) -> Result<String, Error> {
        let session: SessionAnswer = self.asked(Method::GET, "/api/session", None).await?;
        Ok(session.origin.unwrap_or_else(|| self.base_url().to_owned()))
    }

    /// Returns the address of a page with a single-use code that signs a browser in. `path` begins with `/`.
    pub async fn sign_in_link(&self, path: &str) -> Result<String, Error> {
        let minted: SignInCode = self.asked(Method::POST, CODES, None).await?;
        let origin = minted.origin.as_deref().unwrap_or_else(|| self.base_url());
        Ok(format!("{origin}{path}#code={}", minted.code))
    }

    /// Returns a single-use code that raises the rights of a signed-in browser's tab for an hour.
    pub async fn elevation_code(&self) -> Result<SignInCode, Error> {
        let body = Json::from_value(&json!({ "admin": true }));
        let body = body.map_err(|error| Error::Unusable(error.to_string()))?;
        self.asked(Method::POST, CODES, Some(&body)).await
    }

    /// Lists the browsers that are signed in, newest first.
    pub async fn browser_sessions(&self) -> Result<Vec<BrowserSessionLine>, Error> {
        let list: SessionList = self.asked(Method::GET, "/api/sessions", None).await?;
        Ok(list.sessions)
    }

    /// Signs a browser out.
    pub async fn end_browser_session(&self, id: &str) -> Result<(), Error> {
        let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        self.send_request(Method::DELETE, &format!("/api/sessions/{id}"), None).await.map(drop)
    }
}

const CODES: &str = "/api/sign-in/codes";
