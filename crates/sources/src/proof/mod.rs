//! What proves who calls, found when a call needs it: values from the vault, from variables, files and programs, or a
//! token. What nobody has entered yet is asked of a person, and the same call goes on.

mod resolve;
mod template;
mod trust;

pub use template::Offer;
pub(crate) use template::{connection, method, variables};
pub(crate) use trust::{Key, Trust};

use crate::config::Connection;
use crate::{handoff, oauth};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use resolve::Lack;
use std::sync::Arc;
use tools::envelope::Trouble;
use tools::http::Reach;
use tools::{Credential, NoProof, Proof, Refused, Request};
use url::Url;

/// How often a call asks a person for what it needs: who agrees and enters nothing is asked again, not for ever.
pub(crate) const ASKS_MAX: usize = 3;

/// One connection's proof.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) trust: Arc<Trust>,
    pub(crate) key: Key,
    pub(crate) connection: Arc<Connection>,
    /// Where its source is, if that is an address.
    pub(crate) address: Option<Url>,
    /// Where its description was found; none where its operator wrote it down.
    pub(crate) described_at: Option<Url>,
}

impl Held {
    /// How far the words of its description carry.
    pub(crate) fn reach_of_description(&self) -> Reach {
        self.described_at.as_ref().map_or(Reach::Anywhere, Reach::granted_to)
    }

    /// How far a request to `target` may lead, where calls of the source go by what the source says: a description on
    /// the internet sends nobody into our networks.
    pub(crate) fn reach_of_target(&self, target: &Url) -> Reach {
        self.address.as_ref().map_or(Reach::Anywhere, Reach::granted_to).within(target)
    }

    /// The proof as far as it can be had without asking anybody.
    pub(crate) async fn at_hand(&self) -> Result<Credential, Trouble> {
        let held = oauth::named(self.clone()).await?;
        match &held.connection.oauth {
            Some(oauth) => oauth::at_hand(&held, oauth).await,
            None => resolve::credential(self).await.map_err(Lack::trouble),
        }
    }

    async fn found(mut self, call: Request) -> Result<Credential, NoProof> {
        self = oauth::named(self).await?;
        if let Some(oauth) = &self.connection.oauth {
            return oauth::credential(&self, oauth, &call).await;
        }
        for _ in 0..ASKS_MAX {
            match resolve::credential(&self).await {
                Ok(credential) => return Ok(credential),
                Err(Lack::Unentered) => {
                    handoff::ask(&self, &call).await?;
                    self.connection = self.trust.current(&self.key).unwrap_or(self.connection);
                }
                Err(lack) => return Err(lack.trouble().into()),
            }
        }
        Err(Lack::Unentered.trouble().into())
    }
}

impl Proof for Held {
    fn outline(&self) -> Credential {
        template::outline(&self.trust.methods(&self.key), &self.connection)
    }

    fn credential(&self, call: &Request) -> BoxFuture<'static, Result<Credential, NoProof>> {
        self.clone().found(call.clone()).boxed()
    }

    fn renewed(
        &self,
        refused: &Credential,
        why: &Refused,
        call: &Request,
    ) -> BoxFuture<'static, Result<Option<Credential>, NoProof>> {
        // A value that somebody entered does not get better by itself.
        if self.connection.oauth.is_none() {
            return ready(Ok(None)).boxed();
        }
        let (held, refused, why, call) = (self.clone(), refused.clone(), why.clone(), call.clone());
        async move {
            let held = oauth::named(held).await?;
            let oauth = held.connection.oauth.clone().unwrap_or_default();
            match why {
                Refused::Unknown => oauth::renewed(&held, &oauth, &refused, &call).await.map(Some),
                Refused::Narrow(scopes) => {
                    oauth::widened(&held, &oauth, (&refused, &scopes), &call).await
                }
            }
        }
        .boxed()
    }
}
