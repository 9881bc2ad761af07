//! The first start: creates tokens so that the operator can sign in.

use super::scope::{Scope, TokenScopes};
use super::token_names::TokenName;
use super::tokens::{self, MintedSecret, TokenError};
use lifecycle::{AnswerRole, Timestamp};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use store::RecordStore;

/// The tokens that are minted if there are none: one for the operator, one for an agent.
const FIRST: [(&str, Scope); 2] = [("admin", Scope::Admin), ("run", Scope::Run)];

/// Why the first tokens could not be minted.
#[derive(Debug, thiserror::Error)]
pub enum FirstTokensError {
    /// The store or the random number generator failed.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The files could not be written.
    #[error("write the first tokens: {0}")]
    File(#[from] io::Error),
}

/// The file with the secret of a first token, in a data directory.
pub fn secret_file(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join("tokens").join(name)
}

/// Mints an `admin` and a `run` token if there are no tokens, and writes their secrets to files that only this user
/// can read. Returns the folder if it did.
pub async fn first_tokens(
    records: &dyn RecordStore,
    data_dir: &Path,
    now: Timestamp,
) -> Result<Option<PathBuf>, FirstTokensError> {
    if !tokens::list_tokens(records).await.map_err(TokenError::from)?.is_empty() {
        return Ok(None);
    }
    let folder = data_dir.join("tokens");
    for (name, scope) in FIRST {
        let secret = MintedSecret::new()?;
        // The file is written first: a token whose secret is lost would be worse than the reverse.
        write_secret(data_dir, name, secret.as_text())?;
        let name = TokenName::parse(name)?;
        let scopes = (TokenScopes::from([scope].as_slice()), AnswerRole::Person);
        tokens::add(records, &name, scopes, &secret, now).await?;
    }
    Ok(Some(folder))
}

/// Writes the secret of a token to a file of the data directory that only this account can read.
pub fn write_secret(data_dir: &Path, name: &str, secret: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir.join("tokens"))?;
    write_private_file(&secret_file(data_dir, name), secret)
}

/// Writes a secret to a file that only this account can read.
pub(super) fn write_private_file(path: &Path, secret: &str) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // An existing file may have been readable by others.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::tokens::TokenRegistry;
    use std::sync::Arc;
    use store::sqlite::SqliteStore;

    #[tokio::test]
    async fn the_first_start_mints_two_tokens_that_only_we_can_read() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let folder = first_tokens(&*store, dir.path(), Timestamp(1)).await.unwrap().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let tokens = TokenRegistry::new(Arc::clone(&store) as _, None);
        for name in ["admin", "run"] {
            let path = secret_file(dir.path(), name);
            assert_eq!(mode(&path), 0o600);
            let secret = std::fs::read_to_string(path).unwrap();
            let caller = tokens.caller(secret.trim()).await.unwrap().unwrap();
            assert_eq!((caller.name.0, caller.scopes.to_string()), (name.into(), name.into()));
        }
        assert_eq!(first_tokens(&*store, dir.path(), Timestamp(2)).await.unwrap(), None);
    }
}
