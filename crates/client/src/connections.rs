//! Connections of sources and tokens of clients, for administrators.

use crate::{AirlockClient, Error};
use hyper::Method;
use lifecycle::{AnswerRole, Json};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A connection as the server lists it. It names the kind of credential, never its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLine {
    /// The path prefix of its tools.
    pub address: String,
    /// The kind of credential: `none`, `bearer`, `oauth` and others.
    pub template: String,
    /// A description for people.
    pub description: String,
    /// The server's JSON, unchanged.
    pub json: Value,
}

/// The parameters of a new connection.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are those of the protocol")]
pub struct NewConnection {
    pub owner: String,
    pub integration: String,
    pub name: String,
    pub template: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub handoff: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub replace: bool,
}

impl std::fmt::Debug for NewConnection {
    /// Omits the credential, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewConnection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AirlockClient {
    /// Lists all connections.
    pub async fn connections(&self) -> Result<Vec<ConnectionLine>, Error> {
        let listed: Vec<Value> = self.asked(Method::GET, "/api/connections", None).await?;
        Ok(listed.into_iter().map(line).collect())
    }

    /// Creates a connection.
    pub async fn add_connection(&self, new: &NewConnection) -> Result<ConnectionLine, Error> {
        self.asked(Method::POST, "/api/connections", Some(&body(new)?)).await.map(line)
    }

    /// Removes a connection; returns whether it existed.
    pub async fn remove_connection(
        &self,
        owner: &str,
        integration: &str,
        name: &str,
    ) -> Result<bool, Error> {
        let path: Vec<_> = [owner, integration, name].map(escaped).into();
        let path = format!("/api/connections/{}", path.join("/"));
        let said: Value = self.asked(Method::DELETE, &path, None).await?;
        Ok(said["removed"] == true)
    }

    /// Performs an action on a connection: `refresh`, `health` or `handoff`.
    pub async fn about_connection(
        &self,
        [owner, integration, name]: [&str; 3],
        what: &str,
    ) -> Result<Value, Error> {
        let path: Vec<_> = [owner, integration, name, what].map(escaped).into();
        self.asked(Method::POST, &format!("/api/connections/{}", path.join("/")), None).await
    }

    /// Returns the page on which a person authorizes the connection.
    pub async fn authorize_connection(
        &self,
        owner: &str,
        integration: &str,
        name: &str,
    ) -> Result<String, Error> {
        let body = body(&json!({ "owner": owner, "integration": integration, "name": name }))?;
        let said: Value = self.asked(Method::POST, "/api/oauth/start", Some(&body)).await?;
        Ok(said["url"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the state of the vault.
    pub async fn vault(&self) -> Result<Value, Error> {
        self.asked(Method::GET, "/api/vault", None).await
    }

    /// Performs an action on the vault: `rotate`, `export` or `import`.
    pub async fn about_vault(&self, what: &str, members: &Value) -> Result<Value, Error> {
        self.asked(Method::POST, &format!("/api/vault/{}", escaped(what)), Some(&body(members)?))
            .await
    }

    /// Returns the settings that apply to every server of the data directory.
    pub async fn settings(&self) -> Result<Vec<Value>, Error> {
        let reply: Value = self.asked(Method::GET, "/api/settings", None).await?;
        let settings = reply["settings"].as_array().cloned();
        settings.ok_or_else(|| Error::Protocol("no list of settings".into()))
    }

    /// Returns the changes of settings, oldest first.
    pub async fn setting_changes(&self) -> Result<Vec<Value>, Error> {
        let reply: Value = self.asked(Method::GET, "/api/settings/history", None).await?;
        let changes = reply["changes"].as_array().cloned();
        changes.ok_or_else(|| Error::Protocol("no list of changes".into()))
    }

    /// Changes a setting.
    pub async fn set_setting(&self, name: &str, value: &str) -> Result<Value, Error> {
        let body = body(&json!({ "name": name, "value": value }))?;
        self.asked(Method::POST, "/api/settings", Some(&body)).await
    }

    /// Lists all tokens, without their secrets.
    pub async fn tokens(&self) -> Result<Vec<Value>, Error> {
        let said: Value = self.asked(Method::GET, "/api/tokens", None).await?;
        let tokens = said["tokens"].as_array().cloned();
        tokens.ok_or_else(|| Error::Protocol("no list of tokens".into()))
    }

    /// Mints a token. Only this reply contains its secret.
    pub async fn add_token(
        &self,
        name: &str,
        scopes: &[&str],
        answers: AnswerRole,
    ) -> Result<Value, Error> {
        let body = body(&new_token(name, scopes, answers))?;
        self.asked(Method::POST, "/api/tokens", Some(&body)).await
    }

    /// Changes the answer role of a token.
    pub async fn set_token(&self, name: &str, answers: AnswerRole) -> Result<Value, Error> {
        let body = body(&json!({ "answers": answers }))?;
        self.asked(Method::PATCH, &format!("/api/tokens/{}", escaped(name)), Some(&body)).await
    }

    /// Like `add_token`, for a name that an earlier caller had: the token gets the executions that are retained of that
    /// caller.
    pub async fn take_over_token(
        &self,
        name: &str,
        scopes: &[&str],
        answers: AnswerRole,
    ) -> Result<Value, Error> {
        let mut token = new_token(name, scopes, answers);
        token["takeOver"] = true.into();
        self.asked(Method::POST, "/api/tokens", Some(&body(&token)?)).await
    }

    /// Removes a token: its secret is no longer valid.
    pub async fn remove_token(&self, name: &str) -> Result<(), Error> {
        self.send_request(Method::DELETE, &format!("/api/tokens/{}", escaped(name)), None)
            .await
            .map(drop)
    }
}

fn new_token(name: &str, scopes: &[&str], answers: AnswerRole) -> Value {
    let mut token = json!({ "name": name, "scopes": scopes });
    // Servers of earlier versions do not know this member and would not refuse it.
    if !answers.is_person() {
        token["answers"] = answers.name().into();
    }
    token
}

fn line(json: Value) -> ConnectionLine {
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    let (address, template) = (text("address"), text("template"));
    ConnectionLine { address, template, description: text("description"), json }
}

fn body(value: &impl Serialize) -> Result<Json, Error> {
    Json::from_value(value).map_err(|error| Error::Unusable(error.to_string()))
}

fn escaped(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
