//! Visits that people are asked to make: to an authorization server, or to a page of ours where they enter a secret.
//! Each is kept, sealed, under the hash of its secret `state`, so that who comes back after a restart is expected; each
//! ends once. Executions that need the same share one visit.

use crate::note_expiry::NoteExpiry;
use crate::oauth::vault_trouble;
use crate::proof::{Held, Key, Trust};
use crate::vault::{VaultError, random};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::Engine;
use lifecycle::{
    Answer, BuiltinCaller, CallerName, ExecutionId, Failure, QuestionId, QuestionKind, Wish,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tools::envelope::Trouble;
use tools::{NoProof, Request, Slug};

/// How long a person may take: what waits for them waits longer, and is then given another link.
const VISIT_MS_MAX: i64 = 30 * 60 * 1_000;

/// Executions that share one visit; others get one of their own.
const SHARED_MAX: usize = 100;

/// How long a question may take to appear after the visit for it has ended: it was being written down.
const QUESTION_WAIT_MAX: Duration = Duration::from_secs(10);

/// A visit that is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Visit {
    slug: String,
    owner: String,
    name: String,
    /// Where the person goes.
    pub(crate) url: String,
    /// Who waits for its end.
    executions: Vec<ExecutionId>,
    #[serde(flatten)]
    expiry: NoteExpiry,
    /// What its end needs: a JSON text of whoever began it.
    pub(crate) purpose: String,
}

/// Who waits where no execution does: somebody who began the visit by hand.
pub(crate) type Waiting<'c> = Option<&'c Request>;

impl Visit {
    /// Which connection it is for.
    pub(crate) fn key(&self) -> Option<Key> {
        let slug = Slug::parse(&self.slug).ok()?;
        Some(Key { slug, owner: self.owner.clone(), name: self.name.clone() })
    }

    /// Whether the time of the visit has passed.
    pub(crate) fn is_over(&self, engine: &Engine) -> bool {
        self.expiry.has_passed(engine)
    }
}

/// A secret for one visit.
pub(crate) fn new_state() -> Result<String, VaultError> {
    let bytes: [u8; 24] = random()?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl Trust {
    /// A visit for this connection: the one that is under way, if its purpose `serves`, or a new one that `make` begins
    /// with a fresh state and answers with its address and purpose. The caller has the connection's turn.
    pub(crate) async fn visit(
        &self,
        key: &Key,
        waiting: Waiting<'_>,
        serves: impl Fn(&str) -> bool,
        make: impl AsyncFnOnce(&str) -> Result<(String, String), Trouble>,
    ) -> Result<Visit, Trouble> {
        let broken = |error: VaultError| vault_trouble(&error);
        let execution = waiting.map(|call| call.execution);
        let under_way = self.under_way(key).await.map_err(broken)?;
        if let Some((state, mut visit)) = under_way.filter(|(_, visit)| serves(&visit.purpose)) {
            if let Some(execution) =
                execution.filter(|execution| !visit.executions.contains(execution))
            {
                visit.executions.push(execution);
                self.keep(&state, &visit).await.map_err(broken)?;
            }
            return Ok(visit);
        }
        let state = new_state().map_err(broken)?;
        let (url, purpose) = make(&state).await?;
        let expiry = NoteExpiry::after(&self.engine, VISIT_MS_MAX);
        let (slug, owner, name) = (key.slug.to_string(), key.owner.clone(), key.name.clone());
        let executions = execution.into_iter().collect();
        let visit = Visit { slug, owner, name, url, executions, expiry, purpose };
        self.keep(&state, &visit).await.map_err(broken)?;
        self.vault.put(&waits(key), &state).await.map_err(broken)?;
        Ok(visit)
    }

    /// The secret of the visit that is under way for a connection.
    pub(crate) async fn state_of(&self, key: &Key) -> Result<Option<String>, VaultError> {
        self.vault.get(&waits(key)).await
    }

    async fn under_way(&self, key: &Key) -> Result<Option<(String, Visit)>, VaultError> {
        let Some(state) = self.vault.get(&waits(key)).await? else { return Ok(None) };
        let known = self.vault.get(&kept_as(&state)).await?;
        let visit = known.and_then(|text| serde_json::from_str::<Visit>(&text).ok());
        match visit {
            Some(visit) if !visit.is_over(&self.engine) && visit.executions.len() < SHARED_MAX => {
                Ok(Some((state, visit)))
            }
            Some(_) | None => Ok(None),
        }
    }

    async fn keep(&self, state: &str, visit: &Visit) -> Result<(), VaultError> {
        let text =
            serde_json::to_string(visit).map_err(|error| VaultError::Machine(error.to_string()))?;
        self.vault.put(&kept_as(state), &text).await
    }

    /// Looks at the visit of a state, without ending it.
    pub(crate) async fn expected(&self, state: &str) -> Result<Option<Visit>, VaultError> {
        let known = self.vault.get(&kept_as(state)).await?;
        Ok(self.in_time(known))
    }

    /// Ends the visit of a state: of those who come, one is let in.
    pub(crate) async fn end(&self, state: &str) -> Result<Option<Visit>, VaultError> {
        let known = self.vault.take(&kept_as(state)).await?;
        let visit = self.in_time(known);
        if let Some(key) = visit.as_ref().and_then(Visit::key) {
            self.vault.remove(&waits(&key)).await?;
        }
        Ok(visit)
    }

    fn in_time(&self, known: Option<String>) -> Option<Visit> {
        let visit: Visit = serde_json::from_str(&known?).ok()?;
        (!visit.is_over(&self.engine)).then_some(visit)
    }

    /// Ends the visit that is under way for a connection, whoever waits. Says whether there was one.
    pub(crate) async fn call_off(self: &Arc<Self>, key: &Key) -> Result<bool, VaultError> {
        let Some(state) = self.vault.get(&waits(key)).await? else { return Ok(false) };
        let visit = self.end(&state).await?;
        let was_there = visit.is_some();
        if let Some(visit) = visit {
            self.wake(visit, &Answer::Decline);
        }
        Ok(was_there)
    }

    /// Answers the questions of those who wait for a visit's end, beside everything else.
    pub(crate) fn wake(self: &Arc<Self>, visit: Visit, answer: &Answer) {
        for execution in visit.executions {
            let (trust, url, answer) = (Arc::clone(self), visit.url.clone(), answer.clone());
            let waking = async move { trust.answer(execution, &url, answer).await };
            let closing = self.closing.clone();
            self.tasks.spawn(async move {
                closing.run_until_cancelled(tokio::time::timeout(QUESTION_WAIT_MAX, waking)).await
            });
        }
    }

    async fn answer(&self, execution: ExecutionId, url: &str, answer: Answer) {
        let mut changes = self.engine.question_changes();
        changes.mark_changed();
        while changes.changed().await.is_ok() {
            let Ok(known) = self.engine.look_up(execution).await else { return };
            let is_this = |kind: &QuestionKind| matches!(kind, QuestionKind::Link { url: asked, .. } if asked == url);
            let asked = known.state.open_questions().filter(|question| is_this(&question.kind));
            let asked: Vec<QuestionId> = asked.map(|question| question.id).collect();
            for question in &asked {
                let by = CallerName::from(BuiltinCaller::Callback);
                if let Err(error) = self.engine.answer(*question, answer.clone(), by).await {
                    tracing::warn!(%question, %error, "a question could not be answered");
                }
            }
            if !asked.is_empty() || known.state.phase == lifecycle::Phase::Finished {
                return;
            }
        }
    }
}

/// Sends the person behind a call to a visit, and waits until they are back. Nothing has been done for the call yet.
pub(crate) async fn ask(call: &Request, message: String, url: String) -> Result<(), Failure> {
    call.ask(Wish::Link { message, url, is_prior: true }).await.map(drop)
}

/// Nobody can come to us: the call is told so, and what to do.
pub(crate) fn nobody_comes(held: &Held) -> NoProof {
    let why = format!(
        "The connection {} needs a person in a browser, and this program serves none: use `airlock serve`.",
        held.key.shown()
    );
    Trouble::new("oauth_reauth_required", why).into()
}

fn kept_as(state: &str) -> String {
    format!("visit/{}", hashed(state))
}

/// A secret as records name it.
pub(crate) fn hashed(state: &str) -> String {
    Sha256::digest(state.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn waits(key: &Key) -> String {
    format!("waits/{key}")
}
