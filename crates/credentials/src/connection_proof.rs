//! Resolves the credential of one connection when a call needs it: values from the vault, variables, files and
//! programs, or a token. A person is asked for a missing value, and the same call continues.

use crate::secret_values::{self, MissingValue};
use crate::{ConnectionConfig, ConnectionKey, Credentials, auth_template, handoff, oauth};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use std::fmt;
use std::sync::Arc;
use tools::envelope::ToolFailure;
use tools::http::RequestReach;
use tools::{CredentialProvider, NoProof, ProofRefused, ToolCredential, ToolRequest};
use url::Url;

/// How often a call asks a person for what it needs: a person who accepts without entering anything is asked again, up
/// to this limit.
pub(crate) const ASKS_MAX: usize = 3;

/// The credential provider of one connection.
#[derive(Clone)]
pub struct ConnectionProof {
    /// The state that all connections share.
    pub credentials: Arc<Credentials>,
    /// The connection.
    pub key: ConnectionKey,
    /// How the connection is configured.
    pub connection: Arc<ConnectionConfig>,
    /// The address of its source, if it has one.
    pub address: Option<Url>,
    /// Where its description came from; none if the operator wrote it.
    pub described_at: Option<Url>,
}

impl fmt::Debug for ConnectionProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionProof({})", self.key.display_name())
    }
}

impl ConnectionProof {
    /// The reach of addresses that its description names.
    pub(crate) fn reach_of_description(&self) -> RequestReach {
        self.described_at.as_ref().map_or(RequestReach::Anywhere, RequestReach::granted_to)
    }

    /// The reach of a request to `target`, if the source's description determines its calls: a description on
    /// the internet cannot lead into private networks.
    pub fn reach_of_target(&self, target: &Url) -> RequestReach {
        self.address
            .as_ref()
            .map_or(RequestReach::Anywhere, RequestReach::granted_to)
            .within(target)
    }

    /// The credential, if it is available without asking a person.
    pub async fn available(&self) -> Result<ToolCredential, ToolFailure> {
        let proof = oauth::with_registered_client(self.clone()).await?;
        match &proof.connection.oauth {
            Some(oauth) => oauth::available(&proof, oauth).await,
            None => secret_values::credential(self).await.map_err(MissingValue::trouble),
        }
    }

    async fn resolve(mut self, call: ToolRequest) -> Result<ToolCredential, NoProof> {
        self = oauth::with_registered_client(self).await?;
        if let Some(oauth) = &self.connection.oauth {
            return oauth::credential(&self, oauth, &call).await;
        }
        for _ in 0..ASKS_MAX {
            match secret_values::credential(&self).await {
                Ok(credential) => return Ok(credential),
                Err(MissingValue::Unentered) => {
                    handoff::ask_for_secret(&self, &call).await?;
                    self.connection =
                        self.credentials.current(&self.key).unwrap_or(self.connection);
                }
                Err(missing) => return Err(missing.trouble().into()),
            }
        }
        Err(MissingValue::Unentered.trouble().into())
    }
}

impl CredentialProvider for ConnectionProof {
    fn outline(&self) -> ToolCredential {
        auth_template::outline(&self.credentials.methods(&self.key), &self.connection)
    }

    fn credential(
        &self,
        call: &ToolRequest,
    ) -> BoxFuture<'static, Result<ToolCredential, NoProof>> {
        self.clone().resolve(call.clone()).boxed()
    }

    fn renewed(
        &self,
        refused: &ToolCredential,
        why: &ProofRefused,
        call: &ToolRequest,
    ) -> BoxFuture<'static, Result<Option<ToolCredential>, NoProof>> {
        // A value that a person entered does not change by itself.
        if self.connection.oauth.is_none() {
            return ready(Ok(None)).boxed();
        }
        let (proof, refused, why, call) =
            (self.clone(), refused.clone(), why.clone(), call.clone());
        async move {
            let proof = oauth::with_registered_client(proof).await?;
            let oauth = proof.connection.oauth.clone().unwrap_or_default();
            match why {
                ProofRefused::Unknown => {
                    oauth::renewed(&proof, &oauth, &refused, &call).await.map(Some)
                }
                ProofRefused::Narrow(scopes) => {
                    oauth::widened(&proof, &oauth, (&refused, &scopes), &call).await
                }
            }
        }
        .boxed()
    }
}
