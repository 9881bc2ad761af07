//! Envelopes that only the two ends can open: P-256, HKDF with the session's id as salt, AES-256-GCM. Plain functions;
//! whoever calls them brings the randomness.
//!
//! A nonce is eight random bytes per stream and a counter. So no nonce comes twice, not even after a restart: a new
//! stream begins with new random bytes. A reader that sees the counter skip or repeat knows that somebody has been at it.

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

/// The curve that is spoken here.
pub const CURVE: &str = "P-256";
/// The cipher that is spoken here.
pub const ALGORITHM: &str = "AES-GCM-256";
/// How keys come out of the shared secret.
pub const KDF: &str = "HKDF-SHA-256";

/// Envelopes per stream: far below what AES-GCM bears under one key.
const ENVELOPES_MAX: u32 = 1 << 30;

/// Streams, or single messages, whose nonces are remembered. A session that outgrows it starts anew.
const SEEN_MAX: usize = 10_000;

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientHello {
    /// 2.
    pub protocol_version: u32,
    /// Its public key for this session: 65 bytes in base64.
    #[serde(rename = "clientEphemeralPubKeyB64")]
    pub client_key: String,
    /// [`CURVE`].
    pub curve: String,
    /// Among them [`ALGORITHM`].
    pub supported_algorithms: Vec<String>,
}

/// What the server says to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerHello {
    /// 2.
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
    /// Names the keys of the session.
    pub key_id: String,
    /// The server's signature under both keys, where it has an identity.
    #[serde(rename = "signatureB64", default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The key that the signature is checked with. Who pins it knows whom they talk to.
    #[serde(rename = "identityPubKeyB64", default, skip_serializing_if = "Option::is_none")]
    pub identity_key: Option<String>,
}

/// Something that is no key, or no point on the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key on {CURVE}")]
pub struct BadKey;

/// Why a hello is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHello {
    /// Its key.
    #[error("its public key must be an uncompressed point on {CURVE}, 65 bytes in base64")]
    Key,
    /// Its curve.
    #[error("only {CURVE} is spoken here")]
    Curve,
    /// Its ciphers.
    #[error("only {ALGORITHM} is spoken here")]
    Algorithm,
    /// The server is not who it should be.
    #[error("the server's signature is not that of the pinned key")]
    Signature,
}

impl ClientHello {
    /// A hello for a private key.
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
    /// The answer to a client's hello, signed where there is an identity.
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

    /// Whether it fits what we asked for, and comes from the server whose identity is `pinned`.
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

    /// Everything that must not be exchanged by somebody in between.
    fn signed_text(&self, client_key: &str, session: &EnclaveSessionId) -> String {
        format!(
            "enclavejs-server-hello\n{session}\n{client_key}\n{}\n{}\n{}",
            self.server_key, self.key_id, self.selected_algorithm
        )
    }
}

/// The public key that belongs to a private one: 65 bytes in base64.
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

/// One key per direction.
#[derive(Clone, PartialEq, Eq)]
pub struct DirectionKeys {
    /// Client to server.
    pub c2s: [u8; 32],
    /// Server to client.
    pub s2c: [u8; 32],
}

impl std::fmt::Debug for DirectionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(…)")
    }
}

impl DirectionKeys {
    /// What both ends come to, each from its own private key and the other's public one.
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

/// An envelope as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedEnvelope {
    /// 2.
    pub protocol_version: u32,
    /// The session, in clear.
    pub session_id: String,
    /// The number of what is inside, in clear.
    pub seq: u64,
    /// `enc`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is inside.
    pub payload: EnvelopeCiphertext,
}

/// What is inside an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeCiphertext {
    /// Which keys.
    pub kid: String,
    /// Twelve bytes.
    #[serde(rename = "nonceB64")]
    pub nonce: String,
    /// The text and, unless it is apart, its tag.
    #[serde(rename = "ciphertextB64")]
    pub ciphertext: String,
    /// The tag, from those who send it apart.
    #[serde(rename = "tagB64", default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Seals one stream.
pub struct StreamSealer {
    cipher: Aes256Gcm,
    prefix: [u8; 8],
    counter: u32,
    key_id: String,
    session: EnclaveSessionId,
}

/// A stream has sealed as much as one stream may; a new one begins with new nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this stream has sealed as much as it may; begin another")]
pub struct StreamExhausted;

impl StreamSealer {
    /// A sealer for a new stream. `prefix` must be fresh randomness.
    pub fn new(key: &[u8; 32], prefix: [u8; 8], key_id: &str, session: &EnclaveSessionId) -> Self {
        let cipher = Aes256Gcm::new(&(*key).into());
        Self { cipher, prefix, counter: 0, key_id: key_id.to_owned(), session: session.clone() }
    }

    /// A line with `inner` in an envelope.
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

/// Opens what one side says in a session.
pub struct StreamOpener {
    cipher: Aes256Gcm,
    key_id: String,
    session: EnclaveSessionId,
    order: EnvelopeOrder,
    seen: BTreeSet<[u8; 12]>,
    /// The stream that is being read, and the counter that comes next.
    stream: Option<([u8; 8], u32)>,
}

/// What order envelopes must come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnvelopeOrder {
    /// One after the other, none left out, until a new stream begins.
    Streams,
    /// Any, each once.
    Any,
}

/// Why an envelope is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// Not a nonce, not base64, not JSON.
    #[error("it is no envelope")]
    Malformed,
    /// For somebody else.
    #[error("it is sealed with other keys, or for another session")]
    Stranger,
    /// Broken on the way, or by somebody.
    #[error("its seal is broken")]
    Broken,
    /// Its number is not that of what is inside.
    #[error("what is inside belongs under another label")]
    Relabelled,
    /// Seen before, or out of its order.
    #[error("it was seen before, or others are missing")]
    Replayed,
}

impl StreamOpener {
    /// Opens streams: each begins with a nonce of its own and counts without a gap.
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

    /// The next envelope begins a new stream.
    pub fn begin_stream(&mut self) {
        self.stream = None;
    }

    /// What is inside, once everything about it is as it must be.
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
        // Events carry both; a message may leave them out, its keys are its session's anyway.
        let lax = self.order == EnvelopeOrder::Any;
        let names = label.session_id.map_or(lax, |id| id == self.session.as_str());
        let counts = label.seq.map_or(lax, |seq| seq == envelope.seq);
        if !(names && counts) {
            return Err(UnsealError::Relabelled);
        }
        // Only what was sealed by the other end counts as seen: nobody can use up its numbers.
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

/// What something says it is.
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

/// Bytes as both ends write them.
pub fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Thirty-two bytes as [`base64()`] wrote them.
pub fn bytes(text: &str) -> Option<[u8; 32]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
