//! Who may call what, for administrators.

use crate::{AirlockClient, Error};
use hyper::Method;
use lifecycle::{Json, PolicyAction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A policy as the server keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct StoredPolicy {
    /// `policy_…`.
    pub id: String,
    /// `org` or `user`.
    pub owner: String,
    /// Which tools.
    pub pattern: String,
    /// What about them.
    pub action: PolicyAction,
    /// Where it asks: whether whoever answers may change the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Where it stands in its owner's list.
    pub position: String,
    /// The management call that made it, if no administrator has confirmed it since: it approves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<Value>,
}

/// A policy to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NewPolicy<'a> {
    /// `org` or `user`.
    pub owner: &'a str,
    /// Which tools.
    pub pattern: &'a str,
    /// What about them.
    pub action: PolicyAction,
    /// Where it asks: whether whoever answers may change the arguments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Where it stands; at the top if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<&'a str>,
}

/// What would happen to a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyExplanation {
    /// `allow`, `ask` or `refuse`.
    pub verdict: String,
    /// The pattern that decides.
    pub pattern: Option<String>,
    /// The policy that decides, where it is one that is kept.
    pub policy: Option<StoredPolicy>,
    /// One that would approve it, and does not count.
    #[serde(default)]
    pub ignored_policy: Option<StoredPolicy>,
    /// Why: `outdated`, `answer_only` or `unconfirmed`.
    #[serde(default)]
    pub ignored_because: Option<String>,
    /// Whether each call of the tool needs an answer, which no policy replaces.
    #[serde(default)]
    pub answer_only: bool,
    /// The scope that a token needs to accept a call of the tool, where that is more than `answer`.
    #[serde(default)]
    pub answer_scope: Option<String>,
    /// Whether there is such a tool.
    pub tool_exists: bool,
}

impl AirlockClient {
    /// Every policy, in the order in which they are looked at.
    pub async fn policies(&self) -> Result<Vec<StoredPolicy>, Error> {
        self.asked(Method::GET, "/api/policies", None).await
    }

    /// Keeps a policy. It counts at once.
    pub async fn add_policy(&self, new: &NewPolicy<'_>) -> Result<StoredPolicy, Error> {
        let body = Json::from_value(new).map_err(|error| Error::Unusable(error.to_string()))?;
        self.asked(Method::POST, "/api/policies", Some(&body)).await
    }

    /// Removes a policy. It no longer counts.
    pub async fn remove_policy(&self, id: &str) -> Result<(), Error> {
        let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        self.send_request(Method::DELETE, &format!("/api/policies/{id}"), None).await.map(drop)
    }

    /// Lets a policy count that a management call made.
    pub async fn confirm_policy(&self, id: &str) -> Result<StoredPolicy, Error> {
        let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        self.asked(Method::POST, &format!("/api/policies/{id}/confirm"), None).await
    }

    /// What would happen to a call of `tool`.
    pub async fn explain_policy(&self, tool: &str) -> Result<PolicyExplanation, Error> {
        let tool: String = form_urlencoded::byte_serialize(tool.as_bytes()).collect();
        self.asked(Method::GET, &format!("/api/policies/test?tool={tool}"), None).await
    }

    pub(crate) async fn asked<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<T, Error> {
        let (_, body) = self.send_request(method, path, body).await?;
        serde_json::from_str(&body)
            .map_err(|_| Error::Protocol("JSON, but not what was asked for".into()))
    }
}
