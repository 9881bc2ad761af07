//! A person's browser: a code that works once, given in a URL, becomes a bearer that may answer.
//!
//! The long-lived token never reaches the browser, and nothing of it is left in its history: the code
//! travels behind `#`, which no server and no log sees, and is worthless after its first use.

use super::scope::{Caller, Scope, Scopes};
use super::tokens::{Secret, TokenError, Tokens, digest};
use lifecycle::{AnswerRole, CallerName, Timestamp};
use serde::{Deserialize, Serialize};
use store::{Records, StoreError};

/// A code that is not used soon was printed for nobody, or for somebody else.
const CODE: Sort = Sort { kind: "browser_code", age_ms_max: 15 * 60 * 1_000 };

/// A working day; whoever sits there longer opens the page again.
const BEARER: Sort = Sort { kind: "browser_bearer", age_ms_max: 12 * 60 * 60 * 1_000 };

/// How bearers of browsers begin: they are looked up by themselves, not among the tokens.
const PREFIX: &str = "alb_";

/// Codes and bearers kept at a time; the oldest go first.
const KEPT_MAX: usize = 1_000;

/// What a bearer is good for: seeing and answering questions, whatever its token is good for.
const SCOPES: [Scope; 1] = [Scope::Answer];

/// One sort of secret, and how old it gets.
#[derive(Clone, Copy)]
struct Sort {
    kind: &'static str,
    age_ms_max: i64,
}

/// The format of both records.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The token that it was made with.
    name: String,
    expires: i64,
}

/// What a browser gets for its code.
pub(crate) struct Admitted {
    pub(crate) bearer: String,
    pub(crate) name: String,
    pub(crate) expires: Timestamp,
}

/// Whether a secret is a browser's.
pub(super) fn is_bearer(secret: &str) -> bool {
    secret.starts_with(PREFIX)
}

/// Makes a code for `caller`, who may answer.
pub(crate) async fn code(
    records: &dyn Records,
    caller: &CallerName,
    now: Timestamp,
) -> Result<String, TokenError> {
    let code = Secret::bare()?;
    keep(records, CODE, &code, &caller.0, now).await?;
    Ok(code)
}

/// Gives a bearer for a code that was never used; none where there is no such code.
pub(crate) async fn exchange(
    records: &dyn Records,
    code: &str,
    now: Timestamp,
) -> Result<Option<Admitted>, TokenError> {
    let key = key(code);
    let Some(record) = records.get(CODE.kind, &key).await? else { return Ok(None) };
    match records.remove(CODE.kind, &key, record.version).await {
        Ok(()) => {}
        // Somebody else was faster: for us it is used up.
        Err(StoreError::Conflict) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let Some(kept) = alive(&record.value, now) else { return Ok(None) };
    let bearer = format!("{PREFIX}{}", Secret::bare()?);
    let expires = keep(records, BEARER, &bearer, &kept.name, now).await?;
    Ok(Some(Admitted { bearer, name: kept.name, expires }))
}

/// Who a bearer speaks for, while the token that it was made with is there and may answer.
pub(super) async fn caller(
    tokens: &Tokens,
    bearer: &str,
    now: Timestamp,
) -> Result<Option<Caller>, StoreError> {
    let Some(record) = tokens.records().get(BEARER.kind, &key(bearer)).await? else {
        return Ok(None);
    };
    let Some(kept) = alive(&record.value, now) else { return Ok(None) };
    let may_answer = tokens.scopes_of(&kept.name).await?.is_some_and(|s| s.has(Scope::Answer));
    let scopes = Scopes::from(SCOPES.as_slice());
    let (name, answers) = (CallerName(kept.name), AnswerRole::Person);
    Ok(may_answer.then_some(Caller { name, scopes, answers }))
}

/// Only digests are kept: whoever reads the store cannot sign in.
fn key(secret: &str) -> String {
    digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn alive(value: &str, now: Timestamp) -> Option<Kept> {
    serde_json::from_str::<Kept>(value).ok().filter(|kept| kept.expires > now.0)
}

async fn keep(
    records: &dyn Records,
    sort: Sort,
    secret: &str,
    name: &str,
    now: Timestamp,
) -> Result<Timestamp, TokenError> {
    forget_old(records, sort.kind, now).await?;
    let kept = Kept { name: name.to_owned(), expires: now.0.saturating_add(sort.age_ms_max) };
    let value = serde_json::to_string(&kept).expect("a record of text and a number is JSON");
    records.put(sort.kind, &key(secret), value, 0).await?;
    Ok(Timestamp(kept.expires))
}

/// Removes what has expired and, where too many are left, those that expire first.
async fn forget_old(
    records: &dyn Records,
    kind: &'static str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut all: Vec<_> = records
        .all(kind)
        .await?
        .into_iter()
        .map(|record| (alive(&record.value, now).map(|kept| kept.expires), record))
        .collect();
    all.sort_by_key(|(expires, _)| *expires);
    let n_dead = all.iter().filter(|(expires, _)| expires.is_none()).count();
    let n_gone = n_dead.max((all.len() + 1).saturating_sub(KEPT_MAX));
    for (_, record) in all.into_iter().take(n_gone) {
        match records.remove(kind, &record.key, record.version).await {
            Ok(()) | Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::tokens::{self, TokenName};
    use std::sync::Arc;
    use store::sqlite::SqliteStore;

    async fn house(scopes: &str) -> (Arc<SqliteStore>, Tokens, CallerName) {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let scopes = Scopes::parse(scopes.split(',')).unwrap();
        let (name, secret) = (TokenName::parse("ann").unwrap(), Secret::new().unwrap());
        tokens::add(&*store, &name, (scopes, AnswerRole::Person), &secret, Timestamp(0))
            .await
            .unwrap();
        let tokens = Tokens::new(Arc::clone(&store) as _, None);
        (store, tokens, CallerName("ann".into()))
    }

    #[tokio::test]
    async fn a_code_works_once_and_gives_a_bearer_that_may_only_answer() {
        let (store, tokens, ann) = house("admin").await;
        let code = code(&*store, &ann, Timestamp(0)).await.unwrap();
        let admitted = exchange(&*store, &code, Timestamp(1)).await.unwrap().unwrap();
        let seen = caller(&tokens, &admitted.bearer, Timestamp(2)).await.unwrap().unwrap();
        assert_eq!((seen.name.0.as_str(), seen.scopes.to_string()), ("ann", "answer".into()));
        assert!(exchange(&*store, &code, Timestamp(2)).await.unwrap().is_none());
        assert!(exchange(&*store, "made up", Timestamp(2)).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn codes_and_bearers_grow_old() {
        let (store, tokens, ann) = house("answer").await;
        let late = code(&*store, &ann, Timestamp(0)).await.unwrap();
        assert!(exchange(&*store, &late, Timestamp(CODE.age_ms_max)).await.unwrap().is_none());
        let fresh = code(&*store, &ann, Timestamp(0)).await.unwrap();
        let admitted = exchange(&*store, &fresh, Timestamp(0)).await.unwrap().unwrap();
        let after = Timestamp(admitted.expires.0);
        assert_eq!(caller(&tokens, &admitted.bearer, after).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_bearer_ends_with_its_token() {
        let (store, tokens, ann) = house("answer").await;
        let code = code(&*store, &ann, Timestamp(0)).await.unwrap();
        let admitted = exchange(&*store, &code, Timestamp(0)).await.unwrap().unwrap();
        tokens::remove(&*store, &TokenName::parse("ann").unwrap()).await.unwrap();
        tokens.forget();
        assert_eq!(caller(&tokens, &admitted.bearer, Timestamp(1)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_says_nothing() {
        let (store, _, ann) = house("answer").await;
        let first = code(&*store, &ann, Timestamp(0)).await.unwrap();
        for n in 1..=KEPT_MAX {
            code(&*store, &ann, Timestamp(i64::try_from(n).unwrap())).await.unwrap();
        }
        let kept = store.all(CODE.kind).await.unwrap();
        assert_eq!(kept.len(), KEPT_MAX);
        assert!(kept.iter().all(|record| !record.key.contains(&first)));
        assert!(
            exchange(&*store, &first, Timestamp(9)).await.unwrap().is_none(),
            "the oldest went"
        );
    }
}
