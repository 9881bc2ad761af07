//! Names of tokens: which are valid, which callers they identify, and whose executions a new token would take over.

use super::tokens::{TOKENS_MAX, TokenError, list_tokens};
use lifecycle::{BuiltinCaller, CallerName};
use std::fmt;
use store::{ListFilter, RecordStore};

/// Maximum length of a name.
const NAME_CHARS_MAX: usize = 64;

/// One to 64 letters, digits, `_`, `.` or `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenName(String);

impl TokenName {
    /// Validates a name, once at its entry.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let is_name = (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_fine);
        if is_name { Ok(Self(text.into())) } else { Err(TokenError::BadName) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The caller that a token of this name identifies.
    pub fn caller(&self) -> CallerName {
        CallerName::of_token(&self.0)
    }

    /// The filter that finds an execution that a new token of this name would own.
    pub fn retained(&self) -> ListFilter {
        ListFilter { phases: vec![], caller: Some(self.caller()), after: None, n_max: 1 }
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks whether a new token may have this name now.
pub async fn check_name(records: &dyn RecordStore, name: &TokenName) -> Result<(), TokenError> {
    if BuiltinCaller::reserves(&name.0) {
        return Err(TokenError::Reserved(name.clone()));
    }
    let tokens = list_tokens(records).await?;
    if tokens.iter().any(|token| token.name == *name) {
        return Err(TokenError::Exists(name.clone()));
    }
    if tokens.len() >= TOKENS_MAX { Err(TokenError::TooMany) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::scope::{Scope, TokenScopes};
    use crate::auth::tokens::{MintedSecret, TokenRegistry, add, digest, remove};
    use lifecycle::{AnswerRole, Timestamp};
    use std::sync::Arc;
    use store::sqlite::SqliteStore;

    #[tokio::test]
    async fn a_token_with_the_name_of_a_built_in_caller_continues_under_another() {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let rights = (TokenScopes::from([Scope::Run].as_slice()), AnswerRole::Person);
        let secret = MintedSecret::new().unwrap();
        for name in BuiltinCaller::ALL.map(BuiltinCaller::name).into_iter().chain(["token.x"]) {
            let name = TokenName::parse(name).unwrap();
            let refused = add(&*store, &name, rights, &secret, Timestamp(5)).await.unwrap_err();
            assert!(matches!(refused, TokenError::Reserved(_)), "{name}: {refused}");
        }
        // In the format of earlier versions.
        let sha256: String = digest("alk_old").iter().map(|byte| format!("{byte:02x}")).collect();
        let old =
            format!(r#"{{"name":"terminal","scopes":["run"],"sha256":"{sha256}","created":1}}"#);
        store.put("token", "terminal", old, 0).await.unwrap();
        let tokens = TokenRegistry::new(Arc::clone(&store) as _, None);
        let caller = tokens.caller("alk_old").await.unwrap().unwrap();
        assert_eq!(caller.name.0, "token.terminal");
        remove(&*store, &TokenName::parse("terminal").unwrap()).await.unwrap();
    }

    #[test]
    fn names_are_plain() {
        for good in ["a", "A.b_c-9", &"x".repeat(64)] {
            assert!(TokenName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "ä", "a/b", &"x".repeat(65)] {
            assert!(TokenName::parse(bad).is_err(), "{bad}");
        }
    }
}
