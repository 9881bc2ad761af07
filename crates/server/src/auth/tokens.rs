//! Named, scoped tokens: minted once, stored as digests.

use super::scope::{Caller, CallerCredential, Scope, TokenScopes};
use super::token_names::{TokenName, check_name};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lifecycle::{AnswerRole, BuiltinCaller, Timestamp};
use protocols::server_proof::token_key;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{RecordStore, StoreError};

const KIND: &str = "token";

/// The prefix of secrets, by which people and scanners recognise a leaked one.
const PREFIX: &str = "alk_";

/// Tokens that another server on the same store mints or removes take effect here within this time.
const AGE_MAX: Duration = Duration::from_secs(2);

/// More tokens than this indicate a mistake, and every request is compared with each.
pub(super) const TOKENS_MAX: usize = 1_000;

/// Bytes of a token's id: two tokens never share 128 bits of a hash.
const TOKEN_ID_BYTES: usize = 16;

/// A token as it is shown to administrators, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInfo {
    /// Its name: the caller that it identifies.
    pub name: TokenName,
    /// Its scopes.
    pub scopes: TokenScopes,
    /// The limit on who may answer with it; the server's setting bounds it.
    pub answers: AnswerRole,
    /// When it was minted.
    pub created: Timestamp,
    digest: [u8; 32],
}

/// Identifies a token by its secret rather than by its name: a token that is minted again under the name of a removed
/// one has another id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct TokenId(String);

impl TokenId {
    /// Derived from the digest, so that tokens minted by earlier versions have one too. Hashed again: an id is shown
    /// and stored in other records, the digest is not.
    fn of_digest(digest: &[u8; 32]) -> Self {
        let hash =
            Sha256::new().chain_update(b"airlock token id\n").chain_update(digest).finalize();
        Self(hash.iter().take(TOKEN_ID_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Why a token could not be minted or removed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TokenError {
    /// The name is not valid.
    #[error("a token's name has 1 to 64 letters, digits, `_`, `.` or `-`")]
    BadName,
    /// The name belongs to a built-in caller.
    #[error(
        "{0} is the name of a caller that is part of Airlock, or begins with `token.`; choose another"
    )]
    Reserved(TokenName),
    /// The name belongs to a caller whose executions are retained.
    #[error(
        "the journal retains executions of an earlier caller {0}, which the new token would own; choose another name, or \
         take the name over with --take-over (takeOver in the API)"
    )]
    Retained(TokenName),
    /// The name is already used.
    #[error("there is a token {0} already")]
    Exists(TokenName),
    /// There is no such token.
    #[error("there is no token {0}")]
    Unknown(TokenName),
    /// Without it, no further token could be minted.
    #[error("{0} is the last admin token; mint another one first")]
    LastAdmin(TokenName),
    /// There are too many tokens.
    #[error("there are {TOKENS_MAX} tokens already; remove one first")]
    TooMany,
    /// The system has no randomness.
    #[error("the system has no randomness now; try again")]
    NoRandomness,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A newly created secret. It is shown once; only its digest is stored.
pub struct MintedSecret(String);

impl MintedSecret {
    /// Creates a secret of thirty-two random bytes.
    pub fn new() -> Result<Self, TokenError> {
        Ok(Self(format!("{PREFIX}{}", Self::bare()?)))
    }

    /// Creates a secret without the prefix, for purposes other than tokens.
    pub(crate) fn bare() -> Result<String, TokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| TokenError::NoRandomness)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The secret as text, to be shown.
    pub fn as_text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MintedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The format of the record.
#[derive(Serialize, Deserialize)]
struct TokenRecord {
    name: String,
    scopes: Vec<String>,
    /// Omitted for `person`, as in records of earlier versions.
    #[serde(default, skip_serializing_if = "AnswerRole::is_person")]
    answers: AnswerRole,
    sha256: String,
    created: i64,
}

/// Stores a token for `secret`.
pub async fn add(
    records: &dyn RecordStore,
    name: &TokenName,
    (scopes, answers): (TokenScopes, AnswerRole),
    secret: &MintedSecret,
    created: Timestamp,
) -> Result<TokenInfo, TokenError> {
    check_name(records, name).await?;
    let digest = digest(secret.as_text());
    let token = TokenInfo { name: name.clone(), scopes, answers, created, digest };
    let kept = TokenRecord {
        name: name.as_str().to_owned(),
        scopes: scopes.given().map(|scope| scope.name().to_owned()).collect(),
        answers,
        sha256: token.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        created: created.0,
    };
    let value = serde_json::to_string(&kept).expect("texts and numbers can be written as JSON");
    match records.put(KIND, name.as_str(), value, 0).await {
        Ok(_) => Ok(token),
        Err(StoreError::Conflict) => Err(TokenError::Exists(name.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Returns every token, by name.
pub async fn list_tokens(records: &dyn RecordStore) -> Result<Vec<TokenInfo>, StoreError> {
    let kept = records.all(KIND).await?;
    kept.iter()
        .map(|record| {
            read(&record.value).ok_or_else(|| {
                StoreError::Damaged(format!("the record of token {} cannot be read", record.key))
            })
        })
        .collect()
}

/// Changes who may answer with a token.
pub async fn set_answers(
    records: &dyn RecordStore,
    name: &TokenName,
    answers: AnswerRole,
) -> Result<TokenInfo, TokenError> {
    let unknown = || TokenError::Unknown(name.clone());
    let record = records.get(KIND, name.as_str()).await?.ok_or_else(unknown)?;
    let damaged = || StoreError::Damaged(format!("the record of token {name} cannot be read"));
    let mut kept: TokenRecord = serde_json::from_str(&record.value).map_err(|_| damaged())?;
    kept.answers = answers;
    let value = serde_json::to_string(&kept).expect("texts and numbers can be written as JSON");
    let token = read(&value).ok_or_else(damaged)?;
    records.put(KIND, name.as_str(), value, record.version).await?;
    Ok(token)
}

/// Removes a token, unless no further token could be minted afterwards.
pub async fn remove(records: &dyn RecordStore, name: &TokenName) -> Result<(), TokenError> {
    let unknown = || TokenError::Unknown(name.clone());
    let tokens = list_tokens(records).await?;
    let is_admin = |token: &&TokenInfo| token.scopes.has(Scope::Admin);
    let removed = tokens.iter().find(|token| token.name == *name).ok_or_else(unknown)?;
    if is_admin(&removed) && tokens.iter().filter(is_admin).count() == 1 {
        return Err(TokenError::LastAdmin(name.clone()));
    }
    let record = records.get(KIND, name.as_str()).await?.ok_or_else(unknown)?;
    Ok(records.remove(KIND, name.as_str(), record.version).await?)
}

/// Identifies the caller of a secret.
pub(crate) struct TokenRegistry {
    records: Arc<dyn RecordStore>,
    environment: Option<[u8; 32]>,
    known: Mutex<CachedTokens>,
}

#[derive(Default)]
struct CachedTokens {
    tokens: Option<(Instant, Arc<[TokenInfo]>)>,
    /// Incremented by `forget`: a list that was read before a change and arrives after it is discarded.
    n_forgotten: u64,
}

impl TokenRegistry {
    /// `environment` is a secret with all rights.
    pub(crate) fn new(records: Arc<dyn RecordStore>, environment: Option<&str>) -> Self {
        Self { records, environment: environment.map(digest), known: Mutex::default() }
    }

    pub(crate) fn records(&self) -> &dyn RecordStore {
        &*self.records
    }

    /// Returns the caller that presents this secret; none if it is not a token of this server.
    pub(crate) async fn caller(&self, secret: &str) -> Result<Option<Caller>, StoreError> {
        let presented = digest(secret);
        if let Some(environment) = self.environment.filter(|known| same(known, &presented)) {
            return Ok(Some(environment_caller(&environment)));
        }
        // Every token is compared, so that the duration does not reveal which one matched.
        let mut found = None;
        for token in &*self.known().await? {
            if same(&token.digest, &presented) {
                found = Some(token.caller());
            }
        }
        Ok(found)
    }

    /// Returns the caller that the token with this id identifies; none if that token was removed.
    pub(super) async fn caller_by_id(&self, id: &TokenId) -> Result<Option<Caller>, StoreError> {
        let environment = self.environment.filter(|digest| TokenId::of_digest(digest) == *id);
        if let Some(environment) = environment {
            return Ok(Some(environment_caller(&environment)));
        }
        let known = self.known().await?;
        Ok(known.iter().find(|token| token.id() == *id).map(TokenInfo::caller))
    }

    /// The digest of the minted token with this key; none if there is no such token. The environment's secret has no
    /// key, because it may be weak.
    pub(crate) async fn digest_of_key(&self, key: &str) -> Result<Option<[u8; 32]>, StoreError> {
        let known = self.known().await?;
        let token = known.iter().find(|token| token_key(&token.digest) == key);
        Ok(token.map(|token| token.digest))
    }

    /// The caller of the oldest token with the scope `admin`, or of the environment's; none if there is neither.
    pub(crate) async fn operator(&self) -> Result<Option<Caller>, StoreError> {
        let known = self.known().await?;
        let admins = known.iter().filter(|token| token.scopes.has(Scope::Admin));
        let oldest = admins.min_by_key(|token| token.created.0).map(TokenInfo::caller);
        Ok(oldest.or_else(|| self.environment.as_ref().map(environment_caller)))
    }

    /// Makes the next request read the store.
    pub(crate) fn clear_cache(&self) {
        let mut known = self.lock();
        known.tokens = None;
        known.n_forgotten += 1;
    }

    async fn known(&self) -> Result<Arc<[TokenInfo]>, StoreError> {
        let asked_at = Instant::now();
        let n_forgotten = {
            let known = self.lock();
            match &known.tokens {
                Some((at, tokens)) if asked_at.duration_since(*at) < AGE_MAX => {
                    return Ok(Arc::clone(tokens));
                }
                Some(_) | None => known.n_forgotten,
            }
        };
        let tokens: Arc<[TokenInfo]> = list_tokens(&*self.records).await?.into();
        let mut known = self.lock();
        if known.n_forgotten == n_forgotten {
            known.tokens = Some((asked_at, Arc::clone(&tokens)));
        }
        drop(known);
        Ok(tokens)
    }

    fn lock(&self) -> MutexGuard<'_, CachedTokens> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenInfo {
    pub(super) fn id(&self) -> TokenId {
        TokenId::of_digest(&self.digest)
    }

    fn caller(&self) -> Caller {
        Caller {
            name: self.name.caller(),
            scopes: self.scopes,
            answers: self.answers,
            credential: CallerCredential::Token(self.id()),
        }
    }
}

fn environment_caller(digest: &[u8; 32]) -> Caller {
    let scopes = TokenScopes::from([Scope::Admin].as_slice());
    let credential = CallerCredential::Token(TokenId::of_digest(digest));
    let (name, answers) = (BuiltinCaller::Environment.into(), AnswerRole::Person);
    Caller { name, scopes, answers, credential }
}

fn read(value: &str) -> Option<TokenInfo> {
    let kept: TokenRecord = serde_json::from_str(value).ok()?;
    Some(TokenInfo {
        name: TokenName::parse(&kept.name).ok()?,
        scopes: TokenScopes::parse(kept.scopes.iter().map(String::as_str)).ok()?,
        answers: kept.answers,
        created: Timestamp(kept.created),
        digest: unhex(&kept.sha256)?,
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Compares in constant time.
pub(crate) fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::BoxFuture;
    use store::StoredRecord;
    use store::sqlite::SqliteStore;
    use tokio::sync::Notify;

    async fn mint(
        records: &dyn RecordStore,
        name: &str,
        scopes: &str,
    ) -> Result<MintedSecret, TokenError> {
        let secret = MintedSecret::new()?;
        let scopes = TokenScopes::parse(scopes.split(',')).unwrap();
        let scopes = (scopes, AnswerRole::Person);
        add(records, &TokenName::parse(name)?, scopes, &secret, Timestamp(5)).await?;
        Ok(secret)
    }

    #[tokio::test]
    async fn a_secret_speaks_for_its_name_until_it_is_removed() {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let secret = mint(&*store, "agent-1", "run,answer").await.unwrap();
        assert!(secret.as_text().starts_with("alk_") && secret.as_text().len() == 47);
        let tokens = TokenRegistry::new(Arc::clone(&store) as _, Some("from outside"));

        let caller = tokens.caller(secret.as_text()).await.unwrap().unwrap();
        assert_eq!(
            (caller.name.0.as_str(), caller.scopes.to_string()),
            ("agent-1", "run,answer".into())
        );
        let caller = tokens.caller("from outside").await.unwrap().unwrap();
        assert_eq!((caller.name.0.as_str(), caller.sees_all()), ("environment", true));
        assert_eq!(tokens.caller("alk_wrong").await.unwrap(), None);
        assert_eq!(tokens.caller("").await.unwrap(), None);

        remove(&*store, &TokenName::parse("agent-1").unwrap()).await.unwrap();
        tokens.clear_cache();
        assert_eq!(tokens.caller(secret.as_text()).await.unwrap(), None);
    }

    /// A store that reads immediately and returns late.
    struct Late(Arc<SqliteStore>, Arc<Notify>);

    impl RecordStore for Late {
        fn get(
            &self,
            kind: &'static str,
            key: &str,
        ) -> BoxFuture<'static, Result<Option<StoredRecord>, StoreError>> {
            self.0.get(kind, key)
        }
        fn put(
            &self,
            kind: &'static str,
            key: &str,
            value: String,
            expected: u64,
        ) -> BoxFuture<'static, Result<u64, StoreError>> {
            self.0.put(kind, key, value, expected)
        }
        fn remove(
            &self,
            kind: &'static str,
            key: &str,
            expected: u64,
        ) -> BoxFuture<'static, Result<(), StoreError>> {
            self.0.remove(kind, key, expected)
        }
        fn all(
            &self,
            kind: &'static str,
        ) -> BoxFuture<'static, Result<Vec<StoredRecord>, StoreError>> {
            let (reading, told) = (self.0.all(kind), Arc::clone(&self.1));
            Box::pin(async move {
                let read = reading.await;
                told.notified().await;
                read
            })
        }
    }

    #[tokio::test]
    async fn what_was_read_before_a_token_was_minted_is_not_believed_after() {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let told = Arc::new(Notify::new());
        let late = Late(Arc::clone(&store), Arc::clone(&told));
        let tokens = TokenRegistry::new(Arc::new(late), None);
        let meanwhile = async {
            let first = store.all(KIND).await.unwrap();
            let secret = mint(&*store, "bot", "run").await.unwrap();
            tokens.clear_cache();
            told.notify_one();
            (first.len(), secret)
        };
        let (early, (n_first, secret)) = tokio::join!(tokens.caller("alk_wrong"), meanwhile);
        assert_eq!((early.unwrap(), n_first), (None, 0));
        told.notify_one();
        assert!(tokens.caller(secret.as_text()).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_secret_is_not_kept() {
        let store = SqliteStore::temporary().unwrap();
        let secret = mint(&store, "a", "run").await.unwrap();
        let record = store.get(KIND, "a").await.unwrap().unwrap();
        assert!(!record.value.contains(secret.as_text().trim_start_matches(PREFIX)));
        assert!(!format!("{secret:?}").contains(secret.as_text()));
    }

    #[tokio::test]
    async fn names_are_taken_once_and_the_last_admin_stays() {
        let store = SqliteStore::temporary().unwrap();
        mint(&store, "root", "admin").await.unwrap();
        let taken = mint(&store, "root", "run").await.unwrap_err();
        assert_eq!(taken.to_string(), "there is a token root already");
        let root = TokenName::parse("root").unwrap();
        let last = remove(&store, &root).await.unwrap_err();
        assert_eq!(last.to_string(), "root is the last admin token; mint another one first");
        let nobody = remove(&store, &TokenName::parse("nobody").unwrap()).await.unwrap_err();
        assert_eq!(nobody.to_string(), "there is no token nobody");
        mint(&store, "other", "admin").await.unwrap();
        remove(&store, &root).await.unwrap();
    }

    #[tokio::test]
    async fn a_record_without_the_value_is_a_persons_and_the_value_can_be_changed() {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let secret = mint(&*store, "bot", "run").await.unwrap();
        let record = store.get(KIND, "bot").await.unwrap().unwrap();
        assert!(!record.value.contains("answers"), "as earlier versions wrote it");
        let tokens = TokenRegistry::new(Arc::clone(&store) as _, None);
        let answers = async || tokens.caller(secret.as_text()).await.unwrap().unwrap().answers;
        assert_eq!(answers().await, AnswerRole::Person);
        let name = TokenName::parse("bot").unwrap();
        for role in [AnswerRole::Model, AnswerRole::Client, AnswerRole::Person] {
            assert_eq!(set_answers(&*store, &name, role).await.unwrap().answers, role);
            tokens.clear_cache();
            assert_eq!(answers().await, role);
        }
        let other = TokenName::parse("other").unwrap();
        let unknown = set_answers(&*store, &other, AnswerRole::Model).await.unwrap_err();
        assert_eq!(unknown.to_string(), "there is no token other");
    }
}
