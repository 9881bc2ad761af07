//! Browser sessions: a link with a one-use code signs a browser in, and its requests are signed with a key that
//! cannot be extracted from it. There is no cookie: cookies ignore ports, and every local server would receive it.
//!
//! The long-lived token never reaches the browser. A session reads and answers; for anything else a person enters a
//! code that raises one tab for an hour.

mod codes;
mod credential_end;
mod elevation;
mod expiring;
mod session;
mod signature;
#[cfg(test)]
mod tests;
mod tickets;

pub use codes::end_all_sessions;
pub(crate) use codes::{CodePurpose, CodeRefusal, mint_code, remove_previous_sessions};
pub(crate) use elevation::GrantedElevation;
pub(crate) use session::{BrowserSessionId, ListedSession, NewSession, StartedSession};
pub(crate) use signature::is_public_key;
pub(crate) use tickets::{IssuedTicket, TICKET_PATH_BYTES_MAX};

use super::scope::{Caller, CallerCredential, Scope, TokenScopes};
use super::tokens::{MintedSecret, TokenError, TokenId, TokenRegistry};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use elevation::ElevationKey;
use expiring::ExpiringValue;
use lifecycle::Timestamp;
use session::{SessionProof, SessionRecord};
use signature::{ReplayGuard, ReplayRefusal, SignedHeader, SignedRequest};
use std::sync::{Mutex, PoisonError};
use store::StoreError;
use tickets::TicketHolder;
use tokio::sync::watch;

/// The header with the id of an elevation. The signature covers it.
const ELEVATION_HEADER: &str = "airlock-elevation";

/// The rights of a session that is not elevated, regardless of its token's scopes.
const SESSION_SCOPES: [Scope; 1] = [Scope::Answer];

/// Kinds of records of browser sessions: sessions, codes, elevations and tickets.
const SESSION_KINDS: [&str; 5] =
    ["browser_session", "sign_in_code", "elevation_code", "browser_elevation", "browser_ticket"];

/// The in-memory state of browser sessions; the sessions themselves are in the store.
pub(crate) struct BrowserSessions {
    /// Different in each run of the server; none if the system has no randomness.
    nonce: Option<String>,
    /// The port on which the server listens.
    port: u16,
    replays: Mutex<ReplayGuard>,
    /// Incremented when a session or a token may have ended, or may have lost rights.
    endings: watch::Sender<u64>,
}

/// How a session authenticated a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionCredential {
    pub(crate) id: BrowserSessionId,
    pub(crate) token: TokenId,
    pub(crate) expires: Timestamp,
    elevation: Option<ElevationKey>,
}

impl SessionCredential {
    /// Whether the request has the rights of the token that raised the session.
    pub(crate) const fn is_elevated(&self) -> bool {
        self.elevation.is_some()
    }
}

/// The credential that a request presents for its session.
pub(super) enum SessionClaim<'a> {
    /// The signature, without the scheme.
    Signed(&'a str),
    /// A tab's bearer secret.
    Bearer(&'a str),
    /// A ticket in the URL.
    Ticket(&'a str),
}

/// Why a session's request is refused.
#[derive(Debug)]
pub(super) enum SessionRefusal {
    /// The request does not prove that it belongs to a valid session.
    Unknown,
    /// The session sends more requests than are admitted.
    TooMany,
    Store(StoreError),
}

impl From<StoreError> for SessionRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl BrowserSessions {
    pub(crate) fn new(port: u16) -> Self {
        Self {
            nonce: MintedSecret::bare().ok(),
            port,
            replays: Mutex::default(),
            endings: watch::Sender::new(0),
        }
    }

    /// The nonce that signatures must cover in this run of the server.
    pub(crate) fn nonce(&self) -> Result<&str, TokenError> {
        self.nonce.as_deref().ok_or(TokenError::NoRandomness)
    }

    /// Starts a session for a code, and returns it with the caller that it acts for.
    pub(crate) async fn sign_in(
        &self,
        tokens: &TokenRegistry,
        code: &str,
        new: NewSession<'_>,
        now: Timestamp,
    ) -> Result<Result<(StartedSession, Caller), CodeRefusal>, TokenError> {
        let records = tokens.records();
        let token = match codes::redeem(records, CodePurpose::SignIn, code, now).await? {
            Ok(token) => token,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(caller) = tokens.caller_by_id(&token).await? else {
            return Ok(Err(CodeRefusal::TokenRemoved));
        };
        let started = session::start(records, token, new, self.port, now).await?;
        Ok(Ok((started, caller)))
    }

    /// Raises a session with a code.
    pub(crate) async fn elevate(
        &self,
        tokens: &TokenRegistry,
        session: &BrowserSessionId,
        code: &str,
        now: Timestamp,
    ) -> Result<Result<GrantedElevation, CodeRefusal>, TokenError> {
        let records = tokens.records();
        let token = match codes::redeem(records, CodePurpose::Elevation, code, now).await? {
            Ok(token) => token,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if tokens.caller_by_id(&token).await?.is_none() {
            return Ok(Err(CodeRefusal::TokenRemoved));
        }
        elevation::grant(records, session, token, now).await.map(Ok)
    }

    /// Returns the sessions of one token, or of all, newest first, each with the name of its token. Sessions of
    /// removed tokens ended with those tokens.
    pub(crate) async fn list_sessions(
        &self,
        tokens: &TokenRegistry,
        token: Option<&TokenId>,
        now: Timestamp,
    ) -> Result<Vec<(ListedSession, String)>, StoreError> {
        let mut listed = vec![];
        for session in session::list_stored(tokens.records(), now).await? {
            if token.is_some_and(|token| session.token != *token) {
                continue;
            }
            if let Some(caller) = tokens.caller_by_id(&session.token).await? {
                listed.push((session, caller.name.0));
            }
        }
        Ok(listed)
    }

    /// Ends a session and its streams; false if it does not exist.
    pub(crate) async fn end_session(
        &self,
        tokens: &TokenRegistry,
        id: &BrowserSessionId,
    ) -> Result<bool, StoreError> {
        let has_ended = session::end_stored(tokens.records(), id).await?;
        self.announce_endings();
        Ok(has_ended)
    }

    /// Makes open connections check again whether their credentials admit them.
    pub(crate) fn announce_endings(&self) {
        self.endings.send_modify(|n| *n += 1);
    }

    /// Issues a ticket for one path; none for a caller that needs no credential and therefore no ticket.
    pub(crate) async fn issue_ticket(
        &self,
        tokens: &TokenRegistry,
        caller: &Caller,
        path: &str,
        now: Timestamp,
    ) -> Result<Option<IssuedTicket>, TokenError> {
        let holder = match &caller.credential {
            CallerCredential::NotAsked => return Ok(None),
            CallerCredential::Token(id) => TicketHolder::Token(id.clone()),
            CallerCredential::Session(session) => TicketHolder::Session {
                id: session.id.clone(),
                elevation: session.elevation.clone(),
            },
        };
        tickets::issue(tokens.records(), holder, path, now).await.map(Some)
    }

    /// The caller that a request's session acts for.
    pub(super) async fn caller(
        &self,
        tokens: &TokenRegistry,
        claim: SessionClaim<'_>,
        parts: &Parts,
        now: Timestamp,
    ) -> Result<Caller, SessionRefusal> {
        let (session, elevation) = match claim {
            SessionClaim::Signed(text) => (
                self.check_signature(tokens, text, parts, now).await?,
                elevation_of(&parts.headers),
            ),
            SessionClaim::Bearer(text) => {
                (self.check_bearer(tokens, text, now).await?, elevation_of(&parts.headers))
            }
            SessionClaim::Ticket(text) => {
                let records = tokens.records();
                let holder = tickets::redeem(records, text, parts.uri.path(), now).await?;
                match holder.ok_or(SessionRefusal::Unknown)? {
                    TicketHolder::Token(id) => {
                        return tokens.caller_by_id(&id).await?.ok_or(SessionRefusal::Unknown);
                    }
                    TicketHolder::Session { id, elevation } => {
                        let session = self.find(tokens, &id, now).await?;
                        ((id, session.ok_or(SessionRefusal::Unknown)?), elevation)
                    }
                }
            }
        };
        let caller = Self::session_caller(tokens, session, elevation, now).await?;
        caller.ok_or(SessionRefusal::Unknown)
    }

    async fn find(
        &self,
        tokens: &TokenRegistry,
        id: &BrowserSessionId,
        now: Timestamp,
    ) -> Result<Option<ExpiringValue<SessionRecord>>, StoreError> {
        let found = session::find(tokens.records(), id, now).await?;
        Ok(found.filter(|found| found.value.port == self.port))
    }

    async fn check_bearer(
        &self,
        tokens: &TokenRegistry,
        text: &str,
        now: Timestamp,
    ) -> Result<(BrowserSessionId, ExpiringValue<SessionRecord>), SessionRefusal> {
        let (id, digest) = session::read_tab_bearer(text).ok_or(SessionRefusal::Unknown)?;
        let session = self.find(tokens, &id, now).await?.ok_or(SessionRefusal::Unknown)?;
        // These are digests of random secrets: the duration of the comparison reveals nothing.
        match &session.value.proof {
            SessionProof::Tab(known) if *known == digest => Ok((id, session)),
            SessionProof::Tab(_) | SessionProof::Key(_) => Err(SessionRefusal::Unknown),
        }
    }

    async fn check_signature(
        &self,
        tokens: &TokenRegistry,
        text: &str,
        parts: &Parts,
        now: Timestamp,
    ) -> Result<(BrowserSessionId, ExpiringValue<SessionRecord>), SessionRefusal> {
        let header = SignedHeader::parse(text).ok_or(SessionRefusal::Unknown)?;
        let is_current = self.nonce.as_deref() == Some(header.nonce) && header.is_timely(now);
        let value = header.random_value().filter(|_| is_current).ok_or(SessionRefusal::Unknown)?;
        let id = BrowserSessionId::from_header(header.id);
        let session = self.find(tokens, &id, now).await?.ok_or(SessionRefusal::Unknown)?;
        let SessionProof::Key(key) = &session.value.proof else {
            return Err(SessionRefusal::Unknown);
        };
        let request = SignedRequest {
            method: parts.method.as_str(),
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()),
            elevation: elevation_text(&parts.headers),
        };
        if !header.is_signed_by(key, request) {
            return Err(SessionRefusal::Unknown);
        }
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.check_nonce(id.as_str(), value, now).map_err(|refusal| match refusal {
            ReplayRefusal::Replayed => SessionRefusal::Unknown,
            ReplayRefusal::TooMany => SessionRefusal::TooMany,
        })?;
        drop(replays);
        Ok((id, session))
    }

    /// The caller that a session acts for; none if its token may no longer answer. After an elevation has ended, the
    /// request has the session's own rights.
    async fn session_caller(
        tokens: &TokenRegistry,
        (id, session): (BrowserSessionId, ExpiringValue<SessionRecord>),
        elevation: Option<ElevationKey>,
        now: Timestamp,
    ) -> Result<Option<Caller>, StoreError> {
        let token = session.value.token;
        let owner = tokens.caller_by_id(&token).await?;
        let owner = owner.filter(|owner| owner.scopes.has(Scope::Answer));
        let Some(owner) = owner else { return Ok(None) };
        let expires = Timestamp(session.expires);
        let credential = |id, elevation| {
            CallerCredential::Session(SessionCredential { id, token, expires, elevation })
        };
        if let Some(key) = elevation
            && let Some(raised) = elevation::find(tokens.records(), &key, &id, now).await?
            && let Some(raised) = tokens.caller_by_id(&raised.token).await?
        {
            return Ok(Some(Caller { credential: credential(id, Some(key)), ..raised }));
        }
        let scopes = TokenScopes::from(SESSION_SCOPES.as_slice());
        Ok(Some(Caller { scopes, credential: credential(id, None), ..owner }))
    }
}

/// The claim in a request's headers, if it makes one.
pub(super) fn claim_in(headers: &HeaderMap) -> Option<SessionClaim<'_>> {
    let (scheme, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case(signature::SCHEME) {
        return Some(SessionClaim::Signed(rest));
    }
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && session::is_tab_bearer(rest);
    is_bearer.then_some(SessionClaim::Bearer(rest))
}

/// The digest that a signed request claims for its body; none if it is not signed.
pub(crate) fn claimed_body_digest(headers: &HeaderMap) -> Option<[u8; 32]> {
    let Some(SessionClaim::Signed(text)) = claim_in(headers) else { return None };
    // A header that cannot be read is refused by the caller's authentication; no body has this digest.
    let claimed =
        SignedHeader::parse(text).and_then(|header| signature::claimed_digest(header.body));
    Some(claimed.unwrap_or_default())
}

fn elevation_text(headers: &HeaderMap) -> &str {
    headers.get(ELEVATION_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn elevation_of(headers: &HeaderMap) -> Option<ElevationKey> {
    let text = elevation_text(headers);
    (!text.is_empty()).then(|| ElevationKey::of_secret(text))
}
