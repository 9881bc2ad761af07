//! Clients that were registered at authorization servers beforehand: kept by name, sealed, and used by connections.

use super::client::introduced_at;
use super::discover::trouble;
use super::vault_trouble;
use crate::config::{Connection, Flow, OAuth, Text};
use crate::proof::Held;
use crate::{SourceError, Sources};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tools::Owner;
use tools::envelope::Trouble;
use url::Url;

/// Kept clients: people have one for each service.
const APPS_MAX: usize = 200;

/// A client that an authorization server knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct App {
    /// `org` or `user`.
    pub owner: String,
    /// What connections call it.
    pub slug: String,
    /// How it gets tokens.
    pub flow: Flow,
    /// Where a person agrees; empty where nobody needs to.
    pub authorization_url: String,
    /// Where tokens are given.
    pub token_url: String,
    /// What the server calls it.
    pub client_id: String,
    /// What proves that; none for a public client.
    pub client_secret: Option<Text>,
    /// What its tokens are for.
    pub resource: Option<String>,
    /// How it became known there.
    pub origin: AppOrigin,
}

/// How a client became known to its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AppOrigin {
    /// Somebody registered it.
    Manual,
    /// We introduced ourselves.
    Introduced,
}

impl App {
    fn check(&self) -> Result<(), SourceError> {
        let wrong = |why: &str| SourceError::Wrong(why.to_owned());
        Owner::parse(&self.owner).ok_or_else(|| wrong("owner is \"org\" or \"user\""))?;
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
        let needs_none = self.flow != Flow::Code && self.authorization_url.is_empty();
        let agrees_nowhere = !needs_none && !is_address(&self.authorization_url);
        match agrees_nowhere || !is_address(&self.token_url) {
            true => Err(wrong("authorizationUrl and tokenUrl are web addresses")),
            false if self.client_id.is_empty() => Err(wrong("clientId is missing")),
            false => Ok(()),
        }
    }
}

impl Sources {
    /// Every kept client; secrets stay sealed.
    pub async fn apps(&self) -> Result<Vec<App>, SourceError> {
        let mut apps = vec![];
        for name in self.0.setup.vault.names("app/").await? {
            let text = self.0.setup.vault.get(&name).await?;
            apps.extend(text.and_then(|text| serde_json::from_str::<App>(&text).ok()));
        }
        Ok(apps)
    }

    /// Keeps a client; one of the same name gives way.
    pub async fn keep_app(&self, app: &App) -> Result<(), SourceError> {
        app.check()?;
        let vault = &self.0.setup.vault;
        let (name, names) = (kept_as(&app.owner, &app.slug), vault.names("app/").await?);
        if names.len() >= APPS_MAX && !names.contains(&name) {
            return Err(SourceError::Wrong(format!(
                "there are {APPS_MAX} clients, the most there can be"
            )));
        }
        if let Some(Text::Plain(secret)) = &app.client_secret {
            tools::scrub::learn(secret);
        }
        let text =
            serde_json::to_string(app).map_err(|error| SourceError::Wrong(error.to_string()))?;
        Ok(vault.put(&name, &text).await?)
    }

    /// Introduces ourselves at `registration` as this client, which is kept with what the server calls it.
    pub async fn introduce_app(&self, registration: &str, mut app: App) -> Result<(), SourceError> {
        app.client_id = "unknown".into();
        app.check()?;
        let wrong = |trouble: Trouble| SourceError::Wrong(trouble.message);
        let place = Url::parse(registration)
            .map_err(|_| wrong(trouble("registrationEndpoint is no address")))?;
        let client = introduced_at(&self.0.trust, app.flow, &place).await.map_err(wrong)?;
        (app.client_id, app.origin) = (client.id, AppOrigin::Introduced);
        app.client_secret = client.secret.map(Text::Plain);
        self.keep_app(&app).await
    }

    /// Forgets a client. Connections that use it fail from then on.
    pub async fn remove_app(&self, owner: &str, slug: &str) -> Result<(), SourceError> {
        Ok(self.0.setup.vault.remove(&kept_as(owner, slug)).await?)
    }
}

/// The same connection with what its kept client says, where it names one. What the connection says itself counts.
pub(crate) async fn named(held: Held) -> Result<Held, Trouble> {
    let Some(name) = held.connection.oauth.as_ref().and_then(|oauth| oauth.client.clone()) else {
        return Ok(held);
    };
    let (owner, slug) = name.split_once('/').unwrap_or(("org", &name));
    let text = held.trust.vault.get(&kept_as(owner, slug)).await;
    let text = text.map_err(|error| vault_trouble(&error))?;
    let app = text.and_then(|text| serde_json::from_str::<App>(&text).ok());
    let app = app.ok_or_else(|| trouble(&format!("there is no client {name}")))?;
    let said = held.connection.oauth.clone().unwrap_or_default();
    // Where nobody needs to agree, none is kept.
    let agrees_at = Some(app.authorization_url).filter(|url| !url.is_empty());
    let oauth = OAuth {
        flow: said.flow.or(Some(app.flow)),
        authorization_url: said.authorization_url.or(agrees_at),
        token_url: said.token_url.or(Some(app.token_url)),
        client_id: Some(app.client_id),
        client_secret: app.client_secret,
        resource: said.resource.or(app.resource),
        ..said
    };
    let connection = Arc::new(Connection { oauth: Some(oauth), ..(*held.connection).clone() });
    Ok(Held { connection, ..held })
}

fn kept_as(owner: &str, slug: &str) -> String {
    format!("app/{owner}/{slug}")
}
