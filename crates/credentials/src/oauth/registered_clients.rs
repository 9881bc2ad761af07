//! OAuth clients that were registered at authorization servers beforehand: sealed in the vault by name, and used by
//! connections.

use super::client_identity::register_at;
use super::discover::trouble;
use super::vault_trouble;
use crate::{
    ConnectionConfig, ConnectionProof, CredentialError, Credentials, OAuthConfig, OAuthFlow,
    SecretText,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tools::ConnectionOwner;
use tools::envelope::ToolFailure;
use url::Url;

/// Registered clients: people have one for each service.
const CLIENTS_MAX: usize = 200;

/// An OAuth client that an authorization server knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisteredClient {
    /// `org` or `user`.
    pub owner: String,
    /// The name by which connections refer to it.
    pub slug: String,
    /// How it gets tokens.
    pub flow: OAuthFlow,
    /// The authorization endpoint; empty for flows without one.
    pub authorization_url: String,
    /// The token endpoint.
    pub token_url: String,
    /// Its client id.
    pub client_id: String,
    /// Its client secret; none for a public client.
    pub client_secret: Option<SecretText>,
    /// What its tokens are for.
    pub resource: Option<String>,
    /// How it became known to the server.
    pub origin: ClientOrigin,
}

/// How a client became known to its authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientOrigin {
    /// A person registered it.
    Manual,
    /// Dynamic registration.
    Introduced,
}

impl RegisteredClient {
    fn check_members(&self) -> Result<(), CredentialError> {
        let wrong = |why: &str| CredentialError::Invalid(why.to_owned());
        ConnectionOwner::parse(&self.owner).ok_or_else(|| wrong("owner is \"org\" or \"user\""))?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let begins = self.slug.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || self.slug.len() > 64 || !self.slug.chars().all(is_word) {
            return Err(wrong(
                "slug is a name of letters, digits, - _ and . that begins with a letter",
            ));
        }
        let is_address = |text: &str| {
            Url::parse(text)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        };
        let needs_none = self.flow != OAuthFlow::Code && self.authorization_url.is_empty();
        let agrees_nowhere = !needs_none && !is_address(&self.authorization_url);
        match agrees_nowhere || !is_address(&self.token_url) {
            true => Err(wrong("authorizationUrl and tokenUrl are web addresses")),
            false if self.client_id.is_empty() => Err(wrong("clientId is missing")),
            false => Ok(()),
        }
    }
}

impl Credentials {
    /// Every registered client; secrets stay sealed.
    pub async fn registered_clients(&self) -> Result<Vec<RegisteredClient>, CredentialError> {
        let mut apps = vec![];
        for name in self.vault.names("app/").await? {
            let text = self.vault.get(&name).await?;
            apps.extend(text.and_then(|text| serde_json::from_str::<RegisteredClient>(&text).ok()));
        }
        Ok(apps)
    }

    /// Saves a client in place of one of the same name.
    pub async fn save_client(&self, client: &RegisteredClient) -> Result<(), CredentialError> {
        client.check_members()?;
        let vault = &self.vault;
        let (name, names) = (vault_name(&client.owner, &client.slug), vault.names("app/").await?);
        if names.len() >= CLIENTS_MAX && !names.contains(&name) {
            return Err(CredentialError::Invalid(format!(
                "there are {CLIENTS_MAX} clients, the most there can be"
            )));
        }
        if let Some(SecretText::Plain(secret)) = &client.client_secret {
            tools::scrub::learn(secret);
        }
        let text = serde_json::to_string(client)
            .map_err(|error| CredentialError::Invalid(error.to_string()))?;
        Ok(vault.put(&name, &text).await?)
    }

    /// Registers this client at the address `registration`, and saves it with the identity that the server gives it.
    pub async fn register_client(
        &self,
        registration: &str,
        mut app: RegisteredClient,
    ) -> Result<(), CredentialError> {
        app.client_id = "unknown".into();
        app.check_members()?;
        let wrong = |trouble: ToolFailure| CredentialError::Invalid(trouble.message);
        let place = Url::parse(registration)
            .map_err(|_| wrong(trouble("registrationEndpoint is no address")))?;
        let client = register_at(self, app.flow, &place).await.map_err(wrong)?;
        (app.client_id, app.origin) = (client.id, ClientOrigin::Introduced);
        app.client_secret = client.secret.map(SecretText::Plain);
        self.save_client(&app).await
    }

    /// Deletes a client. Connections that use it fail from then on.
    pub async fn remove_client(&self, owner: &str, slug: &str) -> Result<(), CredentialError> {
        Ok(self.vault.remove(&vault_name(owner, slug)).await?)
    }
}

/// Completes a connection with its registered client, if it names one. Members of the connection win.
pub(crate) async fn with_registered_client(
    proof: ConnectionProof,
) -> Result<ConnectionProof, ToolFailure> {
    let Some(name) = proof.connection.oauth.as_ref().and_then(|oauth| oauth.client.clone()) else {
        return Ok(proof);
    };
    let (owner, slug) = name.split_once('/').unwrap_or(("org", &name));
    let text = proof.credentials.vault.get(&vault_name(owner, slug)).await;
    let text = text.map_err(|error| vault_trouble(&error))?;
    let app = text.and_then(|text| serde_json::from_str::<RegisteredClient>(&text).ok());
    let app = app.ok_or_else(|| trouble(&format!("there is no client {name}")))?;
    let configured = proof.connection.oauth.clone().unwrap_or_default();
    // A flow without consent has no authorization endpoint.
    let agrees_at = Some(app.authorization_url).filter(|url| !url.is_empty());
    let oauth = OAuthConfig {
        flow: configured.flow.or(Some(app.flow)),
        authorization_url: configured.authorization_url.or(agrees_at),
        token_url: configured.token_url.or(Some(app.token_url)),
        client_id: Some(app.client_id),
        client_secret: app.client_secret,
        resource: configured.resource.or(app.resource),
        ..configured
    };
    let connection =
        Arc::new(ConnectionConfig { oauth: Some(oauth), ..(*proof.connection).clone() });
    Ok(ConnectionProof { connection, ..proof })
}

fn vault_name(owner: &str, slug: &str) -> String {
    format!("app/{owner}/{slug}")
}
