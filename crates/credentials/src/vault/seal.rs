//! AES-256-GCM with a name: a value that was sealed under one name opens under no other. Pure, except for the randomness.

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// A key that seals values. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SealingKey([u8; KEY_BYTES]);

/// Why something could not be sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealError {
    /// The system's random source failed.
    Random,
    /// Another key, another name, or damage: these cannot be distinguished.
    Wrong,
}

impl SealingKey {
    /// Creates a random key.
    pub(crate) fn random() -> Result<Self, SealError> {
        random().map(Self)
    }

    /// Parses the written form of a key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// The key with these derived bytes.
    pub(crate) const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The written form, for the one file that holds it and for the wrapped record.
    pub(crate) fn reveal(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Seals `text` under `name`.
    pub(crate) fn seal(&self, name: &str, text: &str) -> Result<String, SealError> {
        let nonce: [u8; NONCE_BYTES] = random()?;
        let payload = Payload { msg: text.as_bytes(), aad: name.as_bytes() };
        let sealed = Aes256Gcm::new(&self.0.into()).encrypt(&Nonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| SealError::Wrong)?;
        Ok(STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Opens a value that was sealed under `name`.
    pub(crate) fn open(&self, name: &str, sealed: &str) -> Result<String, SealError> {
        let bytes = STANDARD.decode(sealed).map_err(|_| SealError::Wrong)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Wrong)?;
        let payload = Payload { msg: sealed, aad: name.as_bytes() };
        let opened = Aes256Gcm::new(&self.0.into()).decrypt(&Nonce::from(*nonce), payload);
        String::from_utf8(opened.map_err(|_| SealError::Wrong)?).map_err(|_| SealError::Wrong)
    }
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

/// Random bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| SealError::Random)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_under_its_name_and_not_otherwise() {
        let (key, other) = (SealingKey::random().unwrap(), SealingKey::random().unwrap());
        let sealed = key.seal("a", "secret").unwrap();
        assert_ne!(sealed, key.seal("a", "secret").unwrap(), "a nonce is used once");
        assert_eq!(key.open("a", &sealed), Ok("secret".into()));
        assert_eq!(key.open("b", &sealed), Err(SealError::Wrong));
        assert_eq!(other.open("a", &sealed), Err(SealError::Wrong));
        let bytes = STANDARD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(key.open("a", &STANDARD.encode(flipped)), Err(SealError::Wrong), "{at}");
        }
        for hostile in ["", "!", "AAAA"] {
            assert_eq!(key.open("a", hostile), Err(SealError::Wrong));
        }
        assert_eq!(SealingKey::parse(&key.reveal()), Some(key));
    }
}
