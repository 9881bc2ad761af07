//! The tools that manage policies.

use super::wrong;
use crate::SourceRegistry;
use engine::policies::{KeptRule, NewRule, PolicyError, PolicyOwner, RuleChange, RulePosition};
use lifecycle::{PolicyAction, ToolPattern};
use serde_json::{Value, json};
use tools::envelope::ToolFailure;

pub(super) const LIST: &str = "executor.coreTools.policies.list";
pub(super) const CREATE: &str = "executor.coreTools.policies.create";
pub(super) const UPDATE: &str = "executor.coreTools.policies.update";
pub(super) const REMOVE: &str = "executor.coreTools.policies.remove";

pub(super) async fn perform_policy_tool(
    sources: &SourceRegistry,
    tool: &str,
    args: &Value,
) -> Result<Value, ToolFailure> {
    let engine = &sources.0.setup.engine;
    let (policies, now) = (engine.policies(), engine.clock().now());
    let id = args["id"].as_str().unwrap_or_default();
    match tool {
        CREATE => {
            let new = new_rule(args)?;
            Ok(rule_json(&policies.add(new, now).await.map_err(|error| policy_refusal(&error))?))
        }
        UPDATE => {
            let change = rule_change(args)?;
            Ok(rule_json(
                &policies.change(id, change, now).await.map_err(|error| policy_refusal(&error))?,
            ))
        }
        REMOVE => {
            policies.remove(id, owner(args)?).await.map_err(|error| policy_refusal(&error))?;
            Ok(json!({ "removed": true }))
        }
        _ => {
            let rules = policies.list_rules().await.map_err(|fault| {
                ToolFailure::new("internal", format!("the policies cannot be read: {fault}"))
            })?;
            let shown: Vec<_> = rules.iter().map(rule_json).collect();
            Ok(json!({ "policies": shown }))
        }
    }
}

/// The policy that a call of `policies.create` adds.
pub(super) fn new_rule(args: &Value) -> Result<NewRule, ToolFailure> {
    let missing = |name: &str| wrong(format!("{name} is missing"));
    Ok(NewRule {
        owner: owner(args)?.ok_or_else(|| missing("owner"))?,
        pattern: pattern(args)?.ok_or_else(|| missing("pattern"))?,
        action: action(args)?.ok_or_else(|| missing("action"))?,
        // Only people decide that, over HTTP or in a file.
        editable: false,
        position: position(args)?,
    })
}

/// What a call of `policies.update` changes.
pub(super) fn rule_change(args: &Value) -> Result<RuleChange, ToolFailure> {
    Ok(RuleChange {
        owner: owner(args)?,
        pattern: pattern(args)?,
        action: action(args)?,
        editable: None,
        position: position(args)?,
    })
}

/// The error of a call with an unknown policy.
pub(super) fn unknown_policy(id: &str) -> ToolFailure {
    policy_refusal(&PolicyError::Unknown(id.to_owned()))
}

fn text_argument<'a>(args: &'a Value, name: &str) -> Option<&'a str> {
    args[name].as_str()
}

pub(super) fn owner(args: &Value) -> Result<Option<PolicyOwner>, ToolFailure> {
    text_argument(args, "owner")
        .map(str::parse)
        .transpose()
        .map_err(|why: &str| wrong(why.to_owned()))
}

fn pattern(args: &Value) -> Result<Option<ToolPattern>, ToolFailure> {
    let parsed = text_argument(args, "pattern").map(ToolPattern::parse).transpose();
    parsed.map_err(|bad| wrong(bad.to_string()))
}

fn position(args: &Value) -> Result<Option<RulePosition>, ToolFailure> {
    let parsed = text_argument(args, "position").map(RulePosition::parse).transpose();
    parsed.map_err(|bad| wrong(bad.to_string()))
}

fn action(args: &Value) -> Result<Option<PolicyAction>, ToolFailure> {
    match text_argument(args, "action") {
        None => Ok(None),
        Some("approve") => Ok(Some(PolicyAction::Approve)),
        Some("require_approval") => Ok(Some(PolicyAction::RequireApproval)),
        Some("block") => Ok(Some(PolicyAction::Block)),
        Some(_) => Err(wrong("action is approve, require_approval or block".into())),
    }
}

fn policy_refusal(error: &PolicyError) -> ToolFailure {
    let code = match error {
        PolicyError::Unknown(_) => "policy_not_found",
        PolicyError::NotKept | PolicyError::TooMany | PolicyError::Contested => {
            "policy_not_changed"
        }
        PolicyError::Fault(_) => "internal",
    };
    ToolFailure::new(code, error.to_string())
}

fn rule_json(rule: &KeptRule) -> Value {
    json!({
        "id": rule.id,
        "owner": rule.owner,
        "pattern": rule.pattern.to_string(),
        "action": rule.action,
        "editable": rule.editable,
        "position": rule.position,
    })
}
