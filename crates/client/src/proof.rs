//! Tokens that are sent only to a server that proves, on the same connection, that it knows them.
//!
//! Each new connection begins with a challenge: see [`protocols::server_proof`]. A process that took over the port of a
//! server, or that passes bytes on to one, gets no token.

use crate::address::BaseAddress;
use getrandom::fill;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use protocols::server_proof::{
    NONCE_BYTES, PATH, ProofAnswer, ProofChallenge, ProofRefusal, endpoint, hex, is_proof,
    token_key,
};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::time::Duration;
use tokio::net::TcpStream;

/// Longest wait for a proof.
const PROOF_TIME_MAX: Duration = Duration::from_secs(10);

/// Largest answer to a challenge.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// The prefix of minted secrets, and their length: other secrets may be weak and take no part in proofs.
const MINTED_PREFIX: &str = "alk_";
const MINTED_BYTES: usize = 47;

/// A token, and what a server must prove before it gets the token.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerToken {
    pub(crate) secret: String,
    rule: ProofRule,
    /// The server's own address, where it differs from the address that we connect to.
    address: Option<String>,
}

/// Which servers get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProofRule {
    /// Servers that prove that they know it.
    Required,
    /// Servers that prove that they know it, and servers of earlier versions, which have no proof.
    WhereSupported,
    /// The server that is named, without a proof.
    NotAsked,
}

/// Why a server got no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The server has no route for challenges.
    #[error(
        "it cannot prove that it knows the token: it is an earlier version of Airlock, or another program. Nothing \
         was sent"
    )]
    Unsupported,
    /// The server does not know the token.
    #[error("it does not know this token. Nothing was sent")]
    UnknownToken,
    /// The server is reached through a proxy or another process.
    #[error(
        "what listens there passes requests on to the server at {0}. Nothing was sent. If that is your proxy or \
         tunnel, start the server with --public-url, or name its own address: airlock server add NAME URL --address {0}"
    )]
    OtherAddress(String),
    /// The response is not a valid proof.
    #[error("it did not prove that it knows the token. Nothing was sent")]
    WrongProof,
    /// The connection broke, or the answer was malformed.
    #[error("{0}")]
    Broken(String),
}

impl ServerToken {
    /// For a token that was found on this machine and not given: only a server that proves that it knows it gets it.
    pub fn found(secret: &str) -> Self {
        Self::new(secret, ProofRule::Required)
    }

    /// For a token that a person gave for this server. A server of an earlier version, which has no proof, gets it as well.
    /// A secret that was not minted is sent without a challenge: the challenge could be used to guess it.
    pub fn given(secret: &str) -> Self {
        let secret = secret.trim();
        let is_minted = secret.len() == MINTED_BYTES && secret.starts_with(MINTED_PREFIX);
        let rule = if is_minted { ProofRule::WhereSupported } else { ProofRule::NotAsked };
        Self::new(secret, rule)
    }

    /// For a token that a person stored for a server: like [`found`](Self::found), if it was minted.
    pub fn stored(secret: &str) -> Self {
        match Self::given(secret) {
            Self { rule: ProofRule::WhereSupported, secret, address } => {
                Self { rule: ProofRule::Required, secret, address }
            }
            other => other,
        }
    }

    /// For a server that is named and gets no challenge: a listener that has no route for challenges.
    pub fn unasked(secret: &str) -> Self {
        Self::new(secret, ProofRule::NotAsked)
    }

    /// Sets the server's own address: behind a proxy or a tunnel it differs from the address that we connect to.
    #[must_use]
    pub fn of_server_at(self, address: Option<&str>) -> Self {
        Self { address: address.map(str::to_owned), ..self }
    }

    fn new(secret: &str, rule: ProofRule) -> Self {
        Self { secret: secret.trim().to_owned(), rule, address: None }
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    /// The addresses by which the server at the other end of `stream` is known.
    fn addresses(
        &self,
        server: &BaseAddress,
        stream: &TcpStream,
    ) -> Result<Vec<String>, ProofError> {
        if let Some(address) = &self.address {
            return Ok(vec![address.clone()]);
        }
        let peer = stream.peer_addr().map_err(|error| ProofError::Broken(error.to_string()))?;
        let mut addresses = vec![endpoint(peer)];
        // Several addresses are called localhost, and each can have another listener.
        addresses.extend(server.authority().filter(|name| !name.starts_with("localhost")));
        Ok(addresses)
    }
}

impl fmt::Debug for ServerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerToken").field("rule", &self.rule).finish_non_exhaustive()
    }
}

/// Returns the connection when the server at its other end may get the token. `None` where that server is of an earlier
/// version and may get it without a proof: it may have closed the connection, so the caller connects again.
pub(crate) async fn prove_server(
    server: &BaseAddress,
    token: &ServerToken,
    stream: TcpStream,
) -> Result<Option<TcpStream>, ProofError> {
    if token.rule == ProofRule::NotAsked {
        return Ok(Some(stream));
    }
    let proving = tokio::time::timeout(PROOF_TIME_MAX, challenge(server, token, stream));
    let proven =
        proving.await.unwrap_or_else(|_| Err(ProofError::Broken("no proof in time".into())));
    match (proven, token.rule) {
        (Err(ProofError::Unsupported), ProofRule::WhereSupported) => Ok(None),
        (proven, _) => proven.map(Some),
    }
}

/// Sends a challenge and returns the connection when the answer proves that the server knows the token.
async fn challenge(
    server: &BaseAddress,
    token: &ServerToken,
    stream: TcpStream,
) -> Result<TcpStream, ProofError> {
    let mut nonce = [0; NONCE_BYTES];
    fill(&mut nonce).map_err(|_| ProofError::Broken("the system has no randomness now".into()))?;
    let (digest, addresses) = (token.digest(), token.addresses(server, &stream)?);
    let challenge = ProofChallenge {
        key: token_key(&digest),
        nonce: hex(&nonce),
        addresses: addresses.clone(),
    };
    let (stream, answer) = exchange(server, &challenge, stream).await?;
    let (Some(address), Some(proof)) = (&answer.address, &answer.proof) else {
        return Err(match answer.reason {
            Some(ProofRefusal::UnknownToken) => ProofError::UnknownToken,
            Some(ProofRefusal::OtherAddress) => {
                ProofError::OtherAddress(format_address(&answer.addresses))
            }
            None => ProofError::WrongProof,
        });
    };
    let is_proven = addresses.contains(address) && is_proof(&digest, &nonce, address, proof);
    if is_proven { Ok(stream) } else { Err(ProofError::WrongProof) }
}

/// An address from an untrusted peer, short and without control characters.
fn format_address(addresses: &[String]) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || ".:-[]".contains(*c);
    addresses
        .first()
        .map(|address| address.chars().filter(plain).take(100).collect())
        .unwrap_or_default()
}

/// Performs one request on the connection, which can be used again afterwards.
async fn exchange(
    server: &BaseAddress,
    challenge: &ProofChallenge,
    stream: TcpStream,
) -> Result<(TcpStream, ProofAnswer), ProofError> {
    let broken = |error: hyper::Error| ProofError::Broken(crate::error::root_cause(&error));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let body =
        serde_json::to_vec(challenge).map_err(|error| ProofError::Broken(error.to_string()))?;
    let request = Request::post(server.path(PATH))
        .header(HOST, server.host_header())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| ProofError::Broken(error.to_string()))?;
    let asking = async move {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok(body.ok().map(|body| (status, body.to_bytes())))
    };
    // The connection ends, and returns its stream, when the sender is dropped.
    let (parts, answered) = tokio::join!(connection.without_shutdown(), asking);
    let (status, body) = answered?.ok_or(ProofError::WrongProof)?;
    match status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            return Err(ProofError::Unsupported);
        }
        // A server that stops, or a proxy without a server.
        status if status.is_server_error() => {
            return Err(ProofError::Broken(format!("it answered a challenge with {status}")));
        }
        _ => return Err(ProofError::WrongProof),
    }
    let answer = serde_json::from_slice(&body).map_err(|_| ProofError::WrongProof)?;
    let parts = parts.map_err(broken)?;
    // Surplus bytes would be taken for the next answer.
    if !parts.read_buf.is_empty() {
        return Err(ProofError::WrongProof);
    }
    Ok((parts.io.into_inner(), answer))
}
