//! Visits to authorization servers from their beginning by hand to the browser that comes back.

use super::grant::Grant;
use super::token::Denied;
use super::{Need, Purpose, begin, client, described, metadata, named, sentence};
use crate::config::Flow;
use crate::note_expiry::NoteExpiry;
use crate::proof::{Key, Trust};
use crate::vault::VaultError;
use crate::visits::{Visit, hashed};
use crate::{ConnectionView, SourceError, Sources};
use lifecycle::Answer;
use serde::{Deserialize, Serialize};
use tools::Slug;

/// How long the end of a visit is told to whoever began it by hand.
const NOTE_MS_MAX: i64 = 10 * 60 * 1_000;

/// What came of a browser that came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// There is a grant now.
    Done,
    /// The person said no.
    Declined,
    /// Nobody is expected, or not any more.
    Unknown,
    /// The server that sent it is another than it was sent to, or gives no token.
    Failed(String),
}

/// What became of a wish for tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// There is a token: nobody has to agree.
    Connected,
    /// A person goes there; whoever has the address may.
    Visit {
        /// Where.
        url: String,
        /// The secret that they bring back.
        state: String,
    },
}

/// How a visit ended.
#[derive(Serialize, Deserialize)]
struct Note {
    /// What went wrong; none where nothing did.
    why: Option<String>,
    #[serde(flatten)]
    expiry: NoteExpiry,
}

impl Sources {
    /// A browser came back from an authorization server with these parameters.
    pub async fn returned(&self, query: &[(String, String)]) -> Result<Returned, SourceError> {
        let one = |name: &str| {
            let mut values = query.iter().filter(|(key, _)| key == name);
            values.next().filter(|_| values.next().is_none()).map(|(_, value)| value.as_str())
        };
        let trust = &self.0.trust;
        let Some(state) = one("state") else { return Ok(Returned::Unknown) };
        let Some(expected) = trust.expected(state).await? else { return Ok(Returned::Unknown) };
        let purpose = serde_json::from_str::<Purpose>(&expected.purpose).ok();
        let (Some(purpose), Some(key)) =
            (purpose.filter(|purpose| purpose.device.is_none()), expected.key())
        else {
            return Ok(Returned::Unknown);
        };
        // Whoever wants to join this visit waits until it is known how it ended.
        let turn = trust.turn(&key);
        let _turn = turn.lock().await;
        let Some(visit) = trust.end(state).await? else { return Ok(Returned::Unknown) };
        let again = Answer::Accept { content: None };
        let is_from =
            metadata::is_from(purpose.issuer.as_deref(), purpose.names_itself, one("iss"));
        let (returned, answer) = match (one("code"), one("error")) {
            _ if !is_from => {
                (Returned::Failed("another server answered than was asked".into()), again)
            }
            (_, Some("access_denied")) => (Returned::Declined, Answer::Decline),
            (Some(code), None) => (self.exchanged(&purpose, &key, code).await?, again),
            (_, _) => (Returned::Failed("the server sent no code".into()), again),
        };
        trust.wake(visit, &answer);
        trust.note_end(state, &returned).await?;
        if returned == Returned::Done {
            self.read_again(key.slug);
        }
        Ok(returned)
    }

    /// Which connection a state is for; none where nobody is expected.
    pub async fn awaited(&self, state: &str) -> Result<Option<ConnectionView>, SourceError> {
        let visit = self.0.trust.expected(state).await?;
        let Some(key) = visit.as_ref().and_then(Visit::key) else { return Ok(None) };
        Ok(self.connection_view(&key.slug, &key.owner, &key.name).await)
    }

    /// How a visit ended, once; none while it goes on, and where there was none.
    pub async fn ended(&self, state: &str) -> Result<Option<Result<(), String>>, SourceError> {
        let trust = &self.0.trust;
        let note = trust.vault.take(&ended_as(state)).await?;
        let note = note.and_then(|text| serde_json::from_str::<Note>(&text).ok());
        let note = note.filter(|note| !note.expiry.has_passed(&trust.engine));
        Ok(note.map(|note| note.why.map_or(Ok(()), Err)))
    }

    /// Ends the visit of a state before anybody has come. Says whether there was one.
    pub async fn give_up(&self, state: &str) -> Result<bool, SourceError> {
        let visit = self.0.trust.end(state).await?;
        let was_there = visit.is_some();
        visit.into_iter().for_each(|visit| self.0.trust.wake(visit, &Answer::Decline));
        Ok(was_there)
    }

    async fn exchanged(
        &self,
        purpose: &Purpose,
        key: &Key,
        code: &str,
    ) -> Result<Returned, SourceError> {
        let members = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", purpose.redirect.as_deref().unwrap_or_default()),
            ("code_verifier", purpose.verifier.as_deref().unwrap_or_default()),
        ];
        match purpose.counter.tokens(&self.0.trust, &members).await {
            Ok(granted) => {
                let grant = Grant { scopes: purpose.scopes.clone(), ..granted };
                self.0.trust.keep_grant(key, &grant).await?;
                Ok(Returned::Done)
            }
            Err(Denied::Refused(why) | Denied::Failed(why)) => {
                client::forget_if_unknown(&self.0.trust, &purpose.counter.client, &why).await?;
                tracing::warn!(connection = key.shown(), why, "a code became no token");
                Ok(Returned::Failed("the server gave no token for its code".into()))
            }
        }
    }

    /// Where a person agrees that this connection is used: whoever has the address may go there.
    pub async fn authorize(
        &self,
        slug: &Slug,
        owner: &str,
        name: &str,
    ) -> Result<Begun, SourceError> {
        let held = self.held(slug, owner, name).await?;
        let held = named(held).await.map_err(|trouble| SourceError::Wrong(trouble.message))?;
        let Some(oauth) = held.connection.oauth.clone() else {
            return Err(SourceError::Wrong(
                "that connection does not get its tokens by OAuth".into(),
            ));
        };
        if described::flow(&held, &oauth) == Flow::ClientCredentials {
            let token = super::at_hand(&held, &oauth).await;
            token.map_err(|trouble| SourceError::Wrong(sentence(trouble.into())))?;
            return Ok(Begun::Connected);
        }
        let begun = begin(&held, &oauth, Need::default(), None).await;
        let begun = begun.map_err(|none| SourceError::Wrong(sentence(none)))?;
        let state = self.0.trust.state_of(&held.key).await?.unwrap_or_default();
        Ok(begun.map_or(Begun::Connected, |(_, url)| Begun::Visit { url, state }))
    }

    /// Ends what was begun for this connection. Says whether there was something.
    pub async fn call_off(
        &self,
        slug: &Slug,
        owner: &str,
        name: &str,
    ) -> Result<bool, SourceError> {
        let held = self.held(slug, owner, name).await?;
        Ok(self.0.trust.call_off(&held.key).await?)
    }

    /// Reads a source again that could not be read without a token.
    fn read_again(&self, slug: Slug) {
        let (sources, closing) = (self.clone(), self.0.closing.clone());
        let reading = async move {
            let snapshot = sources.0.setup.engine.catalogue().snapshot();
            let is_troubled =
                snapshot.card(slug.as_str()).is_some_and(|card| card.trouble.is_some());
            if is_troubled && let Err(error) = sources.refresh(&slug).await {
                tracing::warn!(source = %slug, "{error}");
            }
        };
        self.0.tasks.spawn(async move { closing.run_until_cancelled(reading).await });
    }
}

impl Trust {
    /// Remembers for a while how a visit ended, and forgets what was remembered before.
    async fn note_end(&self, state: &str, returned: &Returned) -> Result<(), VaultError> {
        let why = match returned {
            Returned::Done => None,
            Returned::Declined => Some("the person did not agree".to_owned()),
            Returned::Failed(why) => Some(why.clone()),
            Returned::Unknown => return Ok(()),
        };
        for name in self.vault.names("ended/").await? {
            let old = self.vault.get(&name).await?;
            let old = old.and_then(|text| serde_json::from_str::<Note>(&text).ok());
            if old.is_none_or(|note| note.expiry.has_passed(&self.engine)) {
                self.vault.remove(&name).await?;
            }
        }
        let note = Note { why, expiry: NoteExpiry::after(&self.engine, NOTE_MS_MAX) };
        let text =
            serde_json::to_string(&note).map_err(|error| VaultError::Machine(error.to_string()))?;
        self.vault.put(&ended_as(state), &text).await
    }
}

fn ended_as(state: &str) -> String {
    format!("ended/{}", hashed(state))
}
