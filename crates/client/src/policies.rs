//! Policies for tool calls, for administrators.

use crate::{AirlockClient, Error};
use hyper::Method;
use lifecycle::{Json, PolicyAction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A policy as the server stores it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct StoredPolicy {
    /// `policy_…`.
    pub id: String,
    /// `org` or `user`.
    pub owner: String,
    /// The pattern of the tools that it applies to.
    pub pattern: String,
    /// What happens to a call of such a tool.
    pub action: PolicyAction,
    /// With `require_approval`: whether an answer may change the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Its position in the list of its owner.
    pub position: String,
    /// The management call that created it, if no administrator has confirmed it since: it approves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<Value>,
}

/// The parameters of a new policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NewPolicy<'a> {
    /// `org` or `user`.
    pub owner: &'a str,
    /// The pattern of the tools that it applies to.
    pub pattern: &'a str,
    /// What happens to a call of such a tool.
    pub action: PolicyAction,
    /// With `require_approval`: whether an answer may change the arguments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Its position in the list; at the top if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<&'a str>,
}

/// The decision for a call of a tool, and its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyExplanation {
    /// `allow`, `ask` or `refuse`.
    pub verdict: String,
    /// The pattern of the policy that decides.
    pub pattern: Option<String>,
    /// The policy that decides, where it is a stored one.
    pub policy: Option<StoredPolicy>,
    /// A policy that would approve the call, but does not count.
    #[serde(default)]
    pub ignored_policy: Option<StoredPolicy>,
    /// Why it does not count: `outdated`, `answer_only` or `unconfirmed`.
    #[serde(default)]
    pub ignored_because: Option<String>,
    /// Whether each call of the tool needs an answer, which no policy replaces.
    #[serde(default)]
    pub answer_only: bool,
    /// The scope that a token needs to accept a call of the tool, where that is more than `answer`.
    #[serde(default)]
    pub answer_scope: Option<String>,
    /// Whether the tool exists.
    pub tool_exists: bool,
}

impl AirlockClient {
    /// Returns the policies in evaluation order.
    pub async fn policies(&self) -> Result<Vec<StoredPolicy>, Error> {
        self.asked(Method::GET, "/api/policies", None).await
    }

    /// Stores a policy. It applies immediately.
    pub async fn add_policy(&self, new: &NewPolicy<'_>) -> Result<StoredPolicy, Error> {
        let body = Json::from_value(new).map_err(|error| Error::Unusable(error.to_string()))?;
        self.asked(Method::POST, "/api/policies", Some(&body)).await
    }

    /// Removes a policy. It no longer applies.
    pub async fn remove_policy(&self, id: &str) -> Result<(), Error> {
        let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        self.send_request(Method::DELETE, &format!("/api/policies/{id}"), None).await.map(drop)
    }

    /// Confirms a policy that a management call created, so that it counts.
    pub async fn confirm_policy(&self, id: &str) -> Result<StoredPolicy, Error> {
        let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
        self.asked(Method::POST, &format!("/api/policies/{id}/confirm"), None).await
    }

    /// Returns the decision for a call of `tool`.
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
