//! `POST /api/prove`: proves to a client that this server knows its token, before the client sends it. Needs no
//! token.
//!
//! It cannot be used as an oracle: a token is identified by a hash of its secret, which has 256 random bits. The
//! secret that an operator chose is excluded, because it may be weak. The address is the connection's own: see
//! [`protocols::server_proof`].

use super::json_response;
use crate::app::AppState;
use crate::body::JsonBody;
use crate::connection_service::ConnectionEndpoints;
use crate::error::RequestError;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use protocols::server_proof::{
    ADDRESS_BYTES_MAX, ADDRESSES_MAX, NONCE_BYTES, ProofAnswer, ProofChallenge, ProofRefusal,
    endpoint, prove, unhex,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// `POST /api/prove {key, nonce, addresses}`.
pub(crate) async fn prove_token(
    State(app): State<Arc<AppState>>,
    endpoints: Option<Extension<ConnectionEndpoints>>,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    let bad = || {
        RequestError::bad_request(
            "A challenge is {key, nonce, addresses}: a token's key, 32 bytes in hexadecimal, and up to 4 addresses.",
        )
    };
    let challenge: ProofChallenge = serde_json::from_slice(&body).map_err(|_| bad())?;
    let nonce = unhex::<NONCE_BYTES>(&challenge.nonce).ok_or_else(bad)?;
    let is_short = |address: &String| address.len() <= ADDRESS_BYTES_MAX;
    if challenge.addresses.len() > ADDRESSES_MAX || !challenge.addresses.iter().all(is_short) {
        return Err(bad());
    }
    let ours = own_addresses(&app, endpoints.and_then(|Extension(endpoints)| endpoints.local));
    let digest = app.tokens.digest_of_key(&challenge.key).await.map_err(engine::Fault::from)?;
    let answered = prove_address(&challenge, &nonce, digest.as_ref(), ours);
    let body = serde_json::to_value(answered).map_err(|error| RequestError::broken(&error))?;
    Ok(json_response(StatusCode::OK, &body))
}

/// The local address of this connection, and that of the public URL, whose proxy the operator trusts.
fn own_addresses(app: &AppState, local: Option<SocketAddr>) -> Vec<String> {
    let local = local.map(endpoint);
    let public = app.admission.public_origin().map(|public| public.authority().to_owned());
    local.into_iter().chain(public).collect()
}

fn prove_address(
    challenge: &ProofChallenge,
    nonce: &[u8; NONCE_BYTES],
    digest: Option<&[u8; 32]>,
    ours: Vec<String>,
) -> ProofAnswer {
    let Some(digest) = digest else {
        return ProofAnswer { reason: Some(ProofRefusal::UnknownToken), ..ProofAnswer::default() };
    };
    let Some(address) = challenge.addresses.iter().find(|address| ours.contains(address)) else {
        // Only a client with a token learns which addresses belong to this server.
        let reason = Some(ProofRefusal::OtherAddress);
        return ProofAnswer { reason, addresses: ours, ..ProofAnswer::default() };
    };
    let proof = Some(prove(digest, nonce, address));
    ProofAnswer { address: Some(address.clone()), proof, ..ProofAnswer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocols::server_proof::is_proof;

    #[test]
    fn a_server_proves_a_token_for_its_own_addresses_only() {
        let (digest, nonce) = ([7; 32], [9; NONCE_BYTES]);
        let ask = |digest: Option<&[u8; 32]>, addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
            let challenge = ProofChallenge { key: String::new(), nonce: String::new(), addresses };
            prove_address(&challenge, &nonce, digest, vec!["127.0.0.1:1".into(), "box".into()])
        };
        for addresses in [["[::1]:1", "box"], ["127.0.0.1:1", "x"]] {
            let proven = ask(Some(&digest), &addresses);
            let (address, proof) = (proven.address.unwrap(), proven.proof.unwrap());
            assert!(addresses.contains(&address.as_str()));
            assert!(is_proof(&digest, &nonce, &address, &proof));
        }
        let elsewhere = ask(Some(&digest), &["127.0.0.1:2", "[::1]:1", "box:80"]);
        assert_eq!((elsewhere.proof, elsewhere.reason), (None, Some(ProofRefusal::OtherAddress)));
        let unknown = ask(None, &["127.0.0.1:1"]);
        assert_eq!((unknown.proof, unknown.reason), (None, Some(ProofRefusal::UnknownToken)));
        assert!(unknown.addresses.is_empty(), "a stranger learns nothing");
    }
}
