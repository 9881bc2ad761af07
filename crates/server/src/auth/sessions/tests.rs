use super::*;
use crate::auth::token_names::TokenName;
use crate::auth::tokens;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lifecycle::AnswerRole;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest as _, Sha256};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use store::RecordStore;
use store::sqlite::SqliteStore;

/// A server with one token and a browser with a key.
struct Fixture {
    store: Arc<SqliteStore>,
    tokens: TokenRegistry,
    sessions: BrowserSessions,
    key: SigningKey,
    n_signed: Cell<u128>,
}

const PORT: u16 = 4788;

impl Fixture {
    async fn new(scopes: &str) -> Self {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let fixture = Self {
            tokens: TokenRegistry::new(Arc::clone(&store) as _, None),
            sessions: BrowserSessions::new(PORT),
            key: SigningKey::from_slice(&[9; 32]).unwrap(),
            n_signed: Cell::new(0),
            store,
        };
        fixture.add_token("ann", scopes).await;
        fixture
    }

    async fn add_token(&self, name: &str, scopes: &str) -> TokenId {
        let secret = MintedSecret::new().unwrap();
        let scopes = (TokenScopes::parse(scopes.split(',')).unwrap(), AnswerRole::Person);
        let name = TokenName::parse(name).unwrap();
        tokens::add(&*self.store, &name, scopes, &secret, Timestamp(0)).await.unwrap();
        self.tokens.clear_cache();
        let caller = self.tokens.caller(secret.as_text()).await.unwrap().unwrap();
        let CallerCredential::Token(id) = caller.credential else { panic!("{caller:?}") };
        id
    }

    async fn remove_token(&self, name: &str) {
        tokens::remove(&*self.store, &TokenName::parse(name).unwrap()).await.unwrap();
        self.tokens.clear_cache();
    }

    async fn ann(&self) -> TokenId {
        let listed = tokens::list_tokens(&*self.store).await.unwrap();
        let ann = listed.iter().find(|token| token.name.as_str() == "ann").unwrap();
        ann.id()
    }

    async fn code(&self, purpose: CodePurpose, now: i64) -> String {
        let token = self.ann().await;
        mint_code(&*self.store, purpose, &token, Timestamp(now)).await.unwrap().code
    }

    async fn sign_in(&self, now: i64) -> StartedSession {
        let code = self.code(CodePurpose::SignIn, now).await;
        self.redeem(&code, now).await.unwrap()
    }

    async fn redeem(&self, code: &str, now: i64) -> Result<StartedSession, CodeRefusal> {
        let key = URL_SAFE_NO_PAD.encode(self.key.verifying_key().to_sec1_point(false));
        let new = NewSession { key: Some(&key), agent: "a browser" };
        let signed_in = self.sessions.sign_in(&self.tokens, code, new, Timestamp(now)).await;
        signed_in.unwrap().map(|(started, _)| started)
    }

    /// A signed `GET /api/questions`.
    fn signed(&self, id: &BrowserSessionId, nonce: &str, now: i64, elevation: &str) -> Parts {
        self.n_signed.set(self.n_signed.get() + 1);
        let value = URL_SAFE_NO_PAD.encode(self.n_signed.get().to_be_bytes());
        let body = URL_SAFE_NO_PAD.encode(Sha256::digest(b""));
        let text = format!(
            "airlock-session-v1\nGET\n/api/questions\n{body}\n{nonce}\n{now}\n{value}\n{id}\n{elevation}"
        );
        let signature: Signature = self.key.sign(text.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.to_bytes());
        let header = format!(
            "Airlock-Session id={id},nonce={nonce},time={now},value={value},body={body},signature={signature}"
        );
        let mut request = Request::builder().uri("/api/questions").header(AUTHORIZATION, header);
        if !elevation.is_empty() {
            request = request.header(ELEVATION_HEADER, elevation);
        }
        request.body(()).unwrap().into_parts().0
    }

    async fn caller(&self, parts: &Parts, now: i64) -> Option<Caller> {
        let claim = claim_in(&parts.headers).unwrap();
        self.sessions.caller(&self.tokens, claim, parts, Timestamp(now)).await.ok()
    }

    /// The caller of a correctly signed request of a session.
    async fn seen(
        &self,
        id: &BrowserSessionId,
        now: i64,
        elevation: &str,
    ) -> Option<(String, String)> {
        let parts = self.signed(id, self.sessions.nonce().unwrap(), now, elevation);
        let caller = self.caller(&parts, now).await?;
        Some((caller.name.0, caller.scopes.to_string()))
    }

    async fn by_ticket(&self, ticket: &str, path: &str, now: i64) -> Option<Caller> {
        let parts = Request::builder().uri(path).body(()).unwrap().into_parts().0;
        let claim = SessionClaim::Ticket(ticket);
        self.sessions.caller(&self.tokens, claim, &parts, Timestamp(now)).await.ok()
    }
}

fn ann(scopes: &str) -> Option<(String, String)> {
    Some(("ann".into(), scopes.into()))
}

#[tokio::test]
async fn a_link_works_once_for_a_quarter_of_an_hour_and_says_what_is_wrong_with_it() {
    let fixture = Fixture::new("admin").await;
    let code = fixture.code(CodePurpose::SignIn, 0).await;
    assert!(fixture.redeem(&code, 1).await.is_ok());
    assert_eq!(fixture.redeem(&code, 2).await.err(), Some(CodeRefusal::Used));
    assert_eq!(fixture.redeem("made up", 2).await.err(), Some(CodeRefusal::Unknown));
    let late = fixture.code(CodePurpose::SignIn, 0).await;
    assert_eq!(fixture.redeem(&late, 15 * 60_000).await.err(), Some(CodeRefusal::Expired));
    let elevation = fixture.code(CodePurpose::Elevation, 0).await;
    assert_eq!(fixture.redeem(&elevation, 1).await.err(), Some(CodeRefusal::Unknown));
}

#[tokio::test]
async fn a_session_may_answer_until_its_absolute_end() {
    let fixture = Fixture::new("admin").await;
    let started = fixture.sign_in(0).await;
    assert_eq!(fixture.seen(&started.id, 1, "").await, ann("answer"));
    let last = started.expires.0 - 1;
    assert_eq!(fixture.seen(&started.id, last, "").await, ann("answer"));
    assert_eq!(fixture.seen(&started.id, started.expires.0, "").await, None);
}

#[tokio::test]
async fn a_request_counts_once_and_in_one_run_on_one_port() {
    let fixture = Fixture::new("answer").await;
    let started = fixture.sign_in(0).await;
    let nonce = fixture.sessions.nonce().unwrap().to_owned();
    let parts = fixture.signed(&started.id, &nonce, 5, "");
    assert!(fixture.caller(&parts, 5).await.is_some());
    assert!(fixture.caller(&parts, 6).await.is_none(), "sent again");
    let late = fixture.signed(&started.id, &nonce, 5, "");
    assert!(fixture.caller(&late, 5 + 60_001).await.is_none(), "too old");

    let captured = fixture.signed(&started.id, &nonce, 5, "");
    let fixture = Fixture { sessions: BrowserSessions::new(PORT), ..fixture };
    assert!(fixture.caller(&captured, 5).await.is_none(), "made for the run before");
    assert_eq!(fixture.seen(&started.id, 5, "").await, ann("answer"), "the session lasts");

    let fixture = Fixture { sessions: BrowserSessions::new(PORT + 1), ..fixture };
    assert_eq!(fixture.seen(&started.id, 5, "").await, None, "forwarded to another port");
}

#[tokio::test]
async fn another_key_or_a_changed_request_does_not_count() {
    let fixture = Fixture::new("answer").await;
    let started = fixture.sign_in(0).await;
    let nonce = fixture.sessions.nonce().unwrap().to_owned();
    let mut parts = fixture.signed(&started.id, &nonce, 5, "");
    parts.uri = "/api/questions?x".parse().unwrap();
    assert!(fixture.caller(&parts, 5).await.is_none());
    let mut parts = fixture.signed(&started.id, &nonce, 5, "");
    parts.headers.insert(ELEVATION_HEADER, "added".parse().unwrap());
    assert!(fixture.caller(&parts, 5).await.is_none());
    let fixture = Fixture { key: SigningKey::from_slice(&[3; 32]).unwrap(), ..fixture };
    assert_eq!(fixture.seen(&started.id, 5, "").await, None);
}

#[tokio::test]
async fn a_session_and_a_code_end_with_their_token_and_its_name_does_not_revive_them() {
    let fixture = Fixture::new("answer").await;
    let started = fixture.sign_in(0).await;
    let code = fixture.code(CodePurpose::SignIn, 0).await;
    fixture.remove_token("ann").await;
    assert_eq!(fixture.seen(&started.id, 1, "").await, None);
    fixture.add_token("ann", "answer").await;
    assert_eq!(fixture.seen(&started.id, 1, "").await, None);
    assert_eq!(fixture.redeem(&code, 1).await.err(), Some(CodeRefusal::TokenRemoved));
    let listed = fixture.sessions.list_sessions(&fixture.tokens, None, Timestamp(1)).await.unwrap();
    assert_eq!(listed.len(), 0);
}

#[tokio::test]
async fn an_elevation_raises_its_own_session_for_an_hour() {
    let fixture = Fixture::new("admin").await;
    let (one, other) = (fixture.sign_in(0).await, fixture.sign_in(0).await);
    let code = fixture.code(CodePurpose::Elevation, 0).await;
    let elevate = async |session: &BrowserSessionId, code: &str, now| {
        fixture.sessions.elevate(&fixture.tokens, session, code, Timestamp(now)).await.unwrap()
    };
    let granted = elevate(&one.id, &code, 0).await.unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(elevate(&one.id, &code, 0).await.err(), Some(CodeRefusal::Used));
    let id = granted.elevation.as_str();
    assert_eq!(fixture.seen(&one.id, 1, id).await, ann("admin"));
    assert_eq!(fixture.seen(&one.id, 1, "").await, ann("answer"), "another tab");
    assert_eq!(fixture.seen(&one.id, 1, "made up").await, ann("answer"));
    assert_eq!(fixture.seen(&other.id, 1, id).await, ann("answer"), "another session");
    assert_eq!(fixture.seen(&one.id, 3_600_000, id).await, ann("answer"), "an hour later");
    let late = fixture.code(CodePurpose::Elevation, 0).await;
    assert_eq!(elevate(&one.id, &late, 5 * 60_000).await.err(), Some(CodeRefusal::Expired));
    let link = fixture.code(CodePurpose::SignIn, 0).await;
    assert_eq!(elevate(&one.id, &link, 1).await.err(), Some(CodeRefusal::Unknown));
}

#[tokio::test]
async fn an_elevated_session_acts_as_the_token_that_raised_it_while_that_token_is_there() {
    let fixture = Fixture::new("answer").await;
    let started = fixture.sign_in(0).await;
    let root = fixture.add_token("root", "admin").await;
    fixture.add_token("spare", "admin").await;
    let code = mint_code(&*fixture.store, CodePurpose::Elevation, &root, Timestamp(0)).await;
    let (sessions, code) = (&fixture.sessions, code.unwrap().code);
    let granted = sessions.elevate(&fixture.tokens, &started.id, &code, Timestamp(0)).await;
    let id = granted.unwrap().unwrap_or_else(|why| panic!("{why:?}")).elevation;
    let raised = Some(("root".to_owned(), "admin".to_owned()));
    assert_eq!(fixture.seen(&started.id, 1, &id).await, raised);
    fixture.remove_token("root").await;
    assert_eq!(fixture.seen(&started.id, 1, &id).await, ann("answer"));
}

#[tokio::test]
async fn a_ticket_counts_once_for_one_path_and_half_a_minute() {
    let fixture = Fixture::new("answer").await;
    let started = fixture.sign_in(0).await;
    let parts = fixture.signed(&started.id, fixture.sessions.nonce().unwrap(), 0, "");
    let caller = fixture.caller(&parts, 0).await.unwrap();
    let issue = async || {
        let sessions = &fixture.sessions;
        let issued = sessions.issue_ticket(&fixture.tokens, &caller, "/a", Timestamp(0)).await;
        issued.unwrap().unwrap().ticket
    };
    let ticket = issue().await;
    let seen = fixture.by_ticket(&ticket, "/a?after=3", 1).await.unwrap();
    assert_eq!((seen.name.0.as_str(), seen.scopes.to_string()), ("ann", "answer".into()));
    assert_eq!(fixture.by_ticket(&ticket, "/a", 1).await, None, "used");
    assert_eq!(fixture.by_ticket(&issue().await, "/b", 1).await, None, "another path");
    assert_eq!(fixture.by_ticket(&issue().await, "/a", 30_000).await, None, "too old");
    assert_eq!(fixture.by_ticket("made up", "/a", 1).await, None);
    let ticket = issue().await;
    assert!(fixture.sessions.end_session(&fixture.tokens, &started.id).await.unwrap());
    assert_eq!(fixture.by_ticket(&ticket, "/a", 1).await, None, "the session has ended");
}

#[tokio::test]
async fn a_tab_without_keys_has_a_bearer_for_a_working_day() {
    let fixture = Fixture::new("admin").await;
    let code = fixture.code(CodePurpose::SignIn, 0).await;
    let new = NewSession { key: None, agent: "" };
    let started = fixture.sessions.sign_in(&fixture.tokens, &code, new, Timestamp(0)).await;
    let (started, _) = started.unwrap().unwrap_or_else(|why| panic!("{why:?}"));
    let bearer = started.bearer.unwrap();
    let seen = async |bearer: &str, now| {
        let header = format!("Bearer {bearer}");
        let request = Request::builder().uri("/").header(AUTHORIZATION, header);
        let caller = fixture.caller(&request.body(()).unwrap().into_parts().0, now).await?;
        Some((caller.name.0, caller.scopes.to_string()))
    };
    assert_eq!(seen(&bearer, 1).await, ann("answer"));
    assert_eq!(seen(&bearer, started.expires.0).await, None);
    assert_eq!(seen(&format!("{bearer}x"), 1).await, None);
    assert_eq!(seen("alb_", 1).await, None);
    assert_eq!(fixture.seen(&started.id, 1, "").await, None, "a signature of any key");
    let stored = fixture.store.all("browser_session").await.unwrap();
    assert!(
        !stored[0].value.contains(bearer.split_once('.').unwrap().1),
        "only a digest is stored"
    );
}

/// Checks what ends the connection of a caller that was admitted at time 0.
async fn check_connection_end(
    fixture: &Fixture,
    caller: &Caller,
    end: impl AsyncFnOnce(&engine::ManualClock),
) {
    let manual = engine::ManualClock::starting_at(Timestamp(1));
    let clock = engine::Clock::Manual(manual.clone());
    let lasting = async {
        fixture.sessions.announce_endings();
        fixture.ann().await;
        tokio::task::yield_now().await;
    };
    let ended = fixture.sessions.credential_end(&fixture.tokens, caller, &clock);
    let mut ended = std::pin::pin!(ended);
    tokio::select! {
        biased;
        () = &mut ended => panic!("the credential of {} lasts", caller.name),
        () = lasting => {}
    }
    let end = async {
        end(&manual).await;
        fixture.sessions.announce_endings();
    };
    tokio::join!(ended, end);
}

#[tokio::test]
async fn a_connection_ends_with_its_token_or_when_the_token_may_do_less() {
    let fixture = Fixture::new("run,answer").await;
    let bob = TokenName::parse("bob").unwrap();
    for change in ["removed", "answers"] {
        let id = fixture.add_token("bob", "run").await;
        tokens::set_answers(&*fixture.store, &bob, AnswerRole::Model).await.unwrap();
        fixture.tokens.clear_cache();
        let caller = fixture.tokens.caller_by_id(&id).await.unwrap().unwrap();
        check_connection_end(&fixture, &caller, async |_| match change {
            "removed" => fixture.remove_token("bob").await,
            _ => {
                tokens::set_answers(&*fixture.store, &bob, AnswerRole::Person).await.unwrap();
                fixture.tokens.clear_cache();
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_connection_ends_with_its_session_its_elevation_or_the_token_behind_it() {
    let fixture = Fixture::new("answer").await;
    let root = fixture.add_token("root", "admin").await;
    fixture.add_token("spare", "admin").await;
    let sessions = &fixture.sessions;
    for elevated in [false, true] {
        for change in ["signed out", "expired", "removed"] {
            let started = fixture.sign_in(0).await;
            let mut elevation = String::new();
            if elevated {
                let code = mint_code(&*fixture.store, CodePurpose::Elevation, &root, Timestamp(0));
                let code = code.await.unwrap().code;
                let granted =
                    sessions.elevate(&fixture.tokens, &started.id, &code, Timestamp(0)).await;
                elevation = granted.unwrap().unwrap_or_else(|why| panic!("{why:?}")).elevation;
            }
            let parts = fixture.signed(&started.id, sessions.nonce().unwrap(), 0, &elevation);
            let caller = fixture.caller(&parts, 0).await.unwrap();
            check_connection_end(&fixture, &caller, async |clock| match (change, elevated) {
                ("signed out", _) => {
                    sessions.end_session(&fixture.tokens, &started.id).await.unwrap();
                }
                ("expired", false) => clock.advance(Duration::from_secs(7 * 24 * 3_600)),
                ("expired", true) => clock.advance(Duration::from_secs(3_600)),
                (_, false) => {
                    fixture.remove_token("ann").await;
                    fixture.add_token("ann", "answer").await;
                }
                (_, true) => fixture.remove_token("root").await,
            })
            .await;
        }
    }
}

#[tokio::test]
async fn codes_are_bounded_and_those_of_the_previous_version_end() {
    let fixture = Fixture::new("answer").await;
    let first = fixture.code(CodePurpose::SignIn, 0).await;
    for n in 1..=1_000 {
        fixture.code(CodePurpose::SignIn, n).await;
    }
    let stored = fixture.store.all("sign_in_code").await.unwrap();
    assert_eq!(stored.len(), 1_000);
    assert!(stored.iter().all(|record| !record.key.contains(&first)));
    assert_eq!(
        fixture.redeem(&first, 9).await.err(),
        Some(CodeRefusal::Unknown),
        "the oldest went"
    );
    fixture.store.put("browser_bearer", "x", "{}".into(), 0).await.unwrap();
    remove_previous_sessions(&*fixture.store).await.unwrap();
    assert_eq!(fixture.store.all("browser_bearer").await.unwrap().len(), 0);
}

/// Records the entry that the engine writes when it finds that the clock was set back.
async fn set_clock_back(fixture: &Fixture) {
    let noted = r#"{"generation":1}"#.to_owned();
    fixture.store.put("clock", "this_server", noted, 0).await.unwrap();
}

#[tokio::test]
async fn sessions_codes_and_tickets_end_when_the_clock_was_set_back() {
    let fixture = Fixture::new("answer").await;
    let (now, earlier) = (1_000_000_000, 1);
    let started = fixture.sign_in(now).await;
    let code = fixture.code(CodePurpose::SignIn, now).await;
    let nonce = fixture.sessions.nonce().unwrap();
    let parts = fixture.signed(&started.id, nonce, now, "");
    let caller = fixture.caller(&parts, now).await.unwrap();
    let ticket = fixture.sessions.issue_ticket(&fixture.tokens, &caller, "/mcp", Timestamp(now));
    let ticket = ticket.await.unwrap().unwrap().ticket;
    set_clock_back(&fixture).await;
    // By this clock all of them would be valid for a long time.
    assert_eq!(fixture.seen(&started.id, earlier, "").await, None);
    assert_eq!(fixture.redeem(&code, earlier).await.err(), Some(CodeRefusal::Expired));
    let holder = tickets::redeem(&*fixture.store, &ticket, "/mcp", Timestamp(earlier)).await;
    assert!(holder.unwrap().is_none());
    let listed =
        fixture.sessions.list_sessions(&fixture.tokens, None, Timestamp(earlier)).await.unwrap();
    assert!(listed.is_empty());
    // Sessions that begin now are valid.
    let again = fixture.sign_in(earlier).await;
    assert!(fixture.seen(&again.id, earlier, "").await.is_some());
}
