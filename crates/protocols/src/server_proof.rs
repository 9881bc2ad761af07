//! `POST /api/prove`: a server proves that it knows a token before a client sends the token.
//!
//! The proof is an HMAC over the client's nonce and the server's address, keyed with the digest of the secret, which is
//! what a server stores. The address is the TCP endpoint as both ends see it, or the host and port of the public URL: a
//! process that passes a challenge on to the real server at another address gets a proof for that other address.
//!
//! Only for secrets of 256 random bits. The name of a token derives from its secret, so a weak secret could be guessed
//! from it.

use core::net::SocketAddr;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The path of the endpoint.
pub const PATH: &str = "/api/prove";

/// The length of a nonce in bytes.
pub const NONCE_BYTES: usize = 32;

/// Limit of addresses in a challenge: the endpoint, and the name under which the client knows the server.
pub const ADDRESSES_MAX: usize = 4;

/// Longest address: a DNS name and a port.
pub const ADDRESS_BYTES_MAX: usize = 262;

/// A client's challenge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofChallenge {
    /// The token's name, see [`token_key`].
    pub key: String,
    /// [`NONCE_BYTES`] random bytes in hexadecimal.
    pub nonce: String,
    /// Addresses under which the client knows the server.
    pub addresses: Vec<String>,
}

/// A server's response. Without a proof it contains the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProofAnswer {
    /// The one of the client's addresses that is the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The HMAC in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Why there is no proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ProofRefusal>,
    /// The server's own addresses, if none of the client's is one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// Why a server gives no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofRefusal {
    /// It has no such token.
    UnknownToken,
    /// It has none of these addresses.
    OtherAddress,
}

/// The name of a token in a challenge. It reveals nothing about a secret of 256 random bits.
pub fn token_key(digest: &[u8; 32]) -> String {
    let hash = Sha256::new().chain_update(b"airlock token key 1\0").chain_update(digest).finalize();
    hex(&hash[..16])
}

/// An endpoint in the format of a challenge. An IPv4 address in its IPv6 form is the same address.
pub fn endpoint(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}

/// Computes the proof for one address.
pub fn prove(digest: &[u8; 32], nonce: &[u8; NONCE_BYTES], address: &str) -> String {
    hex(&mac(digest, nonce, address).finalize().into_bytes())
}

/// Verifies a proof, in constant time.
pub fn is_proof(digest: &[u8; 32], nonce: &[u8; NONCE_BYTES], address: &str, proof: &str) -> bool {
    let proof: Option<[u8; 32]> = unhex(proof);
    proof.is_some_and(|proof| mac(digest, nonce, address).verify_slice(&proof).is_ok())
}

fn mac(digest: &[u8; 32], nonce: &[u8; NONCE_BYTES], address: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::new_from_slice(digest).expect("HMAC takes a key of any length");
    mac.update(b"airlock server proof 1\0");
    mac.update(nonce);
    mac.update(address.as_bytes());
    mac
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes `N` bytes from hexadecimal digits; `None` if the text is invalid.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |character: u8| char::from(character).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_for_one_token_one_nonce_and_one_address() {
        let (digest, nonce) = ([7; 32], [9; NONCE_BYTES]);
        let proof = prove(&digest, &nonce, "127.0.0.1:4788");
        assert!(is_proof(&digest, &nonce, "127.0.0.1:4788", &proof));
        assert!(!is_proof(&digest, &nonce, "127.0.0.1:4789", &proof));
        assert!(!is_proof(&digest, &nonce, "[::1]:4788", &proof));
        assert!(!is_proof(&digest, &[8; NONCE_BYTES], "127.0.0.1:4788", &proof));
        assert!(!is_proof(&[6; 32], &nonce, "127.0.0.1:4788", &proof));
        assert!(!is_proof(&digest, &nonce, "127.0.0.1:4788", ""));
        assert_ne!(token_key(&digest), token_key(&[6; 32]));
        assert_eq!(token_key(&digest).len(), 32);
    }

    #[test]
    fn an_endpoint_has_one_text() {
        let text = |address: &str| endpoint(address.parse().unwrap());
        assert_eq!(text("[::ffff:127.0.0.1]:4788"), "127.0.0.1:4788");
        assert_eq!(text("[::1]:4788"), "[::1]:4788");
        assert_eq!(text("[fe80::1%3]:1"), "[fe80::1]:1");
    }

    #[test]
    fn hexadecimal_digits_read_back_as_written() {
        assert_eq!(unhex::<2>(&hex(&[0, 255])), Some([0, 255]));
        for bad in ["", "0", "00f", "00+f", "zz00", "000000"] {
            assert_eq!(unhex::<2>(bad), None, "{bad}");
        }
    }
}
