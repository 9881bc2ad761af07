//! The key that lets the server's own account mint sign-in codes without a token.
//!
//! A person who has lost every secret regains access with `airlock sign-in`, run under the account of the server.

use super::first::write_private_file;
use super::tokens::{MintedSecret, digest, same};
use super::{FirstTokensError, in_header};
use crate::app::AppState;
use axum::http::request::Parts;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// The prefix of the key.
const PREFIX: &str = "als_";

/// The digest of the key of this run. The key is valid only for `POST /api/sign-in/codes` from this machine.
#[derive(Clone)]
pub struct SignInKey([u8; 32]);

/// The address of the peer of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// The file with the key of the server that owns a data directory.
pub fn sign_in_key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("sign-in.key")
}

impl SignInKey {
    /// Writes a new key that only this account can read. Keys of earlier runs become invalid.
    pub fn create(data_dir: &Path) -> Result<Self, FirstTokensError> {
        let key = format!("{PREFIX}{}", MintedSecret::bare()?);
        write_private_file(&sign_in_key_file(data_dir), &key)?;
        Ok(Self(digest(&key)))
    }
}

impl fmt::Debug for SignInKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignInKey(…)")
    }
}

/// Whether a request comes from this machine and presents the key of this run.
pub(crate) fn presents_sign_in_key(app: &AppState, parts: &Parts) -> bool {
    let Some(SignInKey(known)) = &app.sign_in_key else { return false };
    let peer = parts.extensions.get::<PeerAddress>();
    peer.is_some_and(|PeerAddress(peer)| is_loopback(peer.ip()))
        && in_header(parts).is_some_and(|secret| same(known, &digest(&secret)))
}

/// Whether a peer's address is a loopback address.
pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_counts_from_this_machine() {
        for (ip, expected) in [
            ("127.0.0.1", true),
            ("127.8.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            assert_eq!((ip, is_loopback(ip.parse().unwrap())), (ip, expected));
        }
    }
}
