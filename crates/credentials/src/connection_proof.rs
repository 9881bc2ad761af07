//! The proof of one connection, resolved when a call needs it: values from the vault, from variables, files and
//! programs, or a token. A value that is missing is asked of a person, and the same call continues.

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

/// How often a call asks a person for what it needs: a person who agrees and enters nothing is asked again, not for ever.
pub(crate) const ASKS_MAX: usize = 3;

/// The proof of one connection.
#[derive(Clone)]
pub struct ConnectionProof {
    /// What all proofs share.
    pub credentials: Arc<Credentials>,
    /// The connection.
    pub key: ConnectionKey,
    /// How the connection is configured.
    pub connection: Arc<ConnectionConfig>,
    /// Where its source is, if that is an address.
    pub address: Option<Url>,
    /// Where its description was found; none where its operator wrote it down.
    pub described_at: Option<Url>,
}

impl fmt::Debug for ConnectionProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionProof({})", self.key.display_name())
    }
}

impl ConnectionProof {
    /// How far an address that its description names may lead.
    pub(crate) fn reach_of_description(&self) -> RequestReach {
        self.described_at.as_ref().map_or(RequestReach::Anywhere, RequestReach::granted_to)
    }

    /// How far a request to `target` may lead, where calls of the source go by what the source says: a description on
    /// the internet sends nobody into our networks.
    pub fn reach_of_target(&self, target: &Url) -> RequestReach {
        self.address
            .as_ref()
            .map_or(RequestReach::Anywhere, RequestReach::granted_to)
            .within(target)
    }

    /// The credential, if it can be had without asking a person.
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
