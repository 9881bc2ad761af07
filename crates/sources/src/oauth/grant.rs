//! What a connection was granted: its tokens, sealed, and renewed by one at a time.

use super::token::{Client, Counter, Denied};
use super::{client, described, discover, vault_trouble};
use crate::config::{Flow, OAuth};
use crate::note_expiry::NoteExpiry;
use crate::proof::{Held, Key, Trust};
use crate::vault::VaultError;
use serde::{Deserialize, Serialize};
use tools::envelope::Trouble;
use tools::{Credential, scrub};
use url::Url;

/// Scopes that are asked for at once: what a source wants is added to what was asked for before.
const SCOPES_MAX: usize = 200;

/// The word for an authorization server that says no.
const REFUSED: &str = "oauth_refused";

/// What a connection was granted.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// When it is over, in milliseconds; never, where nobody says.
    #[serde(flatten)]
    pub(super) expiry: Option<NoteExpiry>,
    /// Whether it was renewed because the source did not take the one before: if it is not taken either, only a
    /// person can help.
    pub(super) is_retried: bool,
    pub(super) counter: Counter,
    /// What was asked to be allowed.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// How a grant stands to scopes that a source wants.
pub(super) enum Breadth {
    /// They were asked for, and there is a token that the source has not refused.
    Wide(Credential),
    /// They were asked for, and the source refuses all the same: asking again would not help.
    Exhausted,
    /// They were never asked for.
    Narrow,
}

impl Grant {
    fn is_fresh(&self, trust: &Trust, refused: Option<&str>) -> bool {
        let has_passed = self.expiry.is_some_and(|expiry| expiry.has_passed(&trust.engine));
        !has_passed && refused != Some(self.access_token.as_str())
    }

    /// As it is sent: to the one origin that it is for.
    pub(super) fn credential(&self) -> Credential {
        scrub::learn(&self.access_token);
        self.refresh_token.iter().for_each(|token| scrub::learn(token));
        let bearer = Credential::bearer(&self.access_token);
        match Url::parse(&self.counter.audience) {
            Ok(audience) => bearer.only_for(&audience),
            Err(_) => Credential::none(),
        }
    }
}

impl Trust {
    pub(super) async fn grant(&self, key: &Key) -> Result<Option<Grant>, VaultError> {
        let text = self.vault.get(&kept_as(key)).await?;
        // One that a newer version wrote is asked for anew.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    pub(super) async fn keep_grant(&self, key: &Key, grant: &Grant) -> Result<(), VaultError> {
        let text =
            serde_json::to_string(grant).map_err(|error| VaultError::Machine(error.to_string()))?;
        self.vault.put(&kept_as(key), &text).await
    }

    pub(crate) async fn forget_grant(&self, key: &Key) -> Result<(), VaultError> {
        self.vault.remove(&kept_as(key)).await
    }
}

/// A token that is good, as far as we know: the one there is, or a new one where nobody has to be asked. `refused` was
/// not taken. None where only a person can help. Whoever comes while one is being got waits, and gets the same.
pub(super) async fn usable(
    held: &Held,
    oauth: &OAuth,
    refused: Option<&str>,
) -> Result<Option<Credential>, Trouble> {
    if let Some(grant) = fresh(held, refused).await? {
        return Ok(Some(grant.credential()));
    }
    let turn = held.trust.turn(&held.key);
    let _turn = turn.lock().await;
    if let Some(grant) = fresh(held, refused).await? {
        return Ok(Some(grant.credential()));
    }
    let before = known(held).await?;
    let renewed = match (&before, described::flow(held, oauth)) {
        (_, Flow::ClientCredentials)
            if before.as_ref().is_some_and(|grant| gave_up(grant, refused)) =>
        {
            None
        }
        (_, Flow::ClientCredentials) => Some(ours(held, oauth, &[]).await?),
        (Some(grant), Flow::Code | Flow::Device) if !gave_up(grant, refused) => {
            refreshed(held, grant).await?
        }
        (Some(_) | None, Flow::Code | Flow::Device) => None,
    };
    let Some(mut grant) = renewed else { return Ok(None) };
    grant.is_retried = refused.is_some();
    held.trust.keep_grant(&held.key, &grant).await.map_err(|error| vault_trouble(&error))?;
    Ok(Some(grant.credential()))
}

/// The grant there is, if it is good.
pub(super) async fn fresh(held: &Held, refused: Option<&str>) -> Result<Option<Grant>, Trouble> {
    Ok(known(held).await?.filter(|grant| grant.is_fresh(&held.trust, refused)))
}

/// The grant there is, if it is for where the source's calls go.
async fn known(held: &Held) -> Result<Option<Grant>, Trouble> {
    let grant = held.trust.grant(&held.key).await.map_err(|error| vault_trouble(&error))?;
    let Some(grant) = grant else { return Ok(None) };
    // Who edits where a source is gets no tokens that were given for another.
    let oauth = held.connection.oauth.clone().unwrap_or_default();
    let audience = discover::audience(held, &oauth)?.origin();
    let is_for_it = Url::parse(&grant.counter.audience).is_ok_and(|url| url.origin() == audience);
    Ok(is_for_it.then_some(grant))
}

/// How the grant there is stands to scopes that the source wants, which has not taken `refused`.
pub(super) async fn breadth(
    held: &Held,
    refused: Option<&str>,
    wanted: &[String],
) -> Result<Breadth, Trouble> {
    let grant = known(held).await?;
    let covers = |grant: &Grant| wanted.iter().all(|scope| grant.scopes.contains(scope));
    let Some(grant) = grant.filter(covers) else { return Ok(Breadth::Narrow) };
    Ok(match refused == Some(grant.access_token.as_str()) {
        true => Breadth::Exhausted,
        false => Breadth::Wide(grant.credential()),
    })
}

/// The scopes of a wish and of the grant there is, each once.
pub(super) async fn united(held: &Held, wishes: [&[String]; 2]) -> Result<Vec<String>, Trouble> {
    let grant = held.trust.grant(&held.key).await.map_err(|error| vault_trouble(&error))?;
    let before = grant.map(|grant| grant.scopes).unwrap_or_default();
    let mut united: Vec<String> = vec![];
    for scope in wishes.into_iter().flatten().chain(&before) {
        if !united.contains(scope) && united.len() < SCOPES_MAX {
            united.push(scope.clone());
        }
    }
    Ok(united)
}

/// A token for ourselves that allows more; none where the server gives none.
pub(super) async fn ours_widened(
    held: &Held,
    oauth: &OAuth,
    wanted: &[String],
) -> Result<Option<Credential>, Trouble> {
    let turn = held.trust.turn(&held.key);
    let _turn = turn.lock().await;
    match ours(held, oauth, wanted).await {
        Ok(grant) => {
            held.trust
                .keep_grant(&held.key, &grant)
                .await
                .map_err(|error| vault_trouble(&error))?;
            Ok(Some(grant.credential()))
        }
        Err(trouble) if trouble.code == REFUSED => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

fn gave_up(grant: &Grant, refused: Option<&str>) -> bool {
    grant.is_retried && refused == Some(grant.access_token.as_str())
}

/// A new token for an old grant; none where the grant is gone.
async fn refreshed(held: &Held, grant: &Grant) -> Result<Option<Grant>, Trouble> {
    let Some(refresh) = &grant.refresh_token else { return Ok(None) };
    scrub::learn(refresh);
    let members = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
    match grant.counter.tokens(&held.trust, &members).await {
        Ok(mut renewed) => {
            // Servers that do not change refresh tokens do not repeat them.
            renewed.refresh_token = renewed.refresh_token.or_else(|| grant.refresh_token.clone());
            renewed.scopes.clone_from(&grant.scopes);
            Ok(Some(renewed))
        }
        // Expired or revoked: a person agrees anew.
        Err(Denied::Refused(word)) if word == "invalid_grant" => {
            let gone = Grant { refresh_token: None, ..grant.clone() };
            held.trust.keep_grant(&held.key, &gone).await.map_err(|error| vault_trouble(&error))?;
            Ok(None)
        }
        // What is wrong is not the grant, and may be mended where we are known; until then a person can help.
        Err(Denied::Refused(word)) => {
            tracing::warn!(connection = held.key.shown(), word, "a token was not renewed");
            let forgotten = client::forget_if_unknown(&held.trust, &grant.counter.client, &word);
            forgotten.await.map_err(|error| vault_trouble(&error))?;
            Ok(None)
        }
        Err(Denied::Failed(why)) => Err(failed(&why)),
    }
}

/// A token for ourselves that allows what is said and `wanted` besides.
async fn ours(held: &Held, oauth: &OAuth, wanted: &[String]) -> Result<Grant, Trouble> {
    let mut guard = discover::guard(held, oauth).await?;
    if !wanted.is_empty() {
        guard.scopes = united(held, [&guard.scopes, wanted]).await?;
    }
    let client: Client = client::client(held, oauth, &guard, None).await?;
    let counter = super::counter(&guard, client);
    let scope = guard.scopes.join(" ");
    let mut members = vec![("grant_type", "client_credentials")];
    if !scope.is_empty() {
        members.push(("scope", scope.as_str()));
    }
    let granted = counter.tokens(&held.trust, &members).await.map_err(|denied| match denied {
        Denied::Refused(word) => Trouble::new(
            REFUSED,
            format!("The authorization server gives this connection no token: {word}."),
        ),
        Denied::Failed(why) => failed(&why),
    })?;
    Ok(Grant { scopes: guard.scopes, ..granted })
}

fn failed(why: &str) -> Trouble {
    let why = format!("The connection's token could not be renewed: {why}.");
    Trouble { retryable: Some(true), ..Trouble::new("oauth_refresh_failed", why) }
}

fn kept_as(key: &Key) -> String {
    format!("grant/{key}")
}
