//! What proves who calls, found when a call needs it and never before. One that is not taken may be renewed: the same
//! call then goes on.

use crate::envelope::{ToolFailure, refused_envelope};
use crate::{Integration, ToolCredential, ToolRequest};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use lifecycle::{Failure, Json};
use std::sync::Arc;

/// How often one call may get another proof: one that was refreshed, and one that a person gave.
const RENEWALS_MAX: usize = 2;

/// Finds what proves who calls.
pub trait CredentialProvider: Send + Sync {
    /// Where its values will go, without the values: what arguments are checked against.
    fn outline(&self) -> ToolCredential;

    /// The proof itself. Asks the person behind the call where nobody else can help, for as long as that takes.
    fn credential(&self, call: &ToolRequest)
    -> BoxFuture<'static, Result<ToolCredential, NoProof>>;

    /// Another proof after the other side did not take `refused`, and said why; none where there is none.
    fn renewed(
        &self,
        refused: &ToolCredential,
        why: &ProofRefused,
        call: &ToolRequest,
    ) -> BoxFuture<'static, Result<Option<ToolCredential>, NoProof>>;
}

/// Why the other side did not take a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofRefused {
    /// It does not know who calls.
    Unknown,
    /// It knows, and wants these scopes to be allowed.
    Narrow(Vec<String>),
}

/// Why there is no proof.
#[derive(Debug)]
pub enum NoProof {
    /// Something is missing or broken: data for the program.
    Trouble(ToolFailure),
    /// A person said no: thrown, as everywhere.
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

/// Values that are there already.
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

/// Performs a call with a proof, and once more with a better one where the first was not taken: what was refused
/// has not happened.
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
