//! Proof Key for Code Exchange (RFC 7636), S256 only: a stolen code is useless. Pure, except for the
//! randomness.

use crate::vault::{VaultError, random};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The code verifier, which only the initiator of the flow knows.
pub(super) fn verifier() -> Result<String, VaultError> {
    let bytes: [u8; 32] = random()?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The code challenge, which is sent in advance.
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_specification() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifiers_are_long_and_never_the_same() {
        let (one, two) = (super::verifier().unwrap(), super::verifier().unwrap());
        assert_eq!(one.len(), 43);
        assert_ne!(one, two);
    }
}
