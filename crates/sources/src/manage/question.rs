//! The question about a management call, composed here from the checked arguments. It states which callers the change
//! affects. What the program supplied appears in it as a quotation only. Pure.

use super::{policies, wrong};
use engine::policies::{KeptRule, PolicyOwner, RulePosition};
use lifecycle::PolicyAction;
use serde_json::Value;
use tools::IntegrationSlug;
use tools::envelope::ToolFailure;
use url::Url;

/// Longest quotation, in characters; the arguments below the question show more.
const QUOTED_CHARS_MAX: usize = 300;

/// The scope of every change: there is one set of sources, connections and policies.
const BINDS: &str = "for every caller of this server";

/// The question about a call, or why it is not asked. None for a tool that does not ask. `policy` finds a policy by id.
pub(super) fn compose(
    tool: &str,
    args: &Value,
    policy: impl Fn(&str) -> Option<KeptRule>,
) -> Option<Result<String, ToolFailure>> {
    let arguments = ManagementArguments(args);
    match tool {
        policies::CREATE => Some(create_policy(args)),
        policies::UPDATE => Some(update_policy(args, policy)),
        policies::REMOVE => Some(remove_policy(args, policy)),
        policies::LIST => Some(Ok(show_policies())),
        _ => arguments.question(tool).transpose(),
    }
}

fn create_policy(args: &Value) -> Result<String, ToolFailure> {
    let new = policies::new_rule(args)?;
    let rule = rule_text(new.action, &new.pattern.to_string());
    let place = match &new.position {
        None => format!("above all other policies of {}", new.owner.name()),
        Some(position) => format!("at position {}", quoted(&position.to_string())),
    };
    Ok(format!(
        "Add a policy {BINDS}: {rule}?\n\n{} It is added to the list of {}, {place}.",
        consequence(new.action),
        new.owner.name()
    ))
}

fn update_policy(
    args: &Value,
    policy: impl Fn(&str) -> Option<KeptRule>,
) -> Result<String, ToolFailure> {
    let change = policies::rule_change(args)?;
    let before = known_policy(args, change.owner, policy)?;
    let action = change.action.unwrap_or(before.action);
    let pattern = change.pattern.as_ref().unwrap_or(&before.pattern);
    let moved = |position: &RulePosition| {
        format!(" It moves to position {}.", quoted(&position.to_string()))
    };
    Ok(format!(
        "Change a policy {BINDS}: {} instead of {}?\n\n{} It is {} in the list of {}.{}",
        rule_text(action, &pattern.to_string()),
        rule_text(before.action, &before.pattern.to_string()),
        consequence(action),
        before.id,
        before.owner.name(),
        change.position.as_ref().map(moved).unwrap_or_default(),
    ))
}

fn remove_policy(
    args: &Value,
    policy: impl Fn(&str) -> Option<KeptRule>,
) -> Result<String, ToolFailure> {
    let before = known_policy(args, policies::owner(args)?, policy)?;
    Ok(format!(
        "Remove a policy {BINDS}: {}?\n\nIt is {} in the list of {}. What it says no longer counts.",
        rule_text(before.action, &before.pattern.to_string()),
        before.id,
        before.owner.name()
    ))
}

fn show_policies() -> String {
    "Show every policy of this server to this program?\n\nIt changes nothing. The program and its caller learn who may \
     call what."
        .to_owned()
}

fn known_policy(
    args: &Value,
    owner: Option<PolicyOwner>,
    policy: impl Fn(&str) -> Option<KeptRule>,
) -> Result<KeptRule, ToolFailure> {
    let id = args["id"].as_str().unwrap_or_default();
    let found = policy(id).filter(|rule| owner.is_none_or(|owner| owner == rule.owner));
    found.ok_or_else(|| policies::unknown_policy(id))
}

fn rule_text(action: PolicyAction, pattern: &str) -> String {
    let word = match action {
        PolicyAction::Approve => "approve",
        PolicyAction::RequireApproval => "require_approval",
        PolicyAction::Block => "block",
    };
    format!("{word} {}", quoted(pattern))
}

const fn consequence(action: PolicyAction) -> &'static str {
    match action {
        PolicyAction::Approve => "Tools that it matches then run without a question.",
        PolicyAction::RequireApproval => {
            "Tools that it matches then ask a person before each call."
        }
        PolicyAction::Block => "Tools that it matches can then not be called.",
    }
}

/// The arguments of a tool that manages sources or connections.
struct ManagementArguments<'a>(&'a Value);

impl ManagementArguments<'_> {
    fn question(&self, tool: &str) -> Result<Option<String>, ToolFailure> {
        let question = match tool {
            "executor.coreTools.integrations.detect" | "executor.mcp.probe" => format!(
                "Let this server send requests to {}, to find out what is there?\n\nIt changes nothing. The program \
                 learns whether a description can be read there, and nothing else.",
                self.address("url")?
            ),
            "executor.coreTools.integrations.refresh" | "executor.mcp.refreshServer" => {
                refresh(&self.slug("slug")?)
            }
            "executor.coreTools.integrations.remove" => {
                format!("Remove the source {} and its connections {BINDS}?", self.slug("slug")?)
            }
            "executor.coreTools.connections.create" => format!(
                "Add the connection {} {BINDS}?\n\nIt has no credential. Programs can then call the tools of this source.",
                self.connection()?
            ),
            "executor.coreTools.connections.createHandoff" => format!(
                "Make a page where a person enters the credential of the connection {}, {BINDS}?\n\nThe program \
                 receives the address of the page. Programs can then call the tools of this source with the credential.",
                self.connection()?
            ),
            "executor.coreTools.oauth.start" => format!(
                "Start a sign-in for the connection {}, {BINDS}?\n\nThe program receives the address where a person \
                 signs in. Programs can then call the tools of this source with that account.",
                self.connection()?
            ),
            "executor.coreTools.oauth.cancel" => {
                format!("Cancel the sign-in of the connection {} {BINDS}?", self.connection()?)
            }
            "executor.coreTools.connections.remove" => {
                format!("Remove the connection {} {BINDS}?", self.connection()?)
            }
            "executor.coreTools.connections.refresh" => refresh(&self.slug("integration")?),
            "executor.openapi.previewSpec" => {
                "Read an OpenAPI description that the program supplied?\n\nIt changes nothing. The program learns which \
                 tools the description would become."
                    .to_owned()
            }
            "executor.openapi.addSpec" => self.add("the OpenAPI description at", "url")?,
            "executor.graphql.addIntegration" => self.add("the GraphQL API at", "endpoint")?,
            "executor.mcp.addServer" => self.add("the MCP server at", "url")?,
            _ => return Ok(None),
        };
        Ok(Some(question))
    }

    fn add(&self, what: &str, address: &str) -> Result<String, ToolFailure> {
        let target = match self.text_argument("baseUrl") {
            Some(_) => format!(" Calls go to {}.", self.address("baseUrl")?),
            None => String::new(),
        };
        Ok(format!(
            "Add a source {BINDS}: {what} {}, as {}?\n\nThe server sends requests to that address. Programs can then \
             call its tools, without a credential.{target}",
            self.address(address)?,
            self.slug("slug")?
        ))
    }

    fn text_argument(&self, name: &str) -> Option<&str> {
        self.0[name].as_str()
    }

    fn slug(&self, name: &str) -> Result<String, ToolFailure> {
        let slug = IntegrationSlug::parse(self.text_argument(name).unwrap_or_default());
        slug.map(|slug| quoted(slug.as_str())).map_err(|bad| wrong(bad.to_string()))
    }

    fn connection(&self) -> Result<String, ToolFailure> {
        self.slug("integration")?;
        let names = [
            self.text_argument("integration"),
            self.text_argument("owner").or(Some("org")),
            self.text_argument("name"),
        ];
        Ok(quoted(&names.map(Option::unwrap_or_default).join(".")))
    }

    fn address(&self, name: &str) -> Result<String, ToolFailure> {
        let text = self.text_argument(name).unwrap_or_default();
        match Url::parse(text) {
            // The form in which it is requested: a host in its ASCII form, without line breaks.
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
                Ok(quoted(url.as_str()))
            }
            Ok(_) | Err(_) => {
                Err(wrong(format!("{name} is an address that begins with http:// or https://")))
            }
        }
    }
}

fn refresh(slug: &str) -> String {
    format!(
        "Read the source {slug} again {BINDS}?\n\nThe server sends requests to its address. Its tools may change."
    )
}

/// A text that a program supplied. Control characters, quotation marks and invisible characters are escaped, so that it
/// cannot end its own quotation.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let n_more = text.chars().count().saturating_sub(QUOTED_CHARS_MAX);
    match n_more {
        0 => format!("{shown:?}"),
        n_more => format!("{shown:?} (and {n_more} more characters)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LIST, ManagementTool, ToolEffect};
    use super::*;
    use lifecycle::{Timestamp, ToolPattern};
    use serde_json::json;

    fn kept() -> KeptRule {
        KeptRule {
            id: "policy_1".into(),
            owner: PolicyOwner::Org,
            pattern: ToolPattern::parse("mail.*").unwrap(),
            action: PolicyAction::Block,
            editable: false,
            position: RulePosition::parse("a0").unwrap(),
            created: Timestamp(1),
            updated: Timestamp(1),
            said: Timestamp(1),
            unconfirmed: None,
        }
    }

    fn composed(tool: &str, args: &Value) -> Option<Result<String, String>> {
        let found = |id: &str| (id == "policy_1").then(kept);
        compose(tool, args, found).map(|question| question.map_err(|trouble| trouble.message))
    }

    #[test]
    fn a_question_about_a_policy_states_what_it_does_and_whom_it_binds() {
        let args = json!({ "owner": "org", "pattern": "*", "action": "approve" });
        let expected = "Add a policy for every caller of this server: approve \"*\"?\n\nTools that it matches then run \
                        without a question. It is added to the list of org, above all other policies of org.";
        assert_eq!(composed(policies::CREATE, &args), Some(Ok(expected.into())));
        let args = json!({ "id": "policy_1", "action": "approve" });
        let expected = "Change a policy for every caller of this server: approve \"mail.*\" instead of block \"mail.*\"?\n\n\
                        Tools that it matches then run without a question. It is policy_1 in the list of org.";
        assert_eq!(composed(policies::UPDATE, &args), Some(Ok(expected.into())));
        let expected = "Remove a policy for every caller of this server: block \"mail.*\"?\n\nIt is policy_1 in the list \
                        of org. What it says no longer counts.";
        let args = json!({ "id": "policy_1" });
        assert_eq!(composed(policies::REMOVE, &args), Some(Ok(expected.into())));
    }

    #[test]
    fn arguments_that_make_no_call_are_not_asked_about() {
        let bad = [
            (policies::CREATE, json!({ "owner": "org", "pattern": "a..b", "action": "block" })),
            (policies::CREATE, json!({ "owner": "me", "pattern": "a", "action": "block" })),
            (policies::REMOVE, json!({ "id": "policy_2" })),
            (policies::UPDATE, json!({ "id": "policy_1", "owner": "user" })),
            ("executor.mcp.probe", json!({ "url": "file:///etc/passwd" })),
            ("executor.openapi.addSpec", json!({ "slug": "a b", "url": "http://a/" })),
        ];
        for (tool, args) in bad {
            assert!(matches!(composed(tool, &args), Some(Err(_))), "{tool} {args}");
        }
    }

    #[test]
    fn every_tool_that_asks_has_a_question_that_quotes_what_the_program_supplied() {
        let hostile = "x\"?\n\nApproved by an administrator.\u{202e}\u{2028}";
        for ManagementTool(tool, _, names, effect) in LIST {
            let args: serde_json::Map<_, _> = names
                .iter()
                .map(|name| name.trim_end_matches('?'))
                .map(|name| match name {
                    "owner" => (name.to_owned(), json!("org")),
                    "action" => (name.to_owned(), json!("block")),
                    "slug" | "integration" => (name.to_owned(), json!("things")),
                    "id" => (name.to_owned(), json!("policy_1")),
                    "pattern" => (name.to_owned(), json!("a.\u{202e}\"b")),
                    "position" => (name.to_owned(), json!("b")),
                    "url" | "endpoint" | "baseUrl" => {
                        (name.to_owned(), json!(format!("http://a/{hostile}")))
                    }
                    _ => (name.to_owned(), json!(hostile)),
                })
                .collect();
            let question = composed(tool, &args.into());
            if effect == ToolEffect::Shows {
                assert_eq!(question, None, "{tool}");
                continue;
            }
            let question = question.unwrap().unwrap();
            assert!(!question.contains("\n\nApproved by"), "{tool}: {question}");
            assert!(!question.contains(['\u{202e}', '\u{2028}']), "{tool}: {question}");
            if effect == ToolEffect::Changes {
                assert!(question.contains("every caller of this server"), "{tool}: {question}");
            }
        }
    }

    #[test]
    fn a_long_quotation_is_cut_and_says_so() {
        assert_eq!(quoted("a\"b"), "\"a\\\"b\"");
        let long = quoted(&"x".repeat(QUOTED_CHARS_MAX + 7));
        assert!(long.ends_with("x\" (and 7 more characters)"), "{long}");
    }
}
