//! `/api/policies`: which calls are permitted. For administrators: an agent must not be able to approve itself.

use super::{json_response, require_admin};
use crate::app::AppState;
use crate::auth::{Caller, Scope, permissions};
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use engine::policies::{
    IgnoredApproval, KeptRule, NewRule, PolicyDecision, PolicyError, PolicyOwner, RuleChange,
    RulePosition,
};
use lifecycle::{PolicyAction, PolicyVerdict, ToolPath, ToolPattern, ToolTraits};
use protocols::executor::{ObjectMembers, member, members};
use serde_json::{Value, json};
use std::sync::Arc;

const ACTIONS: &str = "\"approve\", \"require_approval\" or \"block\"";

/// `GET /api/policies`.
pub(crate) async fn list_policies(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let rules = app.engine.policies().list_rules().await?;
    Ok(json_response(StatusCode::OK, &rules.iter().map(rule_json).collect()))
}

/// `POST /api/policies {owner, pattern, action, editable?, position?}`.
pub(crate) async fn add(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let missing = |name: &str, is: &str| {
        RequestError::bad_request(format!("The member \"{name}\" is missing; it is {is}."))
    };
    let new = NewRule {
        owner: owner(&members)?.ok_or_else(|| missing("owner", "\"org\" or \"user\""))?,
        pattern: pattern(&members)?.ok_or_else(|| missing("pattern", "a string"))?,
        action: action(&members)?.ok_or_else(|| missing("action", ACTIONS))?,
        editable: editable(&members)?.unwrap_or(false),
        position: position(&members)?,
    };
    let rule = app.engine.policies().add(new, app.clock.now()).await?;
    Ok(json_response(StatusCode::OK, &rule_json(&rule)))
}

/// `PATCH /api/policies/{id} {owner?, pattern?, action?, editable?, position?}`.
pub(crate) async fn change(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let change = RuleChange {
        owner: owner(&members)?,
        pattern: pattern(&members)?,
        action: action(&members)?,
        editable: editable(&members)?,
        position: position(&members)?,
    };
    let rule = app.engine.policies().change(&id, change, app.clock.now()).await?;
    Ok(json_response(StatusCode::OK, &rule_json(&rule)))
}

/// `DELETE /api/policies/{id}`, with `{owner}` or without a body.
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
    body: Bytes,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let owner = if body.is_empty() { None } else { owner(&members(&body)?)? };
    app.engine.policies().remove(&id, owner).await?;
    Ok(json_response(StatusCode::OK, &json!({ "removed": true })))
}

/// `POST /api/policies/{id}/confirm`: confirms a policy that a management call created without a valid answer, so
/// that it takes effect.
pub(crate) async fn confirm(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let rule = app.engine.policies().confirm(&id, app.clock.now()).await?;
    Ok(json_response(StatusCode::OK, &rule_json(&rule)))
}

/// `GET /api/policies/test?tool=…`: returns the decision for a call, and the reason.
pub(crate) async fn test(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let tool = query.text_member("tool").unwrap_or_default();
    let tool = ToolPath::parse(tool.trim_start_matches("tools."))
        .map_err(|bad| RequestError::bad_request(format!("The query's tool is wrong: {bad}.")))?;
    let traits = app.engine.catalogue().find(&tool).map(|found| found.traits());
    let looked_at = traits.unwrap_or(ToolTraits::lasting(false));
    let explained = app.engine.policies().explain(&tool, looked_at).await?;
    let PolicyDecision { verdict, pattern, rule, ignored } = explained;
    let verdict = match verdict {
        PolicyVerdict::Allow => "allow",
        PolicyVerdict::Ask { .. } => "ask",
        PolicyVerdict::Refuse { .. } => "refuse",
    };
    let outdated = ignored.as_ref().filter(|(_, why)| *why == IgnoredApproval::Outdated);
    let needs_answer = traits.is_some_and(|traits| traits.answer_only);
    Ok(json_response(
        StatusCode::OK,
        &json!({
            "tool": tool,
            "verdict": verdict,
            "pattern": pattern,
            "policy": rule.as_ref().map(rule_json),
            "outdatedPolicy": outdated.map(|(rule, _)| rule_json(rule)),
            "ignoredPolicy": ignored.as_ref().map(|(rule, _)| rule_json(rule)),
            "ignoredBecause": ignored.as_ref().map(|(_, why)| reason(*why)),
            "toolExists": traits.is_some(),
            "toolAsks": traits.map(|traits| traits.asks),
            "answerOnly": needs_answer,
            "answerScope": permissions::accept_scope(&tool).map(Scope::name),
        }),
    ))
}

/// Why an approval has no effect, as one word.
const fn reason(why: IgnoredApproval) -> &'static str {
    match why {
        IgnoredApproval::Outdated => "outdated",
        IgnoredApproval::AnswerOnly => "answer_only",
        IgnoredApproval::Unconfirmed => "unconfirmed",
    }
}

fn owner(members: &ObjectMembers<'_>) -> Result<Option<PolicyOwner>, RequestError> {
    Ok(member(members, "owner", "\"org\" or \"user\"")?)
}

fn action(members: &ObjectMembers<'_>) -> Result<Option<PolicyAction>, RequestError> {
    Ok(member(members, "action", ACTIONS)?)
}

fn editable(members: &ObjectMembers<'_>) -> Result<Option<bool>, RequestError> {
    Ok(member(members, "editable", "true or false")?)
}

fn pattern(members: &ObjectMembers<'_>) -> Result<Option<ToolPattern>, RequestError> {
    let text: Option<String> = member(members, "pattern", "a string")?;
    let wrong =
        |bad| RequestError::bad_request(format!("The member \"pattern\" is no pattern: {bad}."));
    text.map(|text| ToolPattern::parse(&text)).transpose().map_err(wrong)
}

fn position(members: &ObjectMembers<'_>) -> Result<Option<RulePosition>, RequestError> {
    let text: Option<String> = member(members, "position", "a string")?;
    let wrong =
        |bad| RequestError::bad_request(format!("The member \"position\" is wrong: {bad}."));
    text.map(|text| RulePosition::parse(&text)).transpose().map_err(wrong)
}

fn rule_json(rule: &KeptRule) -> Value {
    json!({
        "id": rule.id,
        "owner": rule.owner,
        "pattern": rule.pattern.to_string(),
        "action": rule.action,
        "editable": rule.editable,
        "position": rule.position,
        "createdAt": rule.created,
        "updatedAt": rule.updated,
        "saidAt": rule.said,
        "unconfirmed": rule.unconfirmed,
    })
}

impl From<PolicyError> for RequestError {
    fn from(error: PolicyError) -> Self {
        match error {
            PolicyError::Unknown(_) => Self::no_policy(error.to_string()),
            PolicyError::TooMany | PolicyError::Contested | PolicyError::NotKept => {
                Self::conflict(crate::error::capitalised(&error.to_string()))
            }
            PolicyError::Fault(fault) => fault.into(),
        }
    }
}
