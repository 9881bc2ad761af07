//! Operations on all tokens' secrets: recognising one in the environment, and replacing them when operator mode
//! begins.

use super::tokens::{MintedSecret, TokenError};
use super::{Scope, digest};
use serde_json::Value;
use store::RecordStore;

/// Gives every admin token a new secret that is not shown. The old secrets become invalid, and a person signs in with
/// `airlock sign-in` under the server's account. Returns the number of tokens.
pub async fn rotate_admin_tokens(records: &dyn RecordStore) -> Result<usize, TokenError> {
    let mut n_rotated = 0;
    for record in records.all("token").await? {
        let Ok(mut token) = serde_json::from_str::<Value>(&record.value) else { continue };
        let scopes = token["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !scopes.iter().any(|scope| scope == Scope::Admin.name()) {
            continue;
        }
        let sha256 = digest(MintedSecret::new()?.as_text());
        let sha256: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        token["sha256"] = sha256.into();
        records.put("token", &record.key, token.to_string(), record.version).await?;
        n_rotated += 1;
    }
    Ok(n_rotated)
}

/// Whether this is the secret of a token. The environment must not make such a secret an administrator's as well.
pub async fn is_minted_secret(records: &dyn RecordStore, secret: &str) -> Result<bool, TokenError> {
    let sha256: String = digest(secret).iter().map(|byte| format!("{byte:02x}")).collect();
    let tokens = records.all("token").await?;
    let is_its = |record: &store::StoredRecord| {
        serde_json::from_str::<Value>(&record.value).is_ok_and(|token| token["sha256"] == sha256)
    };
    Ok(tokens.iter().any(is_its))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::token_names::TokenName;
    use crate::auth::tokens::{self, TokenRegistry};
    use crate::auth::{TokenScopes, add};
    use lifecycle::Timestamp;
    use std::sync::Arc;
    use store::sqlite::SqliteStore;

    #[tokio::test]
    async fn the_secrets_of_administrators_open_nothing_afterwards_and_others_do() {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let mut secrets = vec![];
        for (name, scopes) in [("admin", "admin"), ("ops", "run,admin"), ("run", "run")] {
            let (name, secret) = (TokenName::parse(name).unwrap(), MintedSecret::new().unwrap());
            let scopes = TokenScopes::parse(scopes.split(',')).unwrap();
            let rights = (scopes, lifecycle::AnswerRole::Person);
            add(&*store, &name, rights, &secret, Timestamp(1)).await.unwrap();
            secrets.push(secret);
        }
        assert!(is_minted_secret(&*store, secrets[2].as_text()).await.unwrap());
        assert!(!is_minted_secret(&*store, "another").await.unwrap());
        assert_eq!(rotate_admin_tokens(&*store).await.unwrap(), 2);
        let known = TokenRegistry::new(Arc::clone(&store) as _, None);
        let mut are_known = vec![];
        for secret in &secrets {
            are_known.push(known.caller(secret.as_text()).await.unwrap().is_some());
        }
        assert_eq!(are_known, [false, false, true]);
        assert_eq!(tokens::list_tokens(&*store).await.unwrap().len(), 3);
    }
}
