//! Hand-offs: an address by which a person enters a secret that no agent sees. What they type is meant as it is.

use crate::config::Text;
use crate::proof::{Held, method, variables};
use crate::visits::{self, Visit};
use crate::{SourceError, Sources};
use lifecycle::Answer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tools::envelope::Trouble;
use tools::{NoProof, Request, Slug};

/// Where the page is; the secret follows in the fragment, which browsers send to nobody.
const PAGE: &str = "/connect";

/// What marks a visit as one to our page.
#[derive(Serialize, Deserialize)]
struct Purpose {
    handoff: bool,
}

/// What a person is asked to enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// For which connection, as people read it.
    pub connection: String,
    /// What people call the source.
    pub api: String,
    /// The host that gets what is entered; none where the source is no address.
    pub host: Option<String>,
    /// What the source calls the way.
    pub label: String,
    /// What is wanted.
    pub fields: Vec<String>,
}

/// Asks the person behind a call to enter what is missing.
pub(crate) async fn ask(held: &Held, call: &Request) -> Result<(), NoProof> {
    let url = begin(held, Some(call)).await?;
    let message = format!(
        "The connection {} has no secret yet. Enter it on the page behind this link; nobody but the server sees it.",
        held.key.shown()
    );
    Ok(visits::ask(call, message, url).await?)
}

/// Begins a hand-off, or finds the one that is under way. The address of its page.
async fn begin(held: &Held, call: visits::Waiting<'_>) -> Result<String, NoProof> {
    let origin = held.trust.origin().await.ok_or_else(|| visits::nobody_comes(held))?;
    let turn = held.trust.turn(&held.key);
    let _turn = turn.lock().await;
    let made = held.trust.visit(
        &held.key,
        call,
        |_| true,
        async |state| {
            let page =
                origin.join(PAGE).map_err(|_| Trouble::new("internal", "We have no address."))?;
            let purpose = serde_json::to_string(&Purpose { handoff: true }).unwrap_or_default();
            Ok((format!("{page}#{state}"), purpose))
        },
    );
    Ok(made.await?.url)
}

impl Sources {
    /// An address by which a person enters this connection's secret, once.
    pub async fn hand_off(
        &self,
        slug: &Slug,
        owner: &str,
        name: &str,
    ) -> Result<String, SourceError> {
        let held = self.held(slug, owner, name).await?;
        if held.connection.oauth.is_some() {
            return Err(SourceError::Wrong("that connection gets its tokens by OAuth".into()));
        }
        begin(&held, None).await.map_err(|none| SourceError::Wrong(crate::oauth::sentence(none)))
    }

    /// What the person who holds this secret is asked to enter; none where nobody is expected.
    pub async fn handed_off(&self, state: &str) -> Result<Option<Handoff>, SourceError> {
        let Some(visit) = self.0.trust.expected(state).await? else { return Ok(None) };
        let Some(held) = self.visited(&visit).await else { return Ok(None) };
        Ok(Some(wanted(&held)))
    }

    /// Takes what a person entered, once. Says whether anybody was expected. Those who wait go on.
    pub async fn enter(
        &self,
        state: &str,
        mut values: BTreeMap<String, String>,
    ) -> Result<bool, SourceError> {
        let Some(visit) = self.0.trust.expected(state).await? else { return Ok(false) };
        let Some(held) = self.visited(&visit).await else { return Ok(false) };
        let wanted = wanted(&held);
        values.retain(|name, value| wanted.fields.contains(name) && !value.is_empty());
        if let Some(missing) = wanted.fields.iter().find(|field| !values.contains_key(*field)) {
            return Err(SourceError::Wrong(format!("{missing} is missing")));
        }
        let mut connection = (*held.connection).clone();
        let texts = values.into_iter().map(|(name, value)| (name, Text::Plain(value)));
        connection.values.extend(texts);
        connection.template = Some(connection.kind().to_owned());
        // What cannot be taken does not use the address up.
        connection.check().map_err(SourceError::Wrong)?;
        // Of those who send at the same time, one is let in.
        let Some(visit) = self.0.trust.end(state).await? else { return Ok(false) };
        self.connect(&held.key.slug, &held.key.name, connection).await?;
        self.0.trust.wake(visit, &Answer::Accept { content: None });
        Ok(true)
    }

    async fn visited(&self, visit: &Visit) -> Option<Held> {
        serde_json::from_str::<Purpose>(&visit.purpose).ok().filter(|purpose| purpose.handoff)?;
        let key = visit.key()?;
        self.held(&key.slug, &key.owner, &key.name).await.ok()
    }
}

fn wanted(held: &Held) -> Handoff {
    let method = method(&held.trust.methods(&held.key), held.connection.kind());
    let fields = method.as_ref().map(variables).unwrap_or_default();
    let label = method.map(|method| method.label).unwrap_or_default();
    let snapshot = held.trust.engine.catalogue().snapshot();
    let card = snapshot.card(held.key.slug.as_str());
    let api = card.map_or_else(|| held.key.slug.to_string(), |card| card.title.clone());
    let host = held.trust.target(&held.key).and_then(|url| {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}{port}", url.host_str()?))
    });
    Handoff { connection: held.key.shown(), api, host, label, fields }
}
