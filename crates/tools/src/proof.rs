//! Provides the credential of a call when the call needs it. A rejected credential may be renewed: the same
//! call then continues.

use crate::envelope::{ToolFailure, refused_envelope};
use crate::{Integration, ToolCredential, ToolRequest};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use lifecycle::{Failure, Json};
use std::sync::Arc;

/// How often one call may obtain another credential: one refreshed, and one entered by a person.
const RENEWALS_MAX: usize = 2;

/// Provides the credential of a call.
pub trait CredentialProvider: Send + Sync {
    /// The names and places of its values, without the values: used to check arguments.
    fn outline(&self) -> ToolCredential;

    /// The credential itself. Asks the person behind the call if there is no other way, and waits for the answer.
    fn credential(&self, call: &ToolRequest)
    -> BoxFuture<'static, Result<ToolCredential, NoProof>>;

    /// Another credential after the server rejected `refused`, with the reason; none if there is none.
    fn renewed(
        &self,
        refused: &ToolCredential,
        why: &ProofRefused,
        call: &ToolRequest,
    ) -> BoxFuture<'static, Result<Option<ToolCredential>, NoProof>>;
}

/// Why the server rejected a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofRefused {
    /// The credential is unknown, expired or revoked.
    Unknown,
    /// The caller is known but lacks these scopes.
    Narrow(Vec<String>),
}

/// Why there is no credential.
#[derive(Debug)]
pub enum NoProof {
    /// Something is missing or broken: data for the program.
    Trouble(ToolFailure),
    /// A person declined: thrown, as elsewhere.
    Refused(Failure),
}

impl From<ToolFailure> for NoProof {
    fn from(trouble: ToolFailure) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<Failure> for NoProof {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

/// A fixed credential.
impl CredentialProvider for ToolCredential {
    fn outline(&self) -> ToolCredential {
        self.clone()
    }

    fn credential(&self, _: &ToolRequest) -> BoxFuture<'static, Result<ToolCredential, NoProof>> {
        ready(Ok(self.clone())).boxed()
    }

    fn renewed(
        &self,
        _: &ToolCredential,
        _: &ProofRefused,
        _: &ToolRequest,
    ) -> BoxFuture<'static, Result<Option<ToolCredential>, NoProof>> {
        ready(Ok(None)).boxed()
    }
}

/// Performs a call, and once more with a better credential if the first was rejected: a rejected call
/// had no effect.
pub(crate) async fn perform_with_proof(
    integration: Arc<dyn Integration>,
    proof: Arc<dyn CredentialProvider>,
    tool: String,
    request: ToolRequest,
) -> Result<Option<Json>, Failure> {
    let mut credential = match proof.credential(&request).await {
        Ok(credential) => credential,
        Err(none) => return connection_failure(none),
    };
    for _ in 0..RENEWALS_MAX {
        credential.learn();
        let said = integration.call(&tool, &credential, request.clone()).await?;
        let Some(why) = said.as_ref().and_then(refused_envelope) else { return Ok(said) };
        credential = match proof.renewed(&credential, &why, &request).await {
            Ok(Some(better)) => better,
            Ok(None) => return Ok(said),
            Err(none) => return connection_failure(none),
        };
    }
    credential.learn();
    integration.call(&tool, &credential, request).await
}

fn connection_failure(none: NoProof) -> Result<Option<Json>, Failure> {
    match none {
        NoProof::Trouble(trouble) => Ok(Some(trouble.into_envelope())),
        NoProof::Refused(failure) => Err(failure),
    }
}
