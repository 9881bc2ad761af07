//! Sealed envelopes with end-to-end encryption: P-256, HKDF with the session's id as salt, AES-256-GCM.
//! Plain functions; the caller provides the randomness.
//!
//! A nonce is eight random bytes per stream and a counter. So no nonce is ever reused, even after a
//! restart: a new stream begins with new random bytes. A reader that sees the counter skip or repeat knows
//! that the stream was tampered with.

use super::EnclaveSessionId;
use aes_gcm::aead::Aead as _;
use aes_gcm::aead::consts::U12;
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hkdf::Hkdf;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::{PublicKey, SecretKey};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::collections::BTreeSet;

/// The supported curve.
pub const CURVE: &str = "P-256";
/// The supported cipher.
pub const ALGORITHM: &str = "AES-GCM-256";
/// The key derivation function.
pub const KDF: &str = "HKDF-SHA-256";

/// Limit of envelopes per stream: far below the safe limit of AES-GCM for one key.
const ENVELOPES_MAX: u32 = 1 << 30;

/// Limit of recorded nonces of streams or single messages. A session that exceeds it must be restarted.
const SEEN_MAX: usize = 10_000;

/// The client's hello, the first message of the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientHello {
    /// Always 2.
    pub protocol_version: u32,
    /// Its public key for this session: 65 bytes in base64.
    #[serde(rename = "clientEphemeralPubKeyB64")]
    pub client_key: String,
    /// [`CURVE`].
    pub curve: String,
    /// Among them [`ALGORITHM`].
    pub supported_algorithms: Vec<String>,
}

/// The server's hello, which answers the client's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerHello {
    /// Always 2.
    pub protocol_version: u32,
    /// Its public key for this session: 65 bytes in base64.
    #[serde(rename = "serverEphemeralPubKeyB64")]
    pub server_key: String,
    /// [`CURVE`].
    pub curve: String,
    /// [`ALGORITHM`].
    pub selected_algorithm: String,
    /// [`KDF`].
    pub kdf: String,
    /// The id of the session's keys.
    pub key_id: String,
    /// The server's signature over both keys, if it has an identity.
    #[serde(rename = "signatureB64", default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The public key of the signature. A client that pins it authenticates the server.
    #[serde(rename = "identityPubKeyB64", default, skip_serializing_if = "Option::is_none")]
    pub identity_key: Option<String>,
}

/// Not a key, or not a point on the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key on {CURVE}")]
pub struct BadKey;

/// Why a hello is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHello {
    /// Its key is invalid.
    #[error("its public key must be an uncompressed point on {CURVE}, 65 bytes in base64")]
    Key,
    /// Its curve is not supported.
    #[error("only {CURVE} is supported")]
    Curve,
    /// None of its ciphers is supported.
    #[error("only {ALGORITHM} is supported")]
    Algorithm,
    /// The server does not have the pinned identity.
    #[error("the server's signature is not that of the pinned key")]
    Signature,
}

impl ClientHello {
    /// Creates the hello for a private key.
    pub fn new(secret: &[u8; 32]) -> Result<Self, BadKey> {
        Ok(Self {
            protocol_version: 2,
            client_key: public_of(secret)?,
            curve: CURVE.into(),
            supported_algorithms: vec![ALGORITHM.into()],
        })
    }
}

impl ServerHello {
    /// Creates the answer to a client's hello, signed if the server has an identity.
    pub fn answer_handshake(
        client: &ClientHello,
        secret: &[u8; 32],
        session: &EnclaveSessionId,
        key_id: &str,
        identity: Option<&[u8; 32]>,
    ) -> Result<Self, BadHello> {
        if client.curve != CURVE {
            return Err(BadHello::Curve);
        }
        if !client.supported_algorithms.iter().any(|algorithm| algorithm == ALGORITHM) {
            return Err(BadHello::Algorithm);
        }
        public(&client.client_key).map_err(|_| BadHello::Key)?;
        let mut hello = Self {
            protocol_version: 2,
            server_key: public_of(secret).map_err(|_| BadHello::Key)?,
            curve: CURVE.into(),
            selected_algorithm: ALGORITHM.into(),
            kdf: KDF.into(),
            key_id: key_id.to_owned(),
            signature: None,
            identity_key: None,
        };
        if let Some(identity) = identity {
            let signed = hello.signed_text(&client.client_key, session);
            let key = SigningKey::from_slice(identity).map_err(|_| BadHello::Signature)?;
            let signature: Signature = key.sign(signed.as_bytes());
            hello.signature = Some(base64(&signature.to_bytes()));
            hello.identity_key = Some(public_of(identity).map_err(|_| BadHello::Signature)?);
        }
        Ok(hello)
    }

    /// Checks that the answer fits the client's hello, and comes from the server with the `pinned`
    /// identity.
    pub fn check_proof(
        &self,
        client_key: &str,
        session: &EnclaveSessionId,
        pinned: Option<&str>,
    ) -> Result<(), BadHello> {
        if self.curve != CURVE {
            return Err(BadHello::Curve);
        }
        if self.selected_algorithm != ALGORITHM || self.kdf != KDF {
            return Err(BadHello::Algorithm);
        }
        let Some(pinned) = pinned else { return Ok(()) };
        let raw = BASE64_STANDARD.decode(pinned).map_err(|_| BadHello::Signature)?;
        let key = VerifyingKey::from_sec1_bytes(&raw).map_err(|_| BadHello::Signature)?;
        let signature = self.signature.as_ref().and_then(|text| BASE64_STANDARD.decode(text).ok());
        let signature = signature.and_then(|raw| Signature::from_slice(&raw).ok());
        let signed = self.signed_text(client_key, session);
        let is_theirs = signature.is_some_and(|it| key.verify(signed.as_bytes(), &it).is_ok());
        is_theirs.then_some(()).ok_or(BadHello::Signature)
    }

    /// The signed text: everything that an attacker in between must not replace.
    fn signed_text(&self, client_key: &str, session: &EnclaveSessionId) -> String {
        format!(
            "enclavejs-server-hello\n{session}\n{client_key}\n{}\n{}\n{}",
            self.server_key, self.key_id, self.selected_algorithm
        )
    }
}

/// The public key of a private one: 65 bytes in base64.
pub fn public_of(secret: &[u8; 32]) -> Result<String, BadKey> {
    let secret = SecretKey::from_slice(secret).map_err(|_| BadKey)?;
    Ok(base64(&secret.public_key().to_sec1_bytes()))
}

fn public(text: &str) -> Result<PublicKey, BadKey> {
    let raw = BASE64_STANDARD.decode(text).map_err(|_| BadKey)?;
    if raw.len() != 65 {
        return Err(BadKey);
    }
    PublicKey::from_sec1_bytes(&raw).map_err(|_| BadKey)
}

/// The keys of a session, one for each direction.
#[derive(Clone, PartialEq, Eq)]
pub struct DirectionKeys {
    /// The key from client to server.
    pub c2s: [u8; 32],
    /// The key from server to client.
    pub s2c: [u8; 32],
}

impl std::fmt::Debug for DirectionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(…)")
    }
}

impl DirectionKeys {
    /// Derives the shared keys, on each end from its own private key and the other's public one.
    pub fn agree(
        secret: &[u8; 32],
        their_key: &str,
        session: &EnclaveSessionId,
    ) -> Result<Self, BadKey> {
        let secret = SecretKey::from_slice(secret).map_err(|_| BadKey)?;
        let theirs = public(their_key)?;
        let shared = p256::ecdh::diffie_hellman(secret.to_nonzero_scalar(), theirs.as_affine());
        let kdf = Hkdf::<Sha256>::new(
            Some(session.as_str().as_bytes()),
            shared.raw_secret_bytes().as_slice(),
        );
        let key = |info: &[u8]| {
            let mut key = [0; 32];
            kdf.expand(info, &mut key).expect("32 bytes are fewer than HKDF can give");
            key
        };
        Ok(Self { c2s: key(b"enclavejs-c2s-enc"), s2c: key(b"enclavejs-s2c-enc") })
    }
}

/// An envelope on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedEnvelope {
    /// Always 2.
    pub protocol_version: u32,
    /// The session's name, unencrypted.
    pub session_id: String,
    /// The number of the content, unencrypted.
    pub seq: u64,
    /// Always `enc`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The encrypted content.
    pub payload: EnvelopeCiphertext,
}

/// The encrypted content of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeCiphertext {
    /// The id of the keys.
    pub kid: String,
    /// The nonce, twelve bytes.
    #[serde(rename = "nonceB64")]
    pub nonce: String,
    /// The ciphertext and, unless it is separate, its tag.
    #[serde(rename = "ciphertextB64")]
    pub ciphertext: String,
    /// The tag, if the sender sends it separately.
    #[serde(rename = "tagB64", default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Seals the messages of one stream.
pub struct StreamSealer {
    cipher: Aes256Gcm,
    prefix: [u8; 8],
    counter: u32,
    key_id: String,
    session: EnclaveSessionId,
}

/// The stream has reached its limit of envelopes; a new one begins with new nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this stream has sealed as much as it may; begin another")]
pub struct StreamExhausted;

impl StreamSealer {
    /// Creates a sealer for a new stream. `prefix` must be fresh randomness.
    pub fn new(key: &[u8; 32], prefix: [u8; 8], key_id: &str, session: &EnclaveSessionId) -> Self {
        let cipher = Aes256Gcm::new(&(*key).into());
        Self { cipher, prefix, counter: 0, key_id: key_id.to_owned(), session: session.clone() }
    }

    /// Seals `inner` and returns the envelope's line.
    pub fn seal(&mut self, seq: u64, inner: &[u8]) -> Result<SealedEnvelope, StreamExhausted> {
        if self.counter >= ENVELOPES_MAX {
            return Err(StreamExhausted);
        }
        let envelope = self.sealed(self.counter, seq, inner);
        self.counter += 1;
        Ok(envelope)
    }

    fn sealed(&self, counter: u32, seq: u64, inner: &[u8]) -> SealedEnvelope {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.prefix);
        nonce[8..].copy_from_slice(&counter.to_be_bytes());
        let ciphertext = self
            .cipher
            .encrypt(&Nonce::<U12>::from(nonce), inner)
            .expect("AES-GCM takes whatever fits in memory");
        SealedEnvelope {
            protocol_version: 2,
            session_id: self.session.as_str().to_owned(),
            seq,
            kind: "enc".into(),
            payload: EnvelopeCiphertext {
                kid: self.key_id.clone(),
                nonce: base64(&nonce),
                ciphertext: base64(&ciphertext),
                tag: None,
            },
        }
    }
}

impl std::fmt::Debug for StreamSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Opens the envelopes of one side of a session.
pub struct StreamOpener {
    cipher: Aes256Gcm,
    key_id: String,
    session: EnclaveSessionId,
    order: EnvelopeOrder,
    seen: BTreeSet<[u8; 12]>,
    /// The stream that is being read, and the expected counter.
    stream: Option<([u8; 8], u32)>,
}

/// The required order of envelopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnvelopeOrder {
    /// Consecutive, without gaps, until a new stream begins.
    Streams,
    /// Any order, each once.
    Any,
}

/// Why an envelope is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// Its nonce, base64 or JSON is invalid.
    #[error("it is no envelope")]
    Malformed,
    /// It is for other keys or another session.
    #[error("it is sealed with other keys, or for another session")]
    Stranger,
    /// It was damaged or tampered with.
    #[error("its seal is broken")]
    Broken,
    /// Its number differs from that of its content.
    #[error("what is inside belongs under another label")]
    Relabelled,
    /// It was seen before, or is out of order.
    #[error("it was seen before, or others are missing")]
    Replayed,
}

impl StreamOpener {
    /// Opens streams: each begins with its own nonce and counts without gaps.
    pub fn streams(key: &[u8; 32], key_id: &str, session: &EnclaveSessionId) -> Self {
        Self::new(key, key_id, session, EnvelopeOrder::Streams)
    }

    /// Opens single messages, in any order, each once.
    pub fn messages(key: &[u8; 32], key_id: &str, session: &EnclaveSessionId) -> Self {
        Self::new(key, key_id, session, EnvelopeOrder::Any)
    }

    fn new(key: &[u8; 32], key_id: &str, session: &EnclaveSessionId, order: EnvelopeOrder) -> Self {
        Self {
            cipher: Aes256Gcm::new(&(*key).into()),
            key_id: key_id.to_owned(),
            session: session.clone(),
            order,
            seen: BTreeSet::new(),
            stream: None,
        }
    }

    /// Allows the next envelope to begin a new stream.
    pub fn begin_stream(&mut self) {
        self.stream = None;
    }

    /// Verifies the envelope and returns its content.
    pub fn open(&mut self, envelope: &SealedEnvelope) -> Result<Vec<u8>, UnsealError> {
        let EnvelopeCiphertext { kid, nonce, ciphertext, tag } = &envelope.payload;
        if *kid != self.key_id || envelope.session_id != self.session.as_str() {
            return Err(UnsealError::Stranger);
        }
        let decode = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| UnsealError::Malformed);
        let nonce: [u8; 12] = decode(nonce)?.try_into().map_err(|_| UnsealError::Malformed)?;
        let mut sealed = decode(ciphertext)?;
        if let Some(tag) = tag {
            sealed.extend(decode(tag)?);
        }
        self.expect(nonce)?;
        let inner = self.cipher.decrypt(&Nonce::<U12>::from(nonce), sealed.as_slice());
        let inner = inner.map_err(|_| UnsealError::Broken)?;
        let label: EnvelopeLabel =
            serde_json::from_slice(&inner).map_err(|_| UnsealError::Malformed)?;
        // Events carry both; a message may omit them, because its keys identify its session.
        let lax = self.order == EnvelopeOrder::Any;
        let names = label.session_id.map_or(lax, |id| id == self.session.as_str());
        let counts = label.seq.map_or(lax, |seq| seq == envelope.seq);
        if !(names && counts) {
            return Err(UnsealError::Relabelled);
        }
        // Only envelopes of the other end are recorded as seen: nonces cannot be used up by an attacker.
        self.remember(nonce);
        Ok(inner)
    }

    fn expect(&self, nonce: [u8; 12]) -> Result<(), UnsealError> {
        let (prefix, counter) = split(nonce);
        let in_order = match (self.order, self.stream) {
            (EnvelopeOrder::Any, _) => !self.seen.contains(&nonce),
            (EnvelopeOrder::Streams, Some(next)) => next == (prefix, counter),
            (EnvelopeOrder::Streams, None) => counter == 0 && !self.seen.contains(&nonce),
        };
        let room = self.seen.len() < SEEN_MAX || self.stream.is_some();
        if in_order && room { Ok(()) } else { Err(UnsealError::Replayed) }
    }

    fn remember(&mut self, nonce: [u8; 12]) {
        let (prefix, counter) = split(nonce);
        if self.order == EnvelopeOrder::Any || self.stream.is_none() {
            self.seen.insert(nonce);
        }
        if self.order == EnvelopeOrder::Streams {
            self.stream = Some((prefix, counter.wrapping_add(1)));
        }
    }
}

impl std::fmt::Debug for StreamOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// The labels that the content may carry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnvelopeLabel {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    seq: Option<u64>,
}

fn split(nonce: [u8; 12]) -> ([u8; 8], u32) {
    let (mut prefix, mut counter) = ([0; 8], [0; 4]);
    prefix.copy_from_slice(&nonce[..8]);
    counter.copy_from_slice(&nonce[8..]);
    (prefix, u32::from_be_bytes(counter))
}

/// Encodes bytes as both ends do.
pub fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Decodes thirty-two bytes from [`base64()`].
pub fn bytes(text: &str) -> Option<[u8; 32]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
